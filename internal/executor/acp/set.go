package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// setter sets the agent's session by calls, for a turn.
func (a *agent) setter(t *turn, call func(method string, params any) (json.RawMessage, error)) *setter {
	ignored := func(message string) { t.Problem(task.CodeIgnored, message) }
	return &setter{State: &a.settings, Session: a.session, Call: call, Agent: a.name, Version2: a.info.IsVersion2(), Ignored: ignored}
}

// choose sets the agent to what the prompt asks for, and tells the hub what it is
// set to then. What the agent does not have, or does not take, fails the prompt:
// it would be another one.
func (a *agent) choose(t *turn) *task.Failure {
	s := a.setter(t, func(method string, params any) (json.RawMessage, error) {
		return callWithin[json.RawMessage](a, a.startTimeout, method, params)
	})
	defer a.reportSettings(t)
	err := s.ChooseMode(t.Conversation.AgentMode, t.Params.PermissionMode, func(message string) { t.Problem(task.CodeSetting, message) })
	if err == nil {
		model := ""
		if config := t.Conversation.ModelConfig; config != nil {
			model = config.Model
		}
		err = s.Set("", model, t.Conversation.Options)
	}
	switch {
	case err == nil, t.Stopped():
		return nil
	case a.gone():
		return a.exited()
	}
	return &task.Failure{Code: task.CodeSetting, Message: a.name + ": " + err.Error()}
}

// set is what a human wants of an agent that works on a prompt.
func (a *agent) set(ctx context.Context, t *turn, p catalog.SetSessionParams) error {
	s := a.setter(t, func(method string, params any) (json.RawMessage, error) {
		return acp.Call[json.RawMessage](ctx, a.conn, method, params)
	})
	defer a.reportChanged()
	return s.Set(p.Mode, p.Model, p.Options)
}

// SetSession changes what the agent of a conversation is set to, while it works on
// a prompt. It waits until the agent has that.
func (d *Driver) SetSession(ctx context.Context, p catalog.SetSessionParams) catalog.SetSessionResult {
	d.mu.Lock()
	c := d.conversations[p.SessionID]
	d.mu.Unlock()
	if c == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	a := c.working.Load()
	if a == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	t := a.current.Load()
	if t == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.StartTimeout)
	defer cancel()
	select {
	case <-t.prompted:
	case <-t.Context().Done():
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	case <-a.life.Done():
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	case <-ctx.Done():
		return refused(ctx.Err())
	}
	if err := a.set(ctx, t, p); err != nil {
		return refused(err)
	}
	return catalog.SetSessionResult{Status: catalog.SessionSet}
}

func refused(err error) catalog.SetSessionResult {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("the agent did not answer in time")
	}
	return catalog.SetSessionResult{Status: catalog.SessionRefused, Message: err.Error()}
}
