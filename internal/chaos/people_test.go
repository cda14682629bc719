//go:build linux && soak

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/frame"
)

// Limits of the people's actions.
const (
	callTimeout  = 10 * time.Second
	mostWorks    = 16 // of a round
	mostSteps    = 3  // of a work
	shellTimeout = 20 * time.Second
)

// A person is a client that acts at random, through one connection or through a shell.
type person struct {
	*round
	who  int
	rand *rand.Rand

	target func() client.Target // nil: a shell
	many   bool                 // a connection can have more than one subscription
	opts   []client.Option
	c      *client.Client

	view *view
}

// A view holds the events that a person received, in order.
type view struct {
	name  string
	after int64 // the subscription starts after this event

	mu     sync.Mutex // guards the fields below
	events []eventstream.Event
	tops   map[string]int64 // highest seq by subscription
}

func (v *view) take(e eventstream.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.events = append(v.events, e)
}

// last returns the highest seq received, after which a new subscription continues.
func (v *view) last() (seq int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.events {
		seq = max(seq, e.Seq)
	}
	return seq
}

// watch checks messages before the client handles them: numbers rise within a subscription.
func (p *person) watch(sent bool, message []byte) {
	if sent || !bytes.Contains(message, []byte(`"method":"event"`)) {
		return
	}
	var m struct {
		Params struct {
			SubscriptionID string `json:"subscription_id"`
			Seq            int64  `json:"seq"`
		} `json:"params"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		p.board.found("%s received an unreadable message: %v: %.200s", p.view.name, err, message)
		return
	}
	p.view.mu.Lock()
	defer p.view.mu.Unlock()
	id, seq := m.Params.SubscriptionID, m.Params.Seq
	if seq > 0 && seq <= p.view.tops[id] {
		p.board.found("%s received event %d after %d in subscription %s", p.view.name, seq, p.view.tops[id], id)
	}
	p.view.tops[id] = max(p.view.tops[id], seq)
}

// editor returns a person with an editor, atSocket one with a connection to the socket, and shell
// one with neither.
func (r *round) editor(who int) *person {
	p := r.person(who, "editor")
	p.target = func() client.Target { return r.project.editor() }
	p.opts, p.many = []client.Option{client.WithReconnect(true), client.WithTrace(p.watch)}, true
	return p
}

func (r *round) atSocket(who int) *person {
	p := r.person(who, "socket")
	p.target = func() client.Target { return client.Socket(r.project.socket()) }
	if who%2 == 0 {
		p.opts, p.many = []client.Option{client.WithFraming(frame.LSP), client.WithTrace(p.watch)}, true
	}
	return p
}

func (r *round) shell(who int) *person { return r.person(who, "shell") }

func (r *round) person(who int, kind string) *person {
	p := &person{round: r, who: who, rand: r.newRand(), view: &view{name: kind + " " + string(rune('A'+who)), tops: make(map[string]int64)}}
	r.views = append(r.views, p.view)
	return p
}

// live acts until ctx ends, and leaves the connection open.
func (p *person) live(ctx context.Context) {
	for ctx.Err() == nil {
		if p.target != nil && p.c == nil && !p.enter(ctx) {
			continue
		}
		p.act(ctx)
		p.pause(ctx, 120*time.Millisecond)
	}
}

// enter connects, and subscribes from the last received event on.
func (p *person) enter(ctx context.Context) bool {
	c, err := client.Dial(ctx, p.target(), append(p.opts, client.WithCallTimeout(callTimeout))...)
	if err != nil {
		p.pause(ctx, 200*time.Millisecond)
		return false
	}
	since := p.view.last()
	if _, err := eventstream.Subscribe(ctx, c, eventstream.Options{Since: &since}, func(e eventstream.Event) {
		p.view.take(e)
		p.board.take(e)
	}); err != nil {
		c.Close()
		p.pause(ctx, 200*time.Millisecond)
		return false
	}
	p.c = c
	return true
}

// leave closes the connection, as an editor does at its end.
func (p *person) leave() {
	if p.c != nil {
		p.c.Close()
		p.c = nil
	}
}

func (p *person) pause(ctx context.Context, most time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(most)):
	}
}

// act performs one random action.
func (p *person) act(ctx context.Context) {
	switch choice := p.rand.IntN(100); {
	case p.target == nil:
		if id, ok := p.board.oldest(p.rand.IntN, 2); ok {
			p.decide(ctx, id, p.decideInShell)
		}
	case p.rand.IntN(5) < 2:
		p.edit(ctx)
	case choice < 25:
		p.launch(ctx)
	case choice < 70:
		if id, ok := p.board.oldest(p.rand.IntN, 3); ok {
			p.decide(ctx, id, p.decideByCall)
		}
	case choice < 83:
		if id, ok := p.board.any(p.rand.IntN); ok {
			p.read(ctx, id)
		}
	case choice < 91:
		if id, ok := p.board.session(p.rand.IntN, "interrupted", "failed"); ok && p.board.continues(id) {
			p.continueSession(ctx, id)
		}
	case choice < 94:
		if id, ok := p.board.session(p.rand.IntN, "running", "waiting_input"); ok {
			p.interrupt(ctx, id)
		}
	case choice < 96:
		p.leave()
	case choice < 98:
		p.lookBack(ctx)
	default:
		p.hurry(ctx)
	}
}

// lookBack subscribes a second time, from an earlier event on, for a short while.
func (p *person) lookBack(ctx context.Context) {
	top := p.view.last()
	if p.c == nil || top == 0 || !p.many {
		return
	}
	since := p.rand.Int64N(top)
	v := &view{name: fmt.Sprintf("%s, looking back to %d", p.view.name, since), after: since, tops: make(map[string]int64)}
	sub, err := eventstream.Subscribe(ctx, p.c, eventstream.Options{Since: &since}, v.take)
	if err != nil {
		return
	}
	p.pause(ctx, 300*time.Millisecond)
	_ = sub.Close()
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	p.views = append(p.views, v)
}

func (p *person) launch(ctx context.Context) {
	work, ok := p.board.newWork(mostWorks)
	if !ok {
		return
	}
	steps := 1 + p.rand.IntN(mostSteps)
	l := launch{Work: work, Steps: steps, Query: workPrompt(work, steps)}
	var reported struct {
		SessionID string `json:"session_id"`
		ThreadID  string `json:"thread_id"`
	}
	if p.call(ctx, "launchSession", object{"query": l.Query}, &reported) == nil {
		l.Session, l.Thread = reported.SessionID, reported.ThreadID
		p.board.launched(l)
	}
}

func (p *person) continueSession(ctx context.Context, id string) {
	l := launch{Query: "continue"}
	var reported struct {
		SessionID string `json:"session_id"`
		ThreadID  string `json:"thread_id"`
	}
	if p.call(ctx, "continueSession", object{"session_id": id, "query": l.Query}, &reported) == nil {
		l.Session, l.Thread = reported.SessionID, reported.ThreadID
		p.board.launched(l)
	}
}

func (p *person) interrupt(ctx context.Context, id string) {
	_ = p.call(ctx, "interruptSession", object{"session_id": id}, nil)
	p.board.mu.Lock()
	p.interrupted[id] = true // or not, if the call failed
	p.board.mu.Unlock()
}

// A decided is the response to a decision.
type decided struct {
	Success bool   `json:"success"`
	Status  string `json:"status"`
	Error   string `json:"error"`
}

// decide answers a question, and sometimes kills a process after the acknowledgement.
func (p *person) decide(ctx context.Context, id string, send func(ctx context.Context, id, decision, words string) (decided, error)) {
	decision, status := "approve", "approved"
	if p.rand.IntN(6) == 0 {
		decision, status = "deny", "denied"
	}
	c := call{Approval: id, Who: p.who, What: callDecide, Write: answer{Status: status, Words: p.board.newWords()}, Outcome: unknown, From: p.since()}
	reply, err := send(ctx, id, decision, c.Write.Words)
	c.Until = p.since()
	switch {
	case err != nil:
	case reply.Success:
		c.Outcome = won
		if p.rand.IntN(3) == 0 {
			p.killer.afterAnAnswer()
		}
	case reply.Status != "":
		c.Outcome, c.Read.Status = lost, reply.Status
	default:
		p.board.found("the answer to question %s was refused: %s", id, reply.Error)
	}
	p.called(c)
}

func (p *person) decideByCall(ctx context.Context, id, decision, words string) (r decided, err error) {
	return r, p.call(ctx, "sendDecision", object{"approval_id": id, "decision": decision, "comment": words}, &r)
}

// decideInShell answers with a command. The command prints the response as JSON. Without it the
// outcome is unknown.
func (p *person) decideInShell(ctx context.Context, id, decision, words string) (r decided, err error) {
	args := []string{"approvals", "approve", id, "--comment", words}
	if decision == "deny" {
		args = []string{"approvals", "deny", id, words}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shellTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(args, "--json", "--root", p.project.root)...)
	cmd.Dir, cmd.Env, cmd.Stderr = p.project.root, p.project.environment(), p.project.log
	out, err := cmd.Output()
	if parsed := json.Unmarshal(out, &r); parsed != nil {
		return r, errors.Join(errors.New("no reply"), err, parsed)
	}
	return r, nil
}

func (p *person) read(ctx context.Context, id string) {
	c := call{Approval: id, Who: p.who, What: callRead, From: p.since()}
	var r struct {
		Approval shownApproval `json:"approval"`
	}
	err := p.call(ctx, "getApproval", object{"approval_id": id}, &r)
	c.Until = p.since()
	if err == nil {
		c.Read = answer{r.Approval.Status, r.Approval.Comment}
		p.called(c)
	}
}

// called records a call for the checks.
func (r *round) called(c call) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	r.board.calls = append(r.board.calls, c)
}

type object = map[string]any

// kindsInChaos are the errors that a person may get while hubs die and start.
var kindsInChaos = map[client.Kind]bool{
	"hub_lost": true, "subsystem_unavailable": true, "bad_state": true, "session_not_running": true,
}

// call makes a call. It accepts the errors in kindsInChaos, the expected ones and a lost connection,
// and records other errors and timeouts as findings.
func (p *person) call(ctx context.Context, method string, params, result any, expected ...client.Kind) error {
	if p.c == nil {
		return errors.New("not connected")
	}
	// The end of the round does not cancel a started call.
	err := p.c.Call(context.WithoutCancel(ctx), method, params, result)
	var refused *client.Error
	if errors.As(err, &refused) && !kindsInChaos[refused.Kind()] && !slices.Contains(expected, refused.Kind()) {
		p.board.found("%s %v of %s was refused: %d %s %s", method, params, p.view.name, refused.Code, refused.Message, refused.Data)
	}
	if errors.Is(err, client.ErrTimeout) {
		p.board.found("%s of %s had no reply after %v", method, p.view.name, callTimeout)
	}
	return err
}
