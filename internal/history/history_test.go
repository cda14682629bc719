package history

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

var ctx = context.Background()

// full makes a database with conversations: each has runs, the second is a fork
// of the first.
func full(t *testing.T, root string, conversations, runs, items int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "duet.db")
	require.NoError(t, sqlite.Create(ctx, path, "id", func(s *sqlite.Store) error {
		return s.Write(ctx, func(tx store.Tx) error {
			var parent, fork int64
			for c := range conversations {
				th := domain.Thread{
					UUID: uuid.NewString(), Title: fmt.Sprint("conversation ", c), CWD: filepath.Join(root, "sub"), Agent: "theirs", NativeSession: "native", Mode: "bypassPermissions",
					Settings: domain.Settings{SkipPermissions: true}, Created: tx.Now(), Active: tx.Now(), Archived: c == 2,
				}
				if c == 1 {
					th.Parent, th.ForkRun = parent, fork
				}
				if err := tx.InsertThread(&th); err != nil {
					return err
				}
				if err := tx.SetAlias(th.UUID, 0, th.ID); err != nil {
					return err
				}
				for r := range runs {
					run := domain.Run{
						UUID: uuid.NewString(), SessionID: uuid.NewString(), RunID: uuid.NewString(), CallerID: fmt.Sprint("caller ", c, r), Thread: th.ID, Prompt: "prompt",
						Agent: "theirs", Source: "prompt", State: domain.Completed, Mode: "bypassPermissions", Tools: []string{"x"}, Timeout: time.Hour, Priority: 7,
						Created: tx.Now(), Ended: tx.Now(), Active: tx.Now(), Result: "result", Tokens: domain.Tokens{Input: 3}, Metadata: json.RawMessage(`{"a":1}`),
					}
					if err := tx.InsertRun(&run); err != nil {
						return err
					}
					parent, fork = th.ID, run.ID
					for i := range items {
						item := domain.Item{Thread: th.ID, Run: run.ID, Kind: "message", Role: "assistant", Content: fmt.Sprintf("needle%d of %d", i, c), Approval: "a", Created: tx.Now(), Updated: tx.Now()}
						if err := tx.InsertItem(&item); err != nil {
							return err
						}
					}
					after := "after"
					if err := tx.PutChange(domain.Change{Run: run.ID, Path: filepath.Join(root, "file"), After: &after, Updated: tx.Now()}); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}))
	return path
}

func open(t *testing.T, path string) *sqlite.Foreign {
	t.Helper()
	f, err := sqlite.OpenForeign(ctx, path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func empty(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "duet.db"), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAHistoryIsTakenOverOnce(t *testing.T) {
	was, root := "/somewhere/else", t.TempDir()
	root, err := filepath.EvalSymlinks(root)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(root, "sub"), 0o700))
	from, into := open(t, full(t, was, 60, 2, 9)), empty(t)
	result, err := TakeOver(ctx, from, into, Options{Root: root, Was: was})
	require.NoError(t, err)
	assert.Equal(t, Result{Conversations: 60, Runs: 120, Items: 1080, Changes: 120}, result)

	before, err := from.Sessions(ctx, domain.RunFilter{})
	require.NoError(t, err)
	after, err := into.Sessions(ctx, domain.RunFilter{})
	require.NoError(t, err)
	require.Len(t, after, len(before))
	for i, now := range after {
		then := before[i]
		assert.Equal(t, then.UUID, now.UUID)
		assert.Equal(t, then.SessionID, now.SessionID)
		assert.Equal(t, then.Task, now.Task)
		assert.Equal(t, then.Thread.UUID, now.Thread.UUID)
		assert.Equal(t, then.Thread.Title, now.Thread.Title)
		assert.Equal(t, then.Thread.Archived, now.Thread.Archived)
		assert.Equal(t, then.Result, now.Result)
		assert.Equal(t, then.Tokens, now.Tokens)
		assert.Equal(t, then.Metadata, now.Metadata)
		assert.Equal(t, filepath.Join(root, "sub"), now.Thread.CWD)
		// What acts has stayed behind.
		assert.Empty(t, now.Thread.Agent)
		assert.Empty(t, now.Thread.NativeSession)
		assert.Equal(t, "default", now.Thread.Mode)
		assert.Equal(t, domain.Settings{}, now.Thread.Settings)
		assert.Empty(t, now.Mode)
		assert.Empty(t, now.Tools)
		assert.Empty(t, now.CallerID)
		assert.Zero(t, now.Timeout)
		assert.Zero(t, now.Priority)
	}
	_, err = into.Find(ctx, "caller 00")
	require.ErrorIs(t, err, store.ErrNotFound)
	fork, err := into.FindThread(ctx, after[len(after)-3].Thread.UUID)
	require.NoError(t, err)
	thread, err := into.Thread(ctx, fork)
	require.NoError(t, err)
	assert.NotZero(t, thread.Parent)
	assert.NotZero(t, thread.ForkRun)
	hits, err := into.Search(ctx, "needle8", 1000, 0)
	require.NoError(t, err)
	assert.Len(t, hits, 120)
	changes, err := into.Changes(ctx, after[0].Run.ID)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	assert.Equal(t, filepath.Join(root, "file"), changes[0].Path)

	again, err := TakeOver(ctx, from, into, Options{Root: root, Was: was})
	require.NoError(t, err)
	assert.Equal(t, Result{Here: 60}, again)
}

// What names something already goes on naming that.
func TestIdsAreNotTakenAway(t *testing.T) {
	path := full(t, "/x", 1, 2, 0)
	from, into := open(t, path), empty(t)
	theirs, err := from.Sessions(ctx, domain.RunFilter{})
	require.NoError(t, err)
	mine := domain.Thread{UUID: uuid.NewString(), Title: "mine"}
	require.NoError(t, into.Write(ctx, func(tx store.Tx) error {
		if err := tx.InsertThread(&mine); err != nil {
			return err
		}
		return tx.SetAlias(theirs[0].SessionID, 0, mine.ID)
	}))
	result, err := TakeOver(ctx, from, into, Options{Root: t.TempDir()})
	require.NoError(t, err)
	assert.Equal(t, 2, result.Runs)
	assert.Equal(t, 1, result.Mended)
	id, err := into.FindThread(ctx, theirs[0].SessionID)
	require.NoError(t, err)
	assert.Equal(t, mine.ID, id)
}

func TestPlaces(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "in", "side"), 0o700))
	require.NoError(t, os.Symlink("/etc", filepath.Join(root, "link")))
	var p places
	p.roots(Options{Root: root, Was: "/was"})
	for was, want := range map[string]string{
		root: "", root + "/in": "in", "/was/in/side": "in/side", "/was": "", "/wasnot/in": "", "/etc": "", "": "", "in": "", "/was/../etc": "",
		root + "/link": "", root + "/link/ssh": "", root + "/none": "", root + "/in\x00": "", root + "/..": "",
	} {
		assert.Equal(t, filepath.Join(root, want), p.directory(was), was)
	}
	for was, want := range map[string]string{
		"a/b": "a/b", root + "/a": root + "/a", "/was/a": root + "/a", "../a": "", "/etc/passwd": "", "": "", "a\x00b": "", "a\xff": "", "/was/../../a": "",
		strings.Repeat("a", titleMost+1): "",
	} {
		got, ok := p.file(was)
		assert.Equal(t, want != "", ok, was)
		if ok {
			assert.Equal(t, want, got)
		}
	}
}

func TestValues(t *testing.T) {
	mended := 0
	v := values{now: time.Now(), mended: &mended}
	{
		assert.Equal(t, "a�b", v.text("a\xffb", 100))
		assert.Equal(t, "ä", v.text("äö", 3))
		assert.Nil(t, v.json(json.RawMessage("{")))
		assert.Nil(t, v.json(json.RawMessage("\"\xff\"")))
		assert.Nil(t, v.data(domain.FileNote{Path: strings.Repeat("x", textMost)}))
		assert.Equal(t, v.now, v.moment(time.Unix(1<<40, 0)))
		assert.Equal(t, v.now, v.moment(time.Unix(-1, 0)))
		assert.Empty(t, v.name("a\x1b[2J"))
		assert.Empty(t, v.code("ORPHANED\n"))
		assert.Equal(t, "task", v.source("evil"))
	}
	assert.Equal(t, 10, mended)
	assert.Nil(t, v.data(nil))
	assert.Equal(t, domain.FileNote{Path: "a"}, v.data(domain.FileNote{Path: "a"}))
	assert.Equal(t, "claude-code", v.name("claude-code"))
	assert.Equal(t, "TIMEOUT", v.code("TIMEOUT"))
	assert.True(t, v.moment(time.Time{}).IsZero())
	item, ok := v.item(domain.Item{Kind: "tool_call", Status: "in_progress", Approval: "a"})
	assert.True(t, ok)
	assert.Equal(t, "failed", item.Status)
	assert.Empty(t, item.Approval)
	_, ok = v.item(domain.Item{Kind: "evil"})
	assert.False(t, ok)
}
