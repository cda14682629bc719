package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
)

// listedTerminal is what is shown of a terminal.
type listedTerminal struct {
	ID        string   `json:"terminal_id"`
	Program   string   `json:"program"`
	Args      []string `json:"args"`
	CWD       string   `json:"cwd"`
	Cols      int      `json:"cols"`
	Rows      int      `json:"rows"`
	Tmux      string   `json:"tmux_session"`
	TaskID    string   `json:"task_id"`
	ReadOnly  bool     `json:"read_only"`
	Attached  int      `json:"attached"`
	Taken     bool     `json:"taken"`
	StartedAt string   `json:"started_at"`
}

// size is columns and rows, or - for a terminal that has no size.
func (t listedTerminal) size() string {
	if t.Cols == 0 {
		return "-"
	}
	return fmt.Sprintf("%d×%d", t.Cols, t.Rows)
}

// who says whose terminal it is, and who is there.
func (t listedTerminal) who() string {
	var list []string
	if t.ReadOnly {
		list = append(list, strings.TrimSpace("an agent's "+t.TaskID))
	}
	if t.Tmux != "" {
		list = append(list, "tmux "+t.Tmux)
	}
	switch {
	case t.Taken:
		list = append(list, "taken")
	case t.Attached > 0:
		list = append(list, fmt.Sprint(t.Attached, " attached"))
	}
	return strings.Join(list, ", ")
}

func (t listedTerminal) command() string {
	return short(strings.Join(append([]string{t.Program}, t.Args...), " "))
}

type listedTerminals struct {
	Terminals []listedTerminal `json:"terminals"`
}

// listTerminals prints the terminals of the hub.
func listTerminals(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client) error {
	r, raw, err := ask[listedTerminals](ctx, c, "terminal.list", nil)
	if err != nil {
		return err
	}
	if s.json {
		return printRaw(cmd.OutOrStdout(), raw)
	}
	if len(r.Terminals) == 0 {
		progress(cmd, s, "no terminal runs; duet-rpc attach --new starts one")
		return nil
	}
	t := newTable(cmd.OutOrStdout(), "TERMINAL", "SIZE", "AGE", "COMMAND", "")
	for _, one := range r.Terminals {
		t.row(one.ID, one.size(), age(one.StartedAt), one.command(), one.who())
	}
	return t.flush()
}

// terminalIDs completes terminals.
func terminalIDs(ctx context.Context, c *client.Client) []string {
	r, _, _ := ask[listedTerminals](ctx, c, "terminal.list", nil)
	var out []string
	for _, t := range r.Terminals {
		out = append(out, t.ID+"\t"+strings.Trim(t.command()+" · "+t.who(), " ·"))
	}
	return out
}

// greet says which terminal this is now, and how to leave it.
func (a *attached) greet(out io.Writer) {
	about := ""
	if a.watch {
		about = ", an agent's: what you type goes nowhere"
	}
	fmt.Fprintf(out, "— %s%s; C-] detaches\r\n", oneLine(a.id), about)
}
