package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// A Replay reads the history that an agent sends while it loads a session. It handles updates as
// in a turn, but also the user's messages, which the hub knows in a turn. It sends nothing to the
// agent and reads no files.
type Replay struct {
	turn *turn
	take func(catalog.ReplayedPart)

	said     *catalog.ReplayedPart // the user's message so far
	saidID   string                // the agent's id of that message
	saidText strings.Builder       // the text of that message
}

// NewReplay makes a Replay that passes each event to take, in order.
func NewReplay(take func(catalog.ReplayedPart)) *Replay {
	r := &Replay{take: take}
	ctx := context.Background()
	of := task.New(ctx, ctx, (*replayHub)(r), slog.New(slog.DiscardHandler),
		catalog.ExecutePromptParams{Launch: &catalog.AgentLaunch{}, CWD: "/"})
	of.Files = nil
	r.turn = newTurn(of, Options{})
	r.turn.isReplay = true
	return r
}

// Update reads an update, and does not keep it. It skips the title and the settings of the
// session.
func (r *Replay) Update(session, update []byte, repaired bool) {
	var kind string
	json.Unmarshal(rawjson.Member(update, "sessionUpdate"), &kind)
	if c := r.turn.subagents.of(session); c != nil {
		r.endSaid()
		r.turn.subagentSays(c, kind, update, repaired)
		return
	}
	switch kind {
	case "available_commands_update", "current_mode_update", "config_option_update", "session_info_update":
		return
	case "user_message_chunk":
		r.userSaid(update)
		return
	case "user_message":
		r.userMessage(update)
		return
	}
	r.endSaid()
	r.turn.update(kind, update, repaired)
}

// Close passes on delayed events, and returns when the last was taken.
func (r *Replay) Close() {
	r.endSaid()
	r.turn.Close()
}

func (r *Replay) userSaid(raw []byte) {
	c := readChunk(raw)
	id := string(c.id)
	if r.said != nil && (id != r.saidID || id == "" && c.isText) { // without ids each update is a whole message
		r.endSaid()
	}
	if r.said == nil {
		r.said = &catalog.ReplayedPart{Role: "user"}
	}
	r.saidID = id
	if c.isText {
		r.saidText.Write(c.text)
		return
	}
	if block, ok := readBlock(c.content); ok {
		r.said.Content = append(r.said.Content, block)
	}
}

// userMessage handles a whole message, which replaces the earlier text.
func (r *Replay) userMessage(raw []byte) {
	content := rawjson.Member(raw, "content")
	if content == nil {
		return
	}
	id, _ := rawjson.Text(rawjson.Member(raw, "messageId"))
	if r.said != nil && r.saidID != string(id) {
		r.endSaid()
	}
	r.said, r.saidID = &catalog.ReplayedPart{Role: "user"}, string(id)
	r.saidText.Reset()
	r.saidText.WriteString(textOf(contentOf(raw)))
	for _, item := range contentOf(raw) {
		if block, ok := readBlock(item); ok {
			r.said.Content = append(r.said.Content, block)
		}
	}
}

func (r *Replay) endSaid() {
	if r.said == nil {
		return
	}
	said := *r.said
	said.Text = r.saidText.String()
	r.said = nil
	r.saidText.Reset()
	r.turn.EndMessage()
	if said.Text != "" || len(said.Content) > 0 {
		r.take(said)
	}
}

// replayHub is a hub that passes the reports of a Replay to its take function.
type replayHub Replay

func (h *replayHub) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	h.take(catalog.ReplayedPart{EventType: p.EventType, EventData: bytes.Clone(p.EventData)})
	return nil
}

func (h *replayHub) ReportError(_ context.Context, p catalog.ReportErrorParams) error {
	data, err := task.JSON(p.Error)
	if err == nil {
		h.take(catalog.ReplayedPart{EventType: catalog.EventError, EventData: data})
	}
	return err
}

func (h *replayHub) GetExecutionContext(
	context.Context, catalog.GetExecutionContextParams,
) (r catalog.GetExecutionContextResult, err error) {
	return r, context.Canceled
}

func (h *replayHub) GetAPIKey(context.Context, catalog.GetAPIKeyParams) (r catalog.GetAPIKeyResult, err error) {
	return r, context.Canceled
}
