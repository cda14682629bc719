package store

import (
	"context"
	"errors"
)

// ErrAmbiguous is returned for an id that several rows have.
var ErrAmbiguous = errors.New("several have this id")

const approvalColumns = `a.id, a.thread, a.run, a.type, a.call_id, a.tool, a.input, a.title, a.subject, a.tool_kind, a.paths, a.diffs, a.options, a.channel,
	a.status, a.stale, a.carried, a.question, a.created, a.deadline, a.decided, a.decided_by, a.comment, a.response, a.option, a.updated_input, a.input_fixed, a.name_by_kind`

func scanApproval(row scanner) (Approval, error) {
	var (
		a                                     Approval
		input, paths, diffs, options, channel string
		updated                               string
		created, deadline, decided            int64
	)
	err := row.Scan(&a.ID, &a.Thread, &a.Run, &a.Type, &a.CallID, &a.Tool, &input, &a.Title, &a.Subject, &a.ToolKind, &paths, &diffs, &options, &channel,
		&a.Status, &a.Stale, &a.Carried, &a.Question, &created, &deadline, &decided, &a.DecidedBy, &a.Comment, &a.Response, &a.Option, &updated, &a.InputFixed, &a.NameByKind)
	a.Input, a.Diffs, a.Options, a.Channel, a.UpdatedInput = raw(input), raw(diffs), raw(options), raw(channel), raw(updated)
	a.Paths = fromJSON[[]string](paths)
	a.Created, a.Deadline, a.Decided = fromNano(created), fromNano(deadline), fromNano(decided)
	return a, err
}

// Approval finds an approval by its id, or by its CallID. Databases from before
// that was unique have several for one: then the only pending one is meant, or
// it is ErrAmbiguous.
func (q queries) Approval(ctx context.Context, id string) (Approval, error) {
	a, err := one(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.id = ?", id)
	if err != ErrNotFound {
		return a, err
	}
	fit, err := all(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.call_id = ? ORDER BY a.status = 'pending' DESC, a.n DESC LIMIT 2", id)
	switch {
	case err != nil:
		return Approval{}, err
	case len(fit) == 0:
		return Approval{}, ErrNotFound
	case len(fit) == 2 && (fit[0].Status == ApprovalPending) == (fit[1].Status == ApprovalPending):
		return Approval{}, ErrAmbiguous
	}
	return fit[0], nil
}

// ApprovalBeginning finds the one approval whose id begins like that.
func (q queries) ApprovalBeginning(ctx context.Context, beginning string) (Approval, error) {
	fit, err := all(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.id >= ? AND a.id < ? ORDER BY a.id LIMIT 2", beginning, beginning+"g")
	if err == nil && len(fit) != 1 {
		err = ErrNotFound
	}
	if err != nil {
		return Approval{}, err
	}
	return fit[0], nil
}

// PendingApprovals lists what waits for a human, the oldest first: of one run, or of
// all where run is 0.
func (q queries) PendingApprovals(ctx context.Context, run int64) ([]Approval, error) {
	if run != 0 {
		return all(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.run = ? AND a.status = 'pending' ORDER BY a.n", run)
	}
	return all(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.status = 'pending' ORDER BY a.n")
}

// CarriedDecision is a decision of a thread, made for a dead process, that
// answers the same question.
func (q queries) CarriedDecision(ctx context.Context, thread int64, question string) (Approval, error) {
	return one(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.thread = ? AND a.question = ? AND a.carried = 1 ORDER BY a.n LIMIT 1", thread, question)
}

// DropCarried forgets the decisions that were made for dead processes of a
// thread, unless a run before this one may ask for them still.
func (t *Tx) DropCarried(thread, run int64) error {
	_, err := t.exec(`UPDATE approvals SET carried = 0 WHERE thread = ? AND carried = 1 AND NOT EXISTS (
		SELECT 1 FROM runs o WHERE o.thread = ? AND o.id < ? AND o.state IN ('queued', 'starting', 'running', 'waiting_input', 'interrupting'))`, thread, thread, run)
	return err
}

// InsertApproval adds an approval. Its CallID is changed if another one has it:
// old clients know an approval by nothing else.
func (t *Tx) InsertApproval(a *Approval) error {
	a.CallID = a.ToolUseID() // should the transaction be tried again
	taken, err := one(context.Background(), t.s, scanValue[bool], "SELECT EXISTS (SELECT 1 FROM approvals WHERE call_id = ?) OR EXISTS (SELECT 1 FROM approvals WHERE id = ?)", a.CallID, a.CallID)
	if err != nil {
		return err
	}
	if taken {
		a.CallID += a.callMark()
	}
	_, err = t.exec(`INSERT INTO approvals (id, thread, run, type, call_id, tool, input, title, subject, tool_kind, paths, diffs, options, channel,
			status, stale, carried, question, created, deadline, decided, decided_by, comment, response, option, updated_input, input_fixed, name_by_kind)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.Thread, a.Run, a.Type, a.CallID, a.Tool, string(a.Input), a.Title, a.Subject, a.ToolKind, asJSON(a.Paths, len(a.Paths) == 0),
		string(a.Diffs), string(a.Options), string(a.Channel), a.Status, a.Stale, a.Carried, a.Question, nano(a.Created), nano(a.Deadline),
		nano(a.Decided), a.DecidedBy, a.Comment, a.Response, a.Option, string(a.UpdatedInput), a.InputFixed, a.NameByKind)
	return err
}

// UpdateApproval writes everything of an approval that can change.
func (t *Tx) UpdateApproval(a Approval) error {
	return t.changeOne("an approval", `UPDATE approvals SET status = ?, stale = ?, carried = ?, decided = ?, decided_by = ?, comment = ?, response = ?, option = ?, updated_input = ? WHERE id = ?`,
		a.Status, a.Stale, a.Carried, nano(a.Decided), a.DecidedBy, a.Comment, a.Response, a.Option, string(a.UpdatedInput), a.ID)
}
