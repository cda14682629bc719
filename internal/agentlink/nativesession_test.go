package agentlink

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// script defines the behaviour of this program as an agent, while SCRIPT is in its environment.
type script struct {
	Info    string              `json:"info"`    // the result of initialize
	Answers map[string]string   `json:"answers"` // the rest of a response, by the method, or by the method and a cursor
	Updates map[string][]string `json:"updates"` // sent before the answer
	Log     string              `json:"log"`     // a file that records the requests
}

func TestMain(m *testing.M) {
	if text := os.Getenv("SCRIPT"); text != "" {
		play(text)
		return
	}
	goleak.VerifyTestMain(m)
}

func play(text string) {
	var s script
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer log.Close()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var r struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor, SessionID, CWD string }
		}
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		fmt.Fprintln(log, r.Method, r.Params.SessionID, r.Params.CWD)
		for _, update := range s.Updates[r.Method] {
			fmt.Printf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}`+"\n", update)
		}
		answer, known := s.Answers[r.Method+r.Params.Cursor]
		switch {
		case r.Method == "initialize":
			answer = `"result":` + s.Info
		case !known:
			answer = `"error":{"code":-32601,"message":"no such method"}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", r.ID, answer)
	}
}

// launch returns the launch of a script's agent, and the file of its requests.
func (s script) launch(t *testing.T) Launch {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	if s.Log == "" {
		s.Log = filepath.Join(t.TempDir(), "log")
	}
	if !strings.Contains(s.Info, "protocolVersion") {
		s.Info = `{"protocolVersion":1,"agentCapabilities":` + s.Info + `}`
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return Launch{Name: "theirs", Command: []string{program}, Environment: map[string]string{"SCRIPT": string(text)}}
}

var quiet = slog.New(slog.DiscardHandler)

const signedOut = `"error":{"code":-32000,"message":"Authentication required"}`

// Each session is listed once, whatever the agent's pages are; invalid entries are dropped.
func TestListPages(t *testing.T) {
	l := script{Info: `{"sessionCapabilities":{"list":{}}}`, Answers: map[string]string{
		"session/list":  `"result":{"sessions":[{"sessionId":"a","cwd":"/p/../q","title":"A","updatedAt":"2026-01-02T03:04:05Z"},{"sessionId":""},{"sessionId":"b","cwd":"p","title":7},{"sessionId":"c"}],"nextCursor":"x"}`,
		"session/listx": `"result":{"sessions":[{"sessionId":"d"}],"nextCursor":"x"}`,
	}}.launch(t)
	for limit := 1; limit <= 5; limit++ {
		var ids []string
		q := Query{Limit: limit}
		for {
			page, err := ListSessions(t.Context(), l, q, quiet)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.Sessions), limit)
			for _, s := range page.Sessions {
				ids = append(ids, s.ID)
			}
			if q.Cursor = page.Next; q.Cursor == "" || len(ids) > 4 {
				break
			}
		}
		assert.Equal(t, []string{"a", "b", "c", "d"}, ids, "by %d", limit)
	}
	page, err := ListSessions(t.Context(), l, Query{Limit: 2}, quiet)
	require.NoError(t, err)
	assert.Equal(t, []NativeSession{{ID: "a", Title: "A", Dir: "/q", Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, {ID: "b"}}, page.Sessions)
}

// An agent that does not support a request gives an error with the remedy.
func TestRefusals(t *testing.T) {
	dumb := script{Info: `{"sessionCapabilities":{"list":null}}`}.launch(t)
	_, err := ListSessions(t.Context(), dumb, Query{Limit: 1}, quiet)
	assert.EqualError(t, err, "theirs cannot list its sessions: it does not offer session/list. One whose id you know can be adopted")
	assert.ErrorAs(t, err, new(*CannotError))
	_, err = LoadSession(t.Context(), dumb, Wanted{ID: "a"}, quiet)
	assert.ErrorAs(t, err, new(*CannotError))
	assert.ErrorContains(t, err, "neither session/load nor session/resume")
	assert.ErrorAs(t, Delete(t.Context(), dumb, "a", quiet), new(*CannotError))
	for _, cursor := range []string{"?", "e30x", cursor{Behind: -1}.text()} {
		_, err = ListSessions(t.Context(), dumb, Query{Limit: 1, Cursor: cursor}, quiet)
		assert.ErrorIs(t, err, ErrCursor, cursor)
	}
	out := script{Info: `{"loadSession":true,"sessionCapabilities":{"list":{},"delete":{}}}`, Answers: map[string]string{
		"session/list": signedOut, "session/delete": signedOut,
	}}.launch(t)
	_, err = ListSessions(t.Context(), out, Query{Limit: 1}, quiet)
	assert.ErrorIs(t, err, errSignedOut)
	assert.ErrorContains(t, err, "sign in with `duet-rpc agents login theirs`")
	assert.ErrorIs(t, Delete(t.Context(), out, "a", quiet), errSignedOut)
	_, err = LoadSession(t.Context(), out, Wanted{ID: "a"}, quiet)
	assert.ErrorIs(t, err, errSignedOut)
}

// LoadSession returns the agent's history from the listed directory, and closes the session
// again.
func TestLoad(t *testing.T) {
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	said := func(text string) string {
		return `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"` + text + `"}}`
	}
	h, err := LoadSession(t.Context(), script{
		Info: `{"loadSession":true,"sessionCapabilities":{"list":{},"close":{}}}`, Log: log,
		Answers: map[string]string{
			"session/list": fmt.Sprintf(`"result":{"sessions":[{"sessionId":"s","cwd":%q,"title":"listed"}]}`, dir), "session/load": `"result":{}`, "session/close": `"result":{}`,
		},
		Updates: map[string][]string{
			"session/list": {said("before")}, "session/load": {said("hello"), `{"sessionUpdate":"session_info_update","title":"told"}`},
		},
	}.launch(t), Wanted{ID: "s", Else: t.TempDir()}, quiet)
	require.NoError(t, err)
	require.Len(t, h.Parts, 1)
	assert.Equal(t, "hello", h.Parts[0].Text)
	h.Parts = nil
	assert.Equal(t, NativeHistory{Title: "told", Dir: dir, HasHistory: true}, h)
	asked, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(asked), "session/load s "+dir+"\n")
	assert.Contains(t, string(asked), "session/close s \n")
}

// A session of an agent of version 2 is resumed with its history.
func TestLoadOfVersion2(t *testing.T) {
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	h, err := LoadSession(t.Context(), script{
		Info: `{"protocolVersion":2,"info":{"name":"second"},"capabilities":{"session":{}}}`, Log: log,
		Answers: map[string]string{"session/list": fmt.Sprintf(`"result":{"sessions":[{"sessionId":"s","cwd":%q}]}`, dir), "session/resume": `"result":{}`, "session/close": `"result":{}`},
		Updates: map[string][]string{"session/resume": {
			`{"sessionUpdate":"user_message","messageId":"u1","content":[{"type":"text","text":"hello"}]}`,
			`{"sessionUpdate":"user_message","messageId":"u2","content":[]}`,
			`{"sessionUpdate":"user_message_chunk","messageId":"u2","content":{"type":"text","text":"again"}}`,
			`{"sessionUpdate":"terminal_update","terminalId":"t","command":"ls","output":{"data":"b3V0"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"ls","kind":"execute","status":"completed","content":[{"type":"terminal","terminalId":"t"}]}`,
			`{"sessionUpdate":"agent_message","messageId":"a1","content":[{"type":"text","text":"done"}]}`,
			`{"sessionUpdate":"state_update","state":"idle"}`,
		}},
	}.launch(t), Wanted{ID: "s", Else: t.TempDir()}, quiet)
	require.NoError(t, err)
	require.True(t, h.HasHistory)
	var said []string
	for _, p := range h.Parts {
		said = append(said, p.Text+p.EventType+string(p.EventData))
	}
	assert.Equal(t, "hello\nagain\n"+`tool_call{"tool_id":"c","tool":"Bash","title":"ls","kind":"execute","status":"completed"}`+"\n"+
		`tool_result{"tool_id":"c","tool":"Bash","status":"completed","result":"out"}`+"\n"+`content_block_delta{"message_id":"a1","delta":{"text":"done"}}`, strings.Join(said, "\n"))
	asked, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(asked), "session/resume s "+dir+"\n")
}

// An agent that can only resume has the session, and no history. A missing directory and an
// unknown session give an error with the remedy.
func TestLoadElsewhere(t *testing.T) {
	dir := t.TempDir()
	resumes := script{Info: `{"sessionCapabilities":{"resume":{}}}`, Answers: map[string]string{"session/resume": `"result":{}`}}
	h, err := LoadSession(t.Context(), resumes.launch(t), Wanted{ID: "s", Else: dir}, quiet)
	require.NoError(t, err)
	assert.Equal(t, NativeHistory{Dir: dir}, h)
	gone := filepath.Join(dir, "gone")
	_, err = LoadSession(t.Context(), resumes.launch(t), Wanted{ID: "s", Dir: gone, Else: dir}, quiet)
	assert.EqualError(t, err, (&DirectoryError{"theirs", gone}).Error())
	resumes.Answers = nil
	_, err = LoadSession(t.Context(), resumes.launch(t), Wanted{ID: "s", Dir: dir}, quiet)
	assert.ErrorContains(t, err, "the agent looked for the session in "+dir)
	assert.ErrorContains(t, err, "with working_dir or --dir, and check the id")
}
