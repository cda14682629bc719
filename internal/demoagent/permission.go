package demoagent

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/coder/acp-go-sdk"
)

var permissionOptions = []acp.PermissionOption{
	{OptionId: "allow_once", Name: "Allow", Kind: acp.PermissionOptionKindAllowOnce},
	{OptionId: "allow_always", Name: "Always allow", Kind: acp.PermissionOptionKindAllowAlways},
	{OptionId: "reject_once", Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
	{OptionId: "reject_always", Name: "Always reject", Kind: acp.PermissionOptionKindRejectAlways},
}

// newCall is a tool call that has not begun. The protocol has no field for a
// tool's name: it goes where Claude Code's agent puts it, and where ours would.
func (t *turn) newCall(name, title string, kind acp.ToolKind, rawInput any) acp.SessionUpdateToolCall {
	return acp.SessionUpdateToolCall{
		ToolCallId: t.newCallID(), Title: title, Kind: kind, RawInput: rawInput, Status: acp.ToolCallStatusPending,
		Meta: map[string]any{"duet": map[string]any{"toolName": name}, "claudeCode": map[string]any{"toolName": name}},
	}
}

func (t *turn) newCallID() acp.ToolCallId {
	t.calls++
	return acp.ToolCallId(fmt.Sprintf("call-%d-%d", t.number, t.calls))
}

// permission asks whether call may run, unless that was settled for good in
// this session. extra is what the client's answer carries under "duet" in its
// _meta.
func (t *turn) permission(ctx context.Context, name string, call acp.SessionUpdateToolCall) (allowed bool, extra map[string]any, err error) {
	known := false
	t.session.look(func(r *record) { allowed, known = r.Standing[name] })
	if known {
		return allowed, nil, nil
	}
	resp, err := t.requestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: t.id, Options: permissionOptions,
		ToolCall: acp.ToolCallUpdate{
			ToolCallId: call.ToolCallId, Title: &call.Title, Kind: &call.Kind, Status: &call.Status, Meta: call.Meta,
			Locations: call.Locations, RawInput: call.RawInput, Content: call.Content,
		},
	})
	if ctx.Err() != nil {
		return false, nil, ctx.Err()
	}
	if err != nil {
		return false, nil, fmt.Errorf("asking permission: %w", err)
	}
	if resp.Outcome.Selected == nil {
		return false, nil, errCancelled
	}
	extra, _ = resp.Meta["duet"].(map[string]any)
	for _, o := range permissionOptions {
		if o.OptionId != resp.Outcome.Selected.OptionId {
			continue
		}
		allowed = o.Kind == acp.PermissionOptionKindAllowOnce || o.Kind == acp.PermissionOptionKindAllowAlways
		if o.Kind == acp.PermissionOptionKindAllowAlways || o.Kind == acp.PermissionOptionKindRejectAlways {
			t.session.change(func(r *record) {
				r.Standing = maps.Clone(r.Standing)
				if r.Standing == nil {
					r.Standing = map[string]bool{}
				}
				r.Standing[name] = allowed
			})
		}
		return allowed, extra, nil
	}
	return false, nil, fmt.Errorf("asking permission: there is no option %q", resp.Outcome.Selected.OptionId)
}

// requestPermission asks the user. In version 2 the session's state says so.
func (t *turn) requestPermission(ctx context.Context, request acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	t.v2.asks(t.id)
	resp, err := t.conn.RequestPermission(ctx, request)
	if ctx.Err() == nil { // else the turn ends
		t.v2.answered(t.id)
	}
	return resp, err
}

// end tells how a tool call ended, and remembers it. It is told also when the
// turn has been cancelled, so that no client shows it running forever.
func (t *turn) end(ctx context.Context, call acp.SessionUpdateToolCall, status acp.ToolCallStatus) error {
	call.Status = status
	t.session.look(func(*record) { t.rec.addTool(call) })
	return t.update(context.WithoutCancel(ctx), acp.SessionUpdate{ToolCallUpdate: &acp.SessionToolCallUpdate{
		ToolCallId: call.ToolCallId, Status: &call.Status, Content: call.Content, RawInput: call.RawInput, RawOutput: call.RawOutput,
	}})
}

// permits makes several tool calls, each with a permission of its own.
func (t *turn) permits(ctx context.Context, arg argument) error {
	first := 0
	t.session.look(func(*record) { first = t.rec.Index })
	for i := first; i < arg.n; i++ {
		t.session.change(func(*record) { t.rec.Index = i })
		call := t.newCall("Bash", "Bash", acp.ToolKindExecute, map[string]any{"command": fmt.Sprintf("echo %d", i+1)})
		if err := t.update(ctx, acp.SessionUpdate{ToolCall: &call}); err != nil {
			return err
		}
		allowed, err := t.mode() == modeBypass, error(nil)
		if !allowed {
			var extra map[string]any
			allowed, extra, err = t.permission(ctx, "Bash", call)
			if changed, ok := extra["updatedInput"].(map[string]any); ok {
				call.RawInput = changed
			}
		}
		status := acp.ToolCallStatusFailed
		if allowed {
			status = acp.ToolCallStatusCompleted
			command, _ := call.RawInput.(map[string]any)["command"].(string)
			call.RawOutput = strings.TrimPrefix(command, "echo ") + "\n"
		}
		if endErr := t.end(ctx, call, status); err == nil {
			err = endErr
		}
		if err != nil {
			return err
		}
		if err := t.pauseIfSlow(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rememberTool keeps a finished call of [turn.tools].
func (t *turn) rememberTool(id acp.ToolCallId, n int) {
	t.session.look(func(*record) {
		t.rec.addTool(acp.SessionUpdateToolCall{
			ToolCallId: id, Title: "Bash", Kind: acp.ToolKindExecute, Status: acp.ToolCallStatusCompleted,
			RawInput: map[string]any{"command": fmt.Sprintf("echo %d", n)},
		})
	})
}
