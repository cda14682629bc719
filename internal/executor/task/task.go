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
)

// A Hub is what a task needs of the hub.
type Hub interface {
	GetAPIKey(context.Context, catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error)
	ReportMessage(context.Context, catalog.ReportMessageParams) error
	ReportError(context.Context, catalog.ReportErrorParams) error
}

// A Task is one prompt on its way through an agent. Its methods may be called
// from any goroutine, but for Prepare.
type Task struct {
	*Reporter
	ID     string
	Params catalog.ExecutePromptParams // its CWD is absolute
	Launch *catalog.AgentLaunch
	// Conversation is what the prompt stands on. It is there once the task is
	// prepared.
	Conversation catalog.GetExecutionContextResult
	Workspace    *workspace.Workspace
	Files        *workspace.Changes

	hub    Hub
	ctx    context.Context // ends when the task is to be stopped
	cancel context.CancelFunc
	unhook func() bool
}

// New makes a task, which is to be stopped when ctx ends. Reports wait for the
// hub as long as life lasts. It has to be closed.
func New(ctx, life context.Context, hub Hub, log *slog.Logger, p catalog.ExecutePromptParams) *Task {
	p.CWD = cmp.Or(p.CWD, p.Launch.Root)
	if abs, err := filepath.Abs(p.CWD); err == nil { // agents insist on it
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

// Prepare gives the task what it stands on. It comes before everything else.
func (t *Task) Prepare(conversation catalog.GetExecutionContextResult) {
	t.Conversation = conversation
	t.Workspace.Add(conversation.AdditionalDirectories...)
}

// Context ends when the task is to be stopped.
func (t *Task) Context() context.Context { return t.ctx }

// Stop begins to end the task.
func (t *Task) Stop() { t.cancel() }

// Stopped reports whether the task is to end.
func (t *Task) Stopped() bool { return t.ctx.Err() != nil }

// Close is called when the result is out: nothing more is reported.
func (t *Task) Close() {
	t.unhook()
	t.cancel()
	t.Reporter.close()
}

// Result is how the task ended: with the agent's own reason, or because of a
// failure. What is left to be reported is reported before.
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
	case failed != nil && !t.Stopped(): // also where the agent took it for a wish to stop
		result.Status = catalog.StatusFailed
		result.Error = &catalog.ExecutionError{Code: failed.Code, Message: strings.ToValidUTF8(failed.Message, "\uFFFD"), AuthMethods: failed.SignIn}
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

// Environment is the agent's environment. Keys are fetched for it now and are
// kept nowhere else.
func (t *Task) Environment() (process.Environment, *Failure) {
	env := LaunchEnvironment(t.Launch)
	for _, name := range slices.Sorted(maps.Keys(t.Launch.Keys)) {
		service := t.Launch.Keys[name]
		key, err := t.hub.GetAPIKey(t.ctx, catalog.GetAPIKeyParams{SessionToken: t.Params.SessionToken, Service: service})
		if err != nil {
			reason := err.Error()
			if wire := (*jsonrpc2.Error)(nil); errors.As(err, &wire) {
				reason = strings.TrimPrefix(wire.Message, "Internal error: ") // which says nothing of this one
			}
			return nil, &Failure{Code: CodeNoKey, Message: fmt.Sprintf("%s needs the key of %s (%s): %s", t.Launch.Name, service, name, reason)}
		}
		env[name] = key.APIKey
	}
	return env, nil
}

// Started tells the hub what to kill if this process dies.
func (t *Task) Started(p *process.Process) {
	t.Event(catalog.EventProcess, catalog.Process{PID: p.PID, Mark: p.Mark})
}
