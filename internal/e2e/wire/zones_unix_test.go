//go:build unix

package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// zoneFile returns a file of a time zone in the format of tzfile(5), version 1, with one offset from
// UTC. A machine need not have a database of time zones.
func zoneFile(name string, offset time.Duration) string {
	var b bytes.Buffer
	b.WriteString("TZif" + strings.Repeat("\x00", 16))
	abbreviation := name + "\x00"
	for _, count := range []int{0, 0, 0, 0, 1, len(abbreviation)} {
		_ = binary.Write(&b, binary.BigEndian, int32(count))
	}
	_ = binary.Write(&b, binary.BigEndian, int32(offset/time.Second))
	b.WriteString("\x00\x00" + abbreviation) // no daylight saving time, and the first abbreviation
	return b.String()
}

// localTime matches a time with an offset from UTC.
var localTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[0-9.]* ?[+-]\d\d:?\d\d`)

// What the program stores and sends has times in UTC, wherever it runs.
func TestTimesAreInUTC(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"EAST": 14 * time.Hour, "WEST": -(3*time.Hour + 30*time.Minute)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := e2e.NewSite(t)
			zone := filepath.Join(s.Home, name)
			e2e.WriteFile(t, zone, zoneFile(name, offset))
			s.Env = append(s.Env, "TZ="+zone)
			c := s.Open()
			seen := func(what, text string) {
				assert.Empty(t, localTime.FindAllString(text, -1), "%s: %s", what, text)
			}
			read := func(method string, params object) {
				var result json.RawMessage
				c.Call(method, params, &result)
				seen(method, string(result))
			}
			l := c.Begins("launchSession", object{"query": "quiet permit:1", "dangerously_skip_permissions": false})
			question := c.AwaitQuestion(l.SessionID)
			id := object{"session_id": l.SessionID}
			read("fetchApprovals", object{})
			c.Approve(question.Data.ApprovalID)
			c.Completes(l)
			read("getApproval", object{"approval_id": question.Data.ApprovalID})
			skips := c.Begins("launchSession", object{"query": "hello", "dangerously_skip_permissions": true, "dangerously_skip_permissions_timeout": 3_600_000})
			c.Completes(skips)
			read("getSessionState", object{"session_id": skips.SessionID})
			read("updateSessionSettings", object{"session_id": l.SessionID, "dangerously_skip_permissions": true, "dangerously_skip_permissions_timeout_ms": 3_600_000})
			c.Begins("launchSession", object{"query": "later", "draft": true})
			for _, method := range []string{"getSessionState", "getConversation", "getSessionSnapshots"} {
				read(method, id)
			}
			read("session.get", object{"session": l.SessionID})
			read("change.list", object{"turn": l.SessionID})
			for _, method := range []string{"listSessions", "getSessionLeaves", "getRecentPaths", "task.list", "usage.get", "daemon.status", "ping", "health", "agent.list", "rule.list", "terminal.list", "automation.status", "trigger.log", "preview.messages"} {
				read(method, object{})
			}
			seen("events", s.Run("events", "--no-follow", "--since", "0", "--json"))
			c.Leave()
			s.EndDaemons()

			db := s.OpenDatabase("?mode=ro")
			tables, err := db.Query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'items_text%' AND name NOT LIKE 'sqlite_%'")
			require.NoError(t, err)
			var names []string
			for tables.Next() {
				var name string
				require.NoError(t, tables.Scan(&name))
				names = append(names, name)
			}
			require.NoError(t, tables.Err())
			for _, name := range names {
				rows, err := db.Query("SELECT * FROM " + name)
				require.NoError(t, err)
				columns, err := rows.Columns()
				require.NoError(t, err)
				for rows.Next() {
					values := make([]any, len(columns))
					for i := range values {
						values[i] = new(any)
					}
					require.NoError(t, rows.Scan(values...))
					for i, v := range values {
						seen(name+"."+columns[i], fmt.Sprintf("%s", *v.(*any)))
					}
				}
				require.NoError(t, rows.Err())
			}
		})
	}
}
