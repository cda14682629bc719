package hub

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// chatThread is the meta value that names the thread of the project's chat, by
// its row: no id of a caller's can be it.
const chatThread = "chat_thread"

// chatThread is the thread of the project's chat. It is made for the first
// message, and again where another agent has become the default one: a
// conversation keeps its agent, so the chat goes on in a fork, and the new
// agent is told what was said.
func (h *Hub) chatThread(t store.Tx, spec LaunchSpec, agent string) (domain.Thread, error) {
	known, err := t.Meta(h.ctx, chatThread)
	if err != nil {
		return domain.Thread{}, err
	}
	if known != "" {
		id, err := strconv.ParseInt(known, 10, 64)
		if err != nil {
			return domain.Thread{}, fmt.Errorf("finding the chat: %w", err)
		}
		thread, err := t.Thread(h.ctx, id)
		if err != nil || thread.Agent == agent {
			return thread, err
		}
		return h.chatWith(t, thread, agent)
	}
	thread, err := h.newThread(t, spec, agent)
	if err != nil {
		return thread, err
	}
	return thread, h.setChat(t, thread.ID)
}

// chatWith makes a thread the chat that goes on from another one with another
// agent.
func (h *Hub) chatWith(t store.Tx, from domain.Thread, agent string) (domain.Thread, error) {
	last, err := t.LastRun(h.ctx, from.ID)
	if err != nil {
		return domain.Thread{}, err
	}
	from.Agent, from.Model, from.Settings.Options = agent, "", nil // which are names that the other one does not know
	thread, err := h.fork(t, from, last, "")
	if err != nil {
		return thread, err
	}
	return thread, h.setChat(t, thread.ID)
}

func (h *Hub) setChat(t store.Tx, thread int64) error {
	return t.SetMeta(chatThread, strconv.FormatInt(thread, 10))
}

// keepChat finds the chat where databases used to have it: under an alias, the
// name of which any caller could use. One that a caller has made and nobody
// has chatted in is the caller's.
func (h *Hub) keepChat(t store.Tx) error {
	known, err := t.Meta(h.ctx, chatThread)
	if err != nil || known != "" {
		return err
	}
	thread, err := t.FindThread(h.ctx, chatThread)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	chatted, err := t.Sessions(h.ctx, domain.RunFilter{Thread: thread, Source: domain.SourceChat, Limit: 1})
	if err != nil || len(chatted) == 0 {
		return err
	}
	if err := t.DropAlias(chatThread); err != nil {
		return err
	}
	return h.setChat(t, thread)
}
