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

func scanAgentSession(row statement.Scanner) (s domain.AgentSessionSeen, err error) {
	var seen int64
	var session string
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
func (q threadQueries) AgentSession(ctx context.Context, thread int64) (domain.AgentSessionSeen, error) {
	return orZero(statement.One(ctx, q.s, scanAgentSession, "SELECT thread, agent, seen, session FROM agent_sessions WHERE thread = ?", thread))
}

// LastAgentSession is as of [store.ThreadReader].
func (q threadQueries) LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error) {
	return orZero(statement.One(ctx, q.s, scanAgentSession, "SELECT thread, agent, seen, session FROM agent_sessions WHERE agent = ? ORDER BY seen DESC LIMIT 1", agent))
}

// orZero is the zero value for what is not there.
func orZero(s domain.AgentSessionSeen, err error) (domain.AgentSessionSeen, error) {
	if errors.Is(err, store.ErrNotFound) {
		return domain.AgentSessionSeen{}, nil
	}
	return s, err
}

// PutAgentSession is as of [store.ConversationWriter].
func (t *Tx) PutAgentSession(s domain.AgentSessionSeen) error {
	text, err := rowjson.Encode(rowjson.AgentSessionOf(s.AgentSession))
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO agent_sessions (thread, agent, seen, session) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET agent = excluded.agent, seen = excluded.seen, session = excluded.session`, s.Thread, s.Agent, nano(s.Seen), text)
	return err
}
