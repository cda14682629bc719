// Package task is one prompt for a driver: its settings, keys and files, and its reports to the hub,
// which are sent in order. A driver waits while its reports wait.
package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/workspace"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
)

// A Hub is the part of the hub's API that a task needs.
type Hub interface {
	GetExecutionContext(context.Context, catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error)
	GetAPIKey(context.Context, catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error)
	ReportMessage(context.Context, catalog.ReportMessageParams) error
	ReportError(context.Context, catalog.ReportErrorParams) error
}

// A Task is one prompt that an agent runs. Except for Prepare, its methods may be called from any
// goroutine.
type Task struct {
	*Reporter
	ID     string
	Params catalog.ExecutePromptParams // its CWD is absolute
	Launch *catalog.AgentLaunch
	// Session is the context of the prompt. Prepare sets it. Its messages are only those of the user
	// after the agent's last activity; see History.
	Session   catalog.GetExecutionContextResult
	Workspace *workspace.Workspace
	Files     *workspace.Changes

	hub    Hub
	ctx    context.Context // ends when the task must stop
	cancel context.CancelFunc
	unhook func() bool
}

// New makes a task that stops when ctx ends. Reports are retried as long as life lasts. The
// caller must close it.
func New(ctx, life context.Context, hub Hub, log *slog.Logger, p catalog.ExecutePromptParams) *Task {
	p.CWD = cmp.Or(p.CWD, p.Launch.Root)
	if abs, err := filepath.Abs(p.CWD); err == nil { // agents require it
		p.CWD = abs
	}
	t := &Task{
		Reporter: newReporter(life, hub, log, p.SessionToken, p.TaskID),
		ID:       p.TaskID, Params: p, Launch: p.Launch, hub: hub,
		Workspace: workspace.New(p.Launch.Root, p.CWD, p.Launch.StateDir),
	}
	t.Files = workspace.NewChanges(t.Workspace, log, func(c catalog.FileChange) { t.Event(catalog.EventFileChange, c) })
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.unhook = context.AfterFunc(ctx, t.Stop)
	return t
}

// Prepare sets the context of the task. Call it first.
func (t *Task) Prepare(session catalog.GetExecutionContextResult) {
	t.Session = session
	t.Workspace.Add(session.AdditionalDirectories...)
}

// History returns the transcript before the prompt as text for an agent that does not know it; "" if
// there was none. It asks the hub.
func (t *Task) History(prompt string) (string, *Failure) {
	known, err := t.hub.GetExecutionContext(t.ctx, catalog.GetExecutionContextParams{SessionToken: t.Params.SessionToken})
	if err != nil {
		return "", ContextFailure(err)
	}
	return before(known.Messages, prompt), nil
}

// ContextFailure reports that the hub did not give the context of a prompt.
func ContextFailure(err error) *Failure {
	return &Failure{Code: CodeExecutor, Message: "cannot get the prompt's context from the hub: " + err.Error()}
}

// Context ends when the task must stop.
func (t *Task) Context() context.Context { return t.ctx }

// Stop starts to end the task.
func (t *Task) Stop() { t.cancel() }

// Stopped reports whether the task must stop.
func (t *Task) Stopped() bool { return t.ctx.Err() != nil }

// Close ends the reports. Call it after the result was sent.
func (t *Task) Close() {
	t.unhook()
	t.cancel()
	t.Reporter.close()
}

// Result returns how the task ended: with the agent's own reason, or with a failure. It sends the
// remaining reports first.
func (t *Task) Result(stopReason string, failed *Failure) catalog.ExecutePromptResult {
	t.Files.Settle()
	messages, usage, failure := t.finish()
	result := catalog.ExecutePromptResult{
		Status: catalog.StatusCompleted, MessageCount: messages, TokenUsage: usage,
		StopReason: stopReason, Agent: t.Launch.Name,
	}
	if failed == nil {
		failed = failure
	}
	switch {
	case failed != nil && !t.Stopped(): // also if the agent took it for a cancellation
		result.Status = catalog.StatusFailed
		result.Error = &catalog.ExecutionError{
			Code: failed.Code, Message: strings.ToValidUTF8(failed.Message, "\uFFFD"), AuthMethods: failed.SignIn,
		}
	case t.Stopped(), stopReason == "cancelled":
		result.Status = catalog.StatusCancelled
		result.StopReason = "cancelled"
	}
	return result
}

// LaunchEnvironment returns the environment of an agent without its keys.
func LaunchEnvironment(l *catalog.AgentLaunch) process.Environment {
	if l.Environment == nil {
		return process.NewEnvironment(l.Env)
	}
	return process.ClientEnvironment(l.Environment, l.Env)
}

// Environment returns the agent's environment. It fetches the keys now; nothing else stores them.
func (t *Task) Environment() (process.Environment, *Failure) {
	env := LaunchEnvironment(t.Launch)
	for _, name := range slices.Sorted(maps.Keys(t.Launch.Keys)) {
		service := t.Launch.Keys[name]
		key, err := t.hub.GetAPIKey(t.ctx, catalog.GetAPIKeyParams{SessionToken: t.Params.SessionToken, Service: service})
		if err != nil {
			reason := err.Error()
			if wire := (*jsonrpc2.Error)(nil); errors.As(err, &wire) {
				reason = strings.TrimPrefix(wire.Message, "Internal error: ") // a prefix without information
			}
			return nil, &Failure{Code: CodeNoKey, Message: fmt.Sprintf("%s needs the key of %s (%s): %s", t.Launch.Name, service, name, reason)}
		}
		env[name] = key.APIKey
	}
	return env, nil
}

// Box returns the sandbox of the agent, whose program is the file path; nil if the launch requires
// none. env is the agent's environment.
func (t *Task) Box(path string, env process.Environment) (*sandbox.Box, *Failure) {
	if t.Launch.Sandbox == nil {
		return nil, nil
	}
	box, err := sandbox.New(*t.Launch.Sandbox, sandbox.Place{
		Root: t.Launch.Root, CWD: t.Params.CWD, Directories: t.Session.AdditionalDirectories, Programs: []string{path}, Env: env,
	})
	if err != nil {
		return nil, &Failure{Code: CodeSandbox, Message: fmt.Sprintf("%s cannot run in its sandbox: %v", t.Launch.Name, err)}
	}
	return box, nil
}

// Started reports the process to the hub, which kills it if this process dies.
func (t *Task) Started(p *process.Process) {
	t.Event(catalog.EventProcess, catalog.Process{PID: p.PID, Mark: p.Mark})
}
