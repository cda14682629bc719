package trigger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// consider runs a trigger's action for an event, if it matches and has not done so. An error is a
// store error: the event was not handled. A failed action is an execution with an error.
func (e *Engine) consider(ctx context.Context, t config.Trigger, event Event) error {
	if fits, _ := Fits(t, event); !fits || event.restricted && t.FromProject {
		return nil
	}
	t, automation, exists := e.definition(t.ID)
	if !exists {
		return nil
	}
	x := executionOf(t, event)
	err := e.opts.Turns.Write(ctx, func(tx store.Tx) error {
		goes, err := e.admit(tx, t, automation, event)
		if err != nil || !goes {
			return err
		}
		one := x
		if t.RequiresApproval {
			return e.ask(tx, t, &one)
		}
		return e.perform(tx, automation, &one, nil)
	})
	var refused *domain.Error
	if !errors.As(err, &refused) || refused.Kind == domain.KindUnavailable {
		return err
	}
	return e.opts.Turns.Write(ctx, func(tx store.Tx) error {
		goes, err := e.admit(tx, t, automation, event)
		if err != nil || !goes {
			return err
		}
		x.Status, x.Error = domain.TriggerError, refused.Message
		return e.keep(tx, &x, domain.Turn{})
	})
}

// executionOf returns a trigger's execution for an event.
func executionOf(t config.Trigger, event Event) domain.TriggerExecution {
	does, _ := json.Marshal(renderAction(t.Action, event)) // texts and a number
	return domain.TriggerExecution{
		Trigger: t.ID, Key: event.key, EventType: event.Type, EventSource: event.Source, Event: event.JSON(), Action: t.Action.Type, Does: does,
		Depth: event.depth,
	}
}

// renderAction renders the templates of an action with an event.
func renderAction(a domain.TriggerAction, event Event) domain.TriggerAction {
	a.Prompt, a.Message = render(a.Prompt, event), render(a.Message, event)
	return a
}

// admit reports whether a trigger may act now for an event, and records that it does. Reaching a
// limit is reported once.
func (e *Engine) admit(tx store.Tx, t config.Trigger, automation config.Automation, event Event) (bool, error) {
	has, err := tx.HasTriggerExecution(e.ctx, t.ID, event.key)
	if err != nil || has {
		return false, err
	}
	state, err := tx.TriggerState(e.ctx, t.ID)
	if err != nil {
		return false, err
	}
	on, err := e.enabled(e.ctx, tx)
	if err != nil || !on || !isEnabled(t, state) {
		return false, err
	}
	now := tx.Now()
	if event.Time.After(state.Looked) {
		state.Looked = event.Time
	}
	if t.Cooldown > 0 && now.Sub(state.Fired) < t.Cooldown && !now.Before(state.Fired) {
		return false, e.pass(tx, state, event)
	}
	if age := now.Sub(state.Window); age >= time.Hour || age < 0 {
		state.Window, state.Count = now, 0
	}
	x := executionOf(t, event)
	switch {
	case event.depth >= automation.MaxDepth:
		x.Status, x.Error = domain.TriggerDepthLimited, fmt.Sprintf(
			"triggers began %d sessions in a row, the limit of automation.max_depth; this one was not begun", event.depth,
		)
	case state.Count >= automation.MaxPerHour:
		x.Status, x.Error = domain.TriggerRateLimited, fmt.Sprintf(
			"it has acted %d times since %s, the limit of automation.max_per_hour; it acts again in the next hour", state.Count,
			state.Window.Format(time.RFC3339),
		)
	default:
		state.Count++
		state.Fired, state.Limited = now, ""
		return true, tx.PutTriggerState(state)
	}
	reported := state.Limited == x.Status
	state.Limited = x.Status
	if x.Status == domain.TriggerRateLimited {
		err = e.pass(tx, state, event)
	} else {
		err = tx.PutTriggerState(state)
	}
	if err != nil || reported {
		return false, err
	}
	return false, e.keep(tx, &x, domain.Turn{})
}

// pass skips an event for a trigger in cooldown, so that it is not handled after a restart either.
func (e *Engine) pass(tx store.Tx, state domain.TriggerState, event Event) error {
	if !event.Time.Before(state.Looked) {
		state.Looked = event.Time.Add(1)
	}
	return tx.PutTriggerState(state)
}

// perform runs the action of an execution. draft is the turn that waited for a person, or nil.
func (e *Engine) perform(tx store.Tx, automation config.Automation, x *domain.TriggerExecution, draft *domain.Turn) error {
	var does domain.TriggerAction
	if err := json.Unmarshal(x.Does, &does); err != nil {
		return fmt.Errorf("reading the action of a trigger: %w", err)
	}
	if does.Type == domain.ActionAgent {
		return e.begin(tx, does, x, draft)
	}
	if draft != nil && draft.State == domain.Draft {
		if err := e.opts.Turns.Discard(tx, draft); err != nil {
			return err
		}
	}
	switch does.Type {
	case domain.ActionNotify:
		x.Status = domain.TriggerNotified
	case domain.ActionWebhook:
		if !automation.AllowsWebhook(does.URL) {
			x.Status, x.Error = domain.TriggerError, "the host of "+does.URL+" is not among automation.webhook_hosts of your own configuration"
			break
		}
		x.Status = domain.TriggerSending
		tx.AfterCommit(func() { e.sender.send(*x, does.URL) })
	default:
		x.Status = domain.TriggerUnknown
	}
	return e.keep(tx, x, domain.Turn{})
}

// begin begins the session of an execution.
func (e *Engine) begin(tx store.Tx, does domain.TriggerAction, x *domain.TriggerExecution, draft *domain.Turn) error {
	x.Status = domain.TriggerSubmitted
	if draft == nil {
		turn, err := e.opts.Turns.Begin(tx, e.session(does, x, false))
		if err != nil {
			return err
		}
		x.Turn = turn.ID
		return e.keep(tx, x, turn)
	}
	if draft.State == domain.Draft { // otherwise a client has launched or cancelled it
		if err := e.opts.Turns.Submit(tx, draft); err != nil {
			return err
		}
	}
	return e.keep(tx, x, *draft)
}

// session returns the session that an execution begins, or that holds its question.
func (e *Engine) session(does domain.TriggerAction, x *domain.TriggerExecution, draft bool) Begin {
	prompt := does.Prompt
	if does.Type != domain.ActionAgent {
		prompt = does.String()
	}
	return Begin{
		Prompt: prompt, Title: "Trigger " + x.Trigger, Agent: does.Agent, Priority: does.Priority, Draft: draft,
		Metadata: map[string]any{
			"source": "automation", "ruleId": x.Trigger, "eventType": x.EventType, "trigger": x.Trigger, "trigger_depth": x.Depth + 1,
		},
	}
}

// ask asks a person to approve the action of an execution. The question belongs to a draft, which
// the answer launches or cancels.
func (e *Engine) ask(tx store.Tx, t config.Trigger, x *domain.TriggerExecution) error {
	var does domain.TriggerAction
	if err := json.Unmarshal(x.Does, &does); err != nil {
		return fmt.Errorf("reading the action of a trigger: %w", err)
	}
	turn, err := e.opts.Turns.Begin(tx, e.session(does, x, true))
	if err != nil {
		return err
	}
	id := uuid.NewString()
	input, _ := json.Marshal(map[string]any{"trigger": t.ID, "action": does, "event": x.Event})
	x.Status, x.Turn, x.Approval = domain.TriggerWaiting, turn.ID, id
	question := domain.Approval{
		ID: id, CallID: id, Type: domain.FunctionCall, Tool: "trigger", Input: input, InputFixed: true, Status: domain.ApprovalPending,
		Title:   cut(fmt.Sprintf("Trigger %s (%s) wants to %s", t.ID, x.EventType, does.String()), 2000),
		Subject: cmp.Or(t.Description, "Trigger "+t.ID),
	}
	if err := e.opts.Questions.Propose(tx, &turn, question); err != nil {
		return err
	}
	return e.keep(tx, x, turn)
}

// keep stores and announces an execution. turn is its turn, or zero.
func (e *Engine) keep(tx store.Tx, x *domain.TriggerExecution, turn domain.Turn) error {
	if x.ID == 0 {
		x.Time = tx.Now()
		if err := tx.InsertTriggerExecution(x); err != nil {
			return err
		}
	} else if err := tx.UpdateTriggerExecution(*x); err != nil {
		return err
	}
	var does domain.TriggerAction
	_ = json.Unmarshal(x.Does, &does)
	executed := domain.TriggerExecuted{
		Execution: x.ID, Trigger: x.Trigger, EventType: x.EventType, Action: x.Action, Status: x.Status, Approval: x.Approval, Error: x.Error,
	}
	if x.Status == domain.TriggerNotified {
		executed.Message, executed.Channel = does.Message, does.Channel
	}
	event := domain.Event{Payload: executed}
	if turn.ID != 0 {
		event = turn.Event(executed)
	}
	_, err := tx.Append(event)
	return err
}

// noteSent records the result of sending an event.
func (e *Engine) noteSent(x domain.TriggerExecution) {
	e.warn(
		e.opts.Turns.Write(e.ctx, func(tx store.Tx) error { return e.keep(tx, &x, domain.Turn{}) }), "cannot record the result of a webhook",
		x.Trigger,
	)
}

// giveUpSending records the events that a dead process was sending.
func (e *Engine) giveUpSending(ctx context.Context) {
	open, err := e.opts.Store.OpenTriggerExecutions(ctx)
	e.warn(err, "cannot read unfinished webhooks", "")
	for _, x := range open {
		if x.Status == domain.TriggerSending {
			x.Status, x.Error = domain.TriggerError, "duet-rpc ended while this was sent; whether it arrived is not known, and it is not sent again"
			e.noteSent(x)
		}
	}
}

// settle performs approved actions and records refused ones.
func (e *Engine) settle(ctx context.Context) {
	open, err := e.opts.Store.OpenTriggerExecutions(ctx)
	e.warn(err, "cannot read the actions that wait for a decision", "")
	for _, x := range open {
		if x.Status != domain.TriggerWaiting {
			continue
		}
		err := e.opts.Turns.Write(ctx, func(tx store.Tx) error { return e.settleOne(tx, x) })
		var refused *domain.Error
		if errors.As(err, &refused) && refused.Kind != domain.KindUnavailable {
			x.Status, x.Error = domain.TriggerError, refused.Message
			err = e.opts.Turns.Write(ctx, func(tx store.Tx) error { return e.keep(tx, &x, domain.Turn{}) })
		}
		e.warn(err, "cannot carry out a decision", x.Trigger)
	}
}

// settleOne applies the answer to the question of an execution, if answered.
func (e *Engine) settleOne(tx store.Tx, x domain.TriggerExecution) error {
	a, err := tx.Approval(e.ctx, x.Approval)
	if errors.Is(err, store.ErrNotFound) { // its session was deleted
		x.Status, x.Turn = domain.TriggerNoApprover, 0
		return e.keep(tx, &x, domain.Turn{})
	}
	if err != nil || a.Status == domain.ApprovalPending {
		return err
	}
	draft, err := tx.Turn(e.ctx, x.Turn)
	if err != nil {
		return err
	}
	if a.Status == domain.ApprovalApproved {
		t, automation, exists := e.definition(x.Trigger)
		if exists && t.Action.Type == x.Action {
			return e.perform(tx, automation, &x, &draft)
		}
		x.Error = "the trigger was removed from the configuration, or its action was changed"
	}
	switch {
	case x.Error != "":
		x.Status = domain.TriggerError
	case a.Status == domain.ApprovalDenied:
		x.Status, x.Error = domain.TriggerDenied, a.Comment
	default:
		x.Status = domain.TriggerNoApprover
	}
	if draft.State == domain.Draft {
		if err := e.opts.Turns.Discard(tx, &draft); err != nil {
			return err
		}
	}
	return e.keep(tx, &x, draft)
}

const (
	sendTimeout = 10 * time.Second
	sendAtOnce  = 4
	mostAnswer  = 64 << 10 // bytes of a response that are read and discarded
)

// sender sends events to addresses. An event that was being sent in a crash is not sent again,
// because the receiver may have it.
type sender struct {
	ctx    context.Context
	tasks  *background.Group
	sent   func(domain.TriggerExecution) // records the result
	client *http.Client
	slots  chan struct{}
}

func newSender(ctx context.Context, tasks *background.Group, sent func(domain.TriggerExecution)) *sender {
	return &sender{ctx: ctx, tasks: tasks, sent: sent, slots: make(chan struct{}, sendAtOnce), client: &http.Client{
		Timeout:       sendTimeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // another host was not permitted
	}}
}

// send sends the event of an execution and records the result. It does not block.
func (s *sender) send(x domain.TriggerExecution, address string) {
	s.tasks.Go(func() {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		err := s.post(s.ctx, x, address)
		if s.ctx.Err() != nil {
			return // the next start records that delivery is unknown
		}
		x.Status = domain.TriggerSent
		if err != nil {
			x.Status, x.Error = domain.TriggerError, err.Error()
		}
		s.sent(x)
	})
}

func (s *sender) post(ctx context.Context, x domain.TriggerExecution, address string) error {
	body, err := json.Marshal(struct {
		RuleID    string          `json:"ruleId"`
		Execution int64           `json:"execution_id"`
		Event     json.RawMessage `json:"event"`
	}{x.Trigger, x.ID, x.Event})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "duet-rpc")
	response, err := s.client.Do(request)
	var failed *url.Error
	switch {
	case errors.As(err, &failed): // without the address, which may contain a secret
		return fmt.Errorf("%s: %s", request.URL.Host, cut(failed.Err.Error(), 500))
	case err != nil:
		return errors.New(cut(err.Error(), 500))
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, mostAnswer)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s", request.URL.Host, response.Status)
	}
	return nil
}
