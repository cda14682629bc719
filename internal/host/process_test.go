package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
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
	for _, name := range []string{"DUET_HUB", "DUET_ROOT", "DUET_STATE_HOME"} {
		t.Setenv(name, "")
	}
	return &hubprocess.Settings{Version: "test", Root: root, AnswerWithin: time.Minute}
}

// An editor and the process that it started, which are both here.
type editor struct {
	*client.Client
	t       *testing.T
	process *editorProcess
	signal  context.CancelFunc
	ended   chan struct{}
}

func logOf(t *testing.T) *logging.Log {
	t.Helper()
	log := logging.Open(logging.Options{Level: slog.LevelDebug, Path: filepath.Join(t.TempDir(), "log")})
	t.Cleanup(func() { log.Close(time.Second) })
	return log
}

func startEditor(t *testing.T, s *hubprocess.Settings) *editor {
	t.Helper()
	log := logOf(t)
	near, far := server.Pipe()
	e := &editor{t: t, process: newEditorProcess(s, log), ended: make(chan struct{})}
	var ctx context.Context
	ctx, e.signal = context.WithCancel(context.Background())
	go func() {
		defer close(e.ended)
		assert.NoError(t, e.process.run(ctx, far))
	}()
	var err error
	e.Client, err = client.Dial(t.Context(), client.OverTransport(near, frame.LSP), client.WithReconnect(false), client.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() {
		e.signal()
		e.leave()
		<-e.ended
	})
	return e
}

func (e *editor) leave() { e.Close() }

// ask asks for something that needs the hub.
func (e *editor) ask() error {
	return e.Call(e.t.Context(), "task.stats", nil, new(json.RawMessage))
}

// asks asks until there is an answer: a request that was under way when a hub
// ended has none.
func (e *editor) asks() {
	e.t.Helper()
	require.Eventually(e.t, func() bool { return e.ask() == nil }, time.Minute, 10*time.Millisecond)
}

func (e *editor) isHub() bool { return e.process.hub.Load() != nil }

// status is the number of clients and the kind of the hub that serves an editor.
func (e *editor) status() (clients int, kind string) {
	e.t.Helper()
	var status struct {
		Hub        string
		Subsystems struct{ IPC struct{ Clients int } }
	}
	require.NoError(e.t, e.Call(e.t.Context(), "daemon.status", nil, &status))
	return status.Subsystems.IPC.Clients, status.Hub
}

// requireEnd waits for the end of the process.
func (e *editor) requireEnd() {
	e.t.Helper()
	select {
	case <-e.ended:
	case <-time.After(time.Minute):
		require.Fail(e.t, "the process goes on")
	}
}

// requireUnclaimed requires that a process that has ended has let go of the project.
func requireUnclaimed(t *testing.T, s *hubprocess.Settings) {
	t.Helper()
	p, err := s.Project()
	require.NoError(t, err)
	require.True(t, p.Unlocked())
}

// The process that comes first is the hub, the next one joins it, and takes its
// place when it has gone.
func TestNextProcessTakesOver(t *testing.T) {
	s := projectOf(t)
	first := startEditor(t, s)
	require.NoError(t, first.ask())
	require.True(t, first.isHub())
	second, third := startEditor(t, s), startEditor(t, s)
	require.NoError(t, second.ask())
	require.NoError(t, third.ask())
	require.False(t, second.isHub() || third.isHub())
	clients, kind := second.status()
	assert.Equal(t, 3, clients)
	assert.Equal(t, config.HubEmbedded, kind)

	first.signal()
	first.requireEnd()
	second.asks()
	third.asks()
	require.NotEqual(t, second.isHub(), third.isHub(), "one of them")
	next, last := second, third
	if third.isHub() {
		next, last = third, second
	}
	next.signal()
	next.requireEnd()
	last.asks()
	require.True(t, last.isHub())
	last.leave()
	last.requireEnd()
	requireUnclaimed(t, s)
}

// The hub stays for others when its editor has gone, and ends with the last.
func TestHubStaysForOthers(t *testing.T) {
	s := projectOf(t)
	hub := startEditor(t, s)
	require.NoError(t, hub.ask())
	require.False(t, hub.process.hungUp(), "a SIGHUP ends a process that nobody else needs")
	other := startEditor(t, s)
	require.NoError(t, other.ask())
	require.True(t, hub.process.hungUp(), "and not one that others need")
	require.Eventually(t, func() bool { return hub.ask() != nil }, time.Minute, time.Millisecond, "the editor is still served")
	clients, _ := other.status()
	assert.Equal(t, 1, clients)
	require.False(t, other.isHub())
	other.leave()
	other.requireEnd()
	hub.requireEnd()
	requireUnclaimed(t, s)
}

// A hub that is stopped is not replaced before somebody needs one.
func TestStoppedHubIsReplacedWhenItIsNeeded(t *testing.T) {
	s := projectOf(t)
	hub := startEditor(t, s)
	require.NoError(t, hub.ask())
	other := startEditor(t, s)
	require.NoError(t, other.ask())
	require.NoError(t, other.Call(t.Context(), "daemon.stop", map[string]bool{"force": true}, nil))
	hub.requireEnd()
	require.Eventually(t, func() bool { // one that was sent to the hub that ended has no answer
		return other.Call(t.Context(), "ping", nil, nil) == nil
	}, time.Minute, time.Millisecond, "which needs none")
	require.False(t, other.isHub())
	other.asks()
	require.True(t, other.isHub())
}

// What others have claimed and do not serve is waited for, not taken.
func TestLockThatIsHeldIsWaitedFor(t *testing.T) {
	s := projectOf(t)
	held := claimProject(s)
	require.NoError(t, held.why())
	e := startEditor(t, s)
	require.NoError(t, e.Call(t.Context(), "ping", nil, nil))
	answered := make(chan error, 1)
	go func() { answered <- e.ask() }()
	require.False(t, e.isHub())
	require.Empty(t, answered)
	held.release(nil)
	require.NoError(t, <-answered)
	require.True(t, e.isHub())
}

// A hub whose files are removed is a hub again a moment later.
func TestHubWhoseFilesAreRemoved(t *testing.T) {
	s := projectOf(t)
	e := startEditor(t, s)
	require.NoError(t, e.ask())
	remove := func(path string) { // something may be made in there meanwhile
		require.Eventually(t, func() bool { return os.RemoveAll(path) == nil }, time.Minute, time.Millisecond)
	}
	p, err := s.Project()
	require.NoError(t, err)
	remove(p.StateDir)
	require.Eventually(t, func() bool {
		err := e.ask()
		return err != nil && assert.ErrorContains(t, err, "the project's directory or its state was removed, moved or replaced while duet-rpc used it")
	}, time.Minute, time.Millisecond)
	e.asks()
	require.DirExists(t, p.StateDir)
	remove(s.Root)
	e.requireEnd()
	require.NoDirExists(t, s.Root)
}

// A client that has no editor is the hub itself where there is none.
func TestConnect(t *testing.T) {
	s := projectOf(t)
	log := logOf(t)
	first, err := Connect(t.Context(), s, log)
	require.NoError(t, err)
	second, err := Connect(t.Context(), s, log)
	require.NoError(t, err)
	require.NotNil(t, first.host)
	require.Nil(t, second.host)
	require.NoError(t, second.Call(t.Context(), "task.stats", nil, nil))
	second.Close(nil, nil)
	first.Close(nil, func(string) { assert.Fail(t, "nobody is at work") })
	requireUnclaimed(t, s)
}
