package hub

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// These tests run git.

// A worktreeWorld is a hub of the project in the directory sub of a git repository.
type worktreeWorld struct {
	*testing.T
	hub               *Hub
	top, root, parent string
	trusts            []bool // of each opened repository
	git               func(args ...string) string
	write             func(path, text string)
	read              func(path string) string

	mu         sync.Mutex
	configured config.Worktrees
}

// configure changes the configuration of worktrees.
func (w *worktreeWorld) configure(c config.Worktrees) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.configured = c
}

func newWorktreeWorld(t *testing.T, play func(w *worktreeWorld, x *fakeTurn)) *worktreeWorld {
	testkit.NeedTool(t, "git")
	for name, value := range map[string]string{"GIT_CONFIG_SYSTEM": os.DevNull} {
		t.Setenv(name, value)
	}
	home := must(filepath.EvalSymlinks(t.TempDir()))(t)
	t.Setenv("HOME", home)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = User\n\temail = user@localhost\n"), 0o600))
	w := &worktreeWorld{T: t, top: filepath.Join(home, "repository"), parent: filepath.Join(home, "worktrees")}
	w.root = filepath.Join(w.top, "sub")
	w.git = func(args ...string) string {
		t.Helper()
		return runGit(t, w.top, append([]string{"-c", "user.name=U", "-c", "user.email=u@localhost"}, args...)...)
	}
	w.write = func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	w.read = func(path string) string {
		return string(must(os.ReadFile(path))(t))
	}
	w.write(filepath.Join(w.root, "a.txt"), "one\n")
	w.write(filepath.Join(w.top, "above.txt"), "one\n")
	w.git("init", "-q", "-b", "main")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "first")
	w.hub = openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		play(w, x)
		return completed
	}, func(o *Options) {
		o.Root = w.root
		state := t.TempDir()
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) {
			return checkpoint.Options{Dir: of, State: filepath.Join(state, filepath.Base(filepath.Dir(of)))}, true
		}
		o.WorktreesDir = w.parent
		fakeOf(o).openWorktrees = func(ctx context.Context, trusts bool) (Worktrees, error) {
			w.trusts = append(w.trusts, trusts)
			return worktree.Open(ctx, worktree.Options{Dir: w.root, Parent: w.parent})
		}
		fakeOf(o).current = func(bool) (*config.Config, error) {
			c, err := fakeOf(o).onlyAgent()
			w.mu.Lock()
			defer w.mu.Unlock()
			c.Worktrees = w.configured
			c.Worktrees.Timeout = time.Minute
			return c, err
		}
	})
	return w
}

func (w *worktreeWorld) launch(prompt string) domain.TurnInSession {
	w.Helper()
	return await(w.T, w.hub, must(w.hub.Launch(w.Context(), LaunchSpec{Prompt: prompt, Worktree: new(true)}))(w))
}

// A launch that is sent again, at once or later, is the first one.
func TestLaunchOnce(t *testing.T) {
	w := newWorktreeWorld(t, func(*worktreeWorld, *fakeTurn) {})
	spec := LaunchSpec{
		Prompt: "p", Worktree: new(true), CallerID: "019d4a1e-0000-7000-8000-000000000001", Once: true,
	}
	var group sync.WaitGroup
	found := make(chan domain.TurnInSession, 3)
	for range cap(found) {
		group.Go(func() {
			s, err := w.hub.Launch(t.Context(), spec)
			assert.NoError(t, err)
			found <- s
		})
	}
	group.Wait()
	first := <-found
	assert.Equal(t, first.UUID, (<-found).UUID)
	assert.Equal(t, first.UUID, (<-found).UUID)
	await(t, w.hub, first)
	assert.Equal(t, first.UUID, must(w.hub.Launch(t.Context(), spec))(t).UUID)
	assert.Len(t, must(filepath.Glob(filepath.Join(w.parent, "p*")))(t), 1)
	spec.Prompt = "another"
	_, err := w.hub.Launch(t.Context(), spec)
	assert.ErrorContains(t, err, "launch_id")
}

// The changes that an agent makes in a worktree are reviewed and rewound there, and the user's files
// stay as they are until they are landed.
func TestChangesInAWorktree(t *testing.T) {
	w := newWorktreeWorld(t, func(w *worktreeWorld, x *fakeTurn) {
		assert.Equal(t, filepath.Dir(x.p.CWD), x.p.Launch.Root, "the top of the worktree limits the agent")
		edited, before, after := filepath.Join(x.p.CWD, "a.txt"), "one\n", "two\n"
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "in_progress"})
		w.write(edited, after)
		x.report(catalog.EventFileChange, catalog.FileChange{Path: edited, Before: &before, After: &after})
		w.write(filepath.Join(x.p.CWD, "new.txt"), "new\n")
		w.write(filepath.Join(x.p.Launch.Root, "above.txt"), "two\n")
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed"})
	})
	turn := w.launch("Fix the parser now, please: it fails")
	dir := turn.Session.CWD
	assert.Equal(t, filepath.Join(w.parent, "fix-the-parser-now-please", "sub"), dir)
	files := func() map[string]string {
		list := must(w.hub.review.Files(t.Context(), turn))(t)
		all := make(map[string]string)
		for _, f := range list {
			all[filepath.ToSlash(must(filepath.Rel(filepath.Dir(dir), f.Path))(t))] = f.State
		}
		return all
	}
	assert.Equal(t, map[string]string{"sub/a.txt": "open", "sub/new.txt": "open", "above.txt": "open"}, files())
	events := must(w.hub.store.Events(t.Context(), 0, 1000))(t)
	for _, e := range events {
		if changed, is := e.Payload.(domain.FileChanged); is {
			rel := must(filepath.Rel(filepath.Dir(dir), changed.Path))(t)
			assert.Contains(t, changed.Diff, "+++ b/"+filepath.ToSlash(rel)+"\n", "names are relative to the top of the worktree")
		}
	}
	above := filepath.Join(filepath.Dir(dir), "above.txt")
	for _, d := range []changereview.Decision{
		{Path: above, Decision: changereview.Revert}, {Path: above, Decision: changereview.Reopen}, {Path: filepath.Join(dir, "a.txt"), Decision: changereview.Revert},
	} {
		must(w.hub.review.Decide(t.Context(), turn, d))(t)
	}
	assert.Equal(t, "one\n", w.read(filepath.Join(dir, "a.txt")))
	assert.Equal(t, above, must(w.hub.SessionFile(turn, "../above.txt"))(t))
	_, err := w.hub.SessionFile(turn, filepath.Join(w.root, "a.txt"))
	assert.Error(t, err, "the user's files are not those of the session")

	assert.Len(t, must(w.hub.Rewind(t.Context(), RewindSpec{Turn: turn.UUID}))(t).Files, 2)
	assert.NoFileExists(t, filepath.Join(dir, "new.txt"))
	must(w.hub.UndoRewind(t.Context(), turn.UUID))(t)
	assert.Empty(t, w.git("status", "--porcelain"))

	landed := must(w.hub.Land(t.Context(), LandSpec{Turn: turn.UUID, Method: worktree.Merge}))(t)
	assert.Equal(t, "main", landed.Into)
	assert.ElementsMatch(t, []string{"above.txt", "sub/new.txt"}, landed.Files)
	assert.Equal(t, "new\n", w.read(filepath.Join(w.root, "new.txt")))
	assert.Empty(t, w.git("status", "--porcelain"))
	assert.Empty(t, must(w.hub.Delete(t.Context(), turn.UUID))(t).Worktree)
	assert.NoDirExists(t, filepath.Dir(dir))
	assert.Equal(t, "main", strings.TrimSpace(w.git("branch", "--format=%(refname:short)")))
	assert.NotContains(t, w.trusts, false)
}

// A conflict changes nothing; work that is discarded with force is found again.
func TestConflictAndDiscardedWorkInAWorktree(t *testing.T) {
	w := newWorktreeWorld(t, func(w *worktreeWorld, x *fakeTurn) { w.write(filepath.Join(x.p.CWD, "a.txt"), "agent\n") })
	turn := w.launch("fix")
	mine := filepath.Join(w.root, "a.txt")
	w.write(mine, "mine\n")
	_, err := w.hub.Land(t.Context(), LandSpec{Turn: turn.UUID, Method: worktree.Merge})
	assert.Equal(t, domain.KindOverlap, kindOf(t, err))
	w.git("commit", "-qam", "mine")
	head := w.git("rev-parse", "HEAD")
	for _, method := range []worktree.Method{worktree.Merge, worktree.Squash, worktree.Rebase, worktree.Patch} {
		_, err = w.hub.Land(t.Context(), LandSpec{Turn: turn.UUID, Method: method})
		assert.Equal(t, domain.KindConflict, kindOf(t, err), method)
	}
	assert.Equal(t, head, w.git("rev-parse", "HEAD"))
	assert.Equal(t, "mine\n", w.read(mine))
	assert.Empty(t, w.git("status", "--porcelain"))

	assert.Equal(t, domain.KindLosses, kindOf(t, errorOf(w.hub.DiscardWorktree(t.Context(), turn.UUID, false))))
	assert.Equal(t, domain.KindLosses, kindOf(t, errorOf(w.hub.Delete(t.Context(), turn.UUID))))
	done := must(w.hub.DiscardWorktree(t.Context(), turn.UUID, true))(t)
	assert.NoDirExists(t, turn.Session.CWD)
	assert.Equal(t, "agent\n", w.git("show", done.Ref+":sub/a.txt"))

	_, err = w.hub.Continue(t.Context(), ContinueSpec{From: turn.UUID, Prompt: "more"})
	assert.Equal(t, domain.KindNoWorktree, kindOf(t, err))
	fork := must(w.hub.Continue(t.Context(), ContinueSpec{From: turn.UUID, Prompt: "more", Fork: true}))(t)
	assert.Equal(t, w.root, await(t, w.hub, fork).Session.CWD)

	// A later worktree of the same name is not its worktree.
	again := w.launch("fix")
	assert.NotEqual(t, turn.Session.CWD, again.Session.CWD)
	assert.Equal(t, domain.KindNoWorktree, kindOf(t, errorOf(w.hub.Continue(t.Context(), ContinueSpec{From: turn.UUID, Prompt: "more"}))))
}

// A prompt that comes while a worktree is discarded does not start in it.
func TestPromptDuringTheCleanupOfAWorktree(t *testing.T) {
	starts := 0
	w := newWorktreeWorld(t, func(*worktreeWorld, *fakeTurn) { starts++ })
	w.configure(config.Worktrees{Cleanup: []string{"clean up"}})
	begun, goOn := make(chan struct{}), make(chan struct{})
	w.hub.executors.(*executors).commands = func(context.Context, catalog.Daemon, catalog.RunCommandParams) (catalog.RunCommandResult, error) {
		close(begun)
		<-goOn
		return catalog.RunCommandResult{}, nil
	}
	turn := w.launch("fix")
	discarded := make(chan error, 1)
	go func() { discarded <- errorOf(w.hub.DiscardWorktree(t.Context(), turn.UUID, false)) }()
	<-begun
	more := must(w.hub.Continue(t.Context(), ContinueSpec{From: turn.UUID, Prompt: "more"}))(t)
	require.Eventually(t, func() bool {
		for _, e := range transcriptOf(t, w.hub, more.HumanLayerSession).Entries {
			if strings.HasPrefix(e.Content, "Waiting for the worktree") {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	close(goOn)
	require.NoError(t, <-discarded)
	failed := await(t, w.hub, more)
	assert.Equal(t, domain.Failed, failed.State)
	assert.Contains(t, failed.Error, "the worktree no longer exists")
	assert.Equal(t, 1, starts)
	assert.NoDirExists(t, turn.Session.CWD)
}

// Without a commit there is no worktree, and the error says what to do.
func TestNoWorktreeWithoutACommit(t *testing.T) {
	w := newWorktreeWorld(t, func(*worktreeWorld, *fakeTurn) {})
	refused := func(want string) {
		t.Helper()
		_, err := w.hub.Launch(t.Context(), LaunchSpec{Prompt: "fix", Worktree: new(true)})
		assert.Equal(t, domain.KindWorktree, kindOf(t, err))
		assert.ErrorContains(t, err, want)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(w.top, ".git")))
	refused("run git init and make a commit")
	w.git("init", "-q")
	refused("has no commit yet: make one first")
	_, err := w.hub.Launch(t.Context(), LaunchSpec{Prompt: "fix", Worktree: new(true), CWD: w.top})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err), "outside of the project")
}

// What a trigger begins, a chat and a session that exists, with worktrees in the configuration.
func TestWhichSessionsGetAWorktree(t *testing.T) {
	w := newWorktreeWorld(t, func(*worktreeWorld, *fakeTurn) {})
	before := must(w.hub.Launch(t.Context(), LaunchSpec{Prompt: "before", SessionAlias: "mine"}))(t)
	assert.Equal(t, w.root, await(t, w.hub, before).Session.CWD)
	w.configure(config.Worktrees{Use: config.WorktreeSession})
	begin := func() domain.TurnInSession {
		var turn domain.Turn
		require.NoError(t, w.hub.write(t.Context(), func(tx store.Tx) (err error) {
			turn, err = forTriggers{w.hub}.Begin(tx, trigger.Begin{Prompt: "check", Title: "Nightly"})
			return err
		}))
		return await(t, w.hub, must(w.hub.query.ByTurn(t.Context(), turn.ID))(t))
	}
	first := begin()
	assert.Equal(t, filepath.Join(w.parent, "nightly", "sub"), first.Session.CWD)
	assert.Equal(t, filepath.Join(w.parent, "nightly-2", "sub"), begin().Session.CWD)
	more := must(w.hub.Continue(t.Context(), ContinueSpec{From: first.UUID, Prompt: "more"}))(t)
	assert.Equal(t, first.Session.CWD, await(t, w.hub, more).Session.CWD)

	launched := func(spec LaunchSpec) string {
		spec.Prompt = "hello"
		return await(t, w.hub, must(w.hub.Launch(t.Context(), spec))(t)).Session.CWD
	}
	assert.Equal(t, w.root, launched(LaunchSpec{SessionAlias: "mine"}), "a session that exists")
	assert.Equal(t, filepath.Join(w.parent, "hello", "sub"), launched(LaunchSpec{SessionAlias: "new"}))
	assert.Equal(t, w.root, launched(LaunchSpec{Worktree: new(false)}))
	assert.Equal(t, w.root, launched(LaunchSpec{Chat: true}))
	assert.Equal(t, w.top, launched(LaunchSpec{CWD: w.top}), "outside of the project")
	assert.Equal(t, first.Session.CWD, launched(LaunchSpec{CWD: first.Session.CWD}), "in a worktree already")
	// Renamed, because git may still be writing objects of the last checkpoint.
	require.NoError(t, os.Rename(filepath.Join(w.top, ".git"), filepath.Join(w.top, "moved")))
	assert.Equal(t, w.root, launched(LaunchSpec{}))
	assert.Equal(t, w.root, begin().Session.CWD)
}

// A hub that opens finishes the landing of a killed one.
func TestUnfinishedLanding(t *testing.T) {
	w := newWorktreeWorld(t, func(*worktreeWorld, *fakeTurn) {})
	w.launch("used")
	states := must(filepath.Glob(filepath.Join(w.parent, ".duet-*")))(t)
	require.Len(t, states, 1)
	w.write(filepath.Join(states[0], "journal"), "{}")
	w.hub.tidyWorktrees()
	require.Eventually(t, func() bool { return !worktree.IsUnfinished(w.parent) }, time.Minute, time.Millisecond)
}

// A worktree that no session uses is deleted when the hub opens, unless it has work.
func TestUnusedWorktrees(t *testing.T) {
	w := newWorktreeWorld(t, func(*worktreeWorld, *fakeTurn) {})
	kept := w.launch("used").Session.CWD
	of := must(worktree.Open(t.Context(), worktree.Options{Dir: w.root, Parent: w.parent}))(t)
	unused := must(of.Create(t.Context(), "unused", ""))(t)
	work := must(of.Create(t.Context(), "work", ""))(t)
	w.write(filepath.Join(work.Top, "new"), "new")
	w.hub.tidyWorktrees()
	require.Eventually(t, func() bool {
		_, err := os.Lstat(unused.Top)
		return os.IsNotExist(err)
	}, time.Minute, time.Millisecond)
	require.NoError(t, w.hub.Close())
	assert.DirExists(t, kept)
	assert.FileExists(t, filepath.Join(work.Top, "new"))
}

// worktreeOnABadDisk has a directory about which the system tells nothing.
type worktreeOnABadDisk struct{ Worktrees }

func (w worktreeOnABadDisk) Create(ctx context.Context, name, base string, taken ...string) (worktree.Worktree, error) {
	made, err := w.Worktrees.Create(ctx, name, base, taken...)
	made.Dir += "\x00"
	return made, err
}

// A disk that fails for a moment does not mean that a directory has no committed files. The worktree that
// was made is discarded.
func TestANewWorktreeThatCannotBeReadIsNotCalledEmpty(t *testing.T) {
	w := newWorktreeWorld(t, func(*worktreeWorld, *fakeTurn) {})
	project := fakeOf(&w.hub.opts)
	open := project.openWorktrees
	project.openWorktrees = func(ctx context.Context, trusts bool) (Worktrees, error) {
		of, err := open(ctx, trusts)
		return worktreeOnABadDisk{of}, err
	}
	for _, asked := range []*bool{new(true), nil} {
		w.configure(config.Worktrees{Use: config.WorktreeSession})
		_, err := w.hub.Launch(t.Context(), LaunchSpec{Prompt: "fix", Worktree: asked})
		require.ErrorIs(t, err, syscall.EINVAL)
		assert.Equal(t, domain.KindWorktree, kindOf(t, err))
		assert.Equal(t, 1, strings.Count(w.git("worktree", "list", "--porcelain"), "worktree "))
	}
}
