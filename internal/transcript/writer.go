// Package transcript writes the messages and tool calls of turns: the agent's current message,
// tool calls, and notes such as a plan or an answer. One store transaction stores each as an item
// of the session and announces it as an event of the log.
//
// Package query reads transcripts.
package transcript

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Writer writes transcripts. Its methods take the current store transaction. Transactions do not
// overlap, which guards the open messages.
type Writer struct {
	ctx   context.Context // ends with the hub
	known func(turn int64) (domain.TurnInSession, bool)
	open  openMessages
}

// New returns a Writer whose reads end with ctx. known returns a cached session; it saves a store
// read for every piece of a message.
func New(ctx context.Context, known func(turn int64) (domain.TurnInSession, bool)) *Writer {
	return &Writer{ctx: ctx, known: known, open: openMessages{ctx: ctx, byTurn: make(map[int64]*openMessage)}}
}

// RolledBack clears the open messages in memory after a rollback; see [store.Options].
func (w *Writer) RolledBack() { clear(w.open.byTurn) }

// Delta adds a piece to the message that a turn's agent is writing, or begins another message. It
// ignores a turn that has ended.
func (w *Writer) Delta(t store.Tx, turn int64, d catalog.ContentDelta, thought bool) error {
	text := d.Delta.Text
	if text == "" {
		return nil
	}
	if !w.open.has(t, turn) {
		if r, err := t.Turn(w.ctx, turn); err != nil || r.State.Ended() {
			return err
		}
	}
	m, err := w.open.of(t, turn)
	if err != nil {
		return err
	}
	if m.isOpen && !m.goesOn(d, thought) {
		r, err := t.Turn(w.ctx, turn)
		if err != nil {
			return err
		}
		if err := w.CloseMessage(t, &r); err != nil {
			return err
		}
	}
	if !m.isOpen {
		m.isOpen, m.thought, m.key, m.parent = true, thought, messageKey(t), d.ParentID
	}
	if d.MessageID != "" {
		m.agentID = d.MessageID
	}
	session, err := w.sessionOf(t, turn)
	if err != nil {
		return err
	}
	piece := domain.MessageDelta{Key: m.key, ParentID: m.parent, Text: text, Thought: thought, Length: m.length + unitsOf(text), Meta: d.Meta}
	if _, err = t.Append(domain.Event{Session: session, Turn: turn, Payload: piece}); err != nil {
		return err
	}
	m.add(text, d.Meta)
	return nil
}

// CloseMessage ends the current message of a turn's agent, if any, and updates the turn.
func (w *Writer) CloseMessage(t store.Tx, turn *domain.Turn) error {
	m, err := w.open.of(t, turn.ID)
	if err != nil || !m.isOpen {
		return err
	}
	kind, key, parent, text, data := m.kind(), m.key, m.parent, m.text.String(), m.data()
	w.open.drop(t, turn.ID) // if a later step fails, the message stays open in the log
	seq, err := w.announceMessage(t, *turn,
		domain.MessageAdded{Type: kind, Key: key, ParentID: parent, Role: "assistant", Text: text, Meta: m.meta})
	if err != nil {
		return err
	}
	if kind == domain.ItemMessage {
		turn.Messages++
		if parent == "" { // a sub-agent's message is not the answer
			turn.Result = text
		}
		if err := t.UpdateTurn(*turn); err != nil {
			return err
		}
	}
	*m = openMessage{}
	w.open.byTurn[turn.ID] = m
	item := newItem(t, *turn, domain.Item{Seq: seq, Kind: kind, Key: key, ParentID: parent, Role: "assistant", Content: text, Data: data})
	return t.InsertItem(&item)
}

// Drop removes a turn's open message from memory; the log still has it. It is for callers that
// failed to write a related item and continue the transaction.
func (w *Writer) Drop(t store.Tx, turn int64) { w.open.drop(t, turn) }

// Prompt adds the user's prompt.
func (w *Writer) Prompt(t store.Tx, turn domain.Turn, session domain.Session) error {
	_, err := w.add(t, turn, domain.MessageAdded{
		NativeSession: session.NativeSession, Type: domain.ItemMessage, Role: "user", Text: turn.Prompt, Blocks: turn.Content,
	})
	return err
}

// EditPrompt changes the prompt with which a queued turn begins, and returns the text as an event
// carries it.
func (w *Writer) EditPrompt(t store.Tx, turn domain.Turn) (text string, truncated bool, err error) {
	items, err := t.ItemsOfTurn(w.ctx, turn.ID)
	if err != nil {
		return "", false, err
	}
	for _, i := range items {
		if i.Kind == domain.ItemMessage && i.Role == "user" {
			// The caller announces the change with the next event. A client that has the event
			// takes no item that is older.
			i.Seq, i.Content, i.Updated = t.Seq()+1, turn.Prompt, t.Now()
			if err := t.UpdateItem(i); err != nil {
				return "", false, err
			}
		}
	}
	text = turn.Prompt
	truncated = cutText(&text)
	return text, truncated, nil
}

// Said adds a user message in the middle of a turn. No message may be open.
func (w *Writer) Said(t store.Tx, turn domain.Turn, text string, list []domain.Content) error {
	if err := Attach(t, list); err != nil {
		return err
	}
	_, err := w.add(t, turn, domain.MessageAdded{Type: domain.ItemMessage, Role: "user", Text: text, Blocks: domain.BlocksOf(list)})
	return err
}

// Steered adds a user message that the agent received in the middle of its turn. It closes the open
// message first, and updates the turn.
func (w *Writer) Steered(t store.Tx, turn *domain.Turn, text string) error {
	_, err := w.Message(t, turn, "user", text, "steered")
	return err
}

// Adopted notes the missing parts of an imported session.
func (w *Writer) Adopted(t store.Tx, turn domain.Turn, note string) error {
	return w.say(t, turn, "adopted", note)
}

// Content adds an agent's non-text output as a separate message, or thought, after the open one,
// and updates the turn. parent is the tool call of the sub-agent, or "".
func (w *Writer) Content(t store.Tx, turn *domain.Turn, parent string, list []domain.Content, thought bool) error {
	if err := w.CloseMessage(t, turn); err != nil {
		return err
	}
	if err := Attach(t, list); err != nil {
		return err
	}
	blocks := domain.BlocksOf(list)
	text := labels(blocks)
	m := domain.MessageAdded{Type: domain.ItemMessage, ParentID: parent, Role: "assistant", Text: text, Subtype: "content", Blocks: blocks}
	if thought {
		m.Type = domain.ItemThinking
		_, err := w.add(t, *turn, m)
		return err
	}
	turn.Messages++
	if turn.Result == "" && parent == "" { // otherwise the text remains the answer
		turn.Result = text
	}
	if err := t.UpdateTurn(*turn); err != nil {
		return err
	}
	_, err := w.add(t, *turn, m)
	return err
}

// Message adds a whole message after the open one, and updates the turn. kind is the caller's name for
// its type.
func (w *Writer) Message(t store.Tx, turn *domain.Turn, role, text, kind string) (domain.Item, error) {
	if err := w.CloseMessage(t, turn); err != nil {
		return domain.Item{}, err
	}
	return w.add(t, *turn, domain.MessageAdded{Type: domain.ItemMessage, Role: role, Text: text, Subtype: kind})
}

// WentOn adds the opening message of an agent-initiated turn: why the agent continued.
func (w *Writer) WentOn(t store.Tx, turn domain.Turn, why domain.TurnTrigger) error {
	return w.say(t, turn, "went_on", why.String()+".")
}

// BackgroundCut fails the tool calls that were open in the background when the agent ended, and
// adds a message that names the background work.
func (w *Writer) BackgroundCut(t store.Tx, turn domain.Turn, tasks []domain.BackgroundTask) error {
	if err := w.failBackground(t, turn, tasks); err != nil {
		return err
	}
	titles := make([]string, len(tasks))
	for i, b := range tasks {
		titles[i] = cmp.Or(b.Title, b.Kind)
	}
	return w.say(t, turn, "background_cut", "The agent has ended, and with it what it did in the background: "+strings.Join(titles, "; "))
}

// Notice adds an agent's notice to the user.
func (w *Writer) Notice(t store.Tx, turn domain.Turn, n catalog.Notice) error {
	text := n.Title
	switch n.Severity {
	case "warning":
		text = "Warning: " + text
	case "error":
		text = "Error: " + text
	}
	if n.Description != "" {
		text += "\n\n" + n.Description
	}
	return w.say(t, turn, "notice", text)
}

// Compacted notes that the agent has compacted its context, or has failed to.
func (w *Writer) Compacted(t store.Tx, turn domain.Turn, c catalog.Compaction) error {
	switch c.Status {
	case "completed":
		return w.say(t, turn, "compaction", strings.TrimSpace("The agent has compacted its context.\n\n"+c.Summary))
	case "failed":
		return w.say(t, turn, "compaction", "The agent could not compact its context: "+cmp.Or(c.Error, "it does not say why"))
	}
	return nil
}

// SessionReplaced notes that a turn's agent has lost its own session.
func (w *Writer) SessionReplaced(t store.Tx, turn domain.Turn) error {
	return w.say(t, turn, "session_replaced", "The agent had lost its session. A new one received the transcript so far: the messages "+
		"and which tools were used, but not their results.")
}

// Codes of errors that end no turn and are part of the transcript, see [Writer.ErrorReported].
const (
	MCPServerFailed = "MCP_SERVER_FAILED" // an MCP server of the agent fails
	ContentRefused  = "CONTENT_REFUSED"   // content of the agent was left out
	RulesNotAsked   = "RULES_NOT_ASKED"   // the agent's mode lets it act without asking
	SettingIgnored  = "SETTING_IGNORED"   // the agent does not support a requested setting
)

// ErrorReported notes an error that ends no turn, if its code belongs in the transcript.
func (w *Writer) ErrorReported(t store.Tx, turn domain.Turn, code, text string) error {
	switch code {
	case MCPServerFailed:
		return w.say(t, turn, "mcp_server_failed", text)
	case ContentRefused:
		return w.say(t, turn, "content_refused", text)
	case RulesNotAsked:
		return w.say(t, turn, "rules_not_asked", text)
	case SettingIgnored:
		return w.say(t, turn, "setting_ignored", text)
	}
	return nil
}

// BudgetNear notes that a turn, its session or the day has nearly used its budget.
func (w *Writer) BudgetNear(t store.Tx, turn domain.Turn, text string) error {
	return w.say(t, turn, "budget_near", text)
}

// GatesChecked notes the result of a turn's gates.
func (w *Writer) GatesChecked(t store.Tx, turn domain.Turn, text string) error {
	return w.say(t, turn, "gates", text)
}

// AnotherAgent notes that a turn has another agent than the previous turn.
func (w *Writer) AnotherAgent(t store.Tx, turn domain.Turn, before string) error {
	return w.say(t, turn, "another_agent", fmt.Sprintf("%s continues here; until now the agent was %s.", turn.Agent, before))
}

// The subtypes of [Writer.Note].
const (
	NoteRewound    = "rewound"    // files were restored to their state before an earlier turn, or this was undone
	NoteWorktree   = "worktree"   // what was done with the worktree of the session
	NoteCheckpoint = "checkpoint" // files are not recorded
)

// Note adds a note about the files of a session.
func (w *Writer) Note(t store.Tx, turn domain.Turn, subtype, text string) error {
	return w.say(t, turn, subtype, text)
}

// ForkedLater notes that a turn's agent forked its own session after that had already continued.
func (w *Writer) ForkedLater(t store.Tx, turn domain.Turn) error {
	return w.say(t, turn, "forked_later", "The session from which this was forked continued meanwhile: the agent may know more of it than "+
		"is shown here.")
}

// DenialEndedTurn notes, after the open message, that a turn's agent ended its turn because
// permission was denied. It updates the turn.
func (w *Writer) DenialEndedTurn(t store.Tx, turn *domain.Turn) error {
	if err := w.CloseMessage(t, turn); err != nil {
		return err
	}
	return w.say(t, *turn, "denial_ended_turn", "The denial ended the turn: tell the agent what to do instead.")
}

// say adds a message of the hub.
func (w *Writer) say(t store.Tx, turn domain.Turn, subtype, text string) error {
	m := domain.MessageAdded{Type: domain.ItemSystem, Key: fmt.Sprintf("sys-%d", t.Seq()+1), Role: "system", Text: text, Subtype: subtype}
	_, err := w.add(t, turn, m)
	return err
}

// add announces and stores a whole message. It generates a key if the message has none.
func (w *Writer) add(t store.Tx, turn domain.Turn, m domain.MessageAdded) (domain.Item, error) {
	if m.Key == "" {
		m.Key = messageKey(t)
	}
	item := newItem(t, turn, domain.Item{Kind: m.Type, Key: m.Key, ParentID: m.ParentID, Role: m.Role, Content: m.Text})
	if len(m.Blocks) > 0 {
		item.Data = domain.MessageContent{Blocks: m.Blocks}
	}
	var err error
	if item.Seq, err = w.announceMessage(t, turn, m); err != nil {
		return item, err
	}
	return item, t.InsertItem(&item)
}

// messageKey returns the id of the message that begins with the next event.
func messageKey(t store.Tx) string { return fmt.Sprintf("msg-%d", t.Seq()+1) }

// newItem returns an item of a turn that begins now.
func newItem(t store.Tx, turn domain.Turn, item domain.Item) domain.Item {
	item.Session, item.Turn, item.Created, item.Updated = turn.Session, turn.ID, t.Now(), t.Now()
	return item
}

// announceMessage adds a message to the log, truncated to the limit of an event.
func (w *Writer) announceMessage(t store.Tx, turn domain.Turn, m domain.MessageAdded) (int64, error) {
	m.NativeSession = w.nativeSession(turn, m.NativeSession)
	m.Truncated = cutText(&m.Text)
	return announce(t, turn, m)
}

// announce adds an event of a turn to the log.
func announce(t store.Tx, turn domain.Turn, p domain.Payload) (int64, error) {
	return t.Append(turn.Event(p))
}

// nativeSession returns the known id of the agent's own session of a turn, or unless.
func (w *Writer) nativeSession(turn domain.Turn, unless string) string {
	if s, ok := w.known(turn.ID); ok {
		return s.Session.NativeSession
	}
	return unless
}

// sessionOf returns the session of a turn.
func (w *Writer) sessionOf(t store.Tx, turn int64) (int64, error) {
	if s, ok := w.known(turn); ok {
		return s.Turn.Session, nil
	}
	r, err := t.Turn(w.ctx, turn)
	return r.Session, err
}

// cutText truncates a text to the limit of an event, and reports whether it did.
func cutText(text *string) bool {
	if len(*text) <= domain.MaxEventText {
		return false
	}
	*text = strings.ToValidUTF8((*text)[:domain.MaxEventText], "")
	return true
}

// encode returns v as JSON.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // an invalid json.RawMessage from outside
		b, _ = json.Marshal(map[string]string{"malformed": err.Error()})
	}
	return b
}

// Late adds text that an agent sends after the end of its turn. If the turn ended with a message or
// thought, the text is added to it; the log then has the whole message again, under its key.
// Otherwise the text becomes another message at the end of the turn. While the turn has not ended,
// Late is Delta. clean redacts a text, because a secret may be split between the message and the
// late text.
func (w *Writer) Late(t store.Tx, turn domain.Turn, d catalog.ContentDelta, thought bool, clean func(string) string) error {
	d.Delta.Text = clean(d.Delta.Text)
	if !turn.State.Ended() {
		return w.Delta(t, turn.ID, d, thought)
	}
	if d.Delta.Text == "" || turn.ErrorCode == domain.CodeStoreFull { // the log has the message, open
		return nil
	}
	kind := (&openMessage{thought: thought}).kind()
	item, err := t.LastItem(w.ctx, turn.ID)
	isNew := errors.Is(err, store.ErrNotFound) || err == nil && !takesLate(item, kind, d)
	if err != nil && !isNew {
		return err
	}
	if isNew {
		item = newItem(t, turn, domain.Item{Kind: kind, Key: messageKey(t), ParentID: d.ParentID, Role: "assistant"})
	}
	item.Content, item.Updated = clean(item.Content+d.Delta.Text), t.Now()
	meta := patched(metaOf(item.Data), d.Meta)
	item.Data = withMeta(item.Data, meta)
	if item.Seq, err = w.announceMessage(
		t, turn, domain.MessageAdded{Type: kind, Key: item.Key, ParentID: item.ParentID, Role: item.Role, Text: item.Content, Meta: meta},
	); err != nil {
		return err
	}
	if kind == domain.ItemMessage {
		if isNew {
			turn.Messages++
		}
		if item.ParentID == "" {
			turn.Result = item.Content
		}
		if err := t.UpdateTurn(turn); err != nil {
			return err
		}
	}
	if isNew {
		return t.InsertItem(&item)
	}
	return t.UpdateItem(item)
}

// takesLate reports whether late text is added to an item.
func takesLate(item domain.Item, kind string, d catalog.ContentDelta) bool {
	content, _ := item.Data.(domain.MessageContent)
	return item.Kind == kind && item.Role == "assistant" && item.ParentID == d.ParentID && content.Blocks == nil && len(item.Content) < maxMessage
}

// longSilence is the duration from which a silence without a complaint gets a note. Shorter ones
// may be a thinking model.
const longSilence = time.Minute

// Silence notes that a turn's agent was silent, after the silence has ended. A complaint, such as a
// retried API call, explains the pause to a later reader. Output during a start is no complaint: many
// programs write to stderr then. An open message continues after it.
func (w *Writer) Silence(t store.Tx, turn domain.Turn, s catalog.Silence) error {
	took := time.Duration(s.LastedMS) * time.Millisecond
	if s.LastedMS == 0 {
		since := time.UnixMilli(s.SinceMS)
		took = max(0, t.Now().Sub(since))
	}
	isComplaint := s.Note != "" && !strings.HasPrefix(s.Note, catalog.Starting)
	if !isComplaint && (took < longSilence || s.Tool != "") {
		return nil
	}
	text := fmt.Sprintf("%s said nothing for %d s", turn.Agent, int(took.Seconds()))
	if took >= 2*longSilence {
		text = fmt.Sprintf("%s said nothing for %d min", turn.Agent, int(took.Minutes()))
	}
	if s.Tool != "" {
		text += ", in the middle of: " + s.Tool
	}
	if s.Note != "" {
		text += ": " + s.Note
	}
	return w.say(t, turn, "agent_silent", text)
}
