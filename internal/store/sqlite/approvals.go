package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// approvalsWhere returns the query for all[domain.Approval].
func approvalsWhere(condition string) string {
	return "SELECT " + columnNames[domain.Approval]("a") + `,
		coalesce((SELECT i.parent_id FROM items i WHERE i.turn = a.turn AND i.kind = 'tool_call' AND i.approval = a.id AND i.parent_id != '' LIMIT 1), '')
		FROM approvals a WHERE ` + condition
}

func (q queries) Approval(ctx context.Context, id string) (domain.Approval, error) {
	a, err := first[domain.Approval](ctx, q.s, approvalsWhere("a.id = ?"), id)
	if errors.Is(err, store.ErrNotFound) {
		return first[domain.Approval](ctx, q.s, approvalsWhere("a.call_id = ?"), id)
	}
	return a, err
}

func (q queries) Approvals(ctx context.Context, ids []string) (map[string]domain.Approval, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	approvals, err := all[domain.Approval](ctx, q.s, approvalsWhere("a.id IN (SELECT value FROM json_each(?))"), string(list))
	found := make(map[string]domain.Approval, len(approvals))
	for _, a := range approvals {
		found[a.ID] = a
	}
	return found, err
}

func (q queries) ApprovalBeginning(ctx context.Context, beginning string) (domain.Approval, error) {
	fit, err := all[domain.Approval](ctx, q.s, approvalsWhere("a.id >= ? AND a.id < ? ORDER BY a.id LIMIT 2"), beginning, beginning+"g")
	if err == nil && len(fit) != 1 {
		err = store.ErrNotFound
	}
	if err != nil {
		return domain.Approval{}, err
	}
	return fit[0], nil
}

func (q queries) PendingApprovals(ctx context.Context, turn int64) ([]domain.Approval, error) {
	if turn != 0 {
		return all[domain.Approval](ctx, q.s, approvalsWhere("a.turn = ? AND a.status = 'pending' ORDER BY a.n"), turn)
	}
	return all[domain.Approval](ctx, q.s, approvalsWhere("a.status = 'pending' ORDER BY a.n"))
}

func (q queries) PendingInSession(ctx context.Context, session int64) ([]domain.Approval, error) {
	return all[domain.Approval](ctx, q.s, approvalsWhere("a.status = 'pending' AND a.session = ? ORDER BY a.n"), session)
}

func (q queries) CarriedDecision(ctx context.Context, session int64, question string) (domain.Approval, error) {
	return first[domain.Approval](ctx, q.s, approvalsWhere("a.session = ? AND a.question = ? AND a.carried = 1 ORDER BY a.n LIMIT 1"), session,
		question)
}

func (q queries) CarriedDecisions(ctx context.Context, session int64) ([]domain.Approval, error) {
	return all[domain.Approval](ctx, q.s, approvalsWhere("a.session = ? AND a.carried = 1 ORDER BY a.n"), session)
}

func (q queries) UntakenAnswers(ctx context.Context, turn int64) ([]domain.Approval, error) {
	return all[domain.Approval](
		ctx, q.s, approvalsWhere("a.awaited_by = ? AND a.awaited_by != 0 AND a.status IN ('approved', 'responded') ORDER BY a.n"), turn,
	)
}

func (q queries) StaleApprovals(ctx context.Context, session int64) ([]domain.Approval, error) {
	return all[domain.Approval](ctx, q.s, approvalsWhere("a.status = 'pending' AND a.stale = 1 AND a.session = ? ORDER BY a.n"), session)
}

func (q queries) OvertakenApproval(ctx context.Context, session int64, question string) (domain.Approval, error) {
	return first[domain.Approval](ctx, q.s, approvalsWhere("a.session = ? AND a.question = ? AND a.decided_by = 'overtaken' AND a.reopens "+
		"!= '' ORDER BY a.n DESC LIMIT 1"), session, question)
}

func (q queries) HasAsked(ctx context.Context, turn int64, tool string) (bool, error) {
	return first[bool](ctx, q.s, "SELECT EXISTS (SELECT 1 FROM approvals WHERE turn = ? AND tool = ?)", turn, tool)
}

func (t *Tx) TakeAnswer(id string, turn int64) error {
	_, err := t.exec("UPDATE approvals SET awaited_by = 0, taken = ? WHERE id = ? AND awaited_by = ? AND status IN ('approved', "+
		"'responded')", nano(t.now), id, turn)
	return err
}

func (t *Tx) InsertApproval(a *domain.Approval) error {
	a.CallID = a.ToolUseID() // if the transaction is retried
	taken, err := first[bool](
		context.Background(), t.s, "SELECT EXISTS (SELECT 1 FROM approvals WHERE call_id = ?) OR EXISTS (SELECT 1 FROM approvals WHERE id = ?)",
		a.CallID, a.CallID,
	)
	if err != nil {
		return err
	}
	if taken {
		a.CallID += a.CallMark()
	}
	_, err = insert(t, "approvals", a, "")
	return err
}

func (t *Tx) UpdateApproval(a domain.Approval) error {
	return update(t, "an approval", "approvals", &a)
}

func (q queries) Rules(ctx context.Context, session int64) ([]domain.Rule, error) {
	return all[domain.Rule](ctx, q.s, "SELECT "+columnNames[domain.Rule]("rules")+" FROM rules WHERE session IN (0, ?) ORDER BY id", session)
}

func (q queries) AllRules(ctx context.Context) ([]domain.Rule, error) {
	return all[domain.Rule](ctx, q.s, "SELECT "+columnNames[domain.Rule]("rules")+" FROM rules ORDER BY id")
}

func (t *Tx) PutRule(r domain.Rule) error {
	r.Created = t.now
	_, err := insert(t, "rules", &r, " ON CONFLICT DO UPDATE SET created = excluded.created")
	return err
}

func (t *Tx) DeleteRule(id int64) error {
	return t.changeOne("a rule", "DELETE FROM rules WHERE id = ?", id)
}
