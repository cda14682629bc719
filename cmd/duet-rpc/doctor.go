package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// finding is one thing that doctor looked at.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"` // ok, note or wrong
	Found string `json:"found"`
	Todo  string `json:"todo,omitempty"` // what to do about it
}

const doctorHelp = `Look at what duet-rpc needs, say what was found, what is wrong and what to do.

It starts this program as an editor would, speaks with it, and runs a prompt with
the demo agent. With --exchange the messages are shown.

Exit status: 0 if all is well; 1 if something is wrong.`

func newDoctorCommand(s *settings) *cobra.Command {
	var showExchange bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is found, what is wrong and what to do",
		Long:  doctorHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			show := io.Discard
			if showExchange && !s.json {
				show = cmd.OutOrStdout()
			}
			findings := examine(s, show)
			if err := report(cmd.OutOrStdout(), findings, s.json); err != nil {
				return err
			}
			for _, f := range findings {
				if f.State == "wrong" {
					return fmt.Errorf("something is wrong: %s", f.Check)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&showExchange, "exchange", false, "show the messages that go between an editor and duet-rpc")
	return cmd
}

// examine looks at everything. show gets the messages of the exchange.
func examine(s *settings, show io.Writer) []finding {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return append([]finding{
		{Check: "program", State: "ok", Found: fmt.Sprintf("%s at %s", versionLine(), self)},
		checkPath(self),
		checkLog(os.Getenv("DUET_RPC_LOG")),
		checkLimits(s),
		checkExchange(self, show),
	}, examineSessions(s)...)
}

// checkPath looks whether an editor that starts "duet-rpc" gets this program.
func checkPath(self string) finding {
	f := finding{Check: "PATH"}
	found, err := exec.LookPath("duet-rpc")
	switch {
	case err != nil:
		f.State, f.Found = "note", "duet-rpc is not on PATH"
		f.Todo = fmt.Sprintf("put %s on PATH, or name this program in the editor's settings", filepath.Dir(self))
	case !sameFile(found, self):
		f.State, f.Found = "note", "another program comes first: "+found
		f.Todo = "remove it, or name this program in the editor's settings"
	default:
		f.State, f.Found = "ok", found
	}
	return f
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// checkLog looks whether the log can be written.
func checkLog(path string) finding {
	f := finding{Check: "log", State: "ok", Found: "standard error"}
	if path == "" {
		return f
	}
	f.Found = path
	file, err := logging.OpenFile(path)
	if err != nil {
		f.State, f.Found = "wrong", err.Error()
		f.Todo = "set DUET_RPC_LOG to a file in a directory that can be written"
		return f
	}
	file.Close()
	return f
}

func checkLimits(s *settings) finding {
	l := s.Limits
	return finding{
		Check: "limits", State: "ok",
		Found: fmt.Sprintf("body %d bytes, header section %d bytes, %v for a frame", l.MaxFrame, l.MaxHeader, l.Timeout),
	}
}

// checkExchange starts the program as an editor would.
func checkExchange(self string, show io.Writer) finding {
	f := finding{Check: "exchange", State: "ok"}
	began := time.Now()
	n, err := exchange(self, show)
	if err != nil {
		f.State, f.Found = "wrong", err.Error()
		f.Todo = "run duet-rpc --log-level debug and look at what it logs"
		return f
	}
	f.Found = fmt.Sprintf("%d messages there and back in %v", n, time.Since(began).Round(100*time.Microsecond))
	return f
}

// report prints the findings as a table, or as JSON.
func report(w io.Writer, findings []finding, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(findings)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Check, oneLine(f.Found))
		if f.Todo != "" {
			fmt.Fprintf(table, "\t\t→ %s\n", oneLine(f.Todo))
		}
	}
	return table.Flush()
}
