// Package conversation writes the messages and tool calls of runs: the agent's current message,
// tool calls, and notes such as a plan or an answer. One store transaction stores each as an item
// of the conversation and announces it as an event of the log.
//
// Package query reads conversations.
package conversation

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

// Writer writes conversations. Its methods take the current store transaction. Transactions do not
// overlap, which guards the open messages.
type Writer struct {
	ctx   context.Context // ends with the hub
	known func(run int64) (domain.Session, bool)
	open  openMessages
}

// New returns a Writer whose reads end with ctx. known returns a cached session; it saves a store
// read for every piece of a message.
func New(ctx context.Context, known func(run int64) (domain.Session, bool)) *Writer {
	return &Writer{ctx: ctx, known: known, open: openMessages{ctx: ctx, byRun: make(map[int64]*openMessage)}}
}

// RolledBack clears the open messages in memory after a rollback; see [store.Options].
func (w *Writer) RolledBack() { clear(w.open.byRun) }

// Delta adds a piece to the message that a run's agent is writing, or begins another message. It
// ignores a run that has ended.
func (w *Writer) Delta(t store.Tx, run int64, d catalog.ContentDelta, thought bool) error {
	text := d.Delta.Text
	if text == "" {
		return nil
	}
	if !w.open.has(t, run) {
		if r, err := t.Run(w.ctx, run); err != nil || r.State.Ended() {
			return err
		}
	}
	m, err := w.open.of(t, run)
	if err != nil {
		return err
	}
	if m.isOpen && !m.goesOn(d, thought) {
		r, err := t.Run(w.ctx, run)
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
	thread, err := w.threadOf(t, run)
	if err != nil {
		return err
	}
	piece := domain.MessageDelta{Key: m.key, ParentID: m.parent, Text: text, Thought: thought, Length: m.length + unitsOf(text), Meta: d.Meta}
	if _, err = t.Append(domain.Event{Thread: thread, Run: run, Payload: piece}); err != nil {
		return err
	}
	m.add(text, d.Meta)
	return nil
}

// CloseMessage ends the current message of a run's agent, if any, and updates run.
func (w *Writer) CloseMessage(t store.Tx, run *domain.Run) error {
	m, err := w.open.of(t, run.ID)
	if err != nil || !m.isOpen {
		return err
	}
	kind, key, parent, text, data := m.kind(), m.key, m.parent, m.text.String(), m.data()
	w.open.drop(t, run.ID) // if a later step fails, the message stays open in the log
	seq, err := w.announceMessage(t, *run, domain.MessageAdded{Type: kind, Key: key, ParentID: parent, Role: "assistant", Text: text, Meta: m.meta})
	if err != nil {
		return err
	}
	if kind == domain.ItemMessage {
		run.Messages++
		if parent == "" { // a sub-agent's message is not the answer
			run.Result = text
		}
		if err := t.UpdateRun(*run); err != nil {
			return err
		}
	}
	*m = openMessage{}
	w.open.byRun[run.ID] = m
	item := newItem(t, *run, domain.Item{Seq: seq, Kind: kind, Key: key, ParentID: parent, Role: "assistant", Content: text, Data: data})
	return t.InsertItem(&item)
}

// Drop removes a run's open message from memory; the log still has it. It is for callers that
// failed to write a related item and continue the transaction.
func (w *Writer) Drop(t store.Tx, run int64) { w.open.drop(t, run) }

// Prompt adds the user's prompt.
func (w *Writer) Prompt(t store.Tx, run domain.Run, thread domain.Thread) error {
	_, err := w.add(t, run, domain.MessageAdded{
		NativeSession: thread.NativeSession, Type: domain.ItemMessage, Role: "user", Text: run.Prompt, Blocks: run.Content,
	})
	return err
}

// EditPrompt changes the prompt with which a queued run begins, and returns the text as an event
// carries it.
func (w *Writer) EditPrompt(t store.Tx, run domain.Run) (text string, truncated bool, err error) {
	items, err := t.ItemsOfRun(w.ctx, run.ID)
	if err != nil {
		return "", false, err
	}
	for _, i := range items {
		if i.Kind == domain.ItemMessage && i.Role == "user" {
			// The caller announces the change with the next event. A client that has the event
			// takes no item that is older.
			i.Seq, i.Content, i.Updated = t.Seq()+1, run.Prompt, t.Now()
			if err := t.UpdateItem(i); err != nil {
				return "", false, err
			}
		}
	}
	text = run.Prompt
	truncated = cutText(&text)
	return text, truncated, nil
}

// Said adds a user message in the middle of a run. No message may be open.
func (w *Writer) Said(t store.Tx, run domain.Run, text string, list []domain.Content) error {
	if err := Attach(t, list); err != nil {
		return err
	}
	_, err := w.add(t, run, domain.MessageAdded{Type: domain.ItemMessage, Role: "user", Text: text, Blocks: domain.BlocksOf(list)})
	return err
}

// Steered adds a user message that the agent received in the middle of its turn. It closes the open
// message first, and updates run.
func (w *Writer) Steered(t store.Tx, run *domain.Run, text string) error {
	_, err := w.Message(t, run, "user", text, "steered")
	return err
}

// Adopted notes the missing parts of an imported conversation.
func (w *Writer) Adopted(t store.Tx, run domain.Run, note string) error {
	return w.say(t, run, "adopted", note)
}

// Content adds an agent's non-text output as a separate message, or thought, after the open one,
// and updates run. parent is the tool call of the sub-agent, or "".
func (w *Writer) Content(t store.Tx, run *domain.Run, parent string, list []domain.Content, thought bool) error {
	if err := w.CloseMessage(t, run); err != nil {
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
		_, err := w.add(t, *run, m)
		return err
	}
	run.Messages++
	if run.Result == "" && parent == "" { // otherwise the text remains the answer
		run.Result = text
	}
	if err := t.UpdateRun(*run); err != nil {
		return err
	}
	_, err := w.add(t, *run, m)
	return err
}

// Message adds a whole message after the open one, and updates run. kind is the caller's name for
// its type.
func (w *Writer) Message(t store.Tx, run *domain.Run, role, text, kind string) (domain.Item, error) {
	if err := w.CloseMessage(t, run); err != nil {
		return domain.Item{}, err
	}
	return w.add(t, *run, domain.MessageAdded{Type: domain.ItemMessage, Role: role, Text: text, Subtype: kind})
}

// WentOn adds the opening message of an agent-initiated run: why the agent continued.
func (w *Writer) WentOn(t store.Tx, run domain.Run, why domain.TurnTrigger) error {
	return w.say(t, run, "went_on", why.String()+".")
}

// BackgroundCut fails the tool calls that were open in the background when the agent ended, and
// adds a message that names the background work.
func (w *Writer) BackgroundCut(t store.Tx, run domain.Run, tasks []domain.BackgroundTask) error {
	if err := w.failBackground(t, run, tasks); err != nil {
		return err
	}
	titles := make([]string, len(tasks))
	for i, b := range tasks {
		titles[i] = cmp.Or(b.Title, b.Kind)
	}
	return w.say(t, run, "background_cut", "The agent has ended, and with it what it did in the background: "+strings.Join(titles, "; "))
}

// Notice adds an agent's notice to the user.
func (w *Writer) Notice(t store.Tx, run domain.Run, n catalog.Notice) error {
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
	return w.say(t, run, "notice", text)
}

// Compacted notes that the agent has compacted its context, or has failed to.
func (w *Writer) Compacted(t store.Tx, run domain.Run, c catalog.Compaction) error {
	switch c.Status {
	case "completed":
		return w.say(t, run, "compaction", strings.TrimSpace("The agent has compacted its context.\n\n"+c.Summary))
	case "failed":
		return w.say(t, run, "compaction", "The agent could not compact its context: "+cmp.Or(c.Error, "it does not say why"))
	}
	return nil
}

// SessionReplaced notes that a run's agent has lost its own session.
func (w *Writer) SessionReplaced(t store.Tx, run domain.Run) error {
	return w.say(t, run, "session_replaced", "The agent had lost its session. A new session received the conversation so far: the messages and which tools were used, but not their results.")
}

// Codes of errors that end no run and are part of the conversation, see [Writer.ErrorReported].
const (
	MCPServerFailed = "MCP_SERVER_FAILED" // an MCP server of the agent fails
	ContentRefused  = "CONTENT_REFUSED"   // content of the agent was left out
	RulesNotAsked   = "RULES_NOT_ASKED"   // the agent's mode lets it act without asking
	SettingIgnored  = "SETTING_IGNORED"   // the agent does not support a requested setting
)

// ErrorReported notes an error that ends no run, if its code belongs in the conversation.
func (w *Writer) ErrorReported(t store.Tx, run domain.Run, code, text string) error {
	switch code {
	case MCPServerFailed:
		return w.say(t, run, "mcp_server_failed", text)
	case ContentRefused:
		return w.say(t, run, "content_refused", text)
	case RulesNotAsked:
		return w.say(t, run, "rules_not_asked", text)
	case SettingIgnored:
		return w.say(t, run, "setting_ignored", text)
	}
	return nil
}

// BudgetNear notes that a run, its conversation or the day has nearly used its budget.
func (w *Writer) BudgetNear(t store.Tx, run domain.Run, text string) error {
	return w.say(t, run, "budget_near", text)
}

// GatesChecked notes the result of a run's gates.
func (w *Writer) GatesChecked(t store.Tx, run domain.Run, text string) error {
	return w.say(t, run, "gates", text)
}

// AnotherAgent notes that a run has another agent than the previous run.
func (w *Writer) AnotherAgent(t store.Tx, run domain.Run, before string) error {
	return w.say(t, run, "another_agent", fmt.Sprintf("%s continues here; until now the agent was %s.", run.Agent, before))
}

// The subtypes of [Writer.Note].
const (
	NoteRewound    = "rewound"    // files were restored to their state before an earlier run, or this was undone
	NoteWorktree   = "worktree"   // what was done with the worktree of the conversation
	NoteCheckpoint = "checkpoint" // files are not recorded
)

// Note adds a note about the files of a conversation.
func (w *Writer) Note(t store.Tx, run domain.Run, subtype, text string) error {
	return w.say(t, run, subtype, text)
}

// ForkedLater notes that a run's agent forked its own session after that had already continued.
func (w *Writer) ForkedLater(t store.Tx, run domain.Run) error {
	return w.say(t, run, "forked_later", "The conversation from which this was forked continued meanwhile: the agent may know more of it than is shown here.")
}

// DenialEndedTurn notes, after the open message, that a run's agent ended its turn because
// permission was denied. It updates run.
func (w *Writer) DenialEndedTurn(t store.Tx, run *domain.Run) error {
	if err := w.CloseMessage(t, run); err != nil {
		return err
	}
	return w.say(t, *run, "denial_ended_turn", "The denial ended the turn: tell the agent what to do instead.")
}

// say adds a message of the hub.
func (w *Writer) say(t store.Tx, run domain.Run, subtype, text string) error {
	m := domain.MessageAdded{Type: domain.ItemSystem, Key: fmt.Sprintf("sys-%d", t.Seq()+1), Role: "system", Text: text, Subtype: subtype}
	_, err := w.add(t, run, m)
	return err
}

// add announces and stores a whole message. It generates a key if the message has none.
func (w *Writer) add(t store.Tx, run domain.Run, m domain.MessageAdded) (domain.Item, error) {
	if m.Key == "" {
		m.Key = messageKey(t)
	}
	item := newItem(t, run, domain.Item{Kind: m.Type, Key: m.Key, ParentID: m.ParentID, Role: m.Role, Content: m.Text})
	if len(m.Blocks) > 0 {
		item.Data = domain.MessageContent{Blocks: m.Blocks}
	}
	var err error
	if item.Seq, err = w.announceMessage(t, run, m); err != nil {
		return item, err
	}
	return item, t.InsertItem(&item)
}

// messageKey returns the id of the message that begins with the next event.
func messageKey(t store.Tx) string { return fmt.Sprintf("msg-%d", t.Seq()+1) }

// newItem returns an item of a run that begins now.
func newItem(t store.Tx, run domain.Run, item domain.Item) domain.Item {
	item.Thread, item.Run, item.Created, item.Updated = run.Thread, run.ID, t.Now(), t.Now()
	return item
}

// announceMessage adds a message to the log, truncated to the limit of an event.
func (w *Writer) announceMessage(t store.Tx, run domain.Run, m domain.MessageAdded) (int64, error) {
	m.NativeSession = w.nativeSession(run, m.NativeSession)
	m.Truncated = cutText(&m.Text)
	return announce(t, run, m)
}

// announce adds an event of a run to the log.
func announce(t store.Tx, run domain.Run, p domain.Payload) (int64, error) {
	return t.Append(run.Event(p))
}

// nativeSession returns the known id of the agent's own session of a run, or unless.
func (w *Writer) nativeSession(run domain.Run, unless string) string {
	if s, ok := w.known(run.ID); ok {
		return s.Thread.NativeSession
	}
	return unless
}

// threadOf returns the thread of a run.
func (w *Writer) threadOf(t store.Tx, run int64) (int64, error) {
	if s, ok := w.known(run); ok {
		return s.Run.Thread, nil
	}
	r, err := t.Run(w.ctx, run)
	return r.Thread, err
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

// Late adds text that an agent sends after the end of its run. If the run ended with a message or
// thought, the text is added to it; the log then has the whole message again, under its key.
// Otherwise the text becomes another message at the end of the run. While the run has not ended,
// Late is Delta. clean redacts a text, because a secret may be split between the message and the
// late text.
func (w *Writer) Late(t store.Tx, run domain.Run, d catalog.ContentDelta, thought bool, clean func(string) string) error {
	d.Delta.Text = clean(d.Delta.Text)
	if !run.State.Ended() {
		return w.Delta(t, run.ID, d, thought)
	}
	if d.Delta.Text == "" || run.ErrorCode == domain.CodeStoreFull { // the log has the message, open
		return nil
	}
	kind := (&openMessage{thought: thought}).kind()
	item, err := t.LastItem(w.ctx, run.ID)
	isNew := errors.Is(err, store.ErrNotFound) || err == nil && !takesLate(item, kind, d)
	if err != nil && !isNew {
		return err
	}
	if isNew {
		item = newItem(t, run, domain.Item{Kind: kind, Key: messageKey(t), ParentID: d.ParentID, Role: "assistant"})
	}
	item.Content, item.Updated = clean(item.Content+d.Delta.Text), t.Now()
	meta := patched(metaOf(item.Data), d.Meta)
	item.Data = withMeta(item.Data, meta)
	if item.Seq, err = w.announceMessage(t, run, domain.MessageAdded{Type: kind, Key: item.Key, ParentID: item.ParentID, Role: item.Role, Text: item.Content, Meta: meta}); err != nil {
		return err
	}
	if kind == domain.ItemMessage {
		if isNew {
			run.Messages++
		}
		if item.ParentID == "" {
			run.Result = item.Content
		}
		if err := t.UpdateRun(run); err != nil {
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

// Silence notes that a run's agent was silent, after the silence has ended. A complaint, such as a
// retried API call, explains the pause to a later reader. Output during a start is no complaint: many
// programs write to stderr then. An open message continues after it.
func (w *Writer) Silence(t store.Tx, run domain.Run, s catalog.Silence) error {
	took := time.Duration(s.LastedMS) * time.Millisecond
	if s.LastedMS == 0 {
		since := time.UnixMilli(s.SinceMS)
		took = max(0, t.Now().Sub(since))
	}
	isComplaint := s.Note != "" && !strings.HasPrefix(s.Note, catalog.Starting)
	if !isComplaint && (took < longSilence || s.Tool != "") {
		return nil
	}
	text := fmt.Sprintf("%s said nothing for %d s", run.Agent, int(took.Seconds()))
	if took >= 2*longSilence {
		text = fmt.Sprintf("%s said nothing for %d min", run.Agent, int(took.Minutes()))
	}
	if s.Tool != "" {
		text += ", in the middle of: " + s.Tool
	}
	if s.Note != "" {
		text += ": " + s.Note
	}
	return w.say(t, run, "agent_silent", text)
}
