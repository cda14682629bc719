package nativesession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	driver "github.com/duet-rpc/duet-rpc/internal/executor/acp"
)

const (
	maxOutput  = 256 << 20 // bytes that are read of an agent that tells a history
	maxHistory = 32 << 20  // bytes of a history that are kept: its end
)

// A History is what was said and done in an agent's session.
type History struct {
	Title string // in the agent's words, or ""
	Dir   string // in which it works
	// HasHistory says that the agent has told it. One that cannot still has the session, and
	// goes on with it.
	HasHistory bool
	Parts      []catalog.Retold
	LeftOut    int    // of the parts, the first ones: they were too much
	Note       string // what is to be known of the agent's session now, or ""
}

// Wanted names a session of an agent's.
type Wanted struct {
	ID  string
	Dir string // in which it works; "": as the agent says
	// Else is in which it works if nobody says.
	Else string
}

// Load has an agent tell the history of one of its sessions. The session stays as it
// is.
func Load(ctx context.Context, l agentlink.Launch, want Wanted, log *slog.Logger) (History, error) {
	var h history
	replay := driver.NewReplay(h.add)
	var updates atomic.Int64
	var loading atomic.Bool // what it says before is not about the session
	k, err := open(ctx, l, agentlink.Options{
		Dir: firstDirectory(want.Dir, want.Else), MaxOutput: maxOutput, Logger: log,
		Update: func(update []byte, repaired bool) {
			updates.Add(1)
			if loading.Load() {
				h.title(update)
				replay.Update(update, repaired)
			}
		},
	})
	if err != nil {
		return History{}, err
	}
	defer k.Close()
	method, params := "", map[string]any{"sessionId": want.ID, "mcpServers": []any{}}
	switch {
	case k.Info.IsVersion2():
		method, params["replayFrom"] = acp.MethodSessionResume, map[string]string{"type": "start"}
	case k.Info.LoadSession:
		method = acp.MethodSessionLoad
	case acp.Has(k.Info.Session.Resume):
		method = acp.MethodSessionResume
	default:
		return History{}, &CannotError{l.Name + " cannot go on with a session that was begun elsewhere: it offers neither session/load nor session/resume"}
	}
	known, listed, err := k.find(ctx, want.ID)
	if err != nil {
		return History{}, explained(l.Name, err)
	}
	h.Title, h.Dir = known.Title, want.Dir
	for _, dir := range []string{known.Dir, want.Else} {
		if h.Dir == "" {
			h.Dir = dir
		}
	}
	if info, err := os.Stat(h.Dir); err != nil || !info.IsDir() {
		return History{}, &DirectoryError{l.Name, h.Dir}
	}
	if err := k.awaitLoadable(ctx); err != nil {
		return History{}, err
	}
	loading.Store(k.Info.IsVersion2() || method == acp.MethodSessionLoad)
	params["cwd"] = h.Dir
	_, err = agentlink.Ask[json.RawMessage](ctx, k.Link, loadTime, method, params)
	if err != nil {
		return History{}, notLoaded(explained(l.Name, err), h.Dir, listed)
	}
	h.HasHistory, h.Note = loading.Load(), k.afterLoad()
	// gemini answers before it has told all; that it refuses what nobody knows tells
	// that what it sent before has come.
	for before := int64(-1); h.HasHistory && before != updates.Load(); {
		before = updates.Load()
		_, err := agentlink.Ask[json.RawMessage](ctx, k.Link, endTime, "_duet/replayed", map[string]any{})
		if err != nil && !errors.As(err, new(*agentlink.Refusal)) {
			break
		}
	}
	if acp.Has(k.Info.Session.Close) { // it is well if it does not
		_, _ = agentlink.Ask[json.RawMessage](ctx, k.Link, endTime, "session/close", map[string]any{"sessionId": want.ID})
	}
	k.Close() // it has said all
	replay.Close()
	return h.History, nil
}

// notLoaded is why a session was not loaded in a directory, with what may be done about
// it: an agent that does not list it may know it elsewhere.
func notLoaded(err error, dir string, listed bool) error {
	if listed || errors.Is(err, ErrSignedOut) || !errors.As(err, new(*agentlink.Refusal)) {
		return err
	}
	return fmt.Errorf("%w (it was asked for the session in %s: some agents have one only in the directory in which it was begun, so say that, with working_dir or --dir; and check the id)", err, dir)
}

// A DirectoryError says that the directory of a session is not there.
type DirectoryError struct{ Agent, Dir string }

func (e *DirectoryError) Error() string {
	return fmt.Sprintf("the session of %s worked in %s, which is no directory any more: say in which it is to go on (working_dir, or --dir)", e.Agent, e.Dir)
}

func firstDirectory(list ...string) string {
	for _, dir := range list {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// history is a History that is being told.
type history struct {
	History
	size int
}

// add takes a part. What is too much goes from the beginning.
func (h *history) add(r catalog.Retold) {
	h.Parts = append(h.Parts, r)
	h.size += sizeOf(r)
	for h.size > maxHistory && len(h.Parts) > 1 {
		h.size -= sizeOf(h.Parts[0])
		h.Parts = h.Parts[1:]
		h.LeftOut++
	}
}

func sizeOf(r catalog.Retold) int {
	n := len(r.EventData) + len(r.Text) + 100
	for _, c := range r.Content {
		n += len(c.Data)
	}
	return n
}

// title notes what the agent calls the session.
func (h *history) title(update []byte) {
	if stringOf(frame.Member(update, "sessionUpdate")) == "session_info_update" {
		if title := stringOf(frame.Member(update, "title")); title != "" {
			h.Title = agentlink.Text(title)
		}
	}
}
