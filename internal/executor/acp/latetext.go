package acp

import (
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// Late text is text of a turn that comes after the end of that turn: claude-agent-acp 0.49 sends
// the rest of a message after it has answered an interrupted prompt. It belongs to the ended turn,
// and starts no agent-initiated turn, if
//
//   - its messageId is that of a message of the ended turn, within lateMessageWithin; or
//   - the turn was interrupted, and the text has no messageId or the turn had no message with
//     one, within lateTextWithin.
//
// In both cases the agent must not have started other work since, such as a tool call, a question
// or another message. A turn that yields to a prompt has no late text: the agent works on. Once
// the next prompt is sent, all text belongs to the turn of that prompt: the ids of some agents
// are unique in a turn only.
const (
	lateMessageWithin = 10 * time.Second
	lateTextWithin    = 2 * time.Second
)

// maxMessageIDs limits the message ids that a turn remembers. It keeps the latest ones, since
// sub-agents write at the same time.
const maxMessageIDs = 16

// An endedTurn is the turn that ended last.
type endedTurn struct {
	*turn
	at            time.Time
	isInterrupted bool // needed because Stopped is true for every finished task
}

// noteMessage remembers the id of a message.
func (t *turn) noteMessage(id string) {
	if id == "" || slices.Contains(t.messageIDs, id) {
		return
	}
	if t.messageIDs = append(t.messageIDs, id); len(t.messageIDs) > maxMessageIDs {
		t.messageIDs = t.messageIDs[1:]
	}
}

// owns reports whether text with a messageId, or "", is late text of the turn. With byID, text
// without a messageId is not.
func (e endedTurn) owns(id string, byID bool) bool {
	since := time.Since(e.at)
	if id != "" && slices.Contains(e.messageIDs, id) {
		return since < lateMessageWithin
	}
	return !byID && e.isInterrupted && (id == "" || len(e.messageIDs) == 0) && since < lateTextWithin
}

// lateTurn returns the ended turn that late text may belong to, or nil. byID says that only a
// messageId can show that, because the next turn has begun.
func (a *agent) lateTurn() (e *endedTurn, byID bool) {
	t := a.turns.now()
	if t == nil {
		return a.turns.latestEnded(), false
	}
	t.taking.Lock()
	isCurrent, over, stopped := a.turns.now() == t, t.ended, t.Stopped() // a finished task is stopped, too
	t.taking.Unlock()
	switch {
	case !isCurrent:
		return a.lateTurn()
	case over:
		return &endedTurn{t, time.Now(), stopped}, false
	case t.hasPrompt() || t.isSent():
		return nil, false
	}
	return a.turns.latestEnded(), true
}

// takeLateText reports late text to the hub. It returns false for other updates. Only the
// goroutine that reads the agent calls it.
func (a *agent) takeLateText(kind string, update []byte, repaired bool) bool {
	isWhole := kind == "agent_message" || kind == "agent_thought"
	if !isWhole && kind != "agent_message_chunk" && kind != "agent_thought_chunk" || a.history.isLoading() {
		return false
	}
	e, byID := a.lateTurn()
	if e == nil {
		return false
	}
	d, ok := e.lateDelta(update, isWhole)
	if !ok || e.Params.SessionID == "" || e.isYielding() || !e.owns(d.MessageID, byID) {
		return false
	}
	e.taking.Lock()
	defer e.taking.Unlock()
	if a.turns.now() == e.turn { // it still accepts reports
		e.update(kind, update, repaired)
		return true
	}
	if d.Delta.Text == "" { // a whole message with nothing new
		return true
	}
	event := catalog.EventContentDelta
	if strings.HasPrefix(kind, "agent_thought") {
		event = catalog.EventThinkingChunk
	}
	if d.MessageID != "" {
		e.said.add(d.MessageID, d.Delta.Text, false)
	}
	a.reportLate(lastTask{session: e.Params.SessionID, task: e.ID}, event, d)
	return true
}

// lateDelta reads an update as text that is added to a message of the turn.
func (t *turn) lateDelta(update []byte, isWhole bool) (d catalog.ContentDelta, ok bool) {
	c := readChunk(update)
	d = catalog.ContentDelta{
		MessageID: string(c.id), ParentID: parentOf(c.meta), Delta: catalog.Delta{Text: string(c.text)}, Meta: boundedMeta(c.meta),
	}
	if !isWhole {
		return d, c.isText && d.Delta.Text != ""
	}
	content := contentOf(update)
	for _, item := range content {
		if kind, _ := rawjson.Text(rawjson.Member(item, "type")); string(kind) != "text" {
			return d, false
		}
	}
	if d.MessageID == "" || t.said.id != d.MessageID {
		return d, false
	}
	d.Delta.Text, ok = strings.CutPrefix(textOf(content), t.said.of(d.MessageID))
	return d, ok
}
