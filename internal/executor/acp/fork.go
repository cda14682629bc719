package acp

import (
	"context"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
)

// methodReplayed is no method of any agent's: its refusal tells that what was sent
// before has come.
const methodReplayed = "_duet/replayed"

// replayTime bounds how long an agent is waited for that does not refuse.
const replayTime = 2 * time.Second

// replayed waits until the agent has told a history to its end: gemini answers before
// that.
func (a *agent) replayed() {
	for before := int64(-1); before != a.updates.Load(); {
		before = a.updates.Load()
		ctx, cancel := context.WithTimeout(a.life, replayTime)
		_, err := acp.Call[json.RawMessage](ctx, a.conn, methodReplayed, struct{}{})
		late := ctx.Err() != nil
		cancel()
		if late && err != nil {
			return
		}
	}
}

// fork makes the agent's session a fork of another one of its own, if the
// conversation begins there and the agent can do that, and reports whether it is.
func (a *agent) fork(t *turn) bool {
	from := t.Conversation.ForkNativeSessionID
	if from == "" || !acp.Has(a.info.Session.Fork) {
		return false
	}
	a.loading.Store(true) // opencode tells the history again, which the hub has
	defer a.loading.Store(false)
	result, err := callWithin[sessionResult](a, 4*a.driver.opts.StartTimeout, acp.MethodSessionFork, a.sessionRequest(t, from))
	if err != nil || result.SessionID == "" || result.SessionID == from {
		a.driver.log.Info("the agent did not fork its session", "agent", a.name, "err", err)
		return false
	}
	a.replayed()
	a.session = string(result.SessionID)
	a.settings.Opened(result.offer, true)
	return true
}
