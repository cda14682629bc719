package intake

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// ReportMessage takes one event of an agent.
func (in *Intake) ReportMessage(ctx context.Context, p catalog.ReportMessageParams) error {
	run, err := in.speaker(ctx, p.SessionToken, p.TaskID)
	if err != nil || run == nil {
		return err
	}
	r, err := in.reportOf(run.id, p.EventType, p.EventData)
	if err != nil {
		run.refusals.addKind(p.EventType, err)
		return err
	}
	run.take(p.Sequence, r)
	return nil
}

// ReportProgress takes how far a task is.
func (in *Intake) ReportProgress(ctx context.Context, p catalog.ReportProgressParams) error {
	return in.report(ctx, p.SessionToken, p.TaskID, kindProgress, p.Progress)
}

// ReportError takes an error that does not end the task.
func (in *Intake) ReportError(ctx context.Context, p catalog.ReportErrorParams) error {
	return in.report(ctx, p.SessionToken, p.TaskID, catalog.EventError, p.Error)
}

// report takes a report that has no sequence number.
func (in *Intake) report(ctx context.Context, token, task, kind string, value any) error {
	run, err := in.speaker(ctx, token, task)
	if err != nil || run == nil {
		return err
	}
	run.take(0, report{run: run.id, kind: kind, data: encode(value)})
	return nil
}

// ReportCompletion takes the end of a task, which an executor reports before
// it answers execute_prompt. It counts if the answer does not come; see
// [Run.Completion].
func (in *Intake) ReportCompletion(ctx context.Context, p catalog.ReportCompletionParams) error {
	run, err := in.speaker(ctx, p.SessionToken, p.TaskID)
	if err != nil || run == nil {
		return err
	}
	run.complete(catalog.ExecutePromptResult{Status: p.Status, TokenUsage: p.TokenUsage, Error: p.Error})
	return nil
}

// ReportSession takes what an agent tells of its session while no prompt runs. The
// caller knows that this executor has the conversation.
func (in *Intake) ReportSession(_ context.Context, p catalog.ReportSessionParams) error {
	in.queue.add(report{kind: kindSessionBetween, data: encode(p.Session), between: &between{p.SessionID, p.TaskID}})
	return nil
}

// lateEvents are the types of events that ReportLate accepts.
var lateEvents = []string{catalog.EventContentDelta, catalog.EventThinkingChunk, catalog.EventToolUpdate, catalog.EventToolResult, catalog.EventNotice, catalog.EventCompaction, catalog.EventUsage}

// ReportLate stores an event of a task that has ended. The caller has checked that the executor
// runs the conversation's agent.
func (in *Intake) ReportLate(_ context.Context, p catalog.ReportLateParams) error {
	if !slices.Contains(lateEvents, p.EventType) {
		return domain.Invalid("event_type", "one of "+strings.Join(lateEvents, ", "), strconv.Quote(p.EventType))
	}
	r, err := in.reportOf(0, p.EventType, p.EventData)
	if err != nil {
		return err
	}
	r.between = &between{p.SessionID, p.TaskID}
	in.queue.add(r)
	return nil
}

// ReportRefused notes that something which an executor had to say of one of its
// runs was lost on the way: task is the run's UUID. The caller
// knows that this executor has the run; of a run that has ended nothing is noted.
func (in *Intake) ReportRefused(task string, why error) {
	for _, run := range in.runs.withTask(task) {
		run.refusals.add(why)
	}
}

// speaker is the run for which an executor speaks, or nil if that has ended.
func (in *Intake) speaker(ctx context.Context, token, task string) (*Run, error) {
	id, err := in.opts.Runs.RunOf(ctx, token, task)
	if err != nil {
		return nil, err
	}
	return in.runs.get(id), nil
}
