package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// projectOf are the settings of a process of a project of its own, whose user has
// a home of its own.
func projectOf(t *testing.T) *hubprocess.Settings {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root := filepath.Join(dir, "project")
	require.NoError(t, os.Mkdir(root, 0o755))
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, filepath.Join(dir, "home"))
	}
	for _, name := range []string{"DUET_ROOT", "DUET_STATE_HOME"} {
		t.Setenv(name, "")
	}
	return &hubprocess.Settings{Version: "test", Root: root, AnswerWithin: time.Minute}
}

func TestClaim(t *testing.T) {
	s := projectOf(t)
	one, other := claimProject(s), claimProject(s)
	require.NoError(t, one.why())
	assert.False(t, one.held())
	assert.True(t, other.held(), "another has it, if it were only in this process")
	p, lock := other.of()
	assert.Nil(t, lock)
	assert.Equal(t, s.Root, p.Root)

	taken, err := one.take(t.Context())
	require.NoError(t, err)
	assert.False(t, taken, "it is had already")
	_, err = other.take(t.Context())
	require.ErrorAs(t, err, new(*project.HeldError))

	lost := errors.New("lost")
	one.release(lost)
	assert.ErrorIs(t, one.why(), lost)
	assert.False(t, one.held())
	taken, err = other.take(t.Context())
	require.NoError(t, err)
	assert.True(t, taken)
	_, lock = other.of()
	require.NoError(t, lock.Valid())
	assert.True(t, other.exists())

	_, err = one.take(t.Context())
	require.Error(t, err)
	assert.True(t, one.held())
	one.release(nil) // what it has not does no harm
	other.release(nil)
	require.NoError(t, os.RemoveAll(s.Root))
	assert.False(t, other.exists())
}

func TestClaimOfWhatCannotBeUsed(t *testing.T) {
	s := projectOf(t)
	p, err := s.Project()
	require.NoError(t, err)
	state := p.StateDir
	require.NoError(t, os.MkdirAll(filepath.Dir(state), 0o700))
	require.NoError(t, os.WriteFile(state, nil, 0o600))
	c := claimProject(s)
	require.Error(t, c.why())
	assert.False(t, c.held())
	require.NoError(t, os.Remove(state))
	taken, err := c.take(t.Context())
	require.NoError(t, err, "the user has mended it")
	assert.True(t, taken)
	require.NoError(t, c.why())
	c.release(nil)
}
