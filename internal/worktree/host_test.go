//go:build unix

package worktree_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

const sessionID = "01a23002-b0df-7d22-91cf-a2eff9a10376"

// numbered returns the UUID of another session.
func numbered(n int) string { return fmt.Sprintf("01a23002-b0df-7d22-91cf-%012x", n) }

// away is a repository on a host, which git reaches by other processes.
type away struct {
	*world
	line worktree.Line
}

// newAway returns a host without the repository of w. git is the program there; "" is git.
func newAway(w *world, git string) *away {
	home := w.TempDir()
	a := &away{world: &world{TB: w.TB, home: home, dir: filepath.Join(home, "src", "my project")}}
	a.opts = worktree.Options{Dir: a.dir, Parent: filepath.Join(home, "worktrees"), Git: git}
	command := func(do string) []string {
		task := must(json.Marshal(helperTask{Do: do, Options: a.opts}))(w)
		return []string{"env", "HOME=" + os.Getenv("HOME"), helperVariable + "=" + string(task), os.Args[0]}
	}
	a.line = worktree.Line{Host: "far", Receive: command("receive"), Upload: command("upload")}
	return a
}

// begin has a session begin on the host with the files of w, and returns its worktree there.
func (a *away) begin(w *world) (worktree.Sent, worktree.Worktree) {
	a.Helper()
	sent := must(w.Send(a.Context(), a.line, sessionID, ""))(a)
	a.open()
	return sent, must(a.Create(a.Context(), "Fix it", sent.Commit))(a)
}

// fetch fetches the files of a worktree on the host.
func (a *away) fetch(w *world, there worktree.Worktree) (worktree.Worktree, worktree.Saved) {
	a.Helper()
	saved := must(a.Save(a.Context(), there, sessionID, w.Author(a.Context()), ""))(a)
	of, commit, err := w.Fetch(a.Context(), a.line, sessionID, there.Name)
	require.NoError(a, err)
	assert.Equal(a, saved.Commit, commit)
	return of, saved
}

// A session that works on a host begins with all files here, and its work lands here with each method, again
// and again.
func TestWorkOnAHost(t *testing.T) {
	t.Parallel()
	for _, method := range mainMethods() {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n", "b": "1\n", ".gitignore": "*.log\n"})
			head := w.id(w.dir, "HEAD")
			testkit.WriteFiles(t, w.dir, map[string]string{"a": "dirty\n", "new": "n\n", "x.log": "ignored"})
			require.NoError(t, os.WriteFile(filepath.Join(w.dir, "huge"), nil, 0o600))
			require.NoError(t, os.Truncate(filepath.Join(w.dir, "huge"), 50<<20+1))
			before := w.open().state()
			far := newAway(w, "")
			sent, there := far.begin(w)
			assert.Equal(t, 2, sent.Uncommitted)
			assert.Equal(t, worktree.Listing{Count: 1, First: []string{"huge"}}, sent.Left)
			after := w.state()
			delete(before, "refs")
			delete(after, "refs")
			assert.Equal(t, before, after)
			assert.Equal(t, "1\n", testkit.ReadFiles(t, far.dir)["a"], "a clone has what is committed")
			assert.Equal(t, head, far.id(far.dir, "HEAD"))
			assert.Equal(t, map[string]string{"a": "dirty\n", "b": "1\n", "new": "n\n", ".gitignore": "*.log\n"}, testkit.ReadFiles(t, there.Top))

			require.NoError(t, os.Remove(filepath.Join(w.dir, "huge")))
			w.git("add", "-A")
			w.git("commit", "-q", "-m", "mine")
			far.commit(there.Top, map[string]string{"b": "2\n", "a": "dirty and more\n"})
			testkit.WriteFiles(t, there.Top, map[string]string{"c": "3\n"})
			of, saved := far.fetch(w, there)
			assert.Equal(t, "?? c\n", gitIn(t, there.Top, "status", "--porcelain"), "the worktree stays as it is")
			assert.Equal(t, "User <user@localhost>\n", w.git("log", "-1", "--format=%an <%ae>", of.Ref))
			is := must(w.IsLanded(t.Context(), of))(t)
			assert.False(t, is)
			landed := w.land(of, method)
			assert.ElementsMatch(t, []string{"a", "b", "c"}, landed.Files)
			assert.Equal(t, map[string]string{"a": "dirty and more\n", "new": "n\n", "b": "2\n", "c": "3\n", "x.log": "ignored", ".gitignore": "*.log\n"}, testkit.ReadFiles(t, w.dir))
			must(far.Save(t.Context(), there, sessionID, worktree.Author{}, saved.Commit))(t)
			assert.Empty(t, gitIn(t, there.Top, "status", "--porcelain"), "it continues from what was landed")
			assert.Equal(t, saved.Commit, far.id(there.Top, "HEAD"))

			of, _ = far.fetch(w, there)
			assert.Empty(t, w.land(of, method).Files)
			testkit.WriteFiles(t, there.Top, map[string]string{"c": "4\n"})
			of, _ = far.fetch(w, there)
			w.open() // another process
			assert.Equal(t, []string{"c"}, w.land(of, method).Files)
			if method == worktree.Patch {
				assert.False(t, must(w.IsLanded(t.Context(), of))(t), "no branch has it yet")
				w.commit(w.dir, nil)
			}
			assert.True(t, must(w.IsLanded(t.Context(), of))(t))
			must(far.Discard(t.Context(), there, worktree.DiscardOptions{Force: true, Session: sessionID}))(t)
			assert.Empty(t, must(w.Forget(t.Context(), sessionID))(t))
			assert.NotContains(t, w.git("for-each-ref"), "refs/duet/hosts")
			assert.NotContains(t, far.git("for-each-ref"), sessionID)
			_, found, err := w.Away(sessionID)
			require.NoError(t, err)
			assert.False(t, found)
			w.healthy()
			far.healthy()
		})
	}
}

// Work that conflicts changes nothing here; the agent there gets the branch, merges, and its work lands.
func TestConflictWithWorkOnAHost(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"}).open()
	far := newAway(w, "")
	_, there := far.begin(w)
	testkit.WriteFiles(t, there.Top, map[string]string{"a": "theirs\n"})
	w.commit(w.dir, map[string]string{"a": "mine\n"})
	of, _ := far.fetch(w, there)
	var conflict *worktree.ConflictError
	require.ErrorAs(t, errorOf(w.Land(t.Context(), of, worktree.LandOptions{Method: worktree.Merge})), &conflict)
	assert.Equal(t, "mine\n", testkit.ReadFiles(t, w.dir)["a"])
	ref := must(w.Offer(t.Context(), far.line, of, of.Into))(t)
	gitIn(t, there.Top, "commit", "-qam", "theirs")
	_, err := runIn(there.Top, "merge", ref)
	require.Error(t, err)
	far.commit(there.Top, map[string]string{"a": "both\n"})
	of, _ = far.fetch(w, there)
	w.land(of, worktree.Merge)
	assert.Equal(t, "both\n", testkit.ReadFiles(t, w.dir)["a"])
	require.ErrorContains(t, errorOf(far.Land(t.Context(), there, worktree.LandOptions{Method: worktree.Patch, Session: sessionID})), "began with the files of another machine (here:/project): land its work there")
	// The user's files that are not committed are offered, too.
	testkit.WriteFiles(t, there.Top, map[string]string{"a": "theirs again\n"})
	testkit.WriteFiles(t, w.dir, map[string]string{"a": "dirty\n"})
	of, _ = far.fetch(w, there)
	require.ErrorAs(t, errorOf(w.Land(t.Context(), of, worktree.LandOptions{Method: worktree.Patch})), &conflict)
	ref = must(w.Offer(t.Context(), far.line, of, ""))(t)
	assert.Equal(t, "dirty\n", far.git("show", ref+":a"))
	w.git("checkout", "-q", "--", "a")
	assert.Empty(t, worktree.SessionsAway(w.dir))
	seen := worktree.Session{Number: 3, State: "completed", Agent: "demo", Title: "Fix it", Active: time.Unix(1, 0).UTC()}
	require.NoError(t, w.Note(t.Context(), sessionID, seen, []byte("# Fix it\n")))
	known := worktree.SessionsAway(w.dir)
	require.Len(t, known, 1)
	assert.Equal(t, "# Fix it\n", string(must(os.ReadFile(known[0].Copy))(t)))
	seen.ID, seen.Host, seen.Ref, seen.Copy = sessionID, "far", of.Ref, known[0].Copy
	assert.Equal(t, seen, known[0])
	// Work that is not landed stays.
	testkit.WriteFiles(t, there.Top, map[string]string{"a": "more\n"})
	of, saved := far.fetch(w, there)
	assert.Equal(t, of.Ref, must(w.Forget(t.Context(), sessionID))(t))
	assert.Equal(t, saved.Commit, w.id(w.dir, of.Ref))
}

// Neither side runs what a repository names, and no object is taken that points out of a tree.
func TestHostileRepositoryOnAHost(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n", ".gitattributes": "* filter=evil diff=evil merge=evil text\n"})
	ran := filepath.Join(w.home, "ran")
	script := testkit.Program(t, filepath.Join(w.home, "script"), "#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n")
	testkit.HostileRepository(t, w.dir, script)
	far := newAway(w, "")
	gitIn(t, w.home, "clone", "-q", "--no-checkout", w.dir, far.dir) // a repository of the user there
	gitIn(t, far.dir, "reset", "-q", "--hard")
	_ = os.Remove(ran) // git itself has run the hooks of the user
	testkit.HostileRepository(t, far.dir, script)
	w.open()
	_, there := far.begin(w)
	testkit.WriteFiles(t, there.Top, map[string]string{"b": "b\n"})
	of, _ := far.fetch(w, there)
	w.land(of, worktree.Merge)
	text, _ := os.ReadFile(ran)
	assert.Empty(t, string(text))

	for name, entry := range map[string]string{
		"out of the tree": "100644 blob %s\t..", "of git": "100644 blob %s\t.git", "of git, in other letters": "100644 blob %s\t.Git",
	} {
		blob := far.id(far.dir, "HEAD:a")
		entries := filepath.Join(far.home, "entries")
		require.NoError(t, os.WriteFile(entries, fmt.Appendf(nil, entry+"\n", blob), 0o600))
		commit := shell(t, far.dir, `git commit-tree -m x $(git mktree <"$0")`, entries)
		gitIn(t, far.dir, "update-ref", "refs/duet/saved/"+sessionID, commit)
		_, _, err := w.Fetch(t.Context(), far.line, sessionID, there.Name)
		var failed *worktree.TransferError
		require.ErrorAs(t, err, &failed, name)
		assert.Contains(t, failed.Said, "fsck", name)
		assert.NotEqual(t, commit, w.id(w.dir, of.Ref), name)
	}
	gitIn(t, far.dir, "update-ref", "refs/duet/saved/"+sessionID, "HEAD")
	for _, name := range []string{"../../x", "-x", "", "a/b", "x.lock"} {
		_, _, err := w.Fetch(t.Context(), far.line, sessionID, name)
		require.ErrorContains(t, err, "is no name of a worktree")
	}
	_, _, err := w.Fetch(t.Context(), far.line, "../x", there.Name)
	require.ErrorContains(t, err, "is no UUID")
	w.healthy()
}

// shell runs a script and returns its output.
func shell(t testing.TB, dir, script string, args ...string) string {
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script}, args...)...)
	cmd.Dir = dir
	return strings.TrimSpace(string(must(cmd.Output())(t)))
}

func TestHostRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(far *away)
		want    string
	}{
		"other files": {func(far *away) { testkit.WriteFiles(far, far.dir, map[string]string{"x": "x"}) }, "is not empty, and is no git repository"},
		"another project": {func(far *away) {
			gitIn(far, far.home, "init", "-q", far.dir)
			far.git("config", "duet.from", "other:/x")
		}, "is a clone for another project, other:/x"},
		"a file": {func(far *away) { testkit.WriteFiles(far, filepath.Dir(far.dir), map[string]string{"my project": "x"}) }, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n"}).open()
			far := newAway(w, "")
			c.prepare(far)
			_, err := w.Send(t.Context(), far.line, sessionID, "")
			var failed *worktree.TransferError
			require.ErrorAs(t, err, &failed)
			assert.Contains(t, failed.Said, c.want)
		})
	}
}

// A clone follows the commits that are sent, unless it has changes or a branch of its own.
func TestCloneFollows(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"}).open()
	far := newAway(w, "")
	sessions := 0
	send := func() worktree.Sent {
		sessions++
		return must(w.Send(t.Context(), far.line, numbered(sessions), ""))(t)
	}
	send()
	w.commit(w.dir, map[string]string{"a": "2\n"})
	send()
	assert.Equal(t, "2\n", testkit.ReadFiles(t, far.dir)["a"])
	testkit.WriteFiles(t, far.dir, map[string]string{"a": "work\n"})
	w.commit(w.dir, map[string]string{"a": "3\n"})
	send()
	assert.Equal(t, "work\n", testkit.ReadFiles(t, far.dir)["a"])
	far.git("checkout", "-q", "-b", "work")
	far.git("commit", "-qam", "work")
	send()
	assert.Equal(t, "work\n", testkit.ReadFiles(t, far.dir)["a"])
	assert.Equal(t, w.id(w.dir, "HEAD"), far.id(far.dir, "refs/duet/from/"+numbered(sessions)))
}

// A start that was cut off is found once its process has ended, until the session is seen or forgotten.
func TestStartThatWasCutOff(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"}).open()
	far := newAway(w, "")
	take := func() (found bool) {
		t.Helper()
		assert.Equal(t, []string{sessionID}, worktree.Unbegun(w.dir))
		s, lock, found, err := w.TakeUnbegun(t.Context(), sessionID)
		require.NoError(t, err)
		if found {
			assert.Equal(t, worktree.Session{ID: sessionID, Host: "far", Ref: "refs/duet/hosts/" + sessionID, Attempts: "several"}, s)
			require.NoError(t, lock.Close())
		}
		return found
	}
	start := must(w.HoldStart(t.Context(), sessionID))(t)
	assert.False(t, take(), "its process runs")
	must(w.Send(t.Context(), far.line, sessionID, "several"))(t)
	assert.False(t, take(), "its process runs")
	require.NoError(t, start.Close())
	assert.True(t, take())
	require.NoError(t, w.Note(t.Context(), sessionID, worktree.Session{Number: 1}, nil))
	assert.Empty(t, worktree.Unbegun(w.dir))
	assert.Len(t, worktree.SessionsAway(w.dir), 1)

	other := numbered(1)
	start = must(w.HoldStart(t.Context(), other))(t)
	require.NoError(t, start.Close())
	_, _, found, err := w.TakeUnbegun(t.Context(), other)
	require.NoError(t, err)
	assert.False(t, found, "it was cut off before anything was sent")
	assert.Empty(t, worktree.Unbegun(w.dir))
}

// Files that were sent to a host are no loss there.
func TestSentFilesAreNoLoss(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	testkit.WriteFiles(t, w.dir, map[string]string{"b": "not committed\n"})
	w.open()
	far := newAway(w, "")
	_, there := far.begin(w)
	assert.False(t, must(far.Losses(t.Context(), there))(t).Any())
	far.commit(there.Top, map[string]string{"c": "work\n"})
	assert.Equal(t, 1, must(far.Losses(t.Context(), there))(t).Commits.Count)
}

// Each git process of a transfer is killed, on either side: then the next attempt does it all, and nothing that
// was here is lost.
func TestTransferIsKilled(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name string
		far  bool
	}{
		{"commit-tree", false},
		{"update-ref", false},
		{"push", false},
		{"init", true},
		{"config", true},
		{"receive-pack", true},
		{"checkout", true},
		{"-c", false}, // fetch
		{"upload-pack", true},
	} {
		for j, script := range []string{killedBefore, killedAfter} {
			if !testkit.Soak && i%2 != j {
				continue
			}
			t.Run(c.name+strings.ReplaceAll(script, " ", "-")[:8], func(t *testing.T) {
				t.Parallel()
				w := newRepository(t, map[string]string{"a": "1\n"})
				testkit.WriteFiles(t, w.dir, map[string]string{"b": "b\n"})
				git := ""
				killed := killedGit(w, c.name, 1, script)
				if c.far {
					git = killed
				} else {
					w.opts.Git = killed
				}
				w.open()
				far := newAway(w, git)
				before := testkit.ReadFiles(t, w.dir)
				sent, err := w.Send(t.Context(), far.line, sessionID, "")
				if err != nil {
					sent = must(w.Send(t.Context(), far.line, sessionID, ""))(t)
				}
				far.opts.Git = ""
				far.open()
				there := must(far.Create(t.Context(), "x", sent.Commit))(t)
				testkit.WriteFiles(t, there.Top, map[string]string{"c": "c\n"})
				saved := must(far.Save(t.Context(), there, sessionID, worktree.Author{}, ""))(t)
				of, _, err := w.Fetch(t.Context(), far.line, sessionID, there.Name)
				if err != nil {
					assert.Equal(t, sent.Commit, w.id(w.dir, "refs/duet/hosts/"+sessionID))
					of, _, err = w.Fetch(t.Context(), far.line, sessionID, there.Name)
					require.NoError(t, err)
				}
				assert.Equal(t, saved.Commit, w.id(w.dir, of.Ref))
				assert.Equal(t, before, testkit.ReadFiles(t, w.dir))
				w.land(of, worktree.Patch)
				assert.Equal(t, map[string]string{"a": "1\n", "b": "b\n", "c": "c\n"}, testkit.ReadFiles(t, w.dir))
				w.healthy()
			})
		}
	}
}

// Send of one changed file of 100,000, to a host that has the commit.
func BenchmarkSend(b *testing.B) {
	files := make(map[string]string)
	for i := range 100_000 {
		files[fmt.Sprintf("d%d/f%d", i/100, i)] = fmt.Sprintln("file", i)
	}
	w := newRepository(b, files)
	w.git("gc", "-q") // objects of the last two minutes are synced again each time
	far := newAway(w.open(), "")
	must(w.Send(b.Context(), far.line, sessionID, ""))(b)
	for _, of := range []*world{w, far.world} { // git reads each file that is as new as its index
		old := time.Now().Add(-time.Hour)
		for name := range files {
			require.NoError(b, os.Chtimes(filepath.Join(of.dir, name), old, old))
		}
		of.git("update-index", "-q", "--refresh")
	}
	for i := 0; b.Loop(); i++ {
		require.NoError(b, os.WriteFile(filepath.Join(w.dir, "d0", "f0"), fmt.Append(nil, i), 0o600))
		must(w.Send(b.Context(), far.line, numbered(i), ""))(b)
	}
}

// Files that are still not committed stay the user's, when the work lands that began with them.
func TestLandBesideUncommittedFiles(t *testing.T) {
	t.Parallel()
	for _, method := range []worktree.Method{worktree.Merge, worktree.Squash} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n"}).open()
			testkit.WriteFiles(t, w.dir, map[string]string{"a": "dirty\n", "new": "n\n"})
			far := newAway(w, "")
			sent, there := far.begin(w)
			far.commit(there.Top, map[string]string{"b": "b\n"})
			testkit.WriteFiles(t, there.Top, map[string]string{"c": "c\n"})
			of, saved := far.fetch(w, there)
			assert.Equal(t, []string{"b", "c"}, w.land(of, method).Files)
			must(far.Save(t.Context(), there, sessionID, worktree.Author{}, saved.Commit))(t)
			assert.Equal(t, " M a\n?? new\n", w.git("status", "--porcelain"))
			assert.Equal(t, "dirty\n", testkit.ReadFiles(t, w.dir)["a"])
			assert.NotContains(t, w.git("log", "--format=%s", "main"), "Files that were not committed")

			// A start that is sent again changes nothing here.
			again := must(w.Send(t.Context(), far.line, sessionID, ""))(t)
			assert.Equal(t, sent.Commit, again.Commit)
			assert.Equal(t, saved.Commit, w.id(w.dir, of.Ref))

			// Work on them waits until they are committed.
			testkit.WriteFiles(t, there.Top, map[string]string{"a": "dirty and more\n", "c": "c2\n"})
			of, _ = far.fetch(w, there)
			var overlap *worktree.OverlapError
			require.ErrorAs(t, errorOf(w.Land(t.Context(), of, worktree.LandOptions{Method: method})), &overlap)
			assert.Equal(t, []string{"a"}, overlap.Paths)
			w.git("add", "-A")
			w.git("commit", "-qm", "mine")
			w.land(of, method)
			assert.Equal(t, map[string]string{"a": "dirty and more\n", "b": "b\n", "c": "c2\n", "new": "n\n"}, testkit.ReadFiles(t, w.dir))
			assert.Empty(t, w.git("status", "--porcelain"))
			w.healthy()
		})
	}
}

// Files that were sent and then dropped here do not come back with the work.
func TestDroppedFilesStayDropped(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"}).open()
	testkit.WriteFiles(t, w.dir, map[string]string{"a": "experiment\n"})
	far := newAway(w, "")
	_, there := far.begin(w)
	testkit.WriteFiles(t, there.Top, map[string]string{"b": "b\n"})
	w.git("checkout", "-q", "--", "a")
	of, _ := far.fetch(w, there)
	assert.Equal(t, []string{"b"}, w.land(of, worktree.Merge).Files)
	assert.Equal(t, map[string]string{"a": "1\n", "b": "b\n"}, testkit.ReadFiles(t, w.dir))

	// Work that was landed and taken back is not landed.
	assert.True(t, must(w.IsLanded(t.Context(), of))(t))
	w.git("reset", "-q", "--hard", "HEAD~1")
	assert.False(t, must(w.IsLanded(t.Context(), of))(t))
	w.land(of, worktree.Patch)
	assert.Equal(t, map[string]string{"a": "1\n", "b": "b\n"}, testkit.ReadFiles(t, w.dir))
	assert.Equal(t, of.Ref, must(w.Forget(t.Context(), sessionID))(t))
}
