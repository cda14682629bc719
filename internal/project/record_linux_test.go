package project

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestNetworkFileSystemsAreKnown(t *testing.T) {
	for number, name := range map[uint32]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB2_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9P", unix.EXT4_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.BTRFS_SUPER_MAGIC: "",
	} {
		assert.Equal(t, name, networkName(number))
	}
	err := &NetworkError{Path: "/n/state", FileSystem: "NFS"}
	assert.EqualError(t, err, "the state directory /n/state is on a network file system (NFS), where a database can be damaged: set DUET_STATE_HOME to a directory on a local disk")
}

// Machines that share a home directory have separate states.
func TestEachMachineHasItsState(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root := filepath.Join(dir, "p")
	require.NoError(t, os.Mkdir(root, 0o700))
	begin := func(machine string) string {
		s := states{filepath.Join(dir, "projects"), machine}
		state, moved := s.of(root)
		require.Nil(t, moved)
		require.NoError(t, os.MkdirAll(state, 0o700))
		here, err := identityOf(root)
		require.NoError(t, err)
		require.NoError(t, Record{ID: machine, Root: pathText(root), Machine: machine, Identity: here, StateDir: state}.write())
		return state
	}
	first, second := begin("0123456789abcdef"), begin("fedcba9876543210")
	assert.Equal(t, first+"-fedcba98", second)
	assert.Equal(t, first, begin("0123456789abcdef"), "the first one keeps its own")
	assert.Equal(t, second, begin("fedcba9876543210"))
}

// A record that cannot be read at the moment is not replaced by a new one, which would let earlier
// permissions count for a directory that took the project's place.
func TestARecordThatCannotBeReadIsKept(t *testing.T) {
	dir := t.TempDir()
	p := Project{Root: dir, StateDir: dir}
	at := time.Now().Add(-time.Hour).UTC()
	here, err := identityOf(dir)
	require.NoError(t, err)
	before := Record{ID: "before", Root: pathText(dir), Identity: here, ReplacedAt: at, StateDir: dir}
	require.NoError(t, before.write())

	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none)) // no file can be opened
	recorded, recordErr := p.record(time.Now())
	_, replacedErr := p.Replaced()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, recordErr, unix.EMFILE)
	assert.ErrorContains(t, recordErr, recordName)
	assert.Empty(t, recorded.Root, "no hub begins with it")
	require.ErrorIs(t, replacedErr, unix.EMFILE)

	recorded, err = p.record(time.Now())
	require.NoError(t, err)
	assert.Equal(t, []any{before.ID, at}, []any{recorded.ID, recorded.ReplacedAt})
}
