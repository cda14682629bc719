// Package doctor looks at what duet-rpc needs, and says what was found, what is
// wrong and what to do about it.
package doctor

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	Found string `json:"found"`
	Todo  string `json:"todo,omitempty"` // what to do about it
}

// A State says what a finding means for the user.
type State string

// The states of a finding.
const (
	OK    State = "ok"
	Note  State = "note"
	Wrong State = "wrong"
)

// Examine looks at everything. show gets the messages of the exchange with the
// program, which is started as an editor would start it; version says which
// program this is.
func Examine(s *hubprocess.Settings, version string, show io.Writer) []Finding {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return append([]Finding{
		{Check: "program", State: OK, Found: fmt.Sprintf("%s at %s", version, self)},
		checkPath(self),
		checkLog(os.Getenv("DUET_RPC_LOG")),
		checkLimits(s),
		checkExchange(self, show),
	}, examineSessions(s)...)
}

// checkPath looks whether an editor that starts "duet-rpc" gets this program.
func checkPath(self string) Finding {
	f := Finding{Check: "PATH"}
	found, err := exec.LookPath("duet-rpc")
	switch {
	case err != nil:
		f.State, f.Found = Note, "duet-rpc is not on PATH"
		f.Todo = fmt.Sprintf("put %s on PATH, or name this program in the editor's settings", filepath.Dir(self))
	case !project.SameFile(found, self):
		f.State, f.Found = Note, "another duet-rpc comes first on PATH: "+found
		f.Todo = "remove it, or name this program in the editor's settings"
	default:
		f.State, f.Found = OK, found
	}
	return f
}

// checkLog looks whether the log can be written.
func checkLog(path string) Finding {
	f := Finding{Check: "log", State: OK, Found: "standard error"}
	if path == "" {
		return f
	}
	f.Found = path
	file, err := logging.OpenFile(path)
	if err != nil {
		f.State, f.Found = Wrong, err.Error()
		f.Todo = "set DUET_RPC_LOG to a file in a directory that can be written"
		return f
	}
	file.Close()
	return f
}

func checkLimits(s *hubprocess.Settings) Finding {
	l := s.Limits
	return Finding{
		Check: "limits", State: OK,
		Found: fmt.Sprintf("messages of at most %d bytes, headers of at most %d bytes, %v for one to arrive", l.MaxFrame, l.MaxHeader, l.Timeout),
	}
}

// checkExchange starts the program as an editor would.
func checkExchange(self string, show io.Writer) Finding {
	f := Finding{Check: "exchange", State: OK}
	began := time.Now()
	n, err := exchange(self, show)
	if err != nil {
		f.State, f.Found = Wrong, err.Error()
		f.Todo = "run duet-rpc --log-level debug and look at what it logs"
		return f
	}
	f.Found = fmt.Sprintf("%d requests answered in %v", n, time.Since(began).Round(100*time.Microsecond))
	return f
}

// Print prints findings as a table.
func Print(w io.Writer, findings []Finding) error {
	var rows [][]string
	for _, f := range findings {
		rows = append(rows, []string{string(f.State), f.Check, f.Found})
		if f.Todo != "" {
			rows = append(rows, []string{"", "", "→ " + f.Todo})
		}
	}
	return term.Listing(w, rows)
}
