//go:build unix

package worktree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// git does not say that it could not read a commit's name. Whichever name it does not read once, a landing
// that succeeds is complete: the worktree can be discarded.
func TestLandWhereGitReadsNoCommitOnce(t *testing.T) {
	real := testkit.NeedTool(t, "git")
	for n, reached := 1, true; reached; n++ {
		w := newRepository(t, map[string]string{"a": "old\n"})
		count := filepath.Join(w.home, "count")
		w.opts.Git = filepath.Join(w.home, "git")
		testkit.Program(t, w.opts.Git, fmt.Sprintf("#!/bin/sh\ncase $* in *rev-parse*--quiet*)\n\t[ -e '%s' ] && echo >> '%[1]s' && [ $(wc -l < '%[1]s') = %d ] && exit 1;;\nesac\nexec '%s' \"$@\"\n", count, n, real))
		w.open()
		tree := w.create("tree", map[string]string{"a": "new\n"})
		require.NoError(t, os.WriteFile(count, nil, 0o600))
		_, err := w.Land(w.Context(), tree, worktree.LandOptions{Method: worktree.Merge})
		calls := must(os.ReadFile(count))(w)
		require.NoError(t, os.Remove(count))
		reached = len(calls) >= n // a line feed for each
		if err != nil {
			continue
		}
		_, err = w.Discard(w.Context(), tree, worktree.DiscardOptions{})
		require.NoError(t, err, "call %d", n)
		require.Equal(t, "new\n", string(must(os.ReadFile(filepath.Join(w.dir, "a")))(w)), "call %d", n)
	}
}
