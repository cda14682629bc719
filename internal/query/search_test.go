package query

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func TestDistinctWords(t *testing.T) {
	for words, want := range map[string]string{
		"":                              "",
		" a  b ":                        "a b",
		"a b A a":                       "b a",
		"The the THE th":                "THE th",
		strings.Repeat("same ", 16_000): "same",
	} {
		got, err := distinct(words)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	var many strings.Builder
	for i := range wordsAtMost {
		many.WriteString(strings.Repeat("x", i+1) + " ")
	}
	_, err := distinct(many.String())
	require.NoError(t, err)
	for _, words := range []string{many.String() + "y", strings.Repeat("a.", 65), many.String() + "…"} {
		_, err = distinct(words)
		var refused *domain.Error
		require.ErrorAs(t, err, &refused, words)
		assert.Equal(t, "query: expected at most 64 words, received 65 words", refused.Message)
	}
}

// slowStore is a store whose searches last until they are cancelled.
type slowStore struct {
	store.Store
	running atomic.Int64
}

func (s *slowStore) Search(ctx context.Context, _ string, _, _ int) ([]domain.Hit, error) {
	s.running.Add(1)
	defer s.running.Add(-1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// Searches leave store connections to other reads, and end when cancelled, also while waiting.
func TestSearchesAreBoundedAndCancellable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{}
		q := New(t.Context(), s)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 5)
		for range 5 {
			go func() {
				_, err := q.Search(ctx, "a", 1, 0)
				ended <- err
			}()
			synctest.Wait()
		}
		assert.EqualValues(t, searchesAtOnce, s.running.Load())
		cancel()
		for range 5 {
			assert.ErrorIs(t, <-ended, context.Canceled)
		}
		assert.Zero(t, s.running.Load())
	})
}
