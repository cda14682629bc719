package filediff_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/filediff"
)

func TestFilesAreNamedAsGitNamesThem(t *testing.T) {
	old, now := "a\n", "b\n"
	for _, c := range []struct {
		path          string
		before, after *string
		head          string
	}{
		{"/p/dir/x", &old, &now, "--- a/dir/x\n+++ b/dir/x\n"},
		{"/elsewhere/x", &old, &now, "--- a//elsewhere/x\n+++ b//elsewhere/x\n"},
		{"/p/x", nil, &now, "--- /dev/null\n+++ b/x\n"},
		{"/p/x", &old, nil, "--- a/x\n+++ /dev/null\n"},
		{"/p/x\ny", &old, &now, "--- \"a/x\\ny\"\n+++ \"b/x\\ny\"\n"},
	} {
		diff := filediff.Unified("/p", c.path, c.before, c.after)
		assert.True(t, strings.HasPrefix(diff, c.head+"@@ "), diff)
	}
	assert.Empty(t, filediff.Unified("/p", "/p/x", &old, &old))
}
