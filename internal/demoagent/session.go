package demoagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// Limits of a session's file; older or longer items are left out.
const (
	keptTurns  = 50
	keptPrompt = 4 << 10  // bytes of one prompt
	keptText   = 64 << 10 // bytes of one turn's text, and of one diff
	keptTools  = 100      // of one turn
)

// record is the content of a session's file.
type record struct {
	ID       string          `json:"id"`
	Cwd      string          `json:"cwd"`
	Mode     string          `json:"mode"`
	Updated  time.Time       `json:"updated"`
	Count    int             `json:"count"` // number of turns begun
	Used     int             `json:"used"`  // tokens, as a model would count them
	Standing map[string]bool `json:"standing,omitempty"`
	Turns    []*turnRecord   `json:"turns"`
}

// turnRecord is one prompt and its result.
type turnRecord struct {
	Prompt  string     `json:"prompt"`
	Asked   string     `json:"asked"`             // the first prompt, if this turn continues another one
	Script  string     `json:"script"`            // the keywords
	Outcome string     `json:"outcome,omitempty"` // a stop reason or "failed"; "" while it runs
	Step    string     `json:"step,omitempty"`    // the current step
	Index   int        `json:"index,omitempty"`   // the position in that step, from 0
	Input   *editInput `json:"input,omitempty"`   // of the edit, so that a continued turn repeats the same question
	Items   []item     `json:"items,omitempty"`
}

// cutShort reports whether the turn was interrupted. The result is meaningless for a running
// turn, which has no outcome either.
func (r *turnRecord) cutShort() bool {
	return r.Outcome == "" || r.Outcome == acp.StopCancelled
}

// toContinue returns the turn that a prompt continues: the last one whose request the prompt
// repeats, or else the last one. It returns nil if that turn was not interrupted, or if the
// prompt does not ask to continue.
func (r *record) toContinue(text, request string, repeated bool) *turnRecord {
	if !meansContinue(text) || len(r.Turns) == 0 {
		return nil
	}
	if repeated {
		request = cut(request, keptPrompt)
		for _, t := range slices.Backward(r.Turns) {
			if t.cutShort() && (t.Asked == request || t.Prompt == request) {
				t.Outcome = "continued" // the new turn does the rest
				return t
			}
		}
	}
	if last := r.Turns[len(r.Turns)-1]; last.cutShort() {
		return last
	}
	return nil
}

// editInput is the raw input of the edit.
type editInput struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

// item is a visible part of a turn, in its last form: exactly one field is set.
type item struct {
	Text    string        `json:"text,omitempty"`
	Thought string        `json:"thought,omitempty"`
	Tool    *acp.ToolCall `json:"tool,omitempty"`
}

// session is one session of a client.
type session struct {
	store *store

	mu      sync.Mutex
	rec     record
	cancels map[*context.CancelFunc]struct{} // of running and waiting turns, and of work after them
	running chan struct{}                    // a token: the turn that has it runs

	servers json.RawMessage // the MCP servers that the client gave

	heeds     bool     // the running turn accepts messages
	meanwhile []string // the user's messages that the turn has not repeated yet
	closed    bool     // by session/close: running work is cancelled

	reporting  sync.Mutex // guards the fields below; locked while a state is sent
	state      string     // as sent
	background []any      // background work, each item an acp.BackgroundWork
}

func newSession(st *store, rec record) *session {
	return &session{
		store: st, rec: rec, cancels: map[*context.CancelFunc]struct{}{}, running: make(chan struct{}, 1),
		state: acp.StateIdle, background: []any{},
	}
}

// change applies f to the record and saves it.
func (s *session) change(f func(*record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.rec)
	s.rec.Updated = time.Now().UTC()
	s.store.save(&s.rec)
}

// look applies f to the record; f must not keep it.
func (s *session) look(f func(*record)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.rec)
}

func (s *session) mode() (mode string) {
	s.look(func(r *record) { mode = r.Mode })
	return mode
}

// cancelledBy registers cancel for a cancellation of the session's turns. forget removes it.
func (s *session) cancelledBy(cancel context.CancelFunc) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels[&cancel] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, &cancel)
		cancel()
	}
}

// detach lists a tool call as background work from the next state on.
func (s *session) detach(toolCall string) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.background = append(s.background, acp.BackgroundWork{Type: acp.WorkToolCall, ToolCallID: toolCall})
}

// close ends every turn of the session, and its background work.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
}

func (s *session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// cancel ends every turn of the session.
func (s *session) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cancel := range s.cancels {
		(*cancel)()
	}
}

// addText appends to the last item of its kind. The caller holds the lock.
func (r *turnRecord) addText(text string, thought bool) {
	size := 0
	for _, it := range r.Items {
		size += len(it.Text) + len(it.Thought)
	}
	if text = cut(text, keptText-size); text == "" {
		return
	}
	if n := len(r.Items); n > 0 && r.Items[n-1].Tool == nil && (r.Items[n-1].Thought != "") == thought {
		if thought {
			r.Items[n-1].Thought += text
		} else {
			r.Items[n-1].Text += text
		}
		return
	}
	if thought {
		r.Items = append(r.Items, item{Thought: text})
	} else {
		r.Items = append(r.Items, item{Text: text})
	}
}

// addTool adds a finished tool call. The caller holds the lock.
func (r *turnRecord) addTool(call acp.ToolCall) {
	tools := 0
	for _, it := range r.Items {
		if it.Tool != nil {
			tools++
		}
	}
	if tools < keptTools {
		call.Content = slices.Clone(call.Content)
		call.Content = slices.DeleteFunc(call.Content, func(c acp.ToolContent) bool {
			return c.Type != "diff" || len(*c.NewText) > keptText
		})
		r.Items = append(r.Items, item{Tool: &call})
	}
}

// replay returns the updates for a client that loads the session. With ids, each message
// keeps its own.
func (r *record) replay(ids bool) []any {
	var updates []any
	first := r.Count - len(r.Turns) + 1
	for i, t := range r.Turns {
		at := &turn{number: first + i}
		chunk := func(kind, text string) {
			c := acp.MessageChunk{Kind: kind, Content: acp.TextContent(text)}
			if ids {
				c.MessageID = at.messageID(c)
			}
			updates = append(updates, c)
		}
		if t.Prompt != "" { // else the turn was agent-initiated
			chunk(acp.KindUserMessageChunk, t.Prompt)
		}
		for _, it := range t.Items {
			switch {
			case it.Tool != nil:
				at.part++
				updates = append(updates, *it.Tool)
			case it.Thought != "":
				chunk(acp.KindAgentThoughtChunk, it.Thought)
			default:
				chunk(acp.KindAgentMessageChunk, it.Text)
			}
		}
	}
	return updates
}

// store keeps sessions as files. It is safe for concurrent use of different sessions.
type store struct {
	dir    string // "": nothing is stored
	warn   func(error)
	warned sync.Once
}

var (
	errNoSession = errors.New("there is no such session")
	validID      = lazyregexp.New(`^[A-Za-z0-9-]{1,64}$`) // it becomes a file name
)

func (st *store) path(id string) string { return filepath.Join(st.dir, id+".json") }

// save writes the session's file. It replaces the file in one step, so that a killed process
// leaves the old or the new one. If that fails, the session lives on in memory: a demo must work
// everywhere.
func (st *store) save(rec *record) {
	if st.dir == "" {
		return
	}
	if err := st.write(rec); err != nil {
		st.warned.Do(func() { st.warn(fmt.Errorf("sessions are not kept: %w", err)) })
	}
}

func (st *store) write(rec *record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("encoding session %s: %w", rec.ID, err)
	}
	if err := os.MkdirAll(st.dir, 0o700); err != nil {
		return fmt.Errorf("making the directory for sessions: %w", err)
	}
	f, err := os.CreateTemp(st.dir, ".session-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("writing session %s: %w", rec.ID, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), st.path(rec.ID))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("writing session %s: %w", rec.ID, err)
	}
	return nil
}

// load reads a session's file. It returns errNoSession if there is none.
func (st *store) load(id string) (record, error) {
	var rec record
	if st.dir == "" || !validID().MatchString(id) {
		return rec, errNoSession
	}
	data, err := os.ReadFile(st.path(id))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return rec, errNoSession
	case err != nil:
		return rec, fmt.Errorf("reading session %s: %w", id, err)
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, fmt.Errorf("reading session %s: %w", id, err)
	}
	return rec, nil
}

// ids returns the sessions with files, the newest first: ids increase.
func (st *store) ids() []string {
	if st.dir == "" {
		return nil
	}
	entries, err := os.ReadDir(st.dir)
	if err != nil {
		return nil // no directory before the first session
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && validID().MatchString(id) {
			ids = append(ids, id)
		}
	}
	slices.Reverse(ids)
	return ids
}

// chunkLine returns the parts of a line with a chunk before and after its text. The lines are
// concatenated by hand, because encoding is ten times slower than a client reads.
func (t *turn) chunkLine() (before, behind string) {
	id := ""
	if t.served().HasStates() {
		id = `"messageId":"` + t.messageID(acp.MessageChunk{Kind: acp.KindAgentMessageChunk}) + `",`
	}
	return t.updateLine(`{"sessionUpdate":"agent_message_chunk",` + id + `"content":{"type":"text","text":"`), `"}}}}` + "\n"
}

func (t *turn) updateLine(rest string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + string(encode(t.id)) + `,"update":` + rest
}

// stream sends numbered chunks, evenly if there is a rate.
func (t *turn) stream(ctx context.Context, arg argument) error {
	before, behind := t.chunkLine()
	out := batch{w: t.lines}
	began := time.Now()
	for i := 1; i <= arg.n; i++ {
		if arg.rate > 0 {
			due := began.Add(time.Duration(float64(i-1) / float64(arg.rate) * float64(time.Second)))
			// A timer is inexact below a millisecond: send everything due by then together.
			if wait := time.Until(due); wait > time.Millisecond {
				if err := out.flush(ctx); err != nil {
					return err
				}
				if err := pause(ctx, wait); err != nil {
					return err
				}
				if err := t.heed(ctx); err != nil {
					return err
				}
			}
		}
		out.buf = append(out.buf, before...)
		out.buf = append(out.buf, "chunk "...)
		out.buf = strconv.AppendInt(out.buf, int64(i), 10)
		out.buf = append(out.buf, ' ')
		out.buf = append(out.buf, behind...)
		if t.said < keptText {
			t.wrote(fmt.Sprintf("chunk %d ", i), false)
		}
		if err := out.flushFull(ctx); err != nil {
			return err
		}
	}
	return out.flush(ctx)
}

// tools makes tool calls that need no permission and do nothing.
func (t *turn) tools(ctx context.Context, arg argument) error {
	out := batch{w: t.lines}
	begins := `"tool_call"`
	if t.served().HasToolNames() {
		begins = `"tool_call_update","name":"Bash"`
	}
	start := t.updateLine(`{"sessionUpdate":` + begins + `,"kind":"execute","title":"Bash","status":"pending","_meta":{"duet":{"toolName":"Bash"},"claudeCode":{"toolName":"Bash"}},"toolCallId":"`)
	update := t.updateLine(`{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"`)
	done := t.updateLine(`{"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"`)
	for i := 1; i <= arg.n; i++ {
		call := t.newCallID()
		t.part++
		out.buf = fmt.Appendf(out.buf, "%s%s\",\"rawInput\":{\"command\":\"echo %d\"}}}}\n", start, call, i)
		out.buf = fmt.Appendf(out.buf, "%s%s\"}}}\n", update, call)
		out.buf = fmt.Appendf(out.buf, "%s%s\",\"rawOutput\":\"%d\\n\"}}}\n", done, call, i)
		if i <= keptTools {
			t.rememberTool(call, i)
		}
		if err := out.flushFull(ctx); err != nil {
			return err
		}
		if t.script.has("slow") {
			if err := out.flush(ctx); err != nil {
				return err
			}
			if err := t.pauseIfSlow(ctx); err != nil {
				return err
			}
		}
	}
	return out.flush(ctx)
}

// garbage prints a line like a forgotten print statement.
func (t *turn) garbage(ctx context.Context, _ argument) error {
	return t.raw(ctx, []byte("this line is no JSON {]\n"))
}

func (t *turn) badUTF8(ctx context.Context, _ argument) error {
	before, behind := t.chunkLine()
	return t.raw(ctx, []byte(before+"bad \xff\xfe\xc3( bytes "+behind))
}

func (t *turn) unknownUpdate(ctx context.Context, _ argument) error {
	return t.raw(ctx, []byte(t.updateLine(`{"sessionUpdate":"duet_demo_unknown","text":"nobody knows this","list":[1,2,3]}}}`+"\n")))
}

// longLine sends one chunk whose line is arg.n megabytes long.
func (t *turn) longLine(ctx context.Context, arg argument) error {
	before, behind := t.chunkLine()
	text := bytes.Repeat([]byte("x"), max(0, arg.n<<20-len(before)-len(behind)))
	return t.raw(ctx, append(append([]byte(before), text...), behind...))
}

func (t *turn) raw(ctx context.Context, line []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := t.lines.Write(line)
	return err
}
