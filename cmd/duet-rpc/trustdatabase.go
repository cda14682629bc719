package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/origin"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
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
	p, err := findProject(s)
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	if path, err = foreignPath(ctx, p, path); err != nil {
		return err
	}
	told := foreignDatabase{Database: path}
	out := cmd.OutOrStdout()
	if s.json {
		w := out
		defer func() { _ = printJSON(w, told) }()
		out = io.Discard
	}
	if err := told.look(ctx); err != nil {
		return err
	}
	told.print(out)
	switch {
	case told.Problem != "":
		return errors.New("nothing of this database can be taken over; it stays where it is")
	case told.Holds.Conversations == 0:
		fmt.Fprintln(out, "There is no history to take over.")
		return nil
	case o.show:
		return nil
	case !o.yes:
		if err := askYes(cmd, s, "Take over its history?", "not taken over", "duet-rpc trust --database"); err != nil {
			return err
		}
	}
	return told.take(ctx, s, p, out)
}

// foreignPath is the database that is meant. Without a name it is the newest
// that was set aside, or the one that will be.
func foreignPath(ctx context.Context, p project.Project, path string) (string, error) {
	if path != "" {
		return filepath.Abs(path)
	}
	key, err := origin.FindKey(os.Getenv)
	if err != nil && !errors.Is(err, origin.ErrNoKey) {
		return "", err
	}
	place := origin.At(p.Database(), key)
	found, err := lookAtDatabase(ctx, place, p)
	if err != nil {
		return "", err
	}
	if found.Kind == origin.Foreign {
		return p.Database(), nil
	}
	if aside := place.Aside(); len(aside) > 0 {
		return aside[0], nil
	}
	return "", fmt.Errorf("no database of the project %s was set aside; name another one: duet-rpc trust --database FILE", p.Root)
}

// look surveys the database.
func (f *foreignDatabase) look(ctx context.Context) error {
	from, err := sqlite.OpenForeign(ctx, f.Database)
	var broken *sqlite.OpenError
	var altered *sqlite.AlteredError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no database %s", f.Database)
	case errors.As(err, &altered):
		f.Problem = "it holds what duet-rpc did not make, so nothing in it was read"
		for _, o := range altered.Strange {
			f.Objects = append(f.Objects, o.String())
		}
		for _, o := range altered.Missing {
			f.Objects = append(f.Objects, o.String()+" (missing)")
		}
		return nil
	case errors.As(err, &broken):
		f.Problem = "it cannot be read: " + broken.Err.Error()
		return nil
	case err != nil:
		return err
	}
	defer from.Close()
	survey, err := history.Look(ctx, from)
	if err != nil {
		f.Problem = "it cannot be read: " + err.Error()
		return ctx.Err()
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
		fmt.Fprintf(out, "%s\n", oneLine(f.Problem))
		for _, o := range f.Objects {
			fmt.Fprintf(out, "  %s\n", oneLine(o))
		}
		return
	}
	h, n := f.Holds, f.NotTaken
	fmt.Fprintf(out, "It holds %s", historyText(h.Conversations, h.Sessions, h.Items, h.Changes))
	if len(h.Newest) > 0 {
		fmt.Fprintln(out, "; the newest are:")
	} else {
		fmt.Fprintln(out, ".")
	}
	for _, c := range h.Newest {
		fmt.Fprintf(out, "  %s  %s  agent %q  %q\n", c.Active.Local().Format(time.DateTime), count(c.Runs, "session"), c.Agent, c.Title)
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
		{n.NativeSessions, "conversations that agents keep themselves"},
		{n.Processes, "processes"},
	} {
		if x.n == 0 {
			continue
		}
		if !begun {
			fmt.Fprintln(out, "It also has what is never taken over, whatever you say:")
			begun = true
		}
		fmt.Fprintf(out, "  %s: %d\n", x.what, x.n)
	}
}

// historyText says how much a history is.
func historyText(conversations, sessions, items, changes int) string {
	text := count(conversations, "conversation") + " with " + count(sessions, "session") + ", " + countIn(items, "entry", "entries")
	if changes > 0 {
		text += " and " + countIn(changes, "change of a file", "changes of files")
	}
	return text
}

func count(n int, what string) string { return countIn(n, what, what+"s") }

func countIn(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// take takes over the history, as the project's hub or by the one that runs.
func (f *foreignDatabase) take(ctx context.Context, s *settings, p project.Project, out io.Writer) error {
	c := claimProject(s)
	var result history.Result
	var err error
	switch {
	case c.held():
		result, err = f.takeByHub(ctx, s, p, c.err)
	case c.err != nil:
		return c.err
	default:
		result, err = f.takeAsHub(ctx, s, p, c)
	}
	if err != nil {
		return err
	}
	f.Taken, f.Result = true, &result
	fmt.Fprintf(out, "Taken over: %s.\nThe database is at %q; nobody needs it any more.\n", takenText(result), f.Now)
	return nil
}

func (f *foreignDatabase) takeAsHub(ctx context.Context, s *settings, p project.Project, c claim) (result history.Result, err error) {
	defer c.lock.Close()
	log := logging.Open(logging.Options{Level: quietLevel + 1, NoColor: s.noColor}) // what is set aside is told of here
	defer log.Close(logGrace)
	aside := f.Database == p.Database() // not yet, but it will be
	if _, _, err := prepareDatabase(ctx, p, log.Logger); err != nil {
		return result, unavailable(p, err)
	}
	key, err := origin.LoadKey(os.Getenv)
	if err != nil {
		return result, err
	}
	place := origin.At(p.Database(), key)
	if aside {
		if list := place.Aside(); len(list) > 0 {
			f.Database = list[0]
		}
	}
	into, err := sqlite.Open(ctx, p.Database(), store.Options{})
	if err != nil {
		return result, unavailable(p, err)
	}
	result, err = takeHistory(ctx, p, f.Database, "", into)
	if err := errors.Join(err, into.Close()); err != nil {
		return result, err
	}
	if f.Now, err = place.Taken(f.Database); err != nil {
		f.Now = f.Database
	}
	return result, nil
}
