package editorfiles

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
)

func TestOnlyWhoBeganATaskIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Readers
		read := func(task string) (catalog.ReadEditorFileResult, error) {
			return r.ReadEditorFile(t.Context(), catalog.ReadEditorFileParams{TaskID: task, Path: "/a"})
		}
		_, err := read("mine")
		require.ErrorIs(t, err, errNobody)
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
		_, err = read("another's")
		require.ErrorIs(t, err, errNobody)
		r.Withdraw("mine", "silent")
		_, err = read("mine")
		require.ErrorIs(t, err, errNobody)
	})
}
