// Package worktree gives a piece of work a git worktree of its own: a branch duet/NAME and a
// directory outside of the user's tree. It lands the result on a branch of the user, or discards
// it. It uses the git command.
//
// In a project that is not trusted, nothing that the repository's own configuration names runs:
// no filter, hook, fsmonitor, merge driver, signing program or command of a submodule. git runs
// with a configuration of ours in place of the repository's: a common git directory of ours has
// links to the user's objects, refs, reflogs and worktrees. Filters and merge drivers of the
// user's ~/.gitconfig, for example those of Git LFS, do run. A filter that is configured in the
// repository alone does not, so its files are as they are stored, and Land lists those that it
// commits. In a trusted project git reads the repository's configuration and runs its filters and
// merge drivers.
//
// Hooks never run. They check what the user types, and may ask, push or fail; a landing may only
// succeed or change nothing. Nothing is signed for the same reason. This package never starts
// git gc.
//
// git does not check out submodules in a worktree: their directories are empty. A landing has the
// commit of a submodule that was committed in the worktree, and no file of a submodule. Nested
// repositories in the worktree are not landed, either. A sparse checkout of the user's tree is
// taken over.
//
// The process and its git processes may be killed at any moment. A change of several steps is
// noted in a journal, and the next call finishes it or takes it back.
package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// Options says which project gets worktrees and where.
type Options struct {
	Dir     string       // of the project; in a repository with at least one commit
	Parent  string       // the directory for worktrees; outside of the project, created if it is missing
	Trusted bool         // the repository's configuration may name programs
	Git     string       // the path of git 2.39 or later; "" looks for it in PATH
	Log     *slog.Logger // of damaged files that were set aside; nil discards
}

// A Repository makes, lands and discards the worktrees of a project. It may be used by several
// goroutines and processes at once. Create, Land and Discard wait for each other.
type Repository struct {
	program, parent, state string
	log                    *slog.Logger
	trusted                bool
	repo                   git.Repository
	below                  string // the project's directory, relative to the top of the repository
	common                 string // the git directory that replaces repo.Common

	mu              sync.Mutex // guards worktreeConfigs
	worktreeConfigs map[string]map[string]string
}

// A Worktree is a directory and a branch for a piece of work. Its values stay as they were when
// it was created.
type Worktree struct {
	Name   string `json:"name"`
	Top    string `json:"top"`    // the top of its files
	Dir    string `json:"dir"`    // the project's directory below Top
	Branch string `json:"branch"` // duet/NAME
	Base   string `json:"base"`   // the commit it started at
	Into   string `json:"into"`   // the branch that was checked out; "" if HEAD was detached
	// Host and Ref are set for a worktree on a host: the host's name, and the ref here that has its commits
	// ([Repository.Fetch]). Top and Dir are "".
	Host string `json:"host,omitempty"`
	Ref  string `json:"ref,omitempty"`
}

// A BusyError reports that a program or an unfinished operation of the user is in the way.
type BusyError struct{ Dir, Operation string }

func (e *BusyError) Error() string {
	if e.Operation == lockFile {
		return fmt.Sprintf("%s is in use by another git process: wait for it, or remove its %s if none runs",
			e.Dir, lockFile)
	}
	return fmt.Sprintf("a %s is in progress in %s: finish or abort it first", e.Operation, e.Dir)
}

// ErrGone reports a worktree that has neither a directory nor a branch.
var ErrGone = errors.New("the worktree and its branch are gone")

// ErrNoCommit reports a project that is in no git repository, or in one without a commit.
var ErrNoCommit = errors.New("no commit to start from")

const (
	branchPrefix    = "duet/"
	discardedPrefix = "refs/duet/discarded/"
	lockFile        = "index.lock"
	statePrefix     = ".duet-" // of a directory of a repository in [Options.Parent]
)

// Open finds the repository around opts.Dir and finishes what a killed process has left. Its
// errors say what to do.
func Open(ctx context.Context, opts Options) (*Repository, error) {
	r := &Repository{
		program: opts.Git, trusted: opts.Trusted, worktreeConfigs: make(map[string]map[string]string), log: opts.Log,
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.program == "" {
		if r.program, err = exec.LookPath("git"); err != nil {
			return nil, fmt.Errorf("worktrees need git: install git 2.39 or later: %w", err)
		}
	}
	dir, err := git.RealPath(opts.Dir)
	if err != nil {
		return nil, err
	}
	if err := git.CheckVersion(ctx, r.program, dir, "worktrees"); err != nil {
		return nil, err
	}
	repo, found := git.Find(dir)
	if !found {
		if isBare(dir) {
			return nil, fmt.Errorf("%s is a bare repository: open a worktree of it", dir)
		}
		return nil, fmt.Errorf("%w: %s is in no git repository: run git init and make a commit", ErrNoCommit, dir)
	}
	r.repo = repo
	if r.below, err = filepath.Rel(repo.Top, dir); err != nil {
		return nil, err
	}
	if r.repo.Config, err = git.ReadConfig(ctx, r.program, filepath.Join(repo.Common, "config")); err != nil {
		return nil, err
	}
	if err := r.repo.Unusable(); err != nil {
		return nil, fmt.Errorf("no worktrees in %s: %w; use a clone that you own and may write", repo.Top, err)
	}
	if isTrue(r.repo.Config["core.bare"]) && repo.Dir == repo.Common {
		return nil, fmt.Errorf("%s is a bare repository: open a worktree of it", repo.Common)
	}
	if err := r.setParent(opts.Parent); err != nil {
		return nil, err
	}
	name := sha256.Sum256([]byte(r.repo.Common + "\x00" + r.parent))
	r.state = filepath.Join(r.parent, statePrefix+hex.EncodeToString(name[:6]))
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("cannot prepare %s for worktrees: %w", r.state, err)
	}
	users := r.users()
	if _, err := users.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		if !exited(err, 1) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s has no commit yet: make one first", ErrNoCommit, repo.Top)
	}
	if r.below != "." {
		if _, err := users.run(ctx, "check-ignore", "--quiet", "--", dir); err == nil {
			return nil, fmt.Errorf("%s is ignored by the repository %s, and would be missing in a worktree: run git init in it", dir, repo.Top)
		}
	}
	h, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	return r, errors.Join(h.repair(), h.Close())
}

// repair links the worktrees again after the repository or opts.Parent was moved.
func (h *held) repair() error {
	all, _, err := h.registrations()
	if err != nil {
		return err
	}
	for _, g := range all {
		top := filepath.Join(h.parent, g.Name)
		link := filepath.Join(top, ".git")
		text, err := git.ReadSmall(link)
		of, isLink := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
		if g.Name == "" || err != nil || !isLink || filepath.Base(of) != filepath.Base(g.dir) ||
			g.Top == top && !g.gone {
			continue
		}
		if _, err := os.Lstat(of); !errors.Is(err, fs.ErrNotExist) && !sameFile(of, g.dir) {
			continue // it is that of another repository
		}
		if _, err := os.Lstat(g.Top); err == nil && g.Top != top {
			continue // it was not moved
		}
		g.Top, g.Dir = top, filepath.Join(top, h.below)
		// One that cannot be written is still gone, and hinders no other.
		_ = errors.Join(durable.Replace(link, []byte("gitdir: "+g.dir+"\n"), 0o644),
			durable.Replace(filepath.Join(g.dir, "gitdir"), []byte(link+"\n"), 0o644), g.save())
	}
	return nil
}

func isBare(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		missing := slices.ContainsFunc([]string{"HEAD", "objects", "refs"}, func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err != nil
		})
		if !missing || dir == filepath.Dir(dir) {
			return !missing
		}
	}
}

func isTrue(value string) bool {
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(value))
}

// setParent creates the directory for worktrees unless it is in the user's tree or git directory. It
// refuses one that another user could have made.
func (r *Repository) setParent(parent string) error {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return err
	}
	exists := parent // the part of the path that exists
	for ; exists != filepath.Dir(exists); exists = filepath.Dir(exists) {
		if _, err := os.Lstat(exists); err == nil {
			break
		}
	}
	rest, _ := filepath.Rel(exists, parent)
	if rest == "." { // before a link is followed
		if err := project.MakePrivate(parent); err != nil {
			return err
		}
	}
	if exists, err = git.RealPath(exists); err != nil {
		return err
	}
	r.parent = filepath.Join(exists, rest)
	for _, tree := range []string{r.repo.Top, r.repo.Common, r.repo.Dir} {
		if real, err := git.RealPath(tree); err == nil && isWithin(r.parent, real) {
			return fmt.Errorf("worktrees cannot be in %s: it is in the repository; choose a directory outside of %s",
				r.parent, tree)
		}
	}
	return project.MakePrivate(r.parent)
}

// isWithin reports whether a path is a directory or below it.
func isWithin(path, dir string) bool {
	below, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(below)
}

// prepare makes the common git directory that replaces the user's. git follows its links when it
// reads and writes objects, refs and reflogs. It has no hooks, and a configuration of its own.
func (r *Repository) prepare() error {
	kind := "common"
	if r.trusted {
		kind = "trusted"
	}
	r.common = filepath.Join(r.state, kind)
	if err := os.MkdirAll(r.common, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"worktrees", "logs"} {
		if err := os.MkdirAll(filepath.Join(r.repo.Common, name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{
		"objects", "refs", "packed-refs", "logs", "worktrees", "info", "shallow", "HEAD", "lfs",
	} {
		err := os.Symlink(filepath.Join(r.repo.Common, name), filepath.Join(r.common, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	text := "[core]\n\trepositoryFormatVersion = 0\n"
	if r.trusted {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(filepath.Join(r.repo.Common, "config"))
		text = "[include]\n\tpath = \"" + quoted + "\"\n" + text
	}
	if format := r.repo.Config["extensions.objectformat"]; git.IsWord(format) {
		text += "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = " + format + "\n"
	}
	return git.ReplaceFile(filepath.Join(r.common, "config"), text)
}

// A tree is a working tree and its git directory.
type tree struct {
	r        *Repository
	dir, top string
	index    string   // replaces the index if set
	keep     *os.File // the lock that git keeps
}

// users returns the user's working tree.
func (r *Repository) users() tree { return tree{r: r, dir: r.repo.Dir, top: r.repo.Top} }

// run runs git and returns its output without the last line feed.
func (t tree) run(ctx context.Context, args ...string) (string, error) {
	out, err := t.do(ctx, git.Command{Args: args})
	return strings.TrimSuffix(string(out), "\n"), err
}

// records runs git and returns the records of its output, which end with a NUL. It returns them
// with an error, too.
func (t tree) records(ctx context.Context, args ...string) (list []string, err error) {
	_, err = t.do(ctx, git.Command{Args: args, Record: func(record []byte) error {
		list = append(list, string(record))
		return nil
	}})
	return list, err
}

func (t tree) do(ctx context.Context, c git.Command) ([]byte, error) {
	if t.index == "" && t.dir != t.r.repo.Common {
		// An agent can write this directory, also one in a sandbox. git would follow a link there when
		// it writes the index, and replace a file outside.
		index := filepath.Join(t.dir, "index")
		if info, err := os.Lstat(index); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file: remove it, and git makes a new one", index)
		}
	}
	c.Env = append(t.environment(ctx), c.Env...)
	c.Keep = t.keep
	return git.Run(ctx, t.r.program, t.top, git.CallersEnvironment(), c)
}

// takenOver are the keys whose values git gets from the repository's own configuration. They
// name no program.
var takenOver = []string{
	"core.ignorecase", "core.precomposeunicode", "core.symlinks", "core.filemode", "core.autocrlf", "core.eol",
	"core.safecrlf",
	"core.sharedrepository", "core.bigfilethreshold", "core.logallrefupdates", "core.excludesfile",
	"core.attributesfile",
	"core.sparsecheckout", "core.sparsecheckoutcone", "merge.renames", "merge.directoryrenames", "diff.renames",
	"user.name", "user.email",
}

// environment returns git's variables for the tree. Settings in the environment win over each file.
func (t tree) environment(ctx context.Context) []string {
	env := []string{
		"GIT_DIR=" + t.dir, "GIT_COMMON_DIR=" + t.r.common, "GIT_WORK_TREE=" + t.top,
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=:", "GIT_PAGER=cat", "LC_ALL=C",
	}
	if !t.r.trusted {
		env = append(env, "GIT_NO_LAZY_FETCH=1")
	}
	if t.index != "" {
		env = append(env, "GIT_INDEX_FILE="+t.index)
	}
	settings := [][2]string{
		{"core.bare", "false"},
		{"core.hooksPath", os.DevNull},
		{"core.fsmonitor", "false"},
		{"core.fsync", git.Synced},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"submodule.recurse", "false"},
		{"core.quotePath", "false"},
		{"advice.graftFileDeprecated", "false"},
	}
	own := t.r.worktreeConfig(ctx, t.dir)
	for _, key := range takenOver {
		for _, config := range []map[string]string{t.r.repo.Config, own} {
			if value, found := config[key]; found {
				settings = append(settings, [2]string{key, value})
			}
		}
	}
	env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings)))
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

// worktreeConfig returns the configuration of one working tree. It is read once, as that of the
// repository is.
func (r *Repository) worktreeConfig(ctx context.Context, dir string) map[string]string {
	if !isTrue(r.repo.Config["extensions.worktreeconfig"]) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	own, known := r.worktreeConfigs[dir]
	if !known {
		var err error
		if own, err = git.ReadConfig(ctx, r.program, filepath.Join(dir, "config.worktree")); ctx.Err() != nil &&
			err != nil {
			return nil
		}
		r.worktreeConfigs[dir] = own
	}
	return own
}

// ours is the identity of commits that the user does not see.
var ours = []string{
	"GIT_AUTHOR_NAME=duet", "GIT_AUTHOR_EMAIL=duet@localhost", "GIT_COMMITTER_NAME=duet",
	"GIT_COMMITTER_EMAIL=duet@localhost",
}

// commit writes a commit object. A nil env uses the user's identity.
func (t tree) commit(ctx context.Context, tree, message string, env []string, parents ...string) (string, error) {
	args := []string{"commit-tree", "--no-gpg-sign", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	if !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	out, err := t.do(ctx, git.Command{Args: args, Env: env, Stdin: strings.NewReader(message)})
	return strings.TrimSpace(string(out)), err
}

// updateRef runs git update-ref. Before, all objects are on the disk, also those of an agent's git;
// afterwards the ref is.
func (t tree) updateRef(ctx context.Context, args ...string) error {
	began := time.Now()
	if err := t.r.repo.Sync(); err != nil {
		return err
	}
	if _, err := t.run(ctx, append([]string{"update-ref"}, args...)...); err != nil {
		return err
	}
	return t.r.repo.SyncNames(began)
}

// resolve returns the name of an object, or "" if there is none. git says the same of a file that the
// system cannot read, so a second time has to say it, too.
func (t tree) resolve(ctx context.Context, revision string) (out string, err error) {
	for range 2 {
		out, err = t.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision)
		if !exited(err, 1) {
			return out, err
		}
		ref, _, _ := strings.Cut(revision, "^")
		text, err := git.ReadIfThere(filepath.Join(t.dir, ref))
		if of, is := strings.CutPrefix(strings.TrimSpace(text), "ref: "); is {
			ref = of
		}
		_, err2 := git.ReadIfThere(filepath.Join(t.r.repo.Common, ref))
		_, err3 := git.ReadIfThere(filepath.Join(t.r.repo.Common, "packed-refs"))
		if err := errors.Join(err, err2, err3); err != nil {
			return "", err
		}
	}
	return "", nil
}

// exited reports whether git ended with a status.
func exited(err error, status int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == status
}

// isAncestor reports whether a commit is reachable from another one.
func (t tree) isAncestor(ctx context.Context, old, young string) (bool, error) {
	if old == young {
		return true, nil
	}
	_, err := t.run(ctx, "merge-base", "--is-ancestor", old, young)
	if exited(err, 1) {
		return false, nil
	}
	return err == nil, err
}

// operation returns the unfinished operation in a working tree, or "".
func (t tree) operation() (string, error) {
	for _, o := range [][2]string{
		{"rebase-merge", "rebase"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
		{"sequencer", "cherry-pick"},
	} {
		if isUnderWay, err := git.Exists(filepath.Join(t.dir, o[0])); err != nil {
			return "", err
		} else if isUnderWay {
			return o[1], nil
		}
	}
	return "", nil
}

// Containing returns the top of the worktree below parent that a path is in. It looks at the names
// alone: the worktree need not exist.
func Containing(parent, path string) (top string, found bool) {
	below, err := filepath.Rel(parent, path)
	if err != nil || parent == "" || !filepath.IsLocal(below) {
		return "", false
	}
	name, _, _ := strings.Cut(filepath.ToSlash(below), "/")
	return filepath.Join(parent, name), validName().MatchString(name)
}

// BranchOf returns the name that the branch of a worktree has when it is created, by its top.
func BranchOf(top string) string { return branchPrefix + filepath.Base(top) }
