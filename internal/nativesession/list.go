package nativesession

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
)

// A Session is one that an agent keeps itself.
type Session struct {
	ID      string
	Title   string // in the agent's words, or ""
	Dir     string // in which it works
	Updated time.Time
}

// A Query says which sessions are wanted.
type Query struct {
	Dir    string // only those that work there; "": all
	Cursor string // of a Page, to go on from it
	Limit  int    // how many, at least 1
}

// A Page is a part of an agent's sessions, in the agent's order.
type Page struct {
	Sessions []Session
	Next     string // the Cursor of what follows; "": nothing does
}

// maxPages is how many pages of an agent's are turned for one of ours, and maxSearched
// for one session.
const (
	maxPages    = 50
	maxSearched = 200
)

// ErrCursor says that a cursor is none of those that were given out.
var ErrCursor = errors.New("the cursor is none that was given out")

// A cursor is where a page of ours begins: behind so many sessions of a page of the
// agent's.
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

// List lists an agent's sessions.
func List(ctx context.Context, l agentlink.Launch, q Query, log *slog.Logger) (Page, error) {
	from, err := readCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	k, err := open(ctx, l, agentlink.Options{Dir: q.Dir, Logger: log})
	if err != nil {
		return Page{}, err
	}
	defer k.Close()
	if !k.lists() {
		return Page{}, &CannotError{l.Name + " cannot list its sessions: it does not offer session/list. One whose id you know can be adopted"}
	}
	page := Page{Sessions: []Session{}}
	for range maxPages {
		list, next, err := k.page(ctx, q.Dir, from.Agent)
		if err != nil {
			return Page{}, explained(l.Name, err)
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

func (k *asked) lists() bool { return acp.Has(k.Info.Session.List) }

// page asks for a page of the agent's, and by which cursor the next one is had. What
// makes no sense is left out.
func (k *asked) page(ctx context.Context, dir, after string) (list []Session, next string, err error) {
	params := map[string]any{}
	if dir != "" {
		params["cwd"] = dir
	}
	if after != "" {
		params["cursor"] = after
	}
	r, err := agentlink.Ask[struct {
		Sessions []struct {
			ID      string          `json:"sessionId"`
			Dir     string          `json:"cwd"`
			Title   json.RawMessage `json:"title"`
			Updated json.RawMessage `json:"updatedAt"`
		} `json:"sessions"`
		Next json.RawMessage `json:"nextCursor"`
	}](ctx, k.Link, listTime, "session/list", params)
	if err != nil {
		return nil, "", err
	}
	for _, s := range r.Sessions {
		if s.ID == "" || len(s.ID) > maxID {
			continue
		}
		one := Session{ID: s.ID, Title: agentlink.Text(stringOf(s.Title))}
		if filepath.IsAbs(s.Dir) {
			one.Dir = filepath.Clean(s.Dir)
		}
		one.Updated, _ = time.Parse(time.RFC3339, stringOf(s.Updated)) // else it is not known
		list = append(list, one)
	}
	return list, stringOf(r.Next), nil
}

// find looks for a session in the agent's list, where it has one.
func (k *asked) find(ctx context.Context, id string) (found Session, ok bool, err error) {
	if !k.lists() {
		return Session{}, false, nil
	}
	after := ""
	for range maxSearched {
		list, next, err := k.page(ctx, "", after)
		if err != nil {
			return Session{}, false, err
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
	return Session{}, false, nil
}

// stringOf is the string that JSON is, or "".
func stringOf(raw json.RawMessage) (s string) {
	json.Unmarshal(raw, &s)
	return s
}
