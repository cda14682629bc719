package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// This file sums up what runs have used.

// usagerowUsageQueries sum up the rows of runs.
type usagerowUsageQueries struct{ Statements *statement.Cache }

// What a run waited for people is taken from its time. Tokens that were read from a
// cache, or written to it, are told beside the others, as agents tell them.
const sums = `count(*),
	coalesce(sum(used ->> '$.input'), 0), coalesce(sum(used ->> '$.output'), 0),
	coalesce(sum(used ->> '$.cache_read'), 0), coalesce(sum(used ->> '$.cache_write'), 0),
	coalesce(sum(used ->> '$.cost_usd'), 0.0),
	coalesce(sum(max(0, CASE WHEN r.started = 0 THEN 0 WHEN r.ended = 0 THEN ? - r.started ELSE r.ended - r.started END
		- coalesce((SELECT sum((CASE WHEN a.decided = 0 THEN ? ELSE a.decided END) - a.created) FROM approvals a WHERE a.run = r.id), 0))), 0)`

const runs = ` FROM (SELECT *, CASE WHEN json_valid(tokens) THEN tokens ELSE '{}' END AS used FROM runs) r JOIN threads t ON t.id = r.thread
	WHERE r.state NOT IN ('draft', 'discarded')`

// chosen are the runs of a filter, and the arguments of [sums] and of that.
func chosen(f domain.UsageFilter, now time.Time) (from string, arguments []any) {
	from, arguments = runs, []any{now.UnixNano(), now.UnixNano()}
	only := func(condition string, value int64) {
		from, arguments = from+" AND "+condition, append(arguments, value)
	}
	if f.Thread != 0 {
		only("r.thread = ?", f.Thread)
	}
	if f.After != 0 {
		only("r.id > ?", f.After)
	}
	if !f.Since.IsZero() {
		only("r.created >= ?", f.Since.UnixNano())
	}
	if !f.Til.IsZero() {
		only("r.created < ?", f.Til.UnixNano())
	}
	return from, arguments
}

func scanUsage(row statement.Scanner, u *domain.Usage, more ...any) error {
	k := &u.Tokens
	return row.Scan(append([]any{&u.Runs, &k.Input, &k.Output, &k.CacheRead, &k.CacheWrite, &k.CostUSD, (*int64)(&u.Time)}, more...)...)
}

// Usage is as of [store.UsageReader].
func (q usagerowUsageQueries) Usage(ctx context.Context, f domain.UsageFilter, now time.Time) (domain.Usage, error) {
	from, arguments := chosen(f, now)
	return statement.One(ctx, q.Statements, func(row statement.Scanner) (u domain.Usage, err error) {
		err = scanUsage(row, &u)
		return u, err
	}, "SELECT "+sums+from, arguments...)
}

// UsageBy is as of [store.UsageReader].
func (q usagerowUsageQueries) UsageBy(ctx context.Context, f domain.UsageFilter, by domain.UsageBy, now time.Time) ([]domain.UsageRow, error) {
	key, title, order := "", "''", "1"
	switch by {
	case domain.UsageByDay:
		key, order = "date(r.created / 1000000000, 'unixepoch', 'localtime')", "9 DESC"
	case domain.UsageByAgent:
		key, order = "r.agent", "6 DESC, 9"
	case domain.UsageByModel:
		key, order = "r.agent_model", "6 DESC, 9"
	case domain.UsageByThread:
		key, title, order = "t.uuid", "t.title", "6 DESC, max(r.id) DESC"
	default:
		return nil, fmt.Errorf("usage cannot be told by %q", by)
	}
	from, arguments := chosen(f, now)
	return statement.All(ctx, q.Statements, func(row statement.Scanner) (u domain.UsageRow, err error) {
		err = scanUsage(row, &u.Usage, &u.Title, &u.Key)
		return u, err
	}, "SELECT "+sums+", "+title+", "+key+from+" GROUP BY "+key+" ORDER BY "+order, arguments...)
}

// LastWith is as of [store.UsageReader].
func (q usagerowUsageQueries) LastWith(ctx context.Context, thread int64, code string) (id int64, err error) {
	return statement.One(ctx, q.Statements, func(row statement.Scanner) (id int64, err error) {
		err = row.Scan(&id)
		return id, err
	},
		"SELECT coalesce(max(id), 0) FROM runs WHERE thread = ? AND error_code = ?", thread, code)
}
