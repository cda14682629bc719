package handlers_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
	"github.com/duet-rpc/duet-rpc/server"
)

// projectsHere makes a state home of the test, and the server of a daemon whose project has the root own.
func projectsHere(t *testing.T) (w *world, srv *server.Server, own string) {
	t.Helper()
	dir := must(filepath.EvalSymlinks(t.TempDir()))(t)
	t.Setenv(project.StateVariable, filepath.Join(dir, "state"))
	w, own = newWorld(t, quick), filepath.Join(dir, "own")
	p := newProject(t, own)
	workspaces := handlers.NewWorkspaces()
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{
		LogLevel: new(slog.LevelVar), Now: time.Now, Workspaces: workspaces, Trust: func() error { return nil },
	})
	handlers.RegisterDomain(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) { return w.hub, nil }, Clients: func() int { return 0 }, Workspaces: workspaces,
		Projects: host.Projects{Settings: &hubprocess.Settings{AnswerWithin: patience}, Own: p, Hub: w.hub},
	})
	return w, server.New(reg, server.Options{}), own
}

// newProject makes a directory, and begins and ends a hub there.
func newProject(t *testing.T, root string) project.Project {
	t.Helper()
	require.NoError(t, os.MkdirAll(root, 0o700))
	p := must(project.Owners{}.Find(root))(t)
	lock := must(p.Claim(t.Context()))(t)
	require.NoError(t, lock.Unrecorded)
	require.NoError(t, lock.Close())
	return p
}

// rooted returns the parameters of a request for the project at root, and moving those of a move.
func rooted(root string) string { return `{"root":` + strconv.Quote(root) + `}` }

func moving(from, to string) string {
	return `{"from":` + strconv.Quote(from) + `,"to":` + strconv.Quote(to) + `}`
}

// A client lists the projects with their sizes and sessions. The sessions of the daemon's own project are
// those of its hub.
func TestProjectsAreListed(t *testing.T) {
	w, srv, own := projectsHere(t)
	c := connectTo(t, srv, frame.LSP)
	w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"one"}`).ID)
	other := newProject(t, filepath.Join(filepath.Dir(own), "other"))
	require.NoError(t, os.WriteFile(filepath.Join(other.StateDir, "log"), make([]byte, 5000), 0o600))
	broken := newProject(t, filepath.Join(filepath.Dir(own), "broken"))
	require.NoError(t, os.WriteFile(broken.Database(), []byte("no database"), 0o600))
	newProject(t, filepath.Join(filepath.Dir(own), "gone"))
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(own), "gone")))
	for n, name := range []string{"gone", "broken", "own", "other"} { // the last one is used last
		at := time.Now().Add(time.Duration(n-10) * time.Hour)
		state := must(project.Known(os.Getenv, filepath.Join(filepath.Dir(own), name)))(t).StateDir
		require.NoError(t, os.Chtimes(filepath.Join(state, "project.json"), at, at))
	}

	list := answer[protocol.ProjectList](c, "project.list", "").Projects
	require.Len(t, list, 4)
	for n, name := range []string{"other", "own", "broken", "gone"} {
		p := list[n]
		assert.Equal(t, filepath.Join(filepath.Dir(own), name), p.Root)
		assert.Equal(t, []any{name == "gone", false, name == "broken"}, []any{p.Missing, p.Replaced, p.Error != ""}, name)
		assert.Equal(t, must(project.Known(os.Getenv, p.Root))(t).StateDir, p.StateDir)
		assert.Equal(t, time.UTC, p.LastUsed.Location())
		assert.Positive(t, p.Bytes)
	}
	assert.Greater(t, list[0].Bytes, int64(5000))
	assert.Equal(t, []int{0, 1, 0, 0}, []int{list[0].Sessions, list[1].Sessions, list[2].Sessions, list[3].Sessions})
	assert.Contains(t, list[2].Error, "is damaged")
}

// What the user allowed before the directory was replaced counts again, in the daemon's own project and in
// another one.
func TestAReplacedProjectIsKept(t *testing.T) {
	_, srv, own := projectsHere(t)
	c := connectTo(t, srv, frame.LSP)
	other := filepath.Join(filepath.Dir(own), "other")
	newProject(t, other)
	for root, params := range map[string]string{own: "", other: rooted(other)} {
		assert.Equal(t, protocol.KeptProject{Root: root}, answer[protocol.KeptProject](c, "project.keep", params))
		require.NoError(t, os.Rename(root, root+"-before")) // so that the new one has another inode
		p := newProject(t, root)
		assert.False(t, must(p.Replaced())(t).IsZero())
		assert.True(t, replaced(t, c, root))
		assert.Equal(t, protocol.KeptProject{Root: root, Kept: true}, answer[protocol.KeptProject](c, "project.keep", params))
		assert.False(t, replaced(t, c, root))
		assert.True(t, must(p.Replaced())(t).IsZero())
	}
	c.rejects("project.keep", `{"root":"other"}`, "root")
	e := c.failsAs("project.keep", rooted(filepath.Dir(own)), -32050, "project_not_found")
	assert.Contains(t, e.Message, "no sessions are kept of "+filepath.Dir(own))
}

func replaced(t *testing.T, c *client, root string) bool {
	t.Helper()
	for _, p := range answer[protocol.ProjectList](c, "project.list", "").Projects {
		if p.Root == root {
			return p.Replaced
		}
	}
	require.Fail(t, "not listed", root)
	return false
}

func TestAProjectIsMovedAndForgotten(t *testing.T) {
	_, srv, own := projectsHere(t)
	c := connectTo(t, srv, frame.LSP)
	from, to := filepath.Join(filepath.Dir(own), "from"), filepath.Join(filepath.Dir(own), "to")
	state := newProject(t, from).StateDir
	require.NoError(t, os.MkdirAll(to, 0o700))
	move, forget := moving(from, to), rooted(to)

	assert.Equal(t, protocol.MovedProject{From: from, To: to}, answer[protocol.MovedProject](c, "project.move", move))
	assert.NoDirExists(t, state)
	moved := must(project.Known(os.Getenv, to))(t)
	assert.Equal(t, protocol.ForgottenProject{Root: to}, answer[protocol.ForgottenProject](c, "project.forget", forget))
	assert.NoDirExists(t, moved.StateDir)
	assert.DirExists(t, to, "the project's files are left alone")

	// Without state, with a relative path, with a destination that will not do.
	c.failsAs("project.move", move, -32050, "project_not_found")
	c.failsAs("project.forget", forget, -32050, "project_not_found")
	c.rejects("project.forget", `{"root":"to"}`, "root")
	c.rejects("project.forget", `{}`, "root")
	c.rejects("project.move", moving("from", to), "from")
	c.rejects("project.move", moving(from, "to"), "to")
	newProject(t, from)
	c.rejects("project.move", moving(from, filepath.Join(to, "nowhere")), "to")
	taken := newProject(t, to)
	require.NoError(t, os.WriteFile(taken.Database(), nil, 0o600))
	e := c.failsAs("project.move", move, -32051, "bad_state")
	assert.Contains(t, e.Message, to+" has sessions of its own")

	// The project of the daemon that is asked.
	for method, params := range map[string]string{
		"project.forget": rooted(own), "project.move": moving(own, to),
	} {
		e := c.failsAs(method, params, -32051, "bad_state")
		assert.Contains(t, e.Message, "end it with `duet-rpc daemon stop --root "+shellcommand.Argument(own)+"`, then run `duet-rpc projects ")
	}
	c.failsAs("project.move", moving(from, own), -32051, "bad_state")
	assert.NoError(t, must(project.Known(os.Getenv, own))(t).CheckRoot())
}

// An idle daemon of the project ends first. One that works stays, and the project, too.
func TestADaemonOfAForgottenProject(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("daemons have Unix sockets")
	}
	_, srv, own := projectsHere(t)
	c := connectTo(t, srv, frame.LSP)
	other := newProject(t, filepath.Join(filepath.Dir(own), "other"))
	forget := rooted(other.Root)

	lock := must(other.Lock(t.Context()))(t) // of a process that cannot be reached
	e := c.failsAs("project.forget", forget, -32051, "bad_state")
	assert.Contains(t, e.Message, "end it with `duet-rpc daemon stop --root "+shellcommand.Argument(other.Root)+"`, then try again")
	assert.DirExists(t, other.StateDir)

	goOn := make(chan struct{})
	there := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		<-goOn
		return quick(ctx, x)
	})
	path, indirect, err := socket.Path(other.StateDir)
	require.NoError(t, err)
	l := must(socket.Listen(t.Context(), path))(t)
	if indirect {
		require.NoError(t, socket.Announce(other.StateDir, path))
	}
	served := make(chan error, 1)
	go func() { served <- there.srv.ServeListener(t.Context(), l) }()
	client := there.connect(frame.LSP)
	work := answer[protocol.Started](client, "session.start", `{"prompt":"one"}`)
	c.failsAs("project.forget", forget, -32051, "bad_state")
	assert.Empty(t, there.stopped)
	assert.DirExists(t, other.StateDir)

	close(goOn)
	there.ended(work.ID)
	client.close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-there.stopped
		l.Close()
		assert.NoError(t, lock.Close())
	}()
	c.ask("project.forget", forget)
	<-ended
	<-served
	assert.NoDirExists(t, other.StateDir)
}

// A project whose worktree has work that is not landed stays as it is.
func TestAForgottenProjectLosesNoWork(t *testing.T) {
	_, srv, own := projectsHere(t)
	c := connectTo(t, srv, frame.LSP)
	other := newProject(t, filepath.Join(filepath.Dir(own), "other"))
	for _, args := range [][]string{
		{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"},
	} {
		out, err := exec.Command("git", append([]string{"-C", other.Root}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	of := must(worktree.Open(t.Context(), worktree.Options{Dir: other.Root, Parent: project.WorktreesDir(other.StateDir)}))(t)
	tree := must(of.Create(t.Context(), "work", ""))(t)
	work := filepath.Join(tree.Top, "new.txt")
	require.NoError(t, os.WriteFile(work, []byte("mine"), 0o600))
	forget := rooted(other.Root)

	e := c.failsAs("project.forget", forget, -32051, "would_lose_work")
	assert.Contains(t, e.Message, "has work that is not landed")
	assert.Equal(t, 1.0, e.Data["losses"].(map[string]any)["untracked"].(map[string]any)["count"])
	assert.FileExists(t, work)
	assert.DirExists(t, other.StateDir)

	require.NoError(t, os.Rename(other.Root, other.Root+"-gone")) // with its repository
	kept := answer[protocol.ForgottenProject](c, "project.forget", forget)
	assert.Equal(t, project.WorktreesDir(other.StateDir), kept.WorktreesKept)
	assert.FileExists(t, work)
	assert.NoDirExists(t, other.StateDir)
}

// A client that does not trust the workspace lists the projects, and changes none.
func TestARestrictedClientChangesNoProject(t *testing.T) {
	_, srv, own := projectsHere(t)
	c := connectTo(t, srv, frame.LSP)
	other := filepath.Join(filepath.Dir(own), "other")
	state := newProject(t, other).StateDir
	c.ask("initialize", `{"workspaceTrusted":false}`)
	assert.Len(t, answer[protocol.ProjectList](c, "project.list", "").Projects, 2)
	for method, params := range map[string]string{
		"project.keep": "", "project.forget": rooted(other),
		"project.move": moving(other, filepath.Dir(own)),
	} {
		c.failsAs(method, params, -32043, "not_trusted", method)
	}
	assert.DirExists(t, state)
	c.ask("initialize", `{"workspaceTrusted":true}`)
	c.ask("project.forget", rooted(other))
	assert.NoDirExists(t, state)
}
