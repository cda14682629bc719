package hub

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestChangesOutsideOfCommandsAreNotTheAgents(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	at := must(checkpoint.ChangeTime(path))(t)
	call := func(kind, status string, from, to time.Duration) domain.Item {
		return domain.Item{Kind: domain.ItemTool, ToolKind: kind, Status: status, Created: at.Add(from), Updated: at.Add(to)}
	}
	with := func(item domain.Item, details domain.ToolDetails) domain.Item {
		item.Data = details
		return item
	}
	gone := filepath.Join(dir, "gone", "too")
	for name, c := range map[string]struct {
		item domain.Item
		want bool
	}{
		"during a command":                   {call("execute", "completed", -time.Minute, time.Minute), true},
		"during one that set the clock back": {call("execute", "completed", 5*time.Hour, -time.Minute), true},
		"during a tool of no kind":           {call("", "failed", -time.Minute, time.Minute), true},
		"during one that goes on":            {call("execute", "in_progress", -time.Minute, -time.Minute), true},
		"after it":                           {call("execute", "completed", -2*time.Minute, -time.Minute), false},
		"before it":                          {call("execute", "completed", time.Minute, 2*time.Minute), false},
		"during a tool that reports":         {with(call("edit", "completed", -time.Minute, time.Minute), domain.ToolDetails{Paths: []string{path}, Diffs: []domain.Diff{{Path: path}}}), false},
		"during one that does not":           {call("edit", "completed", -time.Minute, time.Minute), true},
		"of a file that it names":            {with(call("edit", "completed", -time.Minute, time.Minute), domain.ToolDetails{Paths: []string{path, gone}}), true},
		"of one that it does not":            {with(call("edit", "completed", -time.Minute, time.Minute), domain.ToolDetails{Paths: []string{path + "x"}}), false},
		"during no tool":                     {domain.Item{Kind: domain.ItemMessage, Created: at, Updated: at}, false},
	} {
		t.Run(name, func(t *testing.T) {
			spans := commandTimes([]domain.Item{c.item})
			assert.Equal(t, c.want, spans.include(path))
			assert.Equal(t, c.want, spans.include(gone), "the directory tells of deleted files")
		})
	}
}

// A file that the user has saved before the clock was set back may be changed by a command since.
func TestSavedFilesAfterTheClockWasSetBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	changed := must(checkpoint.ChangeTime(path))(t)
	for name, c := range map[string]struct {
		saved time.Time
		want  bool
	}{
		"not set":                  {changed, true},
		"changed since":            {changed.Add(-time.Second), false},
		"set back by hours, since": {time.Now().Add(5 * time.Hour), false},
	} {
		assert.Equal(t, c.want, (&checkpoints{saved: map[string]time.Time{path: c.saved}}).isSaved(path), name)
	}
}
