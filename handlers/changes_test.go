package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A reviewed is a changed file of a session, on the disk and in results.
type reviewed struct {
	t    *testing.T
	c    *client
	turn string
	path string
}

func (r reviewed) text() string {
	b, err := os.ReadFile(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return "none"
	}
	require.NoError(r.t, err)
	return string(b)
}

func (r reviewed) write(text string) { require.NoError(r.t, os.WriteFile(r.path, []byte(text), 0o600)) }

// reported returns the hunks and the state of the file in change.list.
func (r reviewed) reported() (hunks []protocol.Hunk, state string) {
	all := answer[protocol.ChangeList](r.c, "change.list", `{"turn":"`+r.turn+`"}`)
	for _, c := range all.Changes {
		if c.Path == r.path {
			return c.Hunks, c.State
		}
	}
	require.Fail(r.t, "change.list does not have the file", r.path)
	return nil, ""
}

func (r reviewed) params(hunk string) string {
	b := must(json.Marshal(map[string]string{"turn": r.turn, "path": r.path, "hunk": hunk}))(r.t)
	return string(b)
}

// decide sends a decision and returns the states of the hunks and of the file. It requires that
// change.list returns the same hunks and state.
func (r reviewed) decide(hunkID, decision string) (states []string) {
	result := answer[protocol.DecidedChange](r.c, "change."+decision, r.params(hunkID))
	assert.Equal(r.t, r.path, result.Path)
	hunks, state := r.reported()
	assert.Equal(r.t, hunks, result.Hunks)
	assert.Equal(r.t, state, result.State)
	for _, h := range hunks {
		states = append(states, h.State)
	}
	return append(states, state)
}

// kind returns the data.kind of a refused decision, which must change nothing.
func (r reviewed) kind(hunk, decision string) string {
	before := r.text()
	hunks, _ := r.reported()
	e := r.c.fail("change."+decision, r.params(hunk))
	assert.Equal(r.t, before, r.text())
	now, _ := r.reported()
	assert.Equal(r.t, hunks, now)
	return fmt.Sprint(e.Data["kind"])
}

// changing returns a world whose agent changed a file from one text to another. A nil text means no
// file.
func changing(t *testing.T, before, after *string, change ...func(*hub.Options)) (*world, reviewed) {
	t.Helper()
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(x.CWD, "a.txt"), Before: before, After: after})
		return done
	}, change...)
	c := w.connect(frame.LSP)
	id := w.finished(c.launch(`{"query":"edit"}`))
	require.Equal(t, must(filepath.EvalSymlinks(w.dir))(t), w.dir)
	r := reviewed{t, c, id, filepath.Join(w.dir, "a.txt")}
	if after != nil {
		r.write(*after)
	}
	return w, r
}

func twoChanges() (before, after string) {
	for i := range 20 {
		before += fmt.Sprintf("line %d\r\n", i)
	}
	before += "end"
	after = strings.Replace(strings.Replace(before, "line 3\r\n", "three\nand a half\n", 1), "end", "the end", 1)
	return before, after
}

func TestDecideAboutHunks(t *testing.T) {
	before, after := twoChanges()
	_, r := changing(t, &before, &after)
	hunks, state := r.reported()
	require.Len(t, hunks, 2)
	assert.Equal(t, "open", state)
	first, second := hunks[0].ID, hunks[1].ID
	assert.Equal(t, []protocol.Hunk{
		{ID: first, OldStart: 1, OldLines: 7, NewStart: 1, NewLines: 8, Added: 2, Removed: 1, State: "open"},
		{ID: second, OldStart: 18, OldLines: 4, NewStart: 19, NewLines: 4, Added: 1, Removed: 1, State: "open"},
	}, hunks)

	require.NoError(t, os.Chmod(r.path, 0o750))
	assert.Equal(t, []string{"reverted", "open", "open"}, r.decide(first, "revert"))
	assert.Equal(t, strings.Replace(after, "three\nand a half\n", "line 3\r\n", 1), r.text())
	assert.Equal(t, os.FileMode(0o750), must(os.Stat(r.path))(t).Mode().Perm())
	assert.Equal(t, []string{"reverted", "open", "open"}, r.decide(first, "revert"), "again")
	assert.Equal(t, "bad_state", r.kind(first, "accept"))
	assert.Equal(t, []string{"reverted", "accepted", "open"}, r.decide("", "accept"), "a reverted hunk stays reverted")
	assert.Equal(t, []string{"reverted", "reverted", "reverted"}, r.decide(second, "revert"))
	assert.Equal(t, before, r.text())
	assert.Equal(t, []string{"open", "reverted", "open"}, r.decide(first, "reopen"))
	assert.Equal(t, strings.Replace(after, "the end", "end", 1), r.text())
	assert.Equal(t, []string{"open", "open", "open"}, r.decide("", "reopen"))
	assert.Equal(t, after, r.text())
	assert.Equal(t, []string{"reverted", "reverted", "reverted"}, r.decide("", "revert"))
	assert.Equal(t, before, r.text())
	entries := must(os.ReadDir(filepath.Dir(r.path)))(t)
	for _, e := range entries {
		assert.NotContains(t, e.Name(), ".duet-", "no temporary file is left")
	}
}

// Two changes with one line between them are one hunk, and are decided alone or together.
func TestDecideAboutThePartsOfAHunk(t *testing.T) {
	before, after := "a\nb\nc\nd\ne\n", "a\nB\nc\nD\ne\n"
	_, r := changing(t, &before, &after)
	hunks, _ := r.reported()
	require.Len(t, hunks, 1)
	parts := hunks[0].Parts
	require.Len(t, parts, 2)
	assert.Equal(t, []protocol.HunkPart{
		{ID: parts[0].ID, OldStart: 2, OldLines: 1, NewStart: 2, NewLines: 1, State: "open"},
		{ID: parts[1].ID, OldStart: 4, OldLines: 1, NewStart: 4, NewLines: 1, State: "open"},
	}, parts)
	states := func() (list []string) {
		now, _ := r.reported()
		for _, part := range now[0].Parts {
			list = append(list, part.State)
		}
		return list
	}
	assert.Equal(t, []string{"open", "open"}, r.decide(parts[0].ID, "revert"), "the hunk is open while its parts differ")
	assert.Equal(t, []string{"reverted", "open"}, states())
	assert.Equal(t, "a\nb\nc\nD\ne\n", r.text())
	assert.Equal(t, "bad_state", r.kind(parts[0].ID, "accept"))
	r.decide(hunks[0].ID, "accept")
	assert.Equal(t, []string{"reverted", "accepted"}, states())
	assert.Equal(t, []string{"reverted", "reverted"}, r.decide(hunks[0].ID, "revert"))
	assert.Equal(t, before, r.text())
	assert.Equal(t, "bad_state", r.kind(hunks[0].ID, "accept"))
	r.decide(parts[1].ID, "reopen")
	assert.Equal(t, "a\nb\nc\nD\ne\n", r.text())
	r.decide("", "reopen")
	assert.Equal(t, after, r.text())
}

func TestADecisionIsRefusedWhereItWouldLoseSomething(t *testing.T) {
	before, after := twoChanges()
	_, r := changing(t, &before, &after)
	hunks, _ := r.reported()
	first, second := hunks[0].ID, hunks[1].ID

	r.write(strings.Replace(after, "and a half", "and more", 1) + " of it")
	assert.Equal(t, "changed_since", r.kind(first, "revert"))
	assert.Equal(t, "changed_since", r.kind(second, "revert"))
	assert.Equal(t, "changed_since", r.kind("", "revert"))
	r.write("mine\n" + strings.Replace(after, "three\nand a half\n", "line 3\r\n", 1))
	assert.Equal(t, []string{"reverted", "open", "open"}, r.decide(first, "revert"), "the user reverted the hunk by hand")
	assert.Equal(t, []string{"reverted", "reverted", "reverted"}, r.decide("", "revert"))
	assert.Equal(t, "mine\n"+before, r.text(), "the user's changes stay")

	assert.Equal(t, "change_not_found", r.kind("nothing", "revert"))
	elsewhere := r
	elsewhere.path = filepath.Join(filepath.Dir(r.path), "b.txt")
	e := r.c.fail("change.revert", elsewhere.params(""))
	assert.Equal(t, "change_not_found", e.Data["kind"])
	assert.Contains(t, e.Message, "b.txt")
	unknown := r
	unknown.turn = "unknown"
	assert.Equal(t, "not_found", r.c.fail("change.revert", unknown.params("")).Data["kind"])

	require.NoError(t, os.Remove(r.path))
	assert.Equal(t, "changed_since", r.kind("", "reopen"))
	require.NoError(t, os.Mkdir(r.path, 0o700))
	assert.Equal(t, "not_writable", fmt.Sprint(r.c.fail("change.reopen", r.params("")).Data["kind"]))
	require.NoError(t, os.Remove(r.path))
	outside := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(outside, []byte(before), 0o600))
	require.NoError(t, os.Symlink(outside, r.path))
	assert.Equal(t, "outside_workspace", r.kind("", "reopen"))
}

func TestAFileThatMayNotBeWrittenIsNotReverted(t *testing.T) {
	before, after := twoChanges()
	_, r := changing(t, &before, &after)
	require.NoError(t, os.Chmod(r.path, 0o400))
	assert.Equal(t, "not_writable", r.kind("", "revert"))
	assert.Equal(t, []string{"accepted", "accepted", "accepted"}, r.decide("", "accept"))
}

func TestAFileThatWasMadeIsDeletedAndMadeAgain(t *testing.T) {
	text := "#!/bin/sh\n"
	_, r := changing(t, nil, &text)
	require.NoError(t, os.Chmod(r.path, 0o700))
	r.write(text + "exit 1\n")
	assert.Equal(t, "changed_since", r.kind("", "revert"), "another program has changed it")
	r.write(text)
	assert.Equal(t, []string{"reverted", "reverted"}, r.decide("", "revert"))
	assert.Equal(t, "none", r.text())
	hunks, _ := r.reported()
	r.write("another\n")
	assert.Equal(t, "changed_since", r.kind(hunks[0].ID, "reopen"))
	require.NoError(t, os.Remove(r.path))
	assert.Equal(t, []string{"open", "open"}, r.decide(hunks[0].ID, "reopen"))
	assert.Equal(t, text, r.text())
	assert.Equal(t, os.FileMode(0o700), must(os.Stat(r.path))(t).Mode().Perm())
}

func TestAFileThatWasDeletedComesBack(t *testing.T) {
	text, empty := "old\n", ""
	_, r := changing(t, &text, nil)
	assert.Equal(t, []string{"reverted", "reverted"}, r.decide("", "revert"))
	assert.Equal(t, text, r.text())
	assert.Equal(t, []string{"open", "open"}, r.decide("", "reopen"))
	assert.Equal(t, "none", r.text())

	_, r = changing(t, nil, &empty) // an empty file has no hunks
	assert.Equal(t, []string{"accepted"}, r.decide("", "accept"))
	assert.Equal(t, []string{"reverted"}, r.decide("", "revert"))
	assert.Equal(t, "none", r.text())
	assert.Equal(t, []string{"open"}, r.decide("", "reopen"))
	assert.Equal(t, "", r.text())
}

func TestOfABinaryFileNothingIsReverted(t *testing.T) {
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(x.CWD, "a.txt"), Binary: true})
		return done
	})
	c := w.connect(frame.LSP)
	id := w.finished(c.launch(`{"query":"edit"}`))
	r := reviewed{t, c, id, filepath.Join(w.dir, "a.txt")}
	hunks, _ := r.reported()
	assert.Equal(t, []protocol.Hunk{}, hunks)
	assert.Equal(t, "not_kept", r.kind("", "revert"))
	assert.Equal(t, []string{"accepted"}, r.decide("", "accept"))
}

// Every subscriber receives each decision once.
func TestChangeDecidedIsTold(t *testing.T) {
	before, after := twoChanges()
	w, r := changing(t, &before, &after)
	hunks, _ := r.reported()
	other := w.connect(frame.LSP)
	other.ask("Subscribe", `{"event_types":["change_decided"]}`)
	r.decide(hunks[1].ID, "revert")
	r.decide(hunks[1].ID, "revert")
	r.decide("", "accept")
	var got []string
	for range 2 {
		event := other.event("change_decided")
		assert.Equal(t, r.turn, testkit.JSONAs[string](t, event, "session_id"))
		assert.Equal(t, r.path, testkit.JSONAs[string](t, event, "path"))
		var d struct{ Decision, Hunk string }
		require.NoError(t, json.Unmarshal(event, &d))
		got = append(got, d.Decision+" "+d.Hunk)
	}
	assert.Equal(t, []string{"revert " + hunks[1].ID, "accept "}, got)
}

// Concurrent decisions about hunks of one file all take effect.
func TestDecisionsAboutOneFileAreMadeOneAfterTheOther(t *testing.T) {
	var before, after string
	for i := range 30 {
		part := strings.Repeat(fmt.Sprintf("same %d\n", i), 8)
		before += part + "old\n"
		after += part + "new\n"
	}
	w, r := changing(t, &before, &after)
	hunks, _ := r.reported()
	require.Len(t, hunks, 30)
	var all sync.WaitGroup
	for worker := range 3 {
		one := r
		one.c = w.connect(frame.LSP)
		all.Go(func() {
			for i := worker; i < len(hunks); i += 3 {
				one.c.ask("change.revert", one.params(hunks[i].ID))
			}
		})
	}
	all.Wait()
	assert.Equal(t, before, r.text())
	_, state := r.reported()
	assert.Equal(t, "reverted", state)
}

// refusing is a store that refuses writes while refuse is set.
type refusing struct {
	store.Store
	refuse bool
}

func (s *refusing) Write(ctx context.Context, change func(store.Tx) error) error {
	if s.refuse {
		return errors.New("the disk is full")
	}
	return s.Store.Write(ctx, change)
}

func TestWhatCannotBeKeptIsNotDone(t *testing.T) {
	before, after := twoChanges()
	var kept *refusing
	_, r := changing(t, &before, &after, func(o *hub.Options) {
		open := fakeOf(o).openStore
		fakeOf(o).openStore = func(ctx context.Context, opts store.Options) (store.Store, error) {
			s, err := open(ctx, opts)
			kept = &refusing{Store: s}
			return kept, err
		}
	})
	kept.refuse = true
	r.kind("", "revert")
	kept.refuse = false
	assert.Equal(t, after, r.text())
	assert.Equal(t, []string{"reverted", "reverted", "reverted"}, r.decide("", "revert"))
}

// Checkpoints are off here, so rewinding restores no file.
func TestRewindWithoutCheckpoints(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	first := w.finished(c.launch(`{"query":"one"}`))
	second := w.finished(c.sessionID("continueSession", `{"session_id":"`+first+`","query":"two"}`))
	assert.JSONEq(t, `{"checkpoint":false,"files":[],"more":0,"fork_turn":"1.1","prompt":"two"}`, string(c.ask("session.rewind", `{"turn":"`+second+`"}`)))
	assert.JSONEq(t, `{"checkpoint":false,"files":[],"more":0,"prompt":"one"}`, string(c.ask("session.rewind", `{"turn":"`+first+`","preview":true}`)))
	assert.Equal(t, "bad_state", c.fail("session.rewind", `{"turn":"`+first+`","undo":true}`).Data["kind"])
	assert.Equal(t, -32602, c.fail("session.rewind", `{"turn":"`+first+`","undo":true,"all":true}`).Code)
	assert.Equal(t, "not_found", c.fail("session.rewind", `{"turn":"nope"}`).Data["kind"])
}
