package cli

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// projectActiveAt returns a project with a turn for each of the minutes at which it was
// active.
func projectActiveAt(root string, minutes ...int) listedProject {
	l := listedProject{Root: root}
	for _, m := range minutes {
		at := time.Date(2026, 1, 1, 12, m, 0, 0, time.UTC)
		l.read = append(l.read, protocol.Turn{ID: at.String(), ActiveAt: at})
		l.Turns = append(l.Turns, json.RawMessage(`"`+at.String()+`"`))
	}
	return l
}

func TestNewestKeepsMostRecentSessions(t *testing.T) {
	for _, c := range []struct{ most, a, b int }{
		{0, 3, 2}, {5, 3, 2}, {9, 3, 2}, {4, 2, 2}, {3, 1, 2}, {1, 0, 1},
	} {
		l := &listing{Projects: []listedProject{projectActiveAt("a", 8, 4, 1)}, Hosts: []listedOnHost{{Host: "h", Projects: []listedProject{projectActiveAt("b", 9, 7)}}}}
		all, _ := l.projects()
		newest(all, c.most)
		assert.Len(t, all[0].Turns, c.a, "the newest %d", c.most)
		assert.Len(t, all[1].Turns, c.b, "the newest %d", c.most)
		for _, p := range all {
			assert.Len(t, p.read, len(p.Turns))
			assert.NotNil(t, p.Turns, "JSON has a list")
		}
	}
	var order []string
	l := &listing{Projects: []listedProject{projectActiveAt("a", 8, 4, 1)}, Hosts: []listedOnHost{{Host: "h", Projects: []listedProject{projectActiveAt("b", 9, 7)}}}}
	for _, r := range rows(l.projects()) {
		order = append(order, r.project+r.ActiveAt.Format("04"))
	}
	assert.Equal(t, []string{"h:b09", "a08", "h:b07", "a04", "a01"}, order)
}

func TestPathsAreShortened(t *testing.T) {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, filepath.FromSlash("/home/me"))
	}
	for path, want := range map[string]string{"/home/me": "~", "/home/me/p": "~/p", "/home/meant": "/home/meant", "/srv": "/srv"} {
		assert.Equal(t, filepath.FromSlash(want), term.HomePath(filepath.FromSlash(path)))
	}
}
