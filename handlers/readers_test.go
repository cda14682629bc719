package handlers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func TestOnlyWhoBeganATaskIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Readers
		read := func(task string) (catalog.ReadEditorFileResult, error) {
			return r.ReadEditorFile(t.Context(), catalog.ReadEditorFileParams{TaskID: task, Path: "/a"})
		}
		nobody := func(task string) {
			got, err := read(task)
			require.NoError(t, err)
			require.Zero(t, got)
		}
		nobody("mine")
		r.Offer("mine", func(_ context.Context, path string) (string, error) { return "text of " + path, nil })
		r.Offer("missing", func(context.Context, string) (string, error) { return "", errors.New("no such buffer") })
		r.Offer("silent", func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		got, err := read("mine")
		require.NoError(t, err)
		assert.Equal(t, catalog.ReadEditorFileResult{Found: true, Text: "text of /a"}, got)
		got, err = read("missing")
		require.NoError(t, err)
		assert.False(t, got.Found)
		began := time.Now()
		got, err = read("silent")
		require.NoError(t, err)
		assert.False(t, got.Found)
		assert.Equal(t, answerWithin, time.Since(began), "an agent does not wait for ever")
		nobody("another's")
		r.Withdraw("mine", "silent")
		nobody("mine")
	})
}

// An agent may be quicker than the answer to who has begun its task.
func TestAReadWaitsForTheOfferOfATaskThatIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Readers
		done := r.Starting()
		other := r.Starting()
		got := make(chan catalog.ReadEditorFileResult)
		go func() {
			result, _ := r.ReadEditorFile(t.Context(), catalog.ReadEditorFileParams{TaskID: "mine", Path: "/a"})
			got <- result
		}()
		synctest.Wait()
		other()
		synctest.Wait()
		r.Offer("mine", func(context.Context, string) (string, error) { return "not saved", nil })
		done()
		assert.Equal(t, catalog.ReadEditorFileResult{Found: true, Text: "not saved"}, <-got)
	})
}
