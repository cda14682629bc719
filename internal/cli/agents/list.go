package agents

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/agentstatus"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/signin"
)

// A listed agent is one as `duet-rpc agents --json` shows it.
type listed struct {
	agentstatus.Agent
	Added *origin `json:"added,omitempty"`
}

// An origin is where an agent came from that was added.
type origin struct {
	From    string `json:"from"`
	ID      string `json:"id"`
	Version string `json:"version"`
	Via     string `json:"via"`
}

// describe describes the agents, with where those came from that were added.
func describe(ctx context.Context, c *config.Config, o Options) []listed {
	records, err := readRecords()
	list := []listed{}
	for _, d := range agentstatus.Describe(ctx, c, agentstatus.Options{Notes: notes(), Version: o.Version, Getenv: os.Getenv, Run: true}) {
		l := listed{Agent: d}
		if err == nil && d.Source == config.SourceUser {
			if r, found := records.Find(d.Name); found {
				l.Added = &origin{r.From, r.ID, r.Version, r.Via}
				if l.Available {
					l.Status.Version = cmp.Or(l.Status.Version, r.Version)
				}
			}
		}
		list = append(list, l)
	}
	return list
}

// programColumns is how many columns of a terminal are enough to show where programs
// are, too.
const programColumns = 100

// printAgents prints a table; * marks the default. On a terminal, which would cut it,
// how agents are got stands below the table.
func printAgents(out io.Writer, agents []listed) error {
	columns, _, below := term.Size(out)
	heading := []string{"", "AGENT", "STATE", "SOURCE", "VERSION", "SIGNED IN"}
	programs := !below || columns >= programColumns
	if programs {
		heading = append(heading, "PROGRAM")
	}
	table := term.NewTable(out, heading...)
	table.Spare("SOURCE")
	var notes []string
	for _, a := range agents {
		mark, program, note := "", a.Path, ""
		if a.Default {
			mark = "*"
		}
		state, todo := stateOf(a)
		switch {
		case todo != "" && below:
			program, note = "", todo
		case todo != "":
			program = "→ " + todo
		case a.Path != "":
			program = term.Quoted(a.Path)
		}
		row := []string{mark, a.Name, state, a.Source, cmp.Or(a.Version, "-"), signedInCell(a.Status), program}
		table.Row(row[:len(heading)]...)
		if from := a.Added; from != nil {
			added := fmt.Sprintf("%s %s (%s) from %s", from.ID, from.Version, from.Via, term.Quoted(from.From))
			if below {
				note = added
			} else {
				table.Row("", "", "", "", "", "", added)
			}
		}
		if note != "" {
			notes = append(notes, term.Line(a.Name)+": "+term.Line(note))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	notes = append(notes, signInNotes(agents)...)
	if len(notes) > 0 {
		_, err := fmt.Fprintf(out, "\n%s\n", term.Lines(out, strings.Join(notes, "\n")))
		return err
	}
	return nil
}

// stateOf is whether an agent can be used, and if not what to do about it.
func stateOf(a listed) (state, todo string) {
	switch {
	case !a.Trusted:
		return "not trusted", "look at it with `duet-rpc trust`"
	case a.CLI != "":
		return "needs adapter", fmt.Sprintf("%s (%s alone does not speak the Agent Client Protocol)", a.Install, term.Quoted(a.CLI))
	case !a.Available:
		return "not found", a.Install
	}
	return "available", ""
}

// signedInCell is what is known of who is signed in, and since when.
func signedInCell(s agentstatus.Status) string {
	cell := ""
	switch s.SignedIn {
	case "":
		return "-"
	case agentstatus.Unknown:
		if s.Hint != "" {
			return "likely"
		}
		return "not known"
	case agentstatus.Answered:
		cell = "answered"
	default:
		cell = signedInText(s.SignedIn)
	}
	if s.ToldAt != nil {
		cell += ", " + term.Age(s.ToldAt.Format(time.RFC3339Nano)) + " ago"
	}
	return cell
}

// signInNotes say what speaks for that somebody is signed in, and how to know.
func signInNotes(agents []listed) (notes []string) {
	var unknown []string
	for _, a := range agents {
		switch {
		case a.SignedIn == signin.SignedOut:
			notes = append(notes, fmt.Sprintf("%s: sign in with `duet-rpc agents login %s`", term.Line(a.Name), term.Line(term.ShellWord(a.Name))))
		case a.SignedIn == agentstatus.Unknown && a.Hint != "":
			notes = append(notes, fmt.Sprintf("%s: likely signed in, %s", term.Line(a.Name), term.Line(a.Hint)))
		}
		if a.SignedIn == agentstatus.Unknown {
			unknown = append(unknown, term.Line(term.ShellWord(a.Name)))
		}
	}
	if len(unknown) > 0 {
		notes = append(notes, "Whether you are signed in: `duet-rpc agents check "+strings.Join(unknown, " ")+"` asks.")
	}
	return notes
}

// oneAgent is the check of arguments that are the name of an agent.
func oneAgent(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("`%s` takes the name of one agent; `duet-rpc agents` lists them", cmd.CommandPath())
	}
	return nil
}
