package sqlite

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Queries at each change of a turn scan no ended turns.
func TestEndedTurnsAreNotScanned(t *testing.T) {
	s := openNew(t)
	_, err := s.HasUnfinished(ctx, 1, 2)
	require.NoError(t, err)
	_, err = s.Startable(ctx, 3)
	require.NoError(t, err)
	_, err = s.UnfinishedTurns(ctx, 1)
	require.NoError(t, err)
	asked := askedOf(s)
	require.Len(t, asked, 3)
	for _, query := range asked {
		assert.Contains(t, planOf(t, s, query), "turns_unfinished", query)
	}
}

// The query for later failures scans no failures before a turn.
func TestOlderFailuresAreNotScanned(t *testing.T) {
	s := openNew(t)
	_, err := s.TurnsFailedWith(ctx, domain.CodeStoreFull, 7)
	require.NoError(t, err)
	asked := askedOf(s)
	require.Len(t, asked, 1)
	plan := planOf(t, s, asked[0])
	assert.Contains(t, plan, "turns_listed (state=? AND id>?)")
	assert.NotContains(t, plan, "TEMP B-TREE", "they come in order")
}

// Queries for a session's open questions scan no questions of other sessions.
func TestQuestionsOfOtherSessionsAreNotScanned(t *testing.T) {
	s := openNew(t)
	_, err := s.PendingInSession(ctx, 1)
	require.NoError(t, err)
	_, err = s.StaleApprovals(ctx, 1)
	require.NoError(t, err)
	asked := askedOf(s)
	require.Len(t, asked, 2)
	for _, query := range asked {
		plan := planOf(t, s, query)
		assert.Contains(t, plan, "approvals_waiting (session=?)", query)
		assert.NotContains(t, plan, "TEMP B-TREE", "they come in order: %s", query)
	}
}

// askedOf returns the queries of the test. The index of the search is filled in the background, by
// queries of its own.
func askedOf(s *Store) []string {
	return slices.DeleteFunc(s.queries.s.queryTexts(), func(query string) bool { return strings.Contains(query, "WHERE indexed ") })
}

// planOf returns SQLite's plan for a query.
func planOf(t *testing.T, s *Store, query string) string {
	t.Helper()
	var plan []string
	err := s.queries.s.each(ctx, func(r row) error {
		var id, parent, unused int64
		var line string
		err := r.Scan(&id, &parent, &unused, &line)
		plan = append(plan, line)
		return err
	}, "EXPLAIN QUERY PLAN "+query, make([]any, strings.Count(query, "?"))...)
	require.NoError(t, err)
	return strings.Join(plan, "\n")
}
