package sqlite

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTaskNumbersAreNotReused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	s := openAt(t, path)
	session := storetest.NewSession(t, s, "")
	assert.Equal(t, "task-0001", domain.TaskName(storetest.AddTurn(t, s, session.ID, domain.Queued).Task))
	err := s.Write(ctx, func(tx store.Tx) error {
		r := storetest.NewTurn(session.ID, domain.Queued)
		if err := tx.InsertTurn(&r); err != nil {
			return err
		}
		return errors.New("aborted")
	})
	require.EqualError(t, err, "aborted")
	second := storetest.AddTurn(t, s, session.ID, domain.Queued)
	assert.EqualValues(t, 2, second.Task, "an unreported one does not count")
	storetest.Write(t, s, func(tx store.Tx) error {
		_, err := tx.(*Tx).exec("DELETE FROM turns WHERE id = ?", second.ID)
		return err
	})
	require.NoError(t, s.Close())
	s = openAt(t, path)
	third := storetest.AddTurn(t, s, session.ID, domain.Queued)
	assert.EqualValues(t, 3, third.Task)
	assert.Equal(t, third.ID, third.Task)
	assert.Equal(t, "task-12345", domain.TaskName(12345))
}

// Rows of earlier programs, which stored data of executors and clients without parsing it.
func TestValuesOfEarlierProgramsAreRead(t *testing.T) {
	s := openNew(t)
	session := storetest.NewSession(t, s, "")
	r := storetest.AddTurn(t, s, session.ID, domain.Running)
	item := domain.Item{Session: session.ID, Turn: r.ID, Kind: domain.ItemTool}
	storetest.Write(t, s, func(tx store.Tx) error {
		return errors.Join(tx.InsertApproval(&domain.Approval{ID: "a", Session: session.ID, Turn: r.ID}), tx.InsertItem(&item))
	})
	set := func(what, value string) {
		t.Helper()
		storetest.Write(t, s, func(tx store.Tx) error {
			_, err := tx.(*Tx).exec("UPDATE "+what+" = ?", value)
			return err
		})
	}
	set("approvals SET options", `[{"option_id":"","name":"First","kind":""}, {"name":"a","x":{"n":1.50}}]`)
	set("approvals SET diffs", `[{"path":"/p","old_text":"\u003cb\u003e","new_text":"n"},{"path":"/new","new_text":""}]`)
	set("items SET data", `{"paths":["/p"],"diffs":[{"path":"/p","new_text":"\u003cb\u003e"}],"terminal":"t"}`)
	set("sessions SET settings", `{"max_turns":3,"mcp_servers":[{"name":"m","command":"c","args":["-x"],"env":{"K":"v"},"type":"stdio","url":"u","headers":{"H":"v"},"new":1}]}`)

	a, err := s.Approval(ctx, "a")
	require.NoError(t, err)
	old := "<b>"
	assert.Equal(t, []domain.Option{{Name: "First"}, {Name: "a", Extra: map[string]json.RawMessage{"x": json.RawMessage(`{"n":1.50}`)}}}, a.Options)
	assert.Equal(t, []domain.Diff{{Path: "/p", OldText: &old, NewText: "n"}, {Path: "/new"}}, a.Diffs)
	items, err := s.ItemsOfTurn(ctx, r.ID)
	require.NoError(t, err)
	assert.Equal(t, domain.ToolDetails{Paths: []string{"/p"}, Diffs: []domain.Diff{{Path: "/p", NewText: old}}, Terminal: "t"}, items[0].Data)
	got, err := s.Session(ctx, session.ID)
	require.NoError(t, err)
	assert.Equal(t, domain.Settings{MaxTurns: 3, MCPServers: []domain.MCPServer{{
		Name: "m", Command: "c", Args: []string{"-x"}, Env: map[string]string{"K": "v"}, Type: "stdio", URL: "u", Headers: map[string]string{"H": "v"},
	}}}, got.Settings)

	set("approvals SET options", "[")
	set("approvals SET diffs", "[")
	set("items SET data", "{")
	a, err = s.Approval(ctx, "a")
	require.NoError(t, err, "the rest is worth telling")
	assert.Nil(t, a.Options)
	assert.Nil(t, a.Diffs)
	items, err = s.ItemsOfTurn(ctx, r.ID)
	require.NoError(t, err)
	assert.Nil(t, items[0].Data)
}
