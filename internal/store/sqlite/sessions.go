package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func (q queries) Session(ctx context.Context, id int64) (domain.Session, error) {
	return first[domain.Session](ctx, q.s, "SELECT "+columnNames[domain.Session]("t")+" FROM sessions t WHERE t.id = ?", id)
}

func (q queries) RecentPaths(ctx context.Context, limit int) ([]domain.RecentPath, error) {
	return all[domain.RecentPath](ctx, q.s, "SELECT cwd, max(active) AS used, count(*) FROM sessions GROUP BY cwd ORDER BY used DESC LIMIT ?",
		limit)
}

func (t *Tx) InsertSession(session *domain.Session) (err error) {
	session.ID, err = insert(t, "sessions", session, "")
	return err
}

func (t *Tx) UpdateSession(session domain.Session) error {
	return update(t, "a session", "sessions", &session)
}

func (t *Tx) PutAgentSession(s domain.AgentSessionSeen) error {
	_, err := insert(t, "agent_sessions", &s,
		" ON CONFLICT DO UPDATE SET agent = excluded.agent, seen = excluded.seen, report = excluded.report")
	return err
}

func (t *Tx) MoveDirectories(from, to string) error {
	sep := string(filepath.Separator)
	from, to = strings.TrimSuffix(from, sep), strings.TrimSuffix(to, sep)
	// Not LIKE: a path may contain its special characters.
	_, err := t.exec("UPDATE sessions SET cwd = ?1 || substr(cwd, length(?2) + 1) WHERE cwd = ?2 OR substr(cwd, 1, length(?2) + 1) = ?2 || "+
		"?3", to, from, sep)
	if err != nil {
		return err
	}
	// A turn that continues after a move may have changed a file under both paths.
	_, err = t.exec("UPDATE OR IGNORE changes SET path = ?1 || substr(path, length(?2) + 1) WHERE substr(path, 1, length(?2) + 1) = ?2 || "+
		"?3", to, from, sep)
	return err
}

func (q queries) AgentSession(ctx context.Context, session int64) (domain.AgentSessionSeen, error) {
	return orZero(first[domain.AgentSessionSeen](
		ctx, q.s, "SELECT "+columnNames[domain.AgentSessionSeen]("s")+" FROM agent_sessions s WHERE session = ?", session,
	))
}

func (q queries) LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error) {
	return orZero(first[domain.AgentSessionSeen](
		ctx, q.s, "SELECT "+columnNames[domain.AgentSessionSeen]("s")+" FROM agent_sessions s WHERE agent = ? ORDER BY seen DESC LIMIT 1", agent,
	))
}

func (q queries) BackgroundSessions(ctx context.Context) ([]domain.AgentSessionSeen, error) {
	return all[domain.AgentSessionSeen](ctx, q.s, "SELECT "+columnNames[domain.AgentSessionSeen]("s")+` FROM agent_sessions s WHERE report LIKE '%"background":[{%' ORDER BY session`)
}

// orZero returns the zero value instead of an error for a missing session.
func orZero(s domain.AgentSessionSeen, err error) (domain.AgentSessionSeen, error) {
	if errors.Is(err, store.ErrNotFound) {
		return domain.AgentSessionSeen{}, nil
	}
	return s, err
}

func (q queries) ForkedUpTo(ctx context.Context, session int64) (int64, error) {
	return first[int64](ctx, q.s, "SELECT coalesce((SELECT t.fork_turn FROM sessions t JOIN turns r ON r.id = t.fork_turn WHERE t.parent = "+
		"? ORDER BY r.place DESC LIMIT 1), 0)", session)
}

// goneTurns selects the turns to delete: ?1 is their session, ?2 the turn before them.
const goneTurns = "(SELECT id FROM turns WHERE session = ?1 AND place > coalesce((SELECT place FROM turns WHERE id = ?2), 0))"

// eraseEvents reduces events to their numbers and times.
const eraseEvents = "UPDATE events SET type = '" + string(domain.EventErased) + "', session = 0, turn = 0, key = NULL, text = NULL, data " +
	"= '{}' WHERE "

func (t *Tx) DeleteTurns(session, after int64) error {
	attached, err := t.attachedOnlyTo(session, after)
	if err != nil {
		return err
	}
	deletions := []string{
		"INSERT INTO items_text (items_text, rowid, content, title, result) SELECT 'delete', id, content, title, result FROM items WHERE " +
			"indexed = 1 AND turn IN " + goneTurns,
		"DELETE FROM items WHERE turn IN " + goneTurns,
		"DELETE FROM approvals WHERE turn IN " + goneTurns,
		"DELETE FROM changes WHERE turn IN " + goneTurns,
		"DELETE FROM change_decisions WHERE turn IN " + goneTurns,
		"DELETE FROM aliases WHERE turn IN " + goneTurns,
		"DELETE FROM gate_loops WHERE turn IN " + goneTurns,
		"DELETE FROM gate_turns WHERE turn IN " + goneTurns,
		"DELETE FROM page_messages WHERE turn IN " + goneTurns,
		eraseEvents + "turn IN " + goneTurns,
	}
	if after == 0 {
		deletions = append(deletions,
			"DELETE FROM aliases WHERE session = ?1 AND ?2 = 0",
			"DELETE FROM rules WHERE session = ?1 AND ?2 = 0",
			"DELETE FROM agent_sessions WHERE session = ?1 AND ?2 = 0",
			eraseEvents+"session = ?1 AND turn = 0 AND ?2 = 0 AND type != '"+string(domain.EventSessionDeleted)+"'",
			"DELETE FROM turns WHERE id IN "+goneTurns,
			"DELETE FROM sessions WHERE id = ?1 AND ?2 = 0")
	} else {
		deletions = append(deletions, "DELETE FROM turns WHERE id IN "+goneTurns)
	}
	for _, sql := range deletions {
		if _, err := t.exec(sql, session, after); err != nil {
			return err
		}
	}
	for id := range attached {
		if _, err := t.exec("DELETE FROM attachments WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// attachmentRef matches an attachment's id in a row; see domain.Block.
var attachmentRef = lazyregexp.New(`"attachment_id":"([^"]+)"`)

// attachedOnlyTo returns the ids of the attachments that only the turns to delete use.
func (t *Tx) attachedOnlyTo(session, after int64) (map[string]bool, error) {
	ids := make(map[string]bool)
	for _, of := range []struct {
		which string
		only  bool
	}{{" IN ", true}, {" NOT IN ", false}} {
		if !of.only && len(ids) == 0 {
			break
		}
		err := t.s.each(background, func(r row) error {
			var text string
			if err := r.Scan(&text); err != nil {
				return err
			}
			for _, found := range attachmentRef().FindAllStringSubmatch(text, -1) {
				if of.only {
					ids[found[1]] = true
				} else {
					delete(ids, found[1])
				}
			}
			return nil
		}, `SELECT data FROM items WHERE data LIKE '%"attachment_id":%' AND turn`+of.which+goneTurns+
			` UNION ALL SELECT content FROM turns WHERE content LIKE '%"attachment_id":%' AND id`+of.which+goneTurns, session, after)
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
