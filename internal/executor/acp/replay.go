package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// A Replay reads the updates with which an agent tells a session's history again,
// while it loads the session: the same as in a turn, but for what the human said,
// which the hub knows of a turn. Nothing is asked of the agent and no file is looked
// at.
type Replay struct {
	turn *turn
	take func(catalog.Retold)

	said     *catalog.Retold // what the human said, as far as it was told
	saidID   string          // the agent's id of it
	saidText strings.Builder // its text
}

// NewReplay makes a Replay that gives what it reads to take, in order.
func NewReplay(take func(catalog.Retold)) *Replay {
	r := &Replay{take: take}
	ctx := context.Background()
	of := task.New(ctx, ctx, (*replayHub)(r), slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{Launch: &catalog.AgentLaunch{}, CWD: "/"})
	of.Files = nil
	r.turn = newTurn(of, Options{})
	r.turn.spent = new(atomic.Uint64)
	r.turn.isReplay = true
	return r
}

// Update reads an update, which it does not keep. The title and the settings of the
// session are left out.
func (r *Replay) Update(session, update []byte, repaired bool) {
	var kind string
	json.Unmarshal(frame.Member(update, "sessionUpdate"), &kind)
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

// Close passes on what is held back, and returns when the last was taken.
func (r *Replay) Close() {
	r.endSaid()
	r.turn.Close()
}

func (r *Replay) userSaid(raw []byte) {
	c := readChunk(raw)
	id := string(c.id)
	if r.said != nil && (id != r.saidID || id == "" && c.isText) { // without ids each is a whole one
		r.endSaid()
	}
	if r.said == nil {
		r.said = &catalog.Retold{Role: "user"}
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

// userMessage takes a message as a whole, which replaces what was told of it.
func (r *Replay) userMessage(raw []byte) {
	content := frame.Member(raw, "content")
	if content == nil {
		return
	}
	id, _ := frame.Text(frame.Member(raw, "messageId"))
	if r.said != nil && r.saidID != string(id) {
		r.endSaid()
	}
	r.said, r.saidID = &catalog.Retold{Role: "user"}, string(id)
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

// replayHub is a hub that gives the reports of a Replay to who wants them.
type replayHub Replay

// ReportMessage is as of [task.Hub].
func (h *replayHub) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	h.take(catalog.Retold{EventType: p.EventType, EventData: bytes.Clone(p.EventData)})
	return nil
}

// ReportError is as of [task.Hub].
func (h *replayHub) ReportError(_ context.Context, p catalog.ReportErrorParams) error {
	data, err := task.JSON(p.Error)
	if err == nil {
		h.take(catalog.Retold{EventType: catalog.EventError, EventData: data})
	}
	return err
}

// GetAPIKey is as of [task.Hub].
func (h *replayHub) GetAPIKey(context.Context, catalog.GetAPIKeyParams) (r catalog.GetAPIKeyResult, err error) {
	return r, context.Canceled
}
