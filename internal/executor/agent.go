package executor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

const (
	// partingTime is what an agent that is not needed any more gets to end by
	// itself, once its stdin is closed.
	partingTime = 700 * time.Millisecond
	// answerTime is how long the end of an agent's output is held back for
	// calls that have their response.
	answerTime = time.Second
	// unaskedTime is what an agent that has no prompt yet gets to come to the
	// point where it would get one, when its run is to be stopped: one that is
	// well lives on.
	unaskedTime = 250 * time.Millisecond
)

// An agent is a process that speaks the Agent Client Protocol, and its
// session.
type agent struct {
	x    *Executor
	name string
	key  string // see launchKey
	proc *process
	conn *acp.Connection
	life context.Context // ends with the process

	hello    helloResult
	session  acp.SessionId
	modes    []string               // that it has
	mode     atomic.Pointer[string] // that it is in; nil if it has none
	late     atomic.Pointer[string] // the method that it was killed for not answering
	models   []string
	configs  []configOption
	current  atomic.Pointer[run]
	spent    atomic.Uint64 // what its session has cost so far, in USD, as the bits of a float64
	loading  atomic.Bool   // updates are a replay of what the hub has
	deaf     atomic.Bool   // it takes no input any more: it is ending, or has closed it
	open     atomic.Int64
	accounts accounts
	place    *place
	env      environment // of its terminals: without keys

	mu        sync.Mutex // guards terminals
	terminals map[string]*agentTerminal
}

// startAgent starts the agent's process.
func (r *run) startAgent() (*agent, *failure) {
	argv := r.launch.Command
	env, failed := r.environment()
	if failed != nil {
		return nil, failed
	}
	path, err := env.find(argv[0], r.params.CWD)
	if err != nil {
		return nil, startFailure(r.launch.Name, argv[0], r.params.CWD, err)
	}
	proc, err := r.x.start(spec{path: path, argv: argv, cwd: r.params.CWD, env: env, stdin: true})
	if err != nil {
		return nil, startFailure(r.launch.Name, argv[0], r.params.CWD, err)
	}
	life, cancel := context.WithCancel(r.x.ctx)
	a := &agent{
		x: r.x, name: r.launch.Name, key: launchKey(r), proc: proc, life: life,
		place: newPlace(r.launch.Root, r.params.CWD, r.launch.StateDir), env: newEnvironment(r.launch.Env),
		terminals: make(map[string]*agentTerminal),
	}
	a.place.add(r.directories...)
	a.env[MarkVariable] = proc.mark
	a.begin(r)
	fromScreen, toSDK := io.Pipe()
	a.conn = acp.NewConnection(a.serve, (*agentInput)(a), fromScreen)
	a.conn.SetLogger(slog.New(slog.DiscardHandler)) // it would log payloads
	r.x.work.Go(func() {
		<-proc.done
		cancel() // first: then no terminal is opened any more
		a.endTerminals()
	})
	r.x.work.Go(func() { a.screen(toSDK) })
	return a, nil
}

// agentInput is the agent's stdin. It notices when a prompt is in, or an
// answer.
type agentInput agent

func (in *agentInput) Write(p []byte) (int, error) {
	r := in.current.Load()
	if r != nil { // before: the agent may go on before we do
		r.given.writes(p)
	}
	n, err := in.proc.stdin.Write(p)
	if err != nil {
		in.deaf.Store(true)
	}
	if r != nil && err == nil && bytes.Contains(p[:min(len(p), 100)], []byte(`"method":"session/prompt"`)) {
		r.sent.Do(func() { close(r.prompted) })
	}
	return n, err
}

// screen reads the agent's output to its end.
func (a *agent) screen(toSDK *io.PipeWriter) {
	defer a.proc.stdout.Close()
	in, stop := a.proc.untilEnd(a.proc.stdout)
	defer stop()
	s := screen{
		sdk:      toSDK,
		update:   a.update,
		response: a.accounts.pass,
		request:  a.admit,
		refuse:   a.refuse,
		garbage: func(line []byte) {
			if r := a.current.Load(); r != nil {
				r.dropGarbage(line)
			}
		},
		tooLong: func(length int64) {
			if r := a.current.Load(); r != nil {
				r.complain(CodeLineTooLong, fmt.Sprintf("the agent printed a line of %d bytes; it was dropped: more than %d are not taken", length, maxAgentLine))
			}
		},
	}
	s.run(gatedReader{a, in})
	deadline := time.NewTimer(answerTime)
	defer deadline.Stop()
	for waiting := a.accounts.pending(); waiting != nil; waiting = a.accounts.pending() {
		select {
		case <-waiting:
			continue
		case <-deadline.C:
		}
		break
	}
	toSDK.Close()
}

// gatedReader reads an agent while the gate is open. An agent that is to be
// stopped is read in any case: its answer is waited for.
type gatedReader struct {
	a  *agent
	in io.Reader
}

func (g gatedReader) Read(p []byte) (int, error) {
	until := g.a.life
	if r := g.a.current.Load(); r != nil && g.a.life.Err() == nil {
		until = r.ctx
	}
	g.a.x.gate.pass(until)
	return g.in.Read(p)
}

func (a *agent) update(update []byte, mended bool) {
	r := a.current.Load()
	if r == nil || a.loading.Load() {
		return
	}
	if mode := r.update(update, mended); mode != "" {
		a.mode.Store(&mode)
	}
}

// admit counts a request that the SDK is to be given; serve counts it off.
func (a *agent) admit() bool {
	if a.open.Add(1) > maxAgentRequests {
		a.open.Add(-1)
		return false
	}
	return true
}

// refuse answers a request that the SDK cannot be given.
func (a *agent) refuse(id []byte, reason error) {
	body := frame.ErrorBody(id, &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: reason.Error()})
	a.proc.stdin.Write(append(body, '\n'))
}

// call calls a method of the agent. It ends with the agent, not with a run.
func call[R any](a *agent, method string, params any) (R, error) {
	defer a.accounts.done()
	return acp.SendRequest[R](a.conn, context.Background(), method, params)
}

// callWithin is call for an agent that is killed if it takes longer than d.
func callWithin[R any](a *agent, d time.Duration, method string, params any) (R, error) {
	timer := time.AfterFunc(d, func() {
		a.late.Store(&method)
		a.proc.kill()
	})
	defer timer.Stop()
	return call[R](a, method, params)
}

// guard ends the agent's turn when the run is to be stopped: session/cancel if
// the agent has the prompt, and the signals if that does not help or it has
// none.
func (a *agent) guard(r *run, finished <-chan struct{}) {
	select {
	case <-finished:
		return
	case <-r.ctx.Done():
	}
	grace := time.NewTimer(a.x.opts.Grace.Cancel)
	defer grace.Stop()
	unasked := time.NewTimer(unaskedTime)
	defer unasked.Stop()
	a.x.work.Go(func() { // an agent that does not read would hold it up
		select {
		case <-r.prompted:
			a.conn.SendNotification(context.Background(), acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: a.session})
		case <-finished:
		}
	})
	select {
	case <-r.prompted:
		select {
		case <-finished:
			return
		case <-grace.C:
		case <-a.x.ctx.Done():
		}
	case <-finished:
		return
	case <-unasked.C: // it has no prompt, so there is nothing to cancel
	case <-a.x.ctx.Done():
	}
	a.proc.terminate(true)
	<-finished
}

// begin makes r the run that the agent's updates belong to.
func (a *agent) begin(r *run) {
	r.spent, r.spentBefore = &a.spent, math.Float64frombits(a.spent.Load())
	a.current.Store(r)
	r.reportProcess(a.proc)
}

// retire ends the agent.
func (a *agent) retire() {
	a.proc.closeInput()
	if !a.proc.wait(partingTime) {
		a.proc.terminate(false)
	}
}

// gone reports whether the agent has ended, or has closed its output, which
// is as good: then it is ended.
func (a *agent) gone() bool {
	select {
	case <-a.conn.Done():
		if !a.proc.wait(answerTime) {
			a.proc.terminate(false)
		}
		return true
	default:
	}
	if a.deaf.Load() && !a.proc.wait(answerTime) {
		a.proc.terminate(false) // nothing can be asked of it
	}
	if !a.proc.ended() {
		return false
	}
	<-a.conn.Done() // what it printed last is still being reported
	return true
}

func (a *agent) endTerminals() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.terminals {
		t.proc.kill()
	}
}
