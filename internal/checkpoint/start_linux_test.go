package checkpoint_test

import (
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first checkpoint has tracked files as git has them, and no new ones. It says which files it has as
// others have changed them.
func TestFirstCheckpointBesideOthers(t *testing.T) {
	w := newRepository(t, map[string]string{"tracked": "1", "gone": "1", "same": "1"})
	w.write(map[string]string{"own": "1", "users": "1"})
	w.open()
	start := checkpoint.NewStart(time.Now(), nil)
	start.Begin()
	w.write(map[string]string{"tracked": "2", "gone": "", "own": "2", "new": "1"})
	c, err := w.TakeBefore(w.Context(), "first", start)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"tracked": "1", "gone": "1", "same": "1", "own": "2", "users": "1"}, w.recorded(c))
	assert.Equal(t, []checkpoint.Skipped{{Path: "own", Reason: checkpoint.Changed}}, c.Skipped)
}
