package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

const approvalColumns = `a.id, a.thread, a.run, a.type, a.call_id, a.tool, a.input, a.title, a.subject, a.tool_kind, a.paths, a.diffs, a.options, a.channel,
	a.status, a.stale, a.carried, a.question, a.created, a.deadline, a.decided, a.decided_by, a.comment, a.response, a.option, a.updated_input, a.input_fixed,
	a.name_by_kind, a.awaited_by, a.taken, a.reopens, a.reopened, a.reopened_as, a.plan, a.explanation, a.elicitation, a.content, a.details,
	coalesce((SELECT i.parent_id FROM items i WHERE i.run = a.run AND i.kind = 'tool_call' AND i.approval = a.id AND i.parent_id != '' LIMIT 1), '')`

func scanApproval(row statement.Scanner) (domain.Approval, error) {
	var (
		a                              domain.Approval
		input, diffs, options, channel statement.JSON
		updated, elicitation, content  statement.JSON
		paths                          string
		created, deadline              int64
		decided, taken                 int64
	)
	err := row.Scan(&a.ID, &a.Thread, &a.Run, &a.Type, &a.CallID, &a.Tool, &input, &a.Title, &a.Subject, &a.ToolKind, &paths, &diffs, &options, &channel,
		&a.Status, &a.Stale, &a.Carried, &a.Question, &created, &deadline, &decided, &a.DecidedBy, &a.Comment, &a.Response, &a.Option, &updated, &a.InputFixed,
		&a.NameByKind, &a.AwaitedBy, &taken, &a.Reopens, &a.Reopened, &a.ReopenedAs, &a.Plan, &a.Explanation, &elicitation, &content, &a.Details, &a.ParentID)
	a.Input, a.Channel, a.UpdatedInput, a.Content = input.Raw(), channel.Raw(), updated.Raw(), content.Raw()
	a.Elicitation = fromJSON[*rowjson.Elicitation](string(elicitation.Intact())).Value()
	a.Paths, a.Diffs, a.Options = fromJSON[[]string](paths), rowjson.Diffs(fromJSON[[]rowjson.Diff](string(diffs.Intact()))), fromJSON[rowjson.Options](string(options.Intact()))
	a.Created, a.Deadline, a.Decided, a.Taken = fromNano(created), fromNano(deadline), fromNano(decided), fromNano(taken)
	return a, err
}

// Approval finds an approval by its id, or by its CallID. Databases from before
// that was unique have several for one: then the only pending one is meant, or
// it is store.ErrAmbiguous.
func (q approvalQueries) Approval(ctx context.Context, id string) (domain.Approval, error) {
	a, err := statement.One(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.id = ?", id)
	if err != store.ErrNotFound {
		return a, err
	}
	fit, err := statement.All(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.call_id = ? ORDER BY a.status = 'pending' DESC, a.n DESC LIMIT 2", id)
	switch {
	case err != nil:
		return domain.Approval{}, err
	case len(fit) == 0:
		return domain.Approval{}, store.ErrNotFound
	case len(fit) == 2 && (fit[0].Status == domain.ApprovalPending) == (fit[1].Status == domain.ApprovalPending):
		return domain.Approval{}, store.ErrAmbiguous
	}
	return fit[0], nil
}

// Approvals finds approvals by their ids.
func (q approvalQueries) Approvals(ctx context.Context, ids []string) (map[string]domain.Approval, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := statement.All(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.id IN (SELECT value FROM json_each(?))", asJSON(ids, false))
	found := make(map[string]domain.Approval, len(list))
	for _, a := range list {
		found[a.ID] = a
	}
	return found, err
}

// ApprovalBeginning finds the one approval whose id begins like that.
func (q approvalQueries) ApprovalBeginning(ctx context.Context, beginning string) (domain.Approval, error) {
	fit, err := statement.All(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.id >= ? AND a.id < ? ORDER BY a.id LIMIT 2", beginning, beginning+"g")
	if err == nil && len(fit) != 1 {
		err = store.ErrNotFound
	}
	if err != nil {
		return domain.Approval{}, err
	}
	return fit[0], nil
}

// PendingApprovals lists what waits for a human, the oldest first: of one run, or of
// all where run is 0.
func (q approvalQueries) PendingApprovals(ctx context.Context, run int64) ([]domain.Approval, error) {
	if run != 0 {
		return statement.All(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.run = ? AND a.status = 'pending' ORDER BY a.n", run)
	}
	return statement.All(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.status = 'pending' ORDER BY a.n")
}

// PendingInThread lists what waits for a human in a thread, the oldest first.
func (q approvalQueries) PendingInThread(ctx context.Context, thread int64) ([]domain.Approval, error) {
	return statement.All(ctx, q.s, scanApproval, pendingInThread, thread)
}

const (
	overtakenApproval = "SELECT " + approvalColumns + " FROM approvals a WHERE a.thread = ? AND a.question = ? AND a.decided_by = 'overtaken' AND a.reopens != '' ORDER BY a.n DESC LIMIT 1"

	pendingInThread = "SELECT " + approvalColumns + " FROM approvals a WHERE a.status = 'pending' AND a.thread = ? ORDER BY a.n"
	staleApprovals  = "SELECT " + approvalColumns + " FROM approvals a WHERE a.status = 'pending' AND a.stale = 1 AND a.thread = ? ORDER BY a.n"
)

// CarriedDecision is a decision of a thread, made for a dead process, that
// answers the same question.
func (q approvalQueries) CarriedDecision(ctx context.Context, thread int64, question string) (domain.Approval, error) {
	return statement.One(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.thread = ? AND a.question = ? AND a.carried = 1 ORDER BY a.n LIMIT 1", thread, question)
}

// CarriedDecisions lists the decisions of a thread that were made for dead
// processes and have answered nothing yet, the oldest first.
func (q approvalQueries) CarriedDecisions(ctx context.Context, thread int64) ([]domain.Approval, error) {
	return statement.All(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.thread = ? AND a.carried = 1 ORDER BY a.n", thread)
}

// UntakenAnswers lists the answers that a run's agent was given and is not
// known to have taken, the oldest first.
func (q approvalQueries) UntakenAnswers(ctx context.Context, run int64) ([]domain.Approval, error) {
	return statement.All(ctx, q.s, scanApproval, "SELECT "+approvalColumns+" FROM approvals a WHERE a.awaited_by = ? AND a.awaited_by != 0 AND a.status IN ('approved', 'responded') ORDER BY a.n", run)
}

// StaleApprovals lists what dead processes of a thread have asked and waits
// for a human, the oldest first.
func (q approvalQueries) StaleApprovals(ctx context.Context, thread int64) ([]domain.Approval, error) {
	return statement.All(ctx, q.s, scanApproval, staleApprovals, thread)
}

// OvertakenApproval is the last question of a thread that asked again what was
// answered, and that the thread has left behind.
func (q approvalQueries) OvertakenApproval(ctx context.Context, thread int64, question string) (domain.Approval, error) {
	return statement.One(ctx, q.s, scanApproval, overtakenApproval, thread, question)
}

// HasAsked reports whether a run has asked for a tool, whoever answered.
func (q approvalQueries) HasAsked(ctx context.Context, run int64, tool string) (bool, error) {
	return statement.One(ctx, q.s, statement.Value[bool], "SELECT EXISTS (SELECT 1 FROM approvals WHERE run = ? AND tool = ?)", run, tool)
}

// TakeAnswer notes that the agent of a run has taken the answer to an
// approval. An answer that this run was not given, or that was taken, is left
// alone.
func (t *Tx) TakeAnswer(id string, run int64) error {
	_, err := t.exec("UPDATE approvals SET awaited_by = 0, taken = ? WHERE id = ? AND awaited_by = ? AND status IN ('approved', 'responded')", nano(t.now), id, run)
	return err
}

// InsertApproval adds an approval. Its CallID is changed if another one has it:
// old clients know an approval by nothing else.
func (t *Tx) InsertApproval(a *domain.Approval) error {
	a.CallID = a.ToolUseID() // should the transaction be tried again
	taken, err := statement.One(context.Background(), t.s, statement.Value[bool], "SELECT EXISTS (SELECT 1 FROM approvals WHERE call_id = ?) OR EXISTS (SELECT 1 FROM approvals WHERE id = ?)", a.CallID, a.CallID)
	if err != nil {
		return err
	}
	if taken {
		a.CallID += a.CallMark()
	}
	_, err = t.exec(`INSERT INTO approvals (id, thread, run, type, call_id, tool, input, title, subject, tool_kind, paths, diffs, options, channel,
			status, stale, carried, question, created, deadline, decided, decided_by, comment, response, option, updated_input, input_fixed,
			name_by_kind, awaited_by, reopens, reopened, plan, explanation, elicitation, content, details)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.Thread, a.Run, a.Type, a.CallID, a.Tool, string(a.Input), a.Title, a.Subject, a.ToolKind, asJSON(a.Paths, len(a.Paths) == 0),
		asJSON(rowjson.DiffsOf(a.Diffs), a.Diffs == nil), asJSON(rowjson.Options(a.Options), a.Options == nil), string(a.Channel), a.Status, a.Stale, a.Carried, a.Question, nano(a.Created), nano(a.Deadline),
		nano(a.Decided), a.DecidedBy, a.Comment, a.Response, a.Option, string(a.UpdatedInput), a.InputFixed,
		a.NameByKind, a.AwaitedBy, a.Reopens, a.Reopened, a.Plan, a.Explanation, asJSON(rowjson.ElicitationOf(a.Elicitation), a.Elicitation.Mode == ""), string(a.Content), a.Details)
	return err
}

// UpdateApproval writes everything of an approval that can change.
func (t *Tx) UpdateApproval(a domain.Approval) error {
	return t.changeOne("an approval", `UPDATE approvals SET status = ?, stale = ?, carried = ?, decided = ?, decided_by = ?, comment = ?, response = ?, option = ?, updated_input = ?,
			awaited_by = ?, taken = ?, reopened_as = ?, explanation = ?, content = ? WHERE id = ?`,
		a.Status, a.Stale, a.Carried, nano(a.Decided), a.DecidedBy, a.Comment, a.Response, a.Option, string(a.UpdatedInput),
		a.AwaitedBy, nano(a.Taken), a.ReopenedAs, a.Explanation, string(a.Content), a.ID)
}

// Rules lists the rules of a thread and of the whole project, the oldest first.
func (q approvalQueries) Rules(ctx context.Context, thread int64) ([]domain.Rule, error) {
	return statement.All(ctx, q.s, scanRule, "SELECT "+ruleColumns+" FROM rules WHERE thread IN (0, ?) ORDER BY id", thread)
}

// AllRules lists the rules of all threads and of the project, the oldest first.
func (q approvalQueries) AllRules(ctx context.Context) ([]domain.Rule, error) {
	return statement.All(ctx, q.s, scanRule, "SELECT "+ruleColumns+" FROM rules ORDER BY id")
}

const ruleColumns = "id, thread, effect, tool, command, pattern, path, created"

func scanRule(row statement.Scanner) (r domain.Rule, err error) {
	var created int64
	err = row.Scan(&r.ID, &r.Thread, &r.Effect, &r.Tool, &r.Command, &r.Pattern, &r.Path, &created)
	r.Created = fromNano(created)
	return r, err
}

// PutRule adds a rule, or notes that it was made again.
func (t *Tx) PutRule(r domain.Rule) error {
	_, err := t.exec("INSERT INTO rules (thread, effect, tool, command, pattern, path, created) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET created = excluded.created",
		r.Thread, r.Effect, r.Tool, r.Command, r.Pattern, r.Path, nano(t.now))
	return err
}

// DeleteRule takes a rule away. The error is store.ErrNotFound if there is none.
func (t *Tx) DeleteRule(id int64) error {
	return t.changeOne("a rule", "DELETE FROM rules WHERE id = ?", id)
}
