//go:build unix

package main_test

import (
	"bytes"
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of two processes in one project the second joins the first: it sees what
// that one runs, and answers its questions.
func TestTwoProcessesInOneProject(t *testing.T) {
	s, first := newEditorSite(parallel(t))
	begun, question := first.asks("permit:1 stream:200", "")

	second := s.start()
	second.requireCore()
	second.subscribe()
	require.Contains(t, second.pending(), question.Data.ApprovalID)
	second.approve(question.Data.ApprovalID)
	first.completes(begun)
	second.completes(begun)
	said := first.conversation(begun.SessionID)
	assert.Equal(t, said, second.conversation(begun.SessionID))
	second.leave()
	first.leave()

	third := s.open()
	assert.Equal(t, said, third.conversation(begun.SessionID))
	third.runs("quiet")
	third.leave()
}

// A process that is killed does not keep its project.
func TestTheLockDiesWithItsProcess(t *testing.T) {
	s := newSite(parallel(t))
	first := s.start()
	first.call("task.stats", object{}, nil)
	first.crash()
	second := s.start()
	second.call("task.stats", object{}, nil)
	second.leave()
}

// A database that cannot be used is left as it is, byte for byte, with all
// that lies beside it.
func TestABrokenDatabaseIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, s *site)
		why   string
	}{
		{"random bytes", func(t *testing.T, s *site) {
			noise := make([]byte, 64<<10)
			rand.Read(noise)
			require.NoError(t, os.WriteFile(s.database(), noise, 0o600))
		}, "damaged"},
		{"a few bytes", func(t *testing.T, s *site) {
			require.NoError(t, os.Truncate(s.database(), 50))
		}, "damaged"},
		{"the first page alone", func(t *testing.T, s *site) {
			require.NoError(t, os.Truncate(s.database(), 4096))
		}, "damaged"},
		{"half of it", func(t *testing.T, s *site) {
			info, err := os.Stat(s.database())
			require.NoError(t, err)
			require.NoError(t, os.Truncate(s.database(), info.Size()/2))
		}, "damaged"},
		{"pages of noise behind the first", func(t *testing.T, s *site) {
			content := []byte(readFile(t, s.database()))
			rand.Read(content[4096:])
			require.NoError(t, os.WriteFile(s.database(), content, 0o600))
		}, "damaged"},
		{"a newer format", func(t *testing.T, s *site) {
			db := s.openDatabase("")
			defer db.Close()
			_, err := db.Exec("PRAGMA user_version = 4711")
			require.NoError(t, err)
		}, "newer"},
		{"a directory in its place", func(t *testing.T, s *site) {
			require.NoError(t, os.Remove(s.database()))
			require.NoError(t, os.Mkdir(s.database(), 0o700))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := newEditorSite(parallel(t))
			c.runs("tools:200 stream:100")
			c.leave()
			test.spoil(t, s)
			before := contents(t, s.state())

			c = s.start()
			c.requireCore()
			c.requireUnavailable("duet-rpc doctor")
			c.requireUnavailable(test.why)
			c.requireDegraded("duet-rpc doctor")
			c.requireCore()
			c.leave()
			for path, content := range contents(t, s.state()) {
				if name := filepath.Base(path); name == "lock" || name == "starting" || name == "stopped" || name == "daemon.log" || name == "socket" || name == "project.json" {
					continue
				}
				old, there := before[path]
				assert.True(t, there, "%s is new", path)
				assert.True(t, bytes.Equal(old, content), "%s has changed", path)
				delete(before, path)
			}
			for _, name := range []string{"lock", "starting", "stopped", "daemon.log", "socket", "project.json"} {
				delete(before, filepath.Join(s.state(), name))
			}
			assert.Empty(t, before, "files that are gone")
		})
	}
}

// contents are the files under a directory.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	}))
	return files
}

// The home directory and one that cannot be written are projects as any other, if one says so.
func TestNothingIsPutIntoTheTree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		place func(t *testing.T, s *site)
	}{
		{"the home directory", func(_ *testing.T, s *site) { s.root = s.home }},
		{"a directory that cannot be written", func(t *testing.T, s *site) { readOnly(t, s.root) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(parallel(t))
			test.place(t, s)
			c := s.open()
			begun := c.runs("quiet")
			c.leave()
			require.NoDirExists(t, filepath.Join(s.root, ".duet"))
			info, err := os.Stat(s.state())
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

			c = s.start()
			assert.Equal(t, "completed", c.session(begun.SessionID).State, "it is found again")
			c.leave()
		})
	}
}

// Where nothing at all can be written the core still works.
func TestNoPlaceForState(t *testing.T) {
	s := newSite(parallel(t))
	readOnly(t, s.root)
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "state"), nil, 0o600)) // where a directory would have to be
	c := s.start()
	c.requireCore()
	c.requireUnavailable("state")
	status, _ := c.issues()
	assert.Equal(t, "degraded", status)
	c.leave()
}

// pagesOf are the pages of a database that hold the rows of a table, in their
// order.
func pagesOf(t *testing.T, s *site, table string) (pages []int64, size int64) {
	t.Helper()
	db := s.openDatabase("?mode=ro")
	defer db.Close()
	require.NoError(t, db.QueryRow("PRAGMA page_size").Scan(&size))
	rows, err := db.Query("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", table)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var page int64
		require.NoError(t, rows.Scan(&page))
		pages = append(pages, page)
	}
	require.NoError(t, rows.Err())
	return pages, size
}

// change changes what some bytes of a database are.
func change(t *testing.T, s *site, at int64, to []byte) {
	t.Helper()
	f, err := os.OpenFile(s.database(), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt(to, at)
	require.NoError(t, err)
}

// A subscriber to a log of which pages are damaged learns which part is
// missing, and all the rest; health and doctor say what is wrong.
func TestDamagedLogIsTold(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func(pages []int64) []int64{
		"one page":   func(p []int64) []int64 { return p[len(p)/2 : len(p)/2+1] },
		"some pages": func(p []int64) []int64 { return []int64{p[2], p[3], p[4], p[len(p)/2]} },
		"nearly all": func(p []int64) []int64 { return p[1 : len(p)-1] },
	} {
		for kind, noise := range map[string]byte{"zeros": 0, "ones": 0xff, "text": 'x'} {
			if name == "some pages" && kind != "ones" {
				continue
			}
			t.Run(name+" of "+kind, func(t *testing.T) {
				s, c := newEditorSite(parallel(t))
				c.runs("tools:60 stream:100")
				c.leave()
				whole := lasting(c.seen(), 1<<60)
				pages, size := pagesOf(t, s, "events")
				require.Greater(t, len(pages), 10)
				for _, page := range pick(pages) {
					change(t, s, (page-1)*size, bytes.Repeat([]byte{noise}, int(size)))
				}

				c = s.open()
				reported := c.await("that the log is damaged", func(e event) bool { return e.Type == "log_damaged" })
				assert.Contains(t, reported.Data.Message, "duet-rpc doctor")
				// New events arrive as ever, where they can be kept.
				var begun launched
				if c.try("launchSession", object{"query": "quiet"}, &begun) == nil {
					c.awaitEnd(begun.SessionID)
				}
				missing, last := make(map[int64]bool), int64(0)
				for _, e := range c.seen() {
					if e.Type != "log_damaged" || e.Seq == 0 {
						continue
					}
					for seq := e.Data.FromSeq; seq <= e.Data.ToSeq; seq++ {
						missing[seq] = true
					}
					last = e.Data.ToSeq
				}
				assert.NotEmpty(t, missing)
				if name != "nearly all" {
					assert.Less(t, len(missing), len(whole), "most can be read")
				}
				now := lasting(c.seen(), 1<<60)
				for seq, e := range whole {
					if !missing[seq] {
						assert.Equal(t, e, now[seq], "%d is neither reported nor missing", seq)
					}
				}
				assert.NotZero(t, last)
				requireRising(t, c.seen())
				c.requireDegraded("duet-rpc doctor")
				log := readFile(t, filepath.Join(s.state(), "daemon.log"))
				assert.Equal(t, 1, strings.Count(log, "the database is damaged"), "%s", log)
				c.closeStdin()
				c.requireGoodEnd()
			})
		}
	}
}

// What of a damaged database can be read goes out as UTF-8 and JSON, whatever it
// is.
func TestDamagedTextsAreMended(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]struct{ old, new string }{
		"UTF-8 in JSON": {`"type":"message","key"`, "\"type\":\"mess\xff\xc3e\",\"key\""},
		"no JSON":       {`"type":"message","key"`, `"type" x"message,"key"`},
		"a plain text":  {"the words of the prompt", "the words\xff of th\xf0prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newEditorSite(parallel(t))
			session := c.launch("quiet the words of the prompt", "").SessionID
			c.awaitEnd(session)
			c.leave()
			content := readFile(t, s.database())
			require.Len(t, damage.new, len(damage.old))
			require.Contains(t, content, damage.old)
			for at := 0; ; at += len(damage.old) {
				next := strings.Index(content[at:], damage.old)
				if next < 0 {
					break
				}
				at += next
				change(t, s, int64(at), []byte(damage.new))
			}

			c = s.open()
			c.awaitEnd(session)
			var r struct{ Events []object }
			c.call("getConversation", object{"session_id": session}, &r)
			assert.NotEmpty(t, r.Events)
			for _, method := range []string{"listSessions", "fetchApprovals", "task.list"} {
				c.call(method, object{}, nil)
			}
			c.call("searchConversations", object{"query": "words"}, nil)
			c.call("Subscribe", object{"since": 0}, nil)
			c.requireDegraded("duet-rpc doctor")
			out, err := s.command("doctor")
			require.Error(t, err)
			assert.Contains(t, out, "is damaged")
			c.leave()
		})
	}
}
