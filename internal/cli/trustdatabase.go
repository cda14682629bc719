package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// foreignDatabase is what `trust --database` tells of one.
type foreignDatabase struct {
	Database string          `json:"database"`
	Problem  string          `json:"problem,omitempty"` // why nothing of it can be taken over
	Objects  []string        `json:"unknown_objects,omitempty"`
	Holds    *heldHistory    `json:"holds,omitempty"`
	NotTaken *notTaken       `json:"not_taken,omitempty"`
	Taken    bool            `json:"taken"`
	Result   *history.Result `json:"result,omitempty"`
	Now      string          `json:"database_now,omitempty"` // where it is now
}

type heldHistory struct {
	Conversations int                    `json:"conversations"`
	Sessions      int                    `json:"sessions"`
	Items         int                    `json:"items"`
	Changes       int                    `json:"changes"`
	Newest        []history.Conversation `json:"newest"`
}

// notTaken is how much there is of what is never taken over.
type notTaken struct {
	Waiting        int `json:"waiting_sessions"`
	Rules          int `json:"rules"`
	Modes          int `json:"modes"`
	MCPServers     int `json:"mcp_servers"`
	Settings       int `json:"settings"`
	Questions      int `json:"open_questions"`
	Carried        int `json:"answers_kept"`
	NativeSessions int `json:"agent_sessions"`
	Processes      int `json:"processes"`
}

// trustDatabase shows what a database holds that is not used, and takes over
// its history if the user says yes. path is "" for the newest that there is.
func trustDatabase(ctx context.Context, cmd *cobra.Command, s *settings, o trustOptions, path string) error {
	p, err := s.Project()
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	if path, err = foreignPath(ctx, p, path); err != nil {
		return err
	}
	found := foreignDatabase{Database: path}
	out := cmd.OutOrStdout()
	if s.json {
		w := out
		defer func() { _ = output.JSON(w, found) }()
		out = io.Discard
	}
	if err := found.look(ctx); err != nil {
		return err
	}
	found.print(out)
	switch {
	case found.Problem != "":
		return errors.New("nothing of this database can be taken over; it stays where it is")
	case found.Holds.Conversations == 0:
		fmt.Fprintln(out, "There is no history to take over.")
		return nil
	case o.show:
		return nil
	case !o.yes:
		if err := askYes(cmd, s, "Take over its history?", "not taken over", "duet-rpc trust --database"); err != nil {
			return err
		}
	}
	return found.take(ctx, s, p, out)
}

// foreignPath is the database that is meant. Without a name it is the newest
// that was set aside, or the one that will be.
func foreignPath(ctx context.Context, p project.Project, path string) (string, error) {
	if path != "" {
		return filepath.Abs(path)
	}
	found, err := database.Look(ctx, p)
	if err != nil {
		return "", err
	}
	if found.Kind == origin.Foreign {
		return p.Database(), nil
	}
	if aside := database.Aside(p); len(aside) > 0 {
		return aside[0], nil
	}
	return "", fmt.Errorf("no database of the project %s was set aside; name another one: duet-rpc trust --database FILE", p.Root)
}

// look surveys the database.
func (f *foreignDatabase) look(ctx context.Context) error {
	survey, err := database.Read(ctx, f.Database)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no database %s", f.Database)
	}
	f.Problem, f.Objects = survey.Problem, survey.Unknown
	if err != nil || f.Problem != "" {
		return err
	}
	f.Holds = &heldHistory{survey.Threads, survey.Runs, survey.Items, survey.Changes, survey.Newest}
	f.NotTaken = &notTaken{
		survey.Waiting, survey.Rules, survey.Modes, survey.MCPServers, survey.Settings, survey.Questions, survey.Carried, survey.NativeSessions, survey.Agents,
	}
	return nil
}

// print shows what was found, escaped: it is somebody else's.
func (f *foreignDatabase) print(out io.Writer) {
	fmt.Fprintf(out, "%q was not made by you on this machine.\n", f.Database)
	if f.Problem != "" {
		fmt.Fprintf(out, "%s\n", output.Line(f.Problem))
		for _, o := range f.Objects {
			fmt.Fprintf(out, "  %s\n", output.Line(o))
		}
		return
	}
	h, n := f.Holds, f.NotTaken
	fmt.Fprintf(out, "It holds %s", history.Amount(h.Conversations, h.Sessions, h.Items, h.Changes))
	if len(h.Newest) > 0 {
		fmt.Fprintln(out, "; the newest are:")
	} else {
		fmt.Fprintln(out, ".")
	}
	for _, c := range h.Newest {
		fmt.Fprintf(out, "  %s  %s  agent %q  %q\n", c.Active.Local().Format(time.DateTime), output.Count(c.Runs, "session"), c.Agent, c.Title)
	}
	begun := false
	for _, x := range []struct {
		n    int
		what string
	}{
		{n.Waiting, "sessions that wait to be started"},
		{n.Rules, "rules that answer questions"},
		{n.Modes, "permission modes"},
		{n.MCPServers, "conversations with MCP servers"},
		{n.Settings, "conversations with settings"},
		{n.Questions, "open questions"},
		{n.Carried, "answers that are kept for later"},
		{n.NativeSessions, "sessions that agents keep themselves"},
		{n.Processes, "processes"},
	} {
		if x.n == 0 {
			continue
		}
		if !begun {
			fmt.Fprintln(out, "It also holds this, which is never taken over:")
			begun = true
		}
		fmt.Fprintf(out, "  %s: %d\n", x.what, x.n)
	}
}
