// Package foreign shows what a database holds that the user has not made on this
// machine, and takes its history over: that of `duet-rpc trust --database`.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A Database is one that is not used, and what it holds. Its JSON is what `duet-rpc
// trust --database --json` prints.
type Database struct {
	Database string          `json:"database"`
	Problem  string          `json:"problem,omitempty"` // why nothing of it can be taken over
	Objects  []string        `json:"unknown_objects,omitempty"`
	Holds    *History        `json:"holds,omitempty"`
	NotTaken *NotTaken       `json:"not_taken,omitempty"`
	Taken    bool            `json:"taken"`
	Result   *history.Result `json:"result,omitempty"`
	Now      string          `json:"database_now,omitempty"` // where it is now
}

// A History is what can be taken over.
type History struct {
	Conversations int                    `json:"conversations"`
	Sessions      int                    `json:"sessions"`
	Items         int                    `json:"items"`
	Changes       int                    `json:"changes"`
	Newest        []history.Conversation `json:"newest"`
}

// NotTaken is how much there is of what is never taken over.
type NotTaken struct {
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

// Find is the path of the database that is meant. Without a name it is the newest
// that was set aside, or the one that will be.
func Find(ctx context.Context, p project.Project, path string) (string, error) {
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

// Look surveys the database at path, and changes nothing. That nothing of it can
// be taken over is no error, but its Problem.
func Look(ctx context.Context, path string) (*Database, error) {
	f := &Database{Database: path}
	survey, err := database.Read(ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return f, fmt.Errorf("there is no database %s", path)
	}
	f.Problem, f.Objects = survey.Problem, survey.Unknown
	if err != nil || f.Problem != "" {
		return f, err
	}
	f.Holds = &History{survey.Threads, survey.Runs, survey.Items, survey.Changes, survey.Newest}
	f.NotTaken = &NotTaken{
		survey.Waiting, survey.Rules, survey.Modes, survey.MCPServers, survey.Settings, survey.Questions, survey.Carried, survey.NativeSessions, survey.Agents,
	}
	return f, nil
}

// Print shows what was found, escaped: it is somebody else's.
func (f *Database) Print(out io.Writer) {
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
