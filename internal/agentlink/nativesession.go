package agentlink

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	driver "github.com/duet-rpc/duet-rpc/internal/executor/acp"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// This file lists, loads and deletes the sessions that an agent stores itself, however they
// began. It starts the agent for that, outside of any session of Duet, and ends it.
//
// The protocol is described on https://agentclientprotocol.com/protocol/v1/session-list.

// Timeouts for an agent.
const (
	loadTime = 2 * time.Minute // of a long history
	endTime  = 2 * time.Second // to close a session
)

// maxID is the maximum length of a session's id, in bytes.
const maxID = 500

// A sessionLink is a link to an agent that was started for its sessions.
type sessionLink struct {
	*Link
	name      string
	agentName string // its own name; "" if it reports none
}

func openAsked(ctx context.Context, l Launch, opts Options) (*sessionLink, error) {
	link, err := Open(ctx, l, opts)
	if err != nil {
		return nil, err
	}
	name := ""
	if link.Info.Info != nil {
		name = link.Info.Info.Name
	}
	return &sessionLink{link, l.Name, name}, nil
}

// A CannotError reports that an agent does not support a request.
type CannotError struct{ Text string }

func (e *CannotError) Error() string { return e.Text }

// errSignedOut reports that an agent requires a sign-in first.
var errSignedOut = errors.New("you are not signed in")

// withRemedy adds the remedy to an error of an agent.
func withRemedy(name string, err error) error {
	var refused *Refusal
	if errors.As(err, &refused) && refused.Wire.Code == acp.CodeAuthRequired {
		return fmt.Errorf("%w: %w; sign in with `duet-rpc agents login %s`", err, errSignedOut, name)
	}
	return err
}

// Delete makes an agent delete one of its own sessions.
func Delete(ctx context.Context, l Launch, id string, log *slog.Logger) error {
	k, err := openAsked(ctx, l, Options{Logger: log})
	if err != nil {
		return err
	}
	defer k.Close()
	if !acp.Has(k.Info.Session.Delete) {
		return &CannotError{l.Name + " does not offer to delete its sessions: use its own program, or delete its files"}
	}
	_, err = Ask[json.RawMessage](ctx, k.Link, k.startTime, "session/delete", map[string]any{"sessionId": id})
	return withRemedy(l.Name, err)
}

// A NativeSession is a session that an agent stores itself.
type NativeSession struct {
	ID      string
	Title   string // in the agent's words, or ""
	Dir     string // working directory
	Updated time.Time
}

// A Query selects sessions.
type Query struct {
	Dir    string // only sessions with this working directory; "": all
	Cursor string // of a SessionPage, to continue from it
	Limit  int    // maximum number, at least 1
}

// A SessionPage is a part of an agent's sessions, in the agent's order.
type SessionPage struct {
	Sessions []NativeSession
	Next     string // the Cursor of the next page; "": there is none
}

// maxPages limits the agent's pages that are read for one of Duet's, and maxSearched those for
// one session.
const (
	maxPages    = 50
	maxSearched = 200
)

// ErrCursor reports a cursor that no SessionPage contained.
var ErrCursor = errors.New("the cursor is not from an earlier page")

// A cursor is the beginning of one of Duet's pages: a number of sessions after the beginning of
// an agent's page.
type cursor struct {
	Agent  string `json:"a,omitempty"`
	Behind int    `json:"n,omitempty"`
}

func (c cursor) text() string {
	raw, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(raw)
}

func readCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &c) != nil || c.Behind < 0 {
		return c, ErrCursor
	}
	return c, nil
}

// ListSessions lists an agent's sessions.
func ListSessions(ctx context.Context, l Launch, q Query, log *slog.Logger) (SessionPage, error) {
	from, err := readCursor(q.Cursor)
	if err != nil {
		return SessionPage{}, err
	}
	k, err := openAsked(ctx, l, Options{Dir: q.Dir, Logger: log})
	if err != nil {
		return SessionPage{}, err
	}
	defer k.Close()
	if !k.lists() {
		return SessionPage{}, &CannotError{l.Name + " cannot list its sessions: it does not offer session/list. One whose id you know can be " +
			"adopted"}
	}
	page := SessionPage{Sessions: []NativeSession{}}
	for range maxPages {
		list, next, err := k.page(ctx, q.Dir, from.Agent)
		if err != nil {
			return SessionPage{}, withRemedy(l.Name, err)
		}
		list = list[min(from.Behind, len(list)):]
		if room := q.Limit - len(page.Sessions); len(list) > room {
			page.Sessions = append(page.Sessions, list[:room]...)
			page.Next = cursor{from.Agent, from.Behind + room}.text()
			return page, nil
		}
		page.Sessions = append(page.Sessions, list...)
		if next == "" || next == from.Agent {
			return page, nil
		}
		from = cursor{Agent: next}
		if len(page.Sessions) == q.Limit {
			break
		}
	}
	page.Next = from.text()
	return page, nil
}

func (k *sessionLink) lists() bool { return acp.Has(k.Info.Session.List) }

// page gets one of the agent's pages, and the cursor of the next one. It drops invalid entries.
func (k *sessionLink) page(ctx context.Context, dir, after string) (list []NativeSession, next string, err error) {
	params := map[string]any{}
	if dir != "" {
		params["cwd"] = dir
	}
	if after != "" {
		params["cursor"] = after
	}
	r, err := Ask[struct {
		Sessions []struct {
			ID      string          `json:"sessionId"`
			Dir     string          `json:"cwd"`
			Title   json.RawMessage `json:"title"`
			Updated json.RawMessage `json:"updatedAt"`
		} `json:"sessions"`
		Next json.RawMessage `json:"nextCursor"`
	}](ctx, k.Link, k.startTime, "session/list", params)
	if err != nil {
		return nil, "", err
	}
	for _, s := range r.Sessions {
		if s.ID == "" || len(s.ID) > maxID {
			continue
		}
		one := NativeSession{ID: s.ID, Title: Text(stringOf(s.Title))}
		if filepath.IsAbs(s.Dir) {
			one.Dir = filepath.Clean(s.Dir)
		}
		one.Updated, _ = time.Parse(time.RFC3339, stringOf(s.Updated)) // else the time is unknown
		list = append(list, one)
	}
	return list, stringOf(r.Next), nil
}

// find searches the agent's list for a session, if it has a list.
func (k *sessionLink) find(ctx context.Context, id string) (found NativeSession, ok bool, err error) {
	if !k.lists() {
		return NativeSession{}, false, nil
	}
	after := ""
	for range maxSearched {
		list, next, err := k.page(ctx, "", after)
		if err != nil {
			return NativeSession{}, false, err
		}
		for _, s := range list {
			if s.ID == id {
				return s, true, nil
			}
		}
		if next == "" || next == after {
			break
		}
		after = next
	}
	return NativeSession{}, false, nil
}

// stringOf decodes a JSON string; "" for other JSON.
func stringOf(raw json.RawMessage) (s string) {
	json.Unmarshal(raw, &s)
	return s
}

const (
	maxOutput  = 256 << 20 // bytes of the output of an agent that sends a history
	maxHistory = 32 << 20  // bytes kept of a history: its end
)

// A NativeHistory is the content of an agent's session.
type NativeHistory struct {
	Title string // in the agent's words, or ""
	Dir   string // working directory
	// HasHistory reports that the agent has sent the history. An agent that cannot send it still
	// has the session, and continues it.
	HasHistory bool
	Parts      []catalog.ReplayedPart
	LeftOut    int    // number of dropped parts at the beginning, because of the limit
	Note       string // a warning about the agent's session, or ""
}

// Wanted identifies a session of an agent.
type Wanted struct {
	ID  string
	Dir string // working directory; "": the one that the agent reports
	// Else is the working directory if the agent reports none.
	Else string
}

// LoadSession gets the history of one of an agent's sessions. The session does not change.
func LoadSession(ctx context.Context, l Launch, want Wanted, log *slog.Logger) (NativeHistory, error) {
	var h readHistory
	replay := driver.NewReplay(h.add)
	var updates atomic.Int64
	var loading atomic.Bool // earlier updates do not belong to the session
	k, err := openAsked(ctx, l, Options{
		Dir: firstDirectory(want.Dir, want.Else), MaxOutput: maxOutput, Logger: log,
		Update: func(session, update []byte, repaired bool) {
			updates.Add(1)
			if loading.Load() {
				h.title(update)
				replay.Update(session, update, repaired)
			}
		},
	})
	if err != nil {
		return NativeHistory{}, err
	}
	defer k.Close()
	if !k.Info.CanResume() {
		return NativeHistory{}, &CannotError{l.Name + " cannot continue a session that was begun elsewhere: it offers neither session/load nor " +
			"session/resume"}
	}
	known, listed, err := k.find(ctx, want.ID)
	if err != nil {
		return NativeHistory{}, withRemedy(l.Name, err)
	}
	h.Title, h.Dir = known.Title, want.Dir
	for _, dir := range []string{known.Dir, want.Else} {
		if h.Dir == "" {
			h.Dir = dir
		}
	}
	if info, err := os.Stat(h.Dir); err != nil || !info.IsDir() {
		return NativeHistory{}, &DirectoryError{l.Name, h.Dir}
	}
	if err := k.awaitLoadable(ctx); err != nil {
		return NativeHistory{}, err
	}
	method, params, replays := k.Info.Resume(acp.OpenSessionRequest{
		SessionID: want.ID, Workspace: acp.Workspace{CWD: h.Dir, MCPServers: json.RawMessage(`[]`)},
		ReplayFrom: &acp.ReplayCursor{Type: acp.ReplayFromStart},
	})
	loading.Store(replays)
	_, err = Ask[json.RawMessage](ctx, k.Link, max(loadTime, k.startTime), method, params)
	if err != nil {
		return NativeHistory{}, notLoaded(withRemedy(l.Name, err), h.Dir, listed)
	}
	h.HasHistory, h.Note = replays, k.afterLoad()
	// Some agents answer before they have sent all updates. The refusal of an unknown method shows that
	// the updates sent before have arrived.
	for before := int64(-1); h.HasHistory && before != updates.Load(); {
		before = updates.Load()
		_, err := Ask[json.RawMessage](ctx, k.Link, endTime, "_duet/replayed", map[string]any{})
		if err != nil && !errors.As(err, new(*Refusal)) {
			break
		}
	}
	if acp.Has(k.Info.Session.Close) { // an error does not matter
		_, _ = Ask[json.RawMessage](ctx, k.Link, endTime, "session/close", map[string]any{"sessionId": want.ID})
	}
	k.Close() // its output is complete
	replay.Close()
	return h.NativeHistory, nil
}

// notLoaded explains why a session was not loaded in a directory, with the remedy: an agent that
// does not list it may know it in another directory.
func notLoaded(err error, dir string, listed bool) error {
	if listed || errors.Is(err, errSignedOut) || !errors.As(err, new(*Refusal)) {
		return err
	}
	return fmt.Errorf("%w (the agent looked for the session in %s; some agents find a session only in the directory in which it began: name "+
		"that directory with working_dir or --dir, and check the id)", err, dir)
}

// A DirectoryError reports that the directory of a session does not exist.
type DirectoryError struct{ Agent, Dir string }

func (e *DirectoryError) Error() string {
	return fmt.Sprintf("the session of %s worked in %s, which is no longer a directory: name another one with working_dir or --dir", e.Agent,
		e.Dir)
}

func firstDirectory(list ...string) string {
	for _, dir := range list {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// readHistory is a NativeHistory under construction.
type readHistory struct {
	NativeHistory
	size int
}

// add appends a part. Beyond the limit it drops parts from the beginning.
func (h *readHistory) add(r catalog.ReplayedPart) {
	h.Parts = append(h.Parts, r)
	h.size += sizeOf(r)
	for h.size > maxHistory && len(h.Parts) > 1 {
		h.size -= sizeOf(h.Parts[0])
		h.Parts = h.Parts[1:]
		h.LeftOut++
	}
}

func sizeOf(r catalog.ReplayedPart) int {
	n := len(r.EventData) + len(r.Text) + 100
	for _, c := range r.Content {
		n += len(c.Data)
	}
	return n
}

// title stores the agent's title of the session.
func (h *readHistory) title(update []byte) {
	if stringOf(rawjson.Member(update, "sessionUpdate")) == "session_info_update" {
		if title := stringOf(rawjson.Member(update, "title")); title != "" {
			h.Title = Text(title)
		}
	}
}
