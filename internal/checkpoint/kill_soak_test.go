//go:build soak && unix

package checkpoint_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// The test kills the process of a Take at a random moment, and its git processes continue.
func TestTakeIsKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"git", "no git"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if kind == "git" {
				w.git("init", "-q")
			}
			for i := range 700 {
				w.write(map[string]string{fmt.Sprintf("d%d/f%d", i%20, i): fmt.Sprint(i)})
			}
			started := time.Now()
			w.take()
			whole := time.Since(started)
			for i := range 6 {
				for j := range 40 * i {
					w.write(map[string]string{fmt.Sprintf("d%d/f%d", j%20, j): fmt.Sprint(i, j)})
				}
				cmd := w.helper(helperTask{})
				require.NoError(t, cmd.Start())
				time.Sleep(rand.N(whole)) // the kill must come at any point of the work
				require.NoError(t, cmd.Process.Kill())
				_ = cmd.Wait()
				if kind == "git" {
					w.git("fsck", "--strict")
				}
			}
			assert.Equal(t, testkit.ReadFiles(t, w.dir), w.recorded(w.take()))
		})
	}
}

func TestRestoreIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 200
	for i := range n {
		w.write(map[string]string{fmt.Sprintf("d%d/f%d", i%10, i): strings.Repeat(fmt.Sprint(i), 1000)})
	}
	first := w.take()
	want := testkit.ReadFiles(t, w.dir)
	for i := range n {
		w.write(map[string]string{fmt.Sprintf("d%d/f%d", i%10, i): []string{"", "changed"}[i%2]})
	}
	second := w.take()
	for range 6 {
		cmd := w.helper(helperTask{From: second.ID, To: first.ID})
		require.NoError(t, cmd.Start())
		time.Sleep(rand.N(120 * time.Millisecond)) // at any point, as above
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	_, err := w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
	require.NoError(t, err)
	assert.Equal(t, want, testkit.ReadFiles(t, w.dir))
}
