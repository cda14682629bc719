package trigger

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The expectations of the other tests are git's behaviour, and this package agrees with git on the
// whole pattern file.
func TestGitIgnoresTheSame(t *testing.T) {
	git := testkit.NeedTool(t, "git")
	dir := t.TempDir()
	out, err := exec.Command(git, "init", "-q", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(strings.Join(patternsOfGit, "\n")), 0o644))
	w := &tree{root: dir, ignores: map[string]list{".": readList(filepath.Join(dir, ".gitignore"))}}
	for _, file := range slices.Concat(ignoredByGit, keptByGit) {
		write(t, dir, file)
		err := exec.Command(git, "-C", dir, "check-ignore", "-q", "--no-index", file).Run()
		assert.Equal(t, err == nil, slices.Contains(ignoredByGit, file), "%q", file)
		assert.Equal(t, err == nil, isIgnoredIn(w, file), "%q", file)
	}
}
