package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// A link is an agent that was started to be asked.
type link struct {
	launch Launch
	dir    string // its working directory, which is empty
	env    process.Environment
	runner *process.Runner
	proc   *process.Process
	conn   *acp.Connection
	info   initializeResult
	status atomic.Pointer[authStatus]
	told   chan struct{} // has one in it when there is a status

	deaf    atomic.Bool // it takes no input any more
	release func()      // of what waits for the end of the process or of the context
}

// open starts the agent and greets it. When ctx ends the agent is killed.
func open(ctx context.Context, l Launch, log *slog.Logger) (*link, error) {
	if len(l.Command) == 0 {
		return nil, fmt.Errorf("%s has no command", l.Name)
	}
	k := &link{launch: l, told: make(chan struct{}, 1), env: process.NewEnvironment(l.Environment)}
	var err error
	if k.dir, err = os.MkdirTemp("", "duet-agent-"); err != nil {
		return nil, err
	}
	path, err := k.env.Find(l.Command[0], k.dir)
	if err != nil {
		os.RemoveAll(k.dir)
		return nil, fmt.Errorf("%s: the program %q was not found: `duet-rpc agents` says how to get it", l.Name, l.Command[0])
	}
	k.runner = process.NewRunner(ctx, log, process.Grace{})
	k.proc, err = k.runner.Start(process.Spec{Path: path, Argv: l.Command, CWD: k.dir, Env: maps.Clone(k.env), Stdin: true})
	if err != nil {
		k.runner.Close()
		os.RemoveAll(k.dir)
		return nil, fmt.Errorf("%s: the program %q could not be started: %w", l.Name, l.Command[0], err)
	}
	out, stop := k.proc.Output()
	k.conn = acp.NewConnection(k.serve, (*input)(k), io.LimitReader(out, maxOutput))
	k.conn.SetLogger(slog.New(slog.DiscardHandler)) // it would log payloads
	spare := context.AfterFunc(ctx, k.proc.Kill)
	k.release = func() {
		spare()
		stop()
	}
	k.info, err = ask[initializeResult](ctx, k, startTime, acp.AgentMethodInitialize, map[string]any{
		"protocolVersion": acp.ProtocolVersionNumber,
		"clientInfo":      map[string]any{"name": "duet", "version": "1"},
		"clientCapabilities": map[string]any{
			"fs":   map[string]any{"readTextFile": false, "writeTextFile": false},
			"auth": map[string]any{"terminal": true}, "_meta": map[string]any{"terminal-auth": true},
		},
	})
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// input is the agent's input, which notices when it is closed.
type input link

func (in *input) Write(b []byte) (int, error) {
	n, err := in.proc.Write(b)
	if err != nil {
		in.deaf.Store(true)
	}
	return n, err
}

// close ends the agent.
func (k *link) close() {
	k.proc.CloseInput()
	if !k.proc.Wait(exitGrace) {
		k.proc.Terminate()
	}
	<-k.conn.Done()
	k.release()
	k.runner.Close()
	os.RemoveAll(k.dir)
}

// serve takes what the agent says and asks by itself. It gets nothing: no
// files, no terminals, no permission.
func (k *link) serve(_ context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	if method != "_auth/status_update" {
		return nil, acp.NewMethodNotFound(method)
	}
	var update struct {
		AuthStatus *authStatus `json:"authStatus"`
	}
	if json.Unmarshal(params, &update) == nil && update.AuthStatus != nil {
		k.status.Store(update.AuthStatus)
		select {
		case k.told <- struct{}{}:
		default:
		}
	}
	return nil, nil
}

// A refusal is an error with which the agent answered.
type refusal struct {
	agent string
	wire  *acp.RequestError
	text  string
}

func (e *refusal) Error() string { return e.agent + ": " + e.text }

// ask calls a method of the agent, which has d to answer.
func ask[R any](ctx context.Context, k *link, d time.Duration, method string, params any) (R, error) {
	within, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	result, err := acp.SendRequest[R](k.conn, within, method, params)
	var wire *acp.RequestError
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return result, ctx.Err()
	case within.Err() != nil:
		return result, k.complaint(fmt.Sprintf("did not answer %s within %v", method, d))
	case k.deaf.Load(), k.proc.Ended(), isDone(k.conn.Done()):
		if k.proc.Wait(exitGrace) {
			return result, fmt.Errorf("%s %s", k.launch.Name, text(k.proc.ExitText()))
		}
		return result, k.complaint("has closed its output; does its command speak the Agent Client Protocol?")
	case errors.As(err, &wire):
		return result, &refusal{k.launch.Name, wire, text(detail(wire))}
	}
	return result, fmt.Errorf("%s: %w", k.launch.Name, err)
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// complaint is an error with the last that the agent printed on stderr.
func (k *link) complaint(what string) error {
	if words := k.proc.LastWords(); words != "" {
		what += ". Its last words: " + text(words)
	}
	return fmt.Errorf("%s %s", k.launch.Name, what)
}

// detail is an error's message with the detail that some put into data.
func detail(e *acp.RequestError) string {
	if d, ok := e.Data.(map[string]any); ok {
		for _, name := range []string{"details", "error", "message"} {
			if s, ok := d[name].(string); ok && s != "" && s != e.Message {
				return cmp.Or(e.Message, "error") + ": " + s
			}
		}
	}
	return cmp.Or(e.Message, "it answered with an error")
}
