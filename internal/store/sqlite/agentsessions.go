package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// This file reads and writes what the agents of threads tell of their
// sessions.

// agentsessionrowAgentSessionQueries read the rows.
type agentsessionrowAgentSessionQueries struct{ Statements *statement.Cache }

func scan(row statement.Scanner) (s domain.AgentSessionSeen, err error) {
	var (
		seen    int64
		session string
	)
	if err := row.Scan(&s.Thread, &s.Agent, &seen, &session); err != nil {
		return s, err
	}
	s.Seen = time.Unix(0, seen).UTC()
	var r rowjson.AgentSession
	err = json.Unmarshal([]byte(session), &r)
	s.AgentSession = r.Value()
	return s, err
}

// AgentSession is as of [store.ThreadReader].
func (q agentsessionrowAgentSessionQueries) AgentSession(ctx context.Context, thread int64) (domain.AgentSessionSeen, error) {
	return orZero(statement.One(ctx, q.Statements, scan, "SELECT thread, agent, seen, session FROM agent_sessions WHERE thread = ?", thread))
}

// LastAgentSession is as of [store.ThreadReader].
func (q agentsessionrowAgentSessionQueries) LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error) {
	return orZero(statement.One(ctx, q.Statements, scan, "SELECT thread, agent, seen, session FROM agent_sessions WHERE agent = ? ORDER BY seen DESC LIMIT 1", agent))
}

// BackgroundSessions is as of [store.ThreadReader].
func (q agentsessionrowAgentSessionQueries) BackgroundSessions(ctx context.Context) ([]domain.AgentSessionSeen, error) {
	return statement.All(ctx, q.Statements, scan, `SELECT thread, agent, seen, session FROM agent_sessions WHERE session LIKE '%"background":[{%' ORDER BY thread`)
}

// orZero is the zero value for what is not there.
func orZero(s domain.AgentSessionSeen, err error) (domain.AgentSessionSeen, error) {
	if errors.Is(err, store.ErrNotFound) {
		return domain.AgentSessionSeen{}, nil
	}
	return s, err
}

// putAgentSession is the statement that keeps what an agent tells, with its arguments.
func putAgentSession(s domain.AgentSessionSeen) (statement string, arguments []any, err error) {
	text, err := rowjson.Encode(rowjson.AgentSessionOf(s.AgentSession))
	return `INSERT INTO agent_sessions (thread, agent, seen, session) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET agent = excluded.agent, seen = excluded.seen, session = excluded.session`, []any{s.Thread, s.Agent, s.Seen.UnixNano(), text}, err
}
