package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// recordFile is in the git directory of each of our worktrees, and goes with it.
const recordFile = "duet.json"

const mostLandings = 50 // that are remembered

// A record is what this package knows of a worktree.
type record struct {
	Worktree
	Landings   []landing `json:"landings,omitempty"`
	Copied     []string  `json:"copied,omitempty"`     // files that CopyFiles has made, relative to Top
	Prepared   bool      `json:"prepared,omitempty"`   // Prepare has succeeded
	Discarding bool      `json:"discarding,omitempty"` // what would be lost is kept; on a host: it is deleted there
	Sent       string    `json:"sent,omitempty"`       // to a host: a commit behind Base with files that were not committed
	Session    *Session  `json:"session,omitempty"`    // of a worktree on a host, as it was seen last
	Attempts   string    `json:"attempts,omitempty"`   // of a worktree on a host: the id that all attempts at the same prompt have
	Begins     bool      `json:"begins,omitempty"`     // on a host: its session was not seen there yet
}

// A registration is a worktree as git knows it.
type registration struct {
	record
	dir    string // the git directory
	top    string // where it is now
	branch string // that is checked out; "" if HEAD is detached
	locked bool
	gone   bool // it has no directory
}

// Create makes a worktree and its new branch at a commit; base "" is the user's HEAD. The name
// is changed so that it fits a ref and a file name, and gets a number if it is taken: if a branch or a
// directory has it, or taken.
func (r *Repository) Create(ctx context.Context, name, base string, taken ...string) (Worktree, error) {
	h, err := r.lock(ctx)
	if err != nil {
		return Worktree{}, err
	}
	defer h.Close()
	users := h.users()
	w := Worktree{}
	if base == "" {
		base = "HEAD"
	}
	if w.Base, err = users.resolve(ctx, base+"^{commit}"); err != nil || w.Base == "" {
		return w, errors.Join(fmt.Errorf("%.200q is no commit: name a branch or a commit of %s", base, h.repo.Top), err)
	}
	if w.Into, err = users.branch(ctx); err != nil {
		return w, err
	}
	if w.Name, err = h.freeName(ctx, slug(name), taken); err != nil {
		return w, err
	}
	w.Branch, w.Top = branchPrefix+w.Name, filepath.Join(h.parent, w.Name)
	w.Dir = filepath.Join(w.Top, h.below)
	if err := h.note(journal{Created: &w}); err != nil {
		return w, err
	}
	err = h.create(ctx, w)
	if err == nil {
		err = errors.Join(durable.SyncTree(w.Top), h.repo.Sync())
	}
	if err != nil {
		// The journal stays if this fails, too.
		if h.remove(context.WithoutCancel(ctx), w, w.Base) == nil {
			err = errors.Join(err, h.done())
		}
		return Worktree{}, fmt.Errorf("cannot create the worktree %s: %w", w.Top, err)
	}
	return w, h.done()
}

func (h *held) create(ctx context.Context, w Worktree) error {
	// git writes the common directory's path into the worktree, so this command gets the user's. It
	// checks out nothing, and therefore runs nothing.
	_, err := h.users().do(ctx, git.Command{
		Args: []string{
			"worktree", "add", "--quiet", "--no-checkout", "--no-track", "-b", w.Branch, "--", w.Top, w.Base,
		},
		Env: []string{"GIT_COMMON_DIR=" + h.repo.Common},
	})
	if err != nil {
		return err
	}
	registered, _, err := h.registrations()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(registered, func(g registration) bool { return g.top == w.Top })
	if at < 0 {
		return errors.New("git worktree add: no worktree")
	}
	g := registered[at]
	g.Worktree = w
	if err := g.save(); err != nil {
		return err
	}
	if _, err := h.tree(g.dir, g.top).run(ctx, "reset", "--hard", "--quiet"); err != nil {
		return err
	}
	return os.MkdirAll(w.Dir, 0o777)
}

func (g registration) save() error {
	text, err := json.Marshal(g.record)
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(g.dir, recordFile), text, 0o600)
}

// note adds a landing. Only the latest ones matter, since they have the changes of those before.
func (g registration) note(l landing) error {
	if g.dir == "" {
		return nil
	}
	g.Landings = append(slices.DeleteFunc(g.Landings, func(has landing) bool { return has == l }), l)
	g.Landings = g.Landings[max(0, len(g.Landings)-mostLandings):]
	return g.save()
}

// branch returns the branch that is checked out, "" if HEAD is detached.
func (t tree) branch(ctx context.Context) (string, error) {
	ref, err := t.run(ctx, "symbolic-ref", "--quiet", "HEAD")
	if exited(err, 1) {
		return "", nil
	}
	return strings.TrimPrefix(ref, "refs/heads/"), err
}

// registrations returns the worktrees that git knows, without the main one, and the directories
// that are none.
func (r *Repository) registrations() (list []registration, broken []string, err error) {
	parent := filepath.Join(r.repo.Common, "worktrees")
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, e := range entries {
		g := registration{dir: filepath.Join(parent, e.Name())}
		text, err := git.ReadIfThere(filepath.Join(g.dir, recordFile))
		if err != nil {
			return nil, nil, err
		}
		if json.Unmarshal([]byte(text), &g.record) != nil || !g.isOurs() {
			g.record = record{}
		}
		text, err = git.ReadSmall(filepath.Join(g.dir, "gitdir"))
		if durable.Unknown(err) {
			return nil, nil, err
		}
		// git does not sync this file: a power cut may leave it empty, or of zeros.
		if (err != nil || strings.Trim(text, "\x00\n") == "") && g.Name == "" {
			if e.IsDir() {
				broken = append(broken, g.dir)
			}
			continue
		}
		g.top = g.Top
		if err == nil {
			link := strings.TrimSuffix(text, "\n")
			if !filepath.IsAbs(link) {
				link = filepath.Join(g.dir, link)
			}
			g.top = filepath.Dir(link)
		}
		head, err := git.ReadIfThere(filepath.Join(g.dir, "HEAD"))
		if err != nil {
			return nil, nil, err
		}
		g.branch, _ = strings.CutPrefix(strings.TrimSpace(head), "ref: refs/heads/")
		if !strings.HasPrefix(head, "ref:") {
			g.branch = ""
		}
		if g.locked, err = git.Exists(filepath.Join(g.dir, "locked")); err != nil {
			return nil, nil, err
		}
		// A directory whose link names another registration is not this worktree.
		back, found := git.Find(g.top)
		g.gone = !found || back.Top != g.top || !sameFile(back.Dir, g.dir)
		if g.gone && g.Top != "" {
			g.top = g.Top
		}
		list = append(list, g)
	}
	return list, broken, nil
}

func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

// List returns the worktrees below [Options.Parent], also those whose directory is gone.
func (r *Repository) List(ctx context.Context) (list []Worktree, err error) {
	h, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	all, _, err := r.registrations()
	for _, g := range all {
		if g.Name != "" && isWithin(g.Top, r.parent) {
			list = append(list, g.current(r))
		}
	}
	return list, err
}

// current returns the worktree where it is now: git worktree move changes that.
func (g registration) current(r *Repository) Worktree {
	w := g.Worktree
	w.Top, w.Dir = g.top, filepath.Join(g.top, r.below)
	return w
}

// find returns the registration of a worktree. One without a directory and a registration has
// only the values of w.
func (r *Repository) find(w Worktree) (registration, error) {
	if !w.isOurs() {
		return registration{}, fmt.Errorf("%.200q is no worktree of %s", w.Name, r.parent)
	}
	if w.Ref != "" {
		return r.away(strings.TrimPrefix(w.Ref, sentPrefix))
	}
	all, _, err := r.registrations()
	if err != nil {
		return registration{}, err
	}
	for _, g := range all {
		if g.Name == w.Name && isWithin(g.Top, r.parent) {
			return g, nil
		}
	}
	return registration{record: record{Worktree: w}, top: w.Top, gone: true}, nil
}

// remove deletes the directory, the registration and the branch of a worktree, if the branch is
// at the commit. It does the rest of what an earlier call has not finished.
func (h *held) remove(ctx context.Context, w Worktree, at string) error {
	all, broken, err := h.registrations()
	if err != nil {
		return err
	}
	users := h.users()
	i := slices.IndexFunc(all, func(g registration) bool {
		return g.top == w.Top || g.Name == w.Name && g.Top == w.Top
	})
	if i < 0 {
		i = len(all)
		all = append(all, registration{top: w.Top, gone: true})
	}
	g := all[i]
	if w.Top == filepath.Join(h.parent, w.Name) {
		if err := removeAll(w.Top); err != nil {
			return err
		}
	}
	if !g.gone {
		if err := removeAll(g.top); err != nil {
			return err
		}
	}
	// Then git prunes what a power cut leaves of the registration.
	if err := durable.SyncDirectory(filepath.Dir(w.Top)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	now, err := users.resolve(ctx, "refs/heads/"+w.Branch)
	if err != nil {
		return err
	}
	others := slices.Delete(slices.Clone(all), i, i+1)
	isCheckedOut, err := h.isCheckedOut(ctx, w.Branch, others)
	if err != nil {
		return err
	}
	if now != "" && now == at && !isCheckedOut {
		if _, err := users.run(ctx, "update-ref", "--no-deref", "-d", "refs/heads/"+w.Branch, now); err != nil {
			return err
		}
		_ = os.Remove(filepath.Join(h.repo.Common, "logs", "refs", "heads", "duet")) // if it is empty
	}
	if g.dir != "" {
		entries, err := os.ReadDir(g.dir)
		for _, e := range entries {
			if e.Name() != recordFile {
				err = errors.Join(err, os.RemoveAll(filepath.Join(g.dir, e.Name())))
			}
		}
		if err := errors.Join(err, os.RemoveAll(g.dir)); err != nil {
			return err
		}
	}
	for _, dir := range broken {
		if filepath.Base(dir) == w.Name { // as git names it
			_ = os.RemoveAll(dir)
		} else {
			_ = os.Remove(dir) // only an empty directory
		}
	}
	return nil
}

// removeAll also removes directories without write permission, as a cache of Go modules has them.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// isCheckedOut reports whether the user's or another working tree has a branch checked out.
func (r *Repository) isCheckedOut(ctx context.Context, branch string, others []registration) (bool, error) {
	users, err := r.users().branch(ctx)
	if err != nil {
		return false, err
	}
	main, err := git.ReadIfThere(filepath.Join(r.repo.Common, "HEAD"))
	if err != nil {
		return false, err
	}
	return users == branch || strings.TrimSpace(main) == "ref: refs/heads/"+branch ||
		slices.ContainsFunc(others, func(g registration) bool { return g.branch == branch && !g.gone }), nil
}

// freeName returns a name that no branch and no directory has, and that is not in used.
func (h *held) freeName(ctx context.Context, name string, used []string) (string, error) {
	refs, err := h.users().run(ctx, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/duet")
	if err != nil {
		return "", err
	}
	if refs == "duet" {
		return "", errors.New("a branch is named duet: rename it, since the branches of worktrees are duet/NAME")
	}
	taken := map[string]bool{}
	for _, name := range used {
		taken[name] = true
	}
	for ref := range strings.Lines(strings.ToLower(refs)) {
		first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(ref), branchPrefix), "/")
		taken[first] = true
	}
	entries, err := os.ReadDir(h.parent)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		taken[strings.ToLower(e.Name())] = true
	}
	all, _, err := h.registrations()
	for _, g := range all {
		taken[g.Name] = true
	}
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free, err
}

// isOurs reports whether the names of a worktree are as Create makes them.
func (w Worktree) isOurs() bool {
	return validName().MatchString(w.Name) && w.Branch == branchPrefix+w.Name
}

const longestName = 40

var validName = lazyregexp.New(`^[a-z0-9_][a-z0-9_-]{0,60}$`)

// slug returns a name of lower-case letters, digits and "-" that is valid in each file system and
// in a ref.
func slug(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' {
			b.WriteRune(c)
		} else if text := b.String(); text != "" && !strings.HasSuffix(text, "-") {
			b.WriteByte('-')
		}
		if b.Len() >= longestName {
			break
		}
	}
	text := strings.Trim(b.String(), "-")
	switch {
	case text == "":
		return "work"
	case isReserved(text):
		return text + "-work"
	}
	return text
}

// isReserved reports the names of devices of Windows.
func isReserved(name string) bool {
	if len(name) == 4 && (strings.HasPrefix(name, "com") || strings.HasPrefix(name, "lpt")) {
		return '0' <= name[3] && name[3] <= '9'
	}
	return slices.Contains([]string{"con", "prn", "aux", "nul"}, name)
}
