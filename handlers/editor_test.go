package handlers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// asked waits for a request to the editor and returns its id and its parameters.
func (c *client) asked(method string) (id, params string) {
	c.t.Helper()
	for {
		if m := c.next(); m.Method == method {
			return string(m.ID), string(m.Params)
		}
	}
}

func TestAnEditorAnswersForItsSession(t *testing.T) {
	w := newWorld(t, quick)
	agent, editor := w.connect(frame.LSP), w.connect(frame.LSP)
	session := agent.launch(`{"query":"one"}`)
	call := func(arguments string) string {
		return agent.send("editor.call", fmt.Sprintf(`{"session":%q,"tool":"selection"%s}`, session, arguments))
	}
	assert.Equal(t, "not_offered", agent.wait(call("")).Error.Data["kind"])

	editor.ask("editor.offer", `{"client":"Emacs","tools":["selection"]}`)
	assert.JSONEq(t, `{"success":true}`, string(editor.ask("editor.saved", `{"paths":["/elsewhere/file"]}`)))
	assert.Equal(t, "paths", editor.fail("editor.saved", `{"paths":["`+strings.Repeat(`/a","`, 100)+`/a"]}`).Data["param"])
	pending := call(`,"arguments":{"a":1}`)
	id, params := editor.asked("editor.selection")
	assert.JSONEq(t, `{"a":1}`, params)
	editor.write(`{"jsonrpc":"2.0","id":` + id + `,"result":{"line":3}}`)
	assert.JSONEq(t, `{"result":{"line":3}}`, string(agent.wait(pending).Result))

	// The agent receives the editor's error, and an error instead of a result that is too long.
	for answer, why := range map[string]string{
		`"error":{"code":-32603,"message":"busy"}`:        "busy",
		`"result":"` + strings.Repeat("x", 256<<10) + `"`: "longer than 256 KiB",
	} {
		pending = call("")
		id, _ = editor.asked("editor.selection")
		editor.write(`{"jsonrpc":"2.0","id":` + id + `,` + answer + `}`)
		e := agent.wait(pending).Error
		require.NotNil(t, e)
		assert.Contains(t, e.Message, why)
		assert.Equal(t, "editor_failed", e.Data["kind"])
	}

	for params, param := range map[string]string{
		`{"session":"` + session + `","tool":"format"}`:                           "tool",
		`{"session":" ","tool":"open"}`:                                           "session",
		`{"session":"` + session + `","tool":"selection","arguments":[]}`:         "arguments",
		`{"session":"` + session + `","tool":"selection","arguments":{"path":1}}`: "arguments.path",
	} {
		assert.Equal(t, param, agent.fail("editor.call", params).Data["param"], params)
	}
	assert.Equal(t, "tools", agent.fail("editor.offer", `{"tools":["format"]}`).Data["param"])
	assert.Equal(t, "client", agent.fail("editor.offer", `{"tools":[],"client":"`+strings.Repeat("x", 101)+`"}`).Data["param"])

	editor.ask("editor.offer", `{"tools":[]}`) // withdraws the offer
	assert.Contains(t, agent.wait(call("")).Error.Message, "does not offer selection")
}

// A call to a busy editor fails after a time limit.
func TestAnEditorThatDoesNotAnswerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, quick)
		agent, editor := w.connect(frame.LSP), w.connect(frame.LSP)
		session := agent.launch(`{"query":"one"}`)
		editor.ask("editor.offer", `{"client":"Emacs","tools":["selection"]}`)
		e := agent.fail("editor.call", fmt.Sprintf(`{"session":%q,"tool":"selection"}`, session))
		assert.Contains(t, e.Message, "Emacs did not answer within 10s")
	})
}

// An agent gets no file through the editor that a rule denies.
func TestAnEditorTellsNothingOfDeniedFiles(t *testing.T) {
	w := newWorld(t, quick, func(o *hub.Options) {
		fakeOf(o).rules = func() []config.Rule {
			return []config.Rule{{Effect: config.EffectDeny, Tool: "Read", Path: "*.env", Source: config.SourceUser}}
		}
	})
	for _, name := range []string{"a.go", "b.env"} {
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), nil, 0o600))
	}
	agent, editor := w.connect(frame.LSP), w.connect(frame.LSP)
	session := agent.launch(`{"query":"one"}`)
	editor.ask("editor.offer", `{"tools":["buffers","selection","symbols"]}`)
	call := func(tool, answer string) message {
		pending := agent.send("editor.call", fmt.Sprintf(`{"session":%q,"tool":%q}`, session, tool))
		id, _ := editor.asked("editor." + tool)
		editor.write(`{"jsonrpc":"2.0","id":` + id + `,"result":` + strings.ReplaceAll(answer, "ROOT", w.dir) + `}`)
		return agent.wait(pending)
	}
	all := `{"buffers":[{"path":"ROOT/a.go"},{"path":"ROOT/b.env","text":"KEY=1"}],"total":2}`
	assert.JSONEq(t, `{"result":{"buffers":[{"path":"`+w.dir+`/a.go"}],"total":2}}`, string(call("buffers", all).Result))
	require.Nil(t, call("selection", `{"path":"ROOT/a.go","text":"x"}`).Error)
	refused := call("selection", `{"path":"ROOT/b.env","text":"KEY=1"}`).Error
	require.NotNil(t, refused)
	assert.Equal(t, "permission_denied", refused.Data["kind"])
	assert.Equal(t, "permission_denied", agent.fail("editor.call", fmt.Sprintf(`{"session":%q,"tool":"symbols","arguments":{"path":"b.env"}}`, session)).Data["kind"])
}

// An agent gets nothing through the editor of files outside of its session's directories, not by links either.
func TestAnEditorTellsNothingOfFilesElsewhere(t *testing.T) {
	w := newWorld(t, quick)
	elsewhere := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "secret"), nil, 0o600))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(w.dir, "link")))
	agent, editor := w.connect(frame.LSP), w.connect(frame.LSP)
	session := agent.launch(`{"query":"one"}`)
	editor.ask("editor.offer", `{"tools":["buffers","selection"]}`)
	call := func(tool, answer string) message {
		pending := agent.send("editor.call", fmt.Sprintf(`{"session":%q,"tool":%q}`, session, tool))
		id, _ := editor.asked("editor." + tool)
		editor.write(`{"jsonrpc":"2.0","id":` + id + `,"result":` + strings.NewReplacer("ROOT", w.dir, "ELSEWHERE", elsewhere).Replace(answer) + `}`)
		return agent.wait(pending)
	}
	got := call("buffers", `{"buffers":[{"path":"ROOT/new"},{"path":"ELSEWHERE/secret","text":"KEY"},{"path":"ROOT/link/secret","text":"KEY"},{"path":"ROOT/../x"}],"total":4,"note":"Cut."}`)
	assert.JSONEq(t, `{"result":{"buffers":[{"path":"`+w.dir+`/new"}],"total":4,"note":"Cut. Left out, in files outside of the session's directories: 3."}}`, string(got.Result))
	refused := call("selection", `{"path":"ELSEWHERE/secret","text":"KEY"}`).Error
	require.NotNil(t, refused)
	assert.Equal(t, "permission_denied", refused.Data["kind"])
	assert.Contains(t, refused.Message, "outside of the session's directories")
}

// The client that starts a session may choose its id.
func TestACallerChoosesTheIDOfASession(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	id, forked := uuid.NewString(), uuid.NewString()
	first := testkit.JSONAs[string](t, c.ask("launchSession", fmt.Sprintf(`{"query":"one","conversation_id":%q}`, id)), "session_id")
	w.ended(first)
	r := object(t, c.ask("launchSession", fmt.Sprintf(`{"query":"two","conversation_id":%q}`, id)))
	assert.Equal(t, id, r["thread_id"], "the prompt continues the same session")
	w.ended(r["session_id"].(string))
	r = object(t, c.ask("continueSession", fmt.Sprintf(`{"query":"three","session_id":%q}`, id)))
	assert.Equal(t, id, r["thread_id"])
	w.ended(r["session_id"].(string))
	r = object(t, c.ask("continueSession", fmt.Sprintf(`{"query":"other","session_id":%q,"fork":true,"conversation_id":%q}`, first, forked)))
	assert.Equal(t, forked, r["thread_id"])
	w.ended(r["session_id"].(string))
	for _, bad := range []string{"x", "0C7D9B1E-4C1B-4B7B-8A53-3C1A6B1F1E11", "task-0001"} {
		c.rejects("launchSession", fmt.Sprintf(`{"query":"x","conversation_id":%q}`, bad), "conversation_id")
	}
}
