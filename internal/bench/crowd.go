//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// A crowd is how many sessions a database has, at scale 1 and with the
// constants below: 10,000 of them, 20,000 turns, 1,000,000 events and 200,000
// messages and tool calls.
const (
	crowdSessions = 10_000
	turnsOfEach   = 2
	itemsOfTurn   = 10
	eventsOfTurn  = 50
	crowdPending  = 100 // approvals that wait
	// longSession is how many of the turns belong to one session.
	longSession = 50
)

// crowd is a place with a great database: a new one, or the one of an earlier
// turn that has to keep it.
func (c cell) crowd() (place, error) {
	if c.keep == "" {
		p, err := newPlace(c.server.directory, c.server.agent)
		if err != nil {
			return place{}, err
		}
		return p, c.fillNew(p)
	}
	if p, err := placeAt(c.keep); err == nil {
		if _, err := os.Stat(p.database()); err == nil {
			return p, nil
		}
	}
	if err := os.Mkdir(c.keep, 0o700); err != nil {
		return place{}, err
	}
	p, err := setUp(c.keep, c.server.agent)
	if err == nil {
		err = c.fillNew(p)
	}
	if err != nil {
		return place{}, errors.Join(err, os.RemoveAll(c.keep))
	}
	return p, nil
}

func (c cell) fillNew(p place) error {
	begin := time.Now()
	err := fill(context.Background(), p, c.count(crowdSessions))
	if err == nil {
		fmt.Fprintf(os.Stderr, "  a database with %d sessions took %v\n", c.count(crowdSessions), time.Since(begin).Round(time.Second))
	}
	return err
}

// fill makes a database in a place, as the user of that place would. The longest
// session is the first.
func fill(ctx context.Context, p place, sessions int) error {
	db, err := sqlite.Open(ctx, p.database(), store.Options{})
	if err == nil {
		err = errors.Join(fillStore(ctx, db, p, sessions), db.Close())
	}
	if err != nil {
		return fmt.Errorf("filling a database: %w", err)
	}
	return nil
}

func fillStore(ctx context.Context, db *sqlite.Store, p place, sessions int) error {
	const together = 100
	for from := 0; from < sessions; from += together {
		err := db.Write(ctx, func(t store.Tx) error {
			for i := from; i < min(sessions, from+together); i++ {
				if err := addSession(t, p, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	// A search waits until all words are indexed; otherwise that would be done
	// beside what is measured.
	_, err := db.Search(ctx, "indexed", 1, 0)
	return err
}

// addSession adds the n-th session.
func addSession(t store.Tx, p place, n int) error {
	at := time.Now().Add(time.Duration(n-crowdSessions) * time.Minute)
	session := domain.Session{
		UUID: uuid.NewString(), Title: fmt.Sprintf("Session %d", n), CWD: fmt.Sprintf("%s/part-%d", p.root, n%200), Agent: "bench",
		NativeSession: uuid.NewString(), Mode: "default", Archived: n%10 == 3, Created: at, Active: at,
	}
	if err := t.InsertSession(&session); err != nil {
		return err
	}
	if err := t.SetAlias(session.UUID, 0, session.ID); err != nil {
		return err
	}
	turns := turnsOfEach
	if n == 0 {
		turns = longSession
	}
	parent := int64(0)
	for i := range turns {
		state := domain.Completed
		switch {
		case n%20 == 7:
			state = domain.Failed
		case n%20 == 9:
			state = domain.Interrupted
		}
		turn := domain.Turn{
			UUID: uuid.NewString(), HumanLayerSession: uuid.NewString(), HumanLayerRun: uuid.NewString(), Session: session.ID, Parent: parent,
			Prompt: fmt.Sprintf("Please look at part %d of the program and mend what is broken there, attempt %d.", n, i), Agent: "bench",
			Source: "session", State: state, Created: at, Started: at, Ended: at.Add(time.Minute), Active: at.Add(time.Minute),
			Result: "All tests pass now; the cause was a race between two goroutines.", Messages: 3,
			Tokens: domain.Tokens{Input: 1000, Output: 200, CostUSD: 0.01},
		}
		if err := t.InsertTurn(&turn); err != nil {
			return err
		}
		parent = turn.ID
		if err := addItems(t, turn, n); err != nil {
			return err
		}
	}
	if n >= crowdPending {
		return nil
	}
	id := uuid.NewString()
	return t.InsertApproval(&domain.Approval{
		ID: id, Session: session.ID, Turn: parent, Type: domain.FunctionCall, CallID: "call-" + id, Tool: "Bash", Input: json.RawMessage(`{"command":"make"}`),
		Title: "make", Status: domain.ApprovalPending, Stale: true, Created: at,
	})
}

// addItems adds events, items and a changed file to a turn.
func addItems(t store.Tx, turn domain.Turn, n int) error {
	event := func(p domain.Payload) (int64, error) {
		return t.Append(turn.Event(p))
	}
	deltas := (eventsOfTurn - itemsOfTurn) / itemsOfTurn
	for i := range itemsOfTurn {
		key := fmt.Sprintf("msg-%d", i)
		for j := range deltas {
			if _, err := event(domain.MessageDelta{Key: key, Text: fmt.Sprintf("piece %d of what it says ", j)}); err != nil {
				return err
			}
		}
		item := domain.Item{
			Session: turn.Session, Turn: turn.ID, Kind: "message", Key: key, Role: "assistant", Created: turn.Created, Updated: turn.Created,
			Content: fmt.Sprintf("I have looked at the file number %d of part %d and found why the test is flaky: it sleeps.", i, n),
		}
		if i%2 == 1 {
			item.Kind, item.Tool, item.Title, item.ToolKind, item.Status = "tool_call", "Bash", fmt.Sprintf(
				"go test ./part%d", n,
			), "execute", "completed"
			item.Content, item.Input, item.Result = "", json.RawMessage(`{"command":"go test ./..."}`), "ok  example.com/part 0.012s"
		}
		payload := domain.Payload(domain.MessageAdded{Type: item.Kind, Key: key, Role: item.Role, Text: item.Content})
		if item.Kind == "tool_call" {
			payload = domain.ToolCallChanged{
				ID: key, Name: item.Tool, Title: item.Title, ToolKind: item.ToolKind, Status: item.Status, Input: item.Input,
			}
		}
		var err error
		if item.Seq, err = event(payload); err != nil {
			return err
		}
		if err := t.InsertItem(&item); err != nil {
			return err
		}
	}
	before, after := "one\ntwo\nthree\n", "one\n2\nthree\n"
	return t.PutChange(domain.Change{
		Turn: turn.ID, Path: fmt.Sprintf("/part-%d/file.go", n%200), Before: &before, After: &after, Seq: t.Seq(), Updated: turn.Created,
	})
}
