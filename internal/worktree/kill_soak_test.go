//go:build soak && unix

package worktree_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// A kill at a random moment leaves a healthy repository.
func TestProcessIsKilled(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "0\n"})
	for i := range 60 {
		testkit.WriteFiles(t, w.dir, map[string]string{fmt.Sprintf("d%d/f%d", i%20, i): fmt.Sprint(i)})
	}
	w.commit(w.dir, nil)
	wt := w.create("x", nil)
	started := time.Now()
	w.land(wt, worktree.Squash)
	whole := 5 * time.Since(started)
	for i := range 6 {
		for j := range 60 {
			testkit.WriteFiles(t, wt.Top, map[string]string{fmt.Sprintf("d%d/f%d", j%20, j): fmt.Sprint(i, j)})
		}
		method := methods[i%3]
		cmd := w.helper(helperTask{Do: "land", Worktree: wt, Method: method})
		require.NoError(t, cmd.Start())
		time.Sleep(rand.N(whole)) // the kill must come at any point of the work
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		w.open()
		w.healthy()
		assert.Empty(t, w.git("status", "--porcelain"))
		w.land(wt, method)
		assert.Equal(t, testkit.ReadFiles(t, wt.Top), testkit.ReadFiles(t, w.dir))
		assert.Empty(t, w.git("status", "--porcelain"))
	}
}
