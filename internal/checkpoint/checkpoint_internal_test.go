package checkpoint

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTagIsReadBack(t *testing.T) {
	for _, c := range []Checkpoint{
		{Message: ""},
		{Message: "one line"},
		{Message: "\n\nlines\n\n"},
		{Message: "x" + skippedHead + "special \"y\"\n"},
		{Message: skippedHead},
		{Message: "m", Skipped: []Skipped{{Path: "a b\n\xff\"", Reason: TooLarge}, {Path: "c", Reason: Nested}}, MoreSkipped: 3},
	} {
		c.tree, c.Time = "4b825dc642cb6eb9a060e54bf8d69288fbee4904", time.Unix(1700000000, 0)
		got, ok := parseTag(c.tag())
		assert.True(t, ok)
		assert.Equal(t, c, got)
	}
	for _, foreign := range []string{"", "object x\ntype commit\ntag v1\ntagger a <b> 1 +0000\n\nrelease\n", "object x\ntype tree\ntag v1\ntagger a <b> 1 +0000\n\nno list\n"} {
		_, ok := parseTag(foreign)
		assert.False(t, ok, foreign)
	}
}

// A value of a project's configuration cannot add a setting.
func TestConfigurationTakesOverWords(t *testing.T) {
	plain := configuration(nil, true, "false")
	for _, value := range []string{"", "a b", "true\n[core]\n\tfsmonitor = x", "\"", "#", "ignorecaseignorecaseignorecase"} {
		users := map[string]string{"core.filter.x.clean": value, "core.fsmonitor": "true"}
		for _, name := range []string{"extensions.objectformat", "core.sharedrepository", "core.ignorecase", "core.symlinks"} {
			users[name] = value
		}
		assert.Equal(t, plain, configuration(users, true, "false"), value)
	}
	assert.Contains(t, configuration(map[string]string{"core.ignorecase": "true"}, false, "false"), "ignorecase = true")
}
