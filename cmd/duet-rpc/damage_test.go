//go:build unix

package main_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pagesOf are the pages of a database that hold the rows of a table, in their
// order.
func pagesOf(t *testing.T, s *site, table string) (pages []int64, size int64) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.database()+"?mode=ro")
	require.NoError(t, err)
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
				t.Parallel()
				s := newSite(t)
				c := s.start()
				c.subscribe()
				c.awaitEnd(c.launch("tools:60 stream:100", "").SessionID)
				c.leave()
				whole := lasting(c.seen(), 1<<60)
				pages, size := pagesOf(t, s, "events")
				require.Greater(t, len(pages), 10)
				for _, page := range pick(pages) {
					change(t, s, (page-1)*size, bytes.Repeat([]byte{noise}, int(size)))
				}

				c = s.start()
				c.subscribe()
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
				status, issues := c.issues()
				assert.Equal(t, "degraded", status)
				assert.Contains(t, strings.Join(issues, "\n"), "duet-rpc doctor")
				log, err := os.ReadFile(filepath.Join(s.state(), "daemon.log"))
				require.NoError(t, err)
				assert.Equal(t, 1, strings.Count(string(log), "the database is damaged"), "%s", log)
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
			t.Parallel()
			s := newSite(t)
			c := s.start()
			c.subscribe()
			session := c.launch("quiet the words of the prompt", "").SessionID
			c.awaitEnd(session)
			c.leave()
			content, err := os.ReadFile(s.database())
			require.NoError(t, err)
			require.Len(t, damage.new, len(damage.old))
			require.Contains(t, string(content), damage.old)
			for at := 0; ; at += len(damage.old) {
				next := bytes.Index(content[at:], []byte(damage.old))
				if next < 0 {
					break
				}
				at += next
				change(t, s, int64(at), []byte(damage.new))
			}

			c = s.start()
			c.subscribe()
			c.awaitEnd(session)
			var r struct{ Events []object }
			c.call("getConversation", object{"session_id": session}, &r)
			assert.NotEmpty(t, r.Events)
			for _, method := range []string{"listSessions", "fetchApprovals", "task.list"} {
				c.call(method, object{}, nil)
			}
			c.call("searchConversations", object{"query": "words"}, nil)
			c.call("Subscribe", object{"since": 0}, nil)
			status, issues := c.issues()
			assert.Equal(t, "degraded", status)
			assert.Contains(t, strings.Join(issues, "\n"), "duet-rpc doctor")
			out, err := s.command("doctor")
			require.Error(t, err)
			assert.Contains(t, out, "is damaged")
			c.leave()
		})
	}
}
