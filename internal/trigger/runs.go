package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// followedKinds are the kinds of events of the log that triggers may be for.
var followedKinds = []domain.EventKind{domain.EventRunState, domain.EventApprovalRequested, domain.EventApprovalResolved}

// follow looks at what the log has since it was looked at last, if any trigger wants to
// know. It reports whether all of that was seen to.
func (e *Engine) follow(ctx context.Context) (seen bool) {
	e.mu.Lock()
	active, wants := e.active, slices.Equal(e.wants, followedKinds)
	e.mu.Unlock()
	if !wants {
		e.followed = 0
		return true
	}
	if e.followed == 0 {
		var err error
		if e.followed, err = e.beginning(ctx); err != nil {
			e.warn(err, "the log cannot be read", "")
			return false
		}
	}
	upTo := e.opts.Log.Last()
	failed := false
	err := e.opts.Log.Replay(ctx, followedKinds, e.followed, upTo, func(logged domain.Event, s domain.Session) bool {
		event, ok := eventOf(logged, s)
		if !ok {
			return true
		}
		for _, t := range active {
			if t.FollowsRuns() && !logged.Time.Before(e.known[t.ID]) && ctx.Err() == nil {
				if err := e.consider(ctx, t, event); err != nil {
					e.warn(err, "a trigger has failed", t.ID)
					failed = true
				}
			}
		}
		e.followed = logged.Seq
		return !failed && ctx.Err() == nil
	})
	if err != nil || failed || ctx.Err() != nil {
		e.warn(err, "the log cannot be read", "")
		return false
	}
	e.followed = max(e.followed, upTo)
	return true
}

// beginning is where the log is looked at from at first, so that lookBack is in it.
func (e *Engine) beginning(ctx context.Context) (int64, error) {
	const page = 500
	at := e.opts.Log.Last()
	for since := time.Now().Add(-lookBack); at > 0; at = max(at-page, 0) {
		events, err := e.opts.Store.Events(ctx, max(at-page, 0), 1)
		if err != nil && !store.IsDamaged(err) {
			return 0, err
		}
		if len(events) == 0 || events[0].Time.Before(since) {
			at = max(at-page, 0)
			break
		}
	}
	return at, nil
}

// eventOf is what triggers are told of an event of the log.
func eventOf(logged domain.Event, s domain.Session) (Event, bool) {
	event := Event{
		Source: config.SourceRun, Time: logged.Time, key: fmt.Sprintf("seq:%d", logged.Seq), depth: depthOf(s.Run), restricted: s.Run.Restricted,
		Payload: map[string]any{
			"session_id": logged.Ref.SessionID, "run_id": logged.Ref.RunID, "task_id": domain.TaskName(logged.Ref.Task), "thread_id": s.Thread.UUID,
			"title": s.Run.Title, "agent": s.Run.Agent, "source": s.Run.Source, "prompt": cut(s.Run.Prompt, 2000), "working_dir": s.Thread.CWD,
		},
	}
	set := func(key, value string) {
		if value != "" {
			event.Payload[key] = value
		}
	}
	if by := metadataOf(s.Run); by.Trigger != "" {
		event.Payload["trigger"], event.Payload["depth"] = by.Trigger, by.Depth
	}
	switch p := logged.Payload.(type) {
	case domain.RunStateChanged:
		event.Type = "run." + string(p.To)
		event.Payload["state"] = string(p.To)
		set("old_state", string(p.From))
		set("reason", p.Reason)
		set("error", cut(p.Error, 4000))
		set("error_code", p.ErrorCode)
		set("stop_reason", p.StopReason)
		if p.To.Ended() {
			set("result", cut(s.Run.Result, 4000))
		}
	case domain.ApprovalRequested:
		event.Type, event.Source = config.ApprovalRequested, config.SourceApproval
		set("approval_id", p.ApprovalID)
		set("tool_name", p.Tool)
		set("question", cut(p.Title, 2000))
		set("subject", cut(p.Subject, 2000))
	case domain.ApprovalResolved:
		event.Type, event.Source = config.ApprovalResolved, config.SourceApproval
		set("approval_id", p.ApprovalID)
		set("tool_name", p.Tool)
		set("question", cut(p.Title, 2000))
		set("decision", p.Status)
		set("decided_by", p.DecidedBy)
		set("response", cut(p.Response, 2000))
	default:
		return Event{}, false
	}
	return event, true
}

// begunBy is what the metadata of a run has that a trigger began.
type begunBy struct {
	Trigger string `json:"trigger"`
	Depth   int    `json:"trigger_depth"`
}

func metadataOf(run domain.Run) (by begunBy) {
	_ = json.Unmarshal(run.Metadata, &by) // absent, or a caller's own
	return by
}

// depthOf is how many executions of triggers led to a run.
func depthOf(run domain.Run) int {
	switch run.Source {
	case domain.SourceTrigger:
		return max(metadataOf(run).Depth, 1)
	case domain.SourceAgent: // the depth of the run before
		return max(metadataOf(run).Depth, 0)
	}
	return 0
}
