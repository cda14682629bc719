package intake

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// ReportMessage takes one event of an agent.
func (in *Intake) ReportMessage(ctx context.Context, p catalog.ReportMessageParams) error {
	run, err := in.speaker(ctx, p.SessionToken, p.TaskID)
	if err != nil || run == nil {
		return err
	}
	r, err := in.reportOf(run.id, p.EventType, p.EventData)
	if err != nil {
		run.refuse(p.EventType, err)
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

// ReportRefused notes that something which an executor had to say of one of its
// runs was lost on the way: task is the run's UUID. The caller
// knows that this executor has the run; of a run that has ended nothing is noted.
func (in *Intake) ReportRefused(task string, why error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, run := range in.runs {
		if run.task == task {
			run.refusals.add(why)
		}
	}
}

// speaker is the run for which an executor speaks, or nil if that has ended.
func (in *Intake) speaker(ctx context.Context, token, task string) (*Run, error) {
	id, err := in.opts.Runs.RunOf(ctx, token, task)
	if err != nil {
		return nil, err
	}
	return in.run(id), nil
}

// refused notes that a report of a run was not taken.
func (in *Intake) refused(run int64, kind string, err error) {
	if r := in.run(run); r != nil {
		r.refuse(kind, err)
	}
}

// encode is a value of the catalog as JSON. What an executor sent in the place of
// JSON, and is none, is said in its place.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"malformed": fmt.Sprint(err)})
	}
	return b
}
