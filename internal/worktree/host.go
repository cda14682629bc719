package worktree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// This file moves work between a repository and one on a host. Here, Send sends the commit that a session there
// begins with, Fetch gets what has come of it, and Land lands that. There, Receive and Upload are the other end
// of git, and Save makes a commit of what Fetch is to get. All names of refs have the session's UUID, which the
// side here chooses: no name that a host chooses is used as a ref or as a path.

const (
	sentPrefix  = "refs/duet/hosts/" // here: the commit that was sent, then what was fetched
	fromPrefix  = "refs/duet/from/"  // there: the commit that was sent
	savedPrefix = "refs/duet/saved/" // there: what Save has made
)

// transferLimit is how long git may take to send or fetch.
const transferLimit = 2 * time.Hour

// mostUntracked is the size of an untracked file that is sent.
const mostUntracked = 50 << 20

var (
	validID     = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	validCommit = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

func checkID(id string) error {
	if !validID().MatchString(id) {
		return fmt.Errorf("%.100q is no UUID of a session", id)
	}
	return nil
}

// A Line is how git reaches the repository on a host: commands of this machine that run [Receive] and
// [Upload] there.
type Line struct {
	Host    string   // its name
	Receive []string // with the arguments --id and --commit behind it
	Upload  []string
}

// address returns the address of a command for git, whose helper "ext" runs it.
func address(command []string) string {
	words := slices.Clone(command)
	for i, word := range words {
		words[i] = strings.NewReplacer("%", "%%", " ", "% ").Replace(word)
	}
	return "ext::" + strings.Join(words, " ")
}

// Sent is the result of [Repository.Send].
type Sent struct {
	Worktree            // Name, Top, Dir and Branch are not known yet; Base is the user's commit
	Commit      string  // that was sent: Base, or one behind it with files that are not committed
	Uncommitted int     // files that are sent without being committed
	Left        Listing // untracked files that are too large
	Nested      []string

	files string // the tree of Commit, if files are not committed
}

// Send sends the user's commit to a host, with the files that are not committed in a commit behind it, with which
// the worktree begins in which the session id is to work there. From then on [Repository.Away] knows it. For a session that it
// knows, Send sends the same commit again and changes nothing here. attempts is the id that all attempts at one prompt
// have, or "".
func (r *Repository) Send(ctx context.Context, line Line, id, attempts string) (Sent, error) {
	s, err := r.PrepareSend(ctx, line.Host, id, attempts)
	if err != nil {
		return s, err
	}
	return s, r.users().push(ctx, line, id, s.Commit, s.Base)
}

// checkSent returns an [OverlapError] if the work from one commit to the other has changed files that were sent and
// are still not committed.
func (t tree) checkSent(ctx context.Context, g registration, from, to string) error {
	sent, err := t.diff(ctx, g.Base, g.Sent)
	if err != nil {
		return err
	}
	touched, err := t.diff(ctx, from, to)
	if err != nil {
		return err
	}
	d, err := t.files(ctx, nil)
	if err != nil {
		return err
	}
	lacks := func(list []change, path string) bool {
		return !slices.ContainsFunc(list, func(c change) bool { return c.path == path })
	}
	both := slices.DeleteFunc(d.paths(), func(path string) bool { return lacks(sent, path) || lacks(touched, path) })
	if len(both) > 0 {
		return &OverlapError{Dir: t.top, Paths: both}
	}
	return nil
}

// push sends a commit to the host. A clone there has checkout checked out from then on.
func (t tree) push(ctx context.Context, line Line, id, commit, checkout string) error {
	receive := append(slices.Clone(line.Receive), "--id", id, "--commit", checkout)
	return t.transfer(ctx, line.Host, "push", "--quiet", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no",
		address(receive), "+"+commit+":"+fromPrefix+id)
}

// commitUsers makes a commit of the user's files behind HEAD, unless all are committed.
func (h *held) commitUsers(ctx context.Context) (s Sent, err error) {
	users := h.users()
	if s.Base, err = users.resolve(ctx, "HEAD^{commit}"); err != nil || s.Base == "" {
		return s, errors.Join(ErrNoCommit, err)
	}
	s.Commit = s.Base
	if s.Into, err = users.branch(ctx); err != nil {
		return s, err
	}
	d, err := users.files(ctx, nil)
	if err != nil {
		return s, err
	}
	if d.unmerged {
		return s, &BusyError{Dir: users.top, Operation: unmerged}
	}
	s.Nested = d.nested
	paths := d.changed
	for _, path := range d.untracked {
		info, err := os.Lstat(filepath.Join(users.top, filepath.FromSlash(path)))
		switch {
		case err != nil || !isContent(info.Mode()): // gone meanwhile, or a pipe
		case info.Size() > mostUntracked:
			s.Left.add(path)
		default:
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return s, nil
	}
	m := h.move(users.dir, users.top)
	if err := m.clean(); err != nil {
		return s, err
	}
	defer h.cleanUp(m)
	files, err := users.snapshot(ctx, m.work(), paths)
	if err != nil {
		return s, err
	}
	if before, err := users.resolve(ctx, s.Base+"^{tree}"); err != nil || before == files {
		return s, err
	}
	s.Uncommitted = len(paths)
	const message = "Files that were not committed"
	if s.Commit, err = users.commit(ctx, files, message, nil, s.Base); err != nil { // the user may have no name for commits
		s.Commit, err = users.commit(ctx, files, message, ours, s.Base)
	}
	s.files = files
	return s, err
}

// PrepareSend makes the commit that [Repository.Send] sends to the host, and remembers it. What it returns has more than the result of
// a Send of the same session behind it.
func (r *Repository) PrepareSend(ctx context.Context, host, id, attempts string) (s Sent, err error) {
	if err := checkID(id); err != nil {
		return s, err
	}
	h, err := r.lock(ctx)
	if err != nil {
		return s, err
	}
	defer h.Close()
	known, err := h.away(id)
	if err == nil { // its ref may have work, or a killed process has not made it
		s = Sent{Worktree: known.Worktree, Commit: known.begin()}
		at, err := h.users().resolve(ctx, known.Ref)
		if err == nil && at == "" {
			err = h.users().updateRef(ctx, known.Ref, s.Commit)
		}
		return s, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if s, err = h.commitUsers(ctx); err != nil {
		return s, err
	}
	s.Host, s.Ref = host, sentPrefix+id
	g := registration{record: record{Worktree: s.Worktree, Attempts: attempts, Begins: true}, dir: r.awayDir(id)}
	if s.Commit != s.Base {
		// Once the user has committed these files, a landing begins behind them.
		g.Sent, g.Landings = s.Commit, []landing{{Head: s.Commit, Tree: s.files}}
	}
	if err := durable.MkdirAll(g.dir, 0o700); err != nil {
		return s, err
	}
	if err := g.save(); err != nil { // before the ref, which is found by it
		return s, err
	}
	return s, h.users().updateRef(ctx, s.Ref, s.Commit)
}

// HoldStart says that this process starts the session id, until it closes the result or ends. Then
// [Repository.TakeUnbegun] has the session, unless Note or Forget was called.
func (r *Repository) HoldStart(ctx context.Context, id string) (io.Closer, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	h, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if err := durable.MkdirAll(r.awayDir(id), 0o700); err != nil {
		return nil, err
	}
	return lockFileOf(ctx, filepath.Join(r.awayDir(id), startLock))
}

// startLock is the name of the file that the process has locked that starts a session.
const startLock = "start"

// Unbegun returns the ids of the sessions of a project, by its root, that are being started on hosts, or whose start was cut off.
func Unbegun(root string) (ids []string) {
	repo, found := git.Find(root)
	if !found {
		return nil
	}
	parent := filepath.Join(repo.Common, awayRecords)
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		var of record
		text, err := git.ReadSmall(filepath.Join(parent, e.Name(), recordFile))
		if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal([]byte(text), &of) == nil && of.Begins {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// TakeUnbegun returns a session of [Unbegun] whose start was cut off: its process has ended, and whether it began on the host is
// not known. It is the caller's until lock is closed. found is false if its process runs, or nothing is left of it.
func (r *Repository) TakeUnbegun(ctx context.Context, id string) (s Session, lock io.Closer, found bool, err error) {
	if err := checkID(id); err != nil {
		return s, nil, false, err
	}
	h, err := r.lock(ctx)
	if err != nil {
		return s, nil, false, err
	}
	defer h.Close()
	now, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if lock, err = lockFileOf(now, filepath.Join(r.awayDir(id), startLock)); err != nil {
		return s, nil, false, ctx.Err() // its process runs
	}
	g, err := r.away(id)
	if err == nil && g.Begins {
		return Session{ID: id, Host: g.Host, Ref: g.Ref, Attempts: g.Attempts}, lock, true, nil
	}
	lock.Close()
	if errors.Is(err, fs.ErrNotExist) { // it was killed before it wrote the record
		err = os.RemoveAll(r.awayDir(id))
	}
	return s, nil, false, err
}

// Discarded remembers that the worktree of the session id on its host is deleted.
func (r *Repository) Discarded(ctx context.Context, id string) error {
	h, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	g, err := r.away(id)
	if err != nil {
		return err
	}
	g.Discarding = true
	return g.save()
}

// begin returns the commit with which the work on a host began.
func (g registration) begin() string { return cmp.Or(g.Sent, g.Base) }

// transfer runs a command of git that speaks with a host. Its error has what was said there.
func (t tree) transfer(ctx context.Context, host string, args ...string) error {
	c := git.Command{Args: args, Limit: transferLimit, Env: []string{"GIT_ALLOW_PROTOCOL=ext"}, Stderr: &git.Capped{Left: 64 << 10}}
	_, err := t.do(ctx, c)
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return &TransferError{Host: host, Said: strings.ToValidUTF8(strings.TrimSpace(c.Stderr.String()), "\uFFFD"), err: err}
}

// A TransferError reports that git could not send to a host or fetch from it.
type TransferError struct {
	Host string
	Said string // by git and by what runs there: third-party text of several lines
	err  error
}

func (e *TransferError) Error() string {
	return fmt.Sprintf("%s: %v", e.Host, e.err)
}

func (e *TransferError) Unwrap() error { return e.err }

// awayDir is where the record of a worktree on a host is: in the git directory, with which it moves.
func (r *Repository) awayDir(id string) string { return filepath.Join(r.repo.Common, awayRecords, id) }

const awayRecords = "duet/hosts"

// Away returns the worktree on a host in which a session works that began with [Repository.Send]. Its values
// before the first Fetch are those of [Sent].
func (r *Repository) Away(id string) (w Worktree, found bool, err error) {
	g, err := r.away(id)
	if errors.Is(err, fs.ErrNotExist) {
		return w, false, nil
	}
	return g.Worktree, err == nil, err
}

func (r *Repository) away(id string) (registration, error) {
	if err := checkID(id); err != nil {
		return registration{}, err
	}
	g := registration{dir: r.awayDir(id), gone: true}
	text, err := os.ReadFile(filepath.Join(g.dir, recordFile))
	if err != nil {
		return g, err
	}
	if err := json.Unmarshal(text, &g.record); err != nil || g.Ref != sentPrefix+id {
		return g, errors.Join(fmt.Errorf("%s is damaged", filepath.Join(g.dir, recordFile)), err)
	}
	return g, nil
}

// Fetch gets the commit of a session on a host, as Save has made it there, into the ref of the returned
// worktree. name is that of the worktree there. git checks each object. Fetches of a session wait for each other.
func (r *Repository) Fetch(ctx context.Context, line Line, id, name string) (w Worktree, commit string, err error) {
	g, err := r.away(id)
	if err != nil {
		return w, "", err
	}
	lock, err := lockFileOf(ctx, filepath.Join(g.dir, "lock"))
	if err != nil {
		return w, "", err
	}
	defer lock.Close()
	began := time.Now()
	err = r.users().transfer(ctx, line.Host, "-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
		"--refmap=", "--recurse-submodules=no", "--no-prune", address(line.Upload), "+"+savedPrefix+id+":"+g.Ref)
	if err == nil {
		err = errors.Join(r.repo.Sync(), r.repo.SyncNames(began))
	}
	if err != nil {
		return w, "", err
	}
	h, err := r.lock(ctx)
	if err != nil {
		return w, "", err
	}
	defer h.Close()
	if g, err = r.away(id); err != nil { // a landing may have changed it
		return w, "", err
	}
	if commit, err = h.users().resolve(ctx, g.Ref+"^{commit}"); err != nil || commit == "" {
		return w, "", errors.Join(fmt.Errorf("%s sent no commit", line.Host), err)
	}
	if g.Name, g.Branch = name, branchPrefix+name; !g.isOurs() {
		return w, "", fmt.Errorf("%s: %.100q is no name of a worktree", line.Host, name)
	}
	return g.Worktree, commit, g.save()
}

// A Session is what was seen last of a session that works in a worktree on a host.
type Session struct {
	ID   string `json:"-"` // its UUID
	Host string `json:"-"`
	Ref  string `json:"-"` // of the repository here: the work, as it was fetched last
	// Attempts is the id that all attempts at the same prompt have; "": it is none of several.
	Attempts string    `json:"-"`
	IsGone   bool      `json:"-"` // its worktree on the host is deleted
	Copy     string    `json:"-"` // the file with the transcript, as it was fetched last, in Markdown; it may be missing
	Number   int64     `json:"number"`
	State    string    `json:"state"`
	Agent    string    `json:"agent"`
	Title    string    `json:"title"`
	Active   time.Time `json:"active"`
}

// copyOfSession is the name of [Session].Copy.
const copyOfSession = "session.md"

// Note remembers what was seen of the session id, and its transcript unless that is empty.
func (r *Repository) Note(ctx context.Context, id string, seen Session, transcript []byte) error {
	h, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	g, err := r.away(id)
	if err != nil {
		return err
	}
	g.Session, g.Begins = &seen, false
	if len(transcript) > 0 {
		if err := durable.Replace(filepath.Join(g.dir, copyOfSession), transcript, 0o600); err != nil {
			return err
		}
	}
	return g.save()
}

// SessionsAway returns what was seen last of the sessions on hosts that began with the files of a project, by
// its root. It asks no host and runs no git; what it cannot read it leaves out.
func SessionsAway(root string) (list []Session) {
	repo, found := git.Find(root)
	if !found {
		return nil
	}
	parent := filepath.Join(repo.Common, awayRecords)
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		var of record
		if text, err := git.ReadSmall(filepath.Join(dir, recordFile)); err == nil && json.Unmarshal([]byte(text), &of) == nil && of.Session != nil {
			of.Session.ID, of.Session.Host, of.Session.Ref, of.Session.Copy = e.Name(), of.Host, of.Ref, filepath.Join(dir, copyOfSession)
			of.Session.Attempts, of.Session.IsGone = of.Attempts, of.Discarding
			list = append(list, *of.Session)
		}
	}
	return list
}

// Offer sends a branch to the host of a worktree, or the user's files if branch is "". It returns the name of the
// ref that has them there: the agent can merge it.
func (r *Repository) Offer(ctx context.Context, line Line, w Worktree, branch string) (ref string, err error) {
	commit, checkout, err := r.commitToOffer(ctx, branch)
	if err != nil {
		return "", err
	}
	id := strings.TrimPrefix(w.Ref, sentPrefix)
	return fromPrefix + id, r.users().push(ctx, line, id, commit, checkout)
}

func (r *Repository) commitToOffer(ctx context.Context, branch string) (commit, checkout string, err error) {
	h, err := r.lock(ctx)
	if err != nil {
		return "", "", err
	}
	defer h.Close()
	if branch == "" {
		s, err := h.commitUsers(ctx)
		return s.Commit, s.Base, err
	}
	commit, err = h.users().resolve(ctx, "refs/heads/"+branch+"^{commit}")
	if err == nil && commit == "" {
		err = fmt.Errorf("there is no branch %q", branch)
	}
	return commit, commit, err
}

// IsLanded reports whether a branch has the work of a worktree on a host, as far as it was fetched.
func (r *Repository) IsLanded(ctx context.Context, w Worktree) (bool, error) {
	h, err := r.lock(ctx)
	if err != nil {
		return false, err
	}
	defer h.Close()
	g, err := h.find(w)
	if err != nil {
		return false, err
	}
	_, is, err := h.isLandedAway(ctx, g)
	return is, err
}

func (h *held) isLandedAway(ctx context.Context, g registration) (at string, is bool, err error) {
	users := h.users()
	if at, err = users.resolve(ctx, g.Ref+"^{commit}"); err != nil || at == "" || at == g.begin() {
		return at, err == nil, err
	}
	for _, l := range g.Landings { // perhaps on another branch than Into
		if l.Head != at || l.Result == "" {
			continue
		}
		if on, err := users.run(ctx, "for-each-ref", "--count=1", "--contains", l.Result, "refs/heads"); err == nil && on != "" {
			return at, true, nil
		}
	}
	if g.Into == "" {
		return at, false, nil
	}
	into, err := users.resolve(ctx, "refs/heads/"+g.Into+"^{commit}")
	if err != nil || into == "" {
		return at, false, err
	}
	is, err = users.isLanded(ctx, g, at, into)
	return at, is, err
}

// Forget deletes what is known here of a worktree on a host that is deleted there. Work that was fetched and
// is not landed stays in the returned ref.
func (r *Repository) Forget(ctx context.Context, id string) (ref string, err error) {
	h, err := r.lock(ctx)
	if err != nil {
		return "", err
	}
	defer h.Close()
	g, err := r.away(id)
	if errors.Is(err, fs.ErrNotExist) {
		return "", os.RemoveAll(r.awayDir(id)) // of a start that failed at once
	}
	if err != nil {
		return "", err
	}
	at, isLanded, err := h.isLandedAway(ctx, g)
	if err != nil {
		return "", err
	}
	if !isLanded {
		return g.Ref, nil
	}
	if at != "" {
		if err := h.users().updateRef(ctx, "-d", g.Ref, at); err != nil {
			return "", err
		}
	}
	return "", os.RemoveAll(g.dir)
}

// Drop is Forget for a worktree whose host is gone: only the returned ref stays, of work that was fetched and is not landed.
func (r *Repository) Drop(ctx context.Context, id string) (ref string, err error) {
	if ref, err = r.Forget(ctx, id); err != nil || ref == "" {
		return ref, err
	}
	return ref, os.RemoveAll(r.awayDir(id))
}

// An Author is who makes a commit.
type Author struct{ Name, Email string }

// Author returns the name that the user's commits have; the zero value if git has none.
func (r *Repository) Author(ctx context.Context) (a Author) {
	ident, err := r.users().run(ctx, "var", "GIT_AUTHOR_IDENT")
	name, rest, found := strings.Cut(ident, " <")
	email, _, _ := strings.Cut(rest, ">")
	if err != nil || !found {
		return a
	}
	return Author{Name: name, Email: email}
}

// Saved is the result of [Repository.Save].
type Saved struct {
	Commit string   // what a Fetch gets
	Nested []string // repositories in the worktree, and submodules with work, that are not in it
}

// Save makes a commit of the files of a worktree and keeps it for a Fetch of the session id. The worktree and
// its branch stay as they are, unless landed is the commit of an earlier Save that has these files: then the
// branch has that from now on. by is who made the files that are not committed; the zero value is Duet.
func (r *Repository) Save(ctx context.Context, w Worktree, id string, by Author, landed string) (s Saved, err error) {
	if err := checkID(id); err != nil {
		return s, err
	}
	h, err := r.lock(ctx)
	if err != nil {
		return s, err
	}
	defer h.Close()
	g, err := h.find(w)
	if err != nil {
		return s, err
	}
	head, err := h.head(ctx, g)
	if err != nil {
		return s, err
	}
	s.Commit = head
	if !g.gone {
		own := h.move(g.dir, g.top)
		defer h.cleanUp(own)
		var l Landed
		env := ours
		if by.Name != "" && by.Email != "" {
			env = []string{
				"GIT_AUTHOR_NAME=" + by.Name, "GIT_AUTHOR_EMAIL=" + by.Email, "GIT_COMMITTER_NAME=" + by.Name, "GIT_COMMITTER_EMAIL=" + by.Email,
			}
		}
		if s.Commit, err = h.commitFiles(ctx, g, own, LandOptions{Method: Patch, as: env}, head, &l); err != nil {
			return s, err
		}
		s.Nested = l.Nested
		if landed != "" && s.Commit != head {
			if !validCommit().MatchString(landed) {
				return s, fmt.Errorf("%.100q is no commit", landed)
			}
			if is, err := h.users().isSame(ctx, landed, s.Commit); err == nil && is { // otherwise there is new work
				s.Commit = landed
				own.Old, own.New, own.Commit = head, landed, true
				if err := h.follow(ctx, own); err != nil {
					return s, err
				}
			}
		}
	}
	return s, h.users().updateRef(ctx, savedPrefix+id, s.Commit)
}

// A Receiver is the end of [Repository.Send] on a host.
type Receiver struct {
	Git    string // the path of git; "" looks for it in PATH
	Dir    string // the top of the repository; if it is missing or empty, it becomes a clone
	From   string // which repository sends; a clone gets the commits of one alone
	ID     string // of the session
	Commit string // that a clone has checked out from then on, unless it is in use
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
}

const fromKey = "duet.from"

// Receive receives what a Send sends. No hook runs.
func Receive(ctx context.Context, r Receiver) error {
	if err := checkID(r.ID); err != nil {
		return err
	}
	if !validCommit().MatchString(r.Commit) {
		return fmt.Errorf("%.100q is no commit", r.Commit)
	}
	program, err := programOr(r.Git)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(r.Dir, 0o777); err != nil {
		return err
	}
	dir, err := git.RealPath(r.Dir)
	if err != nil {
		return err
	}
	if err := git.CheckVersion(ctx, program, dir, "work from another machine"); err != nil {
		return err
	}
	if err := makeClone(ctx, program, dir, r.From); err != nil {
		return err
	}
	run := plain(program, dir)
	from, err := run(ctx, git.Command{Args: []string{"config", "--local", "--default", "", "--get", fromKey}})
	if err != nil {
		return err
	}
	if from != "" && from != r.From {
		return fmt.Errorf("%s is a clone for another project, %s: name another directory with --root", dir, from)
	}
	if err := pipeThrough(ctx, program, dir, r.In, r.Out, r.Err, "receive-pack", dir); err != nil {
		return err
	}
	if from == "" {
		return nil // it is a repository of the user
	}
	return settle(ctx, run, r.Commit)
}

// Upload gives the commits that Save has kept to a Fetch. program is the path of git; "" looks for it in PATH.
func Upload(ctx context.Context, program, dir string, in io.Reader, out, errs io.Writer) error {
	program, err := programOr(program)
	if err != nil {
		return err
	}
	repo, found := git.Find(dir)
	if !found {
		return fmt.Errorf("%s is in no git repository", dir)
	}
	return pipeThrough(ctx, program, repo.Top, in, out, errs, "upload-pack", "--strict", repo.Common)
}

func programOr(program string) (string, error) {
	if program != "" {
		return program, nil
	}
	program, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("git is missing: install git 2.39 or later: %w", err)
	}
	return program, nil
}

// unattended are settings of git in the repository on a host: it runs no hook, checks what comes, and has it on
// the disk before it answers.
var unattended = [][2]string{
	{"core.hooksPath", os.DevNull},
	{"core.fsmonitor", "false"},
	{"core.alternateRefsCommand", "true"}, // a program that prints nothing
	{"core.fsync", git.Synced},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"receive.autogc", "false"},
	{"receive.fsckObjects", "true"},
	{"receive.shallowUpdate", "true"},
	{"submodule.recurse", "false"},
	{"advice.detachedHead", "false"},
}

func unattendedEnvironment() []string {
	env := []string{"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=:", "LC_ALL=C", fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(unattended))}
	for i, s := range unattended {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

type runner func(ctx context.Context, c git.Command) (string, error)

// plain returns a function that runs git in a directory.
func plain(program, dir string) runner {
	return func(ctx context.Context, c git.Command) (string, error) {
		c.Env = append(unattendedEnvironment(), c.Env...)
		out, err := git.Run(ctx, program, dir, git.CallersEnvironment(), c)
		return strings.TrimSpace(string(out)), err
	}
}

// pipeThrough runs git as the end of a line.
func pipeThrough(ctx context.Context, program, dir string, in io.Reader, out, errs io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(git.CallersEnvironment(), unattendedEnvironment()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

// makeClone makes a repository of a directory that is empty, or that a killed process has begun.
func makeClone(ctx context.Context, program, dir, from string) error {
	if repo, found := git.Find(dir); found && repo.Top == dir {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	const begun = ".duet-clone-" // by this process, or one that was killed
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), begun) {
			return fmt.Errorf("%s is not empty, and is no git repository: run git init there, or name another directory with --root", dir)
		}
	}
	run := plain(program, dir)
	made, err := os.MkdirTemp(dir, begun)
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--initial-branch=main", "--bare", made},
		{"config", "--file", filepath.Join(made, "config"), "core.bare", "false"},
		{"config", "--file", filepath.Join(made, "config"), fromKey, from},
	} {
		if _, err := run(ctx, git.Command{Args: args}); err != nil {
			return err
		}
	}
	if err := durable.SyncTree(made); err != nil {
		return err
	}
	err = durable.Rename(made, filepath.Join(dir, ".git"))
	if repo, found := git.Find(dir); err != nil && found && repo.Top == dir { // another process was faster
		return durable.SyncDirectory(dir)
	}
	return err
}

// settle has a clone check out a commit, unless a branch is checked out there or files are changed.
func settle(ctx context.Context, run runner, commit string) error {
	// An unborn branch has no commit, and no file.
	_, unborn := run(ctx, git.Command{Args: []string{"rev-parse", "--verify", "--quiet", "HEAD^{commit}"}})
	if unborn == nil {
		if _, err := run(ctx, git.Command{Args: []string{"symbolic-ref", "--quiet", "HEAD"}}); err == nil {
			return nil
		}
		changed, err := run(ctx, git.Command{Args: []string{"status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"}})
		if err != nil || changed != "" {
			return err
		}
	}
	_, err := run(ctx, git.Command{Args: []string{"checkout", "--quiet", "--detach", "--no-recurse-submodules", commit, "--"}})
	return err
}
