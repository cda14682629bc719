//go:build unix

package worktree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// must returns the value of a call that may not fail: must(f(x))(t).
func must[T any](value T, err error) func(t testing.TB, why ...any) T {
	return func(t testing.TB, why ...any) T {
		t.Helper()
		require.NoError(t, err, why...)
		return value
	}
}

// errorOf returns the error of a call that has to fail.
func errorOf[T any](_ T, err error) error { return err }

// helperVariable makes the test binary create, land, renew or discard a worktree.
const helperVariable = "WORKTREE_TEST_HELPER"

type helperTask struct {
	Options  worktree.Options
	Do       string // create, land, renew, discard, receive or upload
	Worktree worktree.Worktree
	Method   worktree.Method
}

func TestMain(m *testing.M) {
	text, isHelper := os.LookupEnv(helperVariable)
	if !isHelper {
		storetest.InMemory()
		home, err := os.MkdirTemp("", "")
		if err == nil {
			err = errors.Join(os.Setenv("HOME", home), os.Unsetenv("XDG_CONFIG_HOME"), os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(usersConfig), 0o600))
		}
		if err != nil {
			panic(err)
		}
		code := m.Run()
		os.RemoveAll(home)
		os.Exit(code)
	}
	var task helperTask
	err := json.Unmarshal([]byte(text), &task)
	if err == nil {
		err = task.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const usersConfig = "[user]\n\tname = User\n\temail = user@localhost\n[protocol \"file\"]\n\tallow = always\n[init]\n\tdefaultBranch = main\n" +
	"[filter \"users\"]\n\tsmudge = sed s/plain/users/\n\tclean = sed s/users/plain/\n"

func (task helperTask) run() error {
	ctx := context.Background()
	switch task.Do { // the other end of git, on a host
	case "receive":
		r := worktree.Receiver{Git: task.Options.Git, Dir: task.Options.Dir, From: "here:/project", In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
		for i, arg := range os.Args[:len(os.Args)-1] {
			switch arg {
			case "--id":
				r.ID = os.Args[i+1]
			case "--commit":
				r.Commit = os.Args[i+1]
			}
		}
		return worktree.Receive(ctx, r)
	case "upload":
		return worktree.Upload(ctx, task.Options.Git, task.Options.Dir, os.Stdin, os.Stdout, os.Stderr)
	}
	r, err := worktree.Open(ctx, task.Options)
	if err != nil {
		return err
	}
	switch task.Do {
	case "create":
		_, err = r.Create(ctx, "helper", "")
	case "land":
		_, err = r.Land(ctx, task.Worktree, worktree.LandOptions{Method: task.Method})
	case "renew":
		_, err = r.Renew(ctx, task.Worktree)
	case "discard":
		_, err = r.Discard(ctx, task.Worktree, worktree.DiscardOptions{Force: true})
	}
	return err
}

// A world is a project with worktrees.
type world struct {
	testing.TB
	home, dir string // dir is the top of the user's tree
	opts      worktree.Options
	*worktree.Repository
}

func newWorld(t testing.TB) *world {
	testkit.NeedTool(t, "git")
	home := t.TempDir()
	w := &world{TB: t, home: home, dir: filepath.Join(home, "project")}
	require.NoError(t, os.Mkdir(w.dir, 0o755))
	w.opts = worktree.Options{Dir: w.dir, Parent: filepath.Join(home, "worktrees")}
	return w
}

// newRepository makes a world whose project is a repository with one commit of the files.
func newRepository(t testing.TB, files map[string]string) *world {
	w := newWorld(t)
	w.git("init", "-q")
	w.commit(w.dir, files)
	return w
}

// commit writes files in a working tree and commits all.
func (w *world) commit(dir string, files map[string]string) string {
	w.Helper()
	testkit.WriteFiles(w, dir, files)
	gitIn(w, dir, "add", "-A")
	gitIn(w, dir, "commit", "-q", "--allow-empty", "-m", "commit of "+filepath.Base(dir))
	return w.id(dir, "HEAD")
}

func (w *world) id(dir, revision string) string {
	w.Helper()
	return strings.TrimSpace(gitIn(w, dir, "rev-parse", revision))
}

func (w *world) open() *world {
	w.Helper()
	w.Repository = must(worktree.Open(w.Context(), w.opts))(w)
	return w
}

// create makes a worktree with uncommitted files.
func (w *world) create(name string, files map[string]string) worktree.Worktree {
	w.Helper()
	if w.Repository == nil {
		w.open()
	}
	made := must(w.Create(w.Context(), name, ""))(w)
	testkit.WriteFiles(w, made.Top, files)
	return made
}

func (w *world) land(of worktree.Worktree, method worktree.Method) worktree.Landed {
	w.Helper()
	return must(w.Land(w.Context(), of, worktree.LandOptions{Method: method}))(w)
}

// git runs git as the user does, and returns its output.
func (w *world) git(args ...string) string {
	w.Helper()
	return gitIn(w, w.dir, args...)
}

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "git", append([]string{"-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %q: %s", args, out)
	return string(out)
}

// state returns the user's view of a repository: branches, HEAD, index, status, stash and files.
func (w *world) state() map[string]string {
	w.Helper()
	return map[string]string{
		"refs":   w.git("for-each-ref"),
		"head":   w.git("rev-parse", "--symbolic-full-name", "HEAD"),
		"index":  w.git("ls-files", "--stage"),
		"status": w.git("status", "--porcelain", "--ignored"),
		"files":  fmt.Sprint(testkit.ReadFiles(w, w.dir)),
		"config": w.git("config", "--list", "--local"),
	}
}

// healthy checks the repository, and requires that no lock and no file of Duet is left in a git
// directory.
func (w *world) healthy() {
	w.Helper()
	w.git("fsck", "--strict")
	require.NoError(w, filepath.WalkDir(filepath.Join(w.dir, ".git"), func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "duet-") {
			w.Errorf("%s is left", path)
		}
		return err
	}))
}

// runIn runs git and ignores its failure.
func runIn(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
