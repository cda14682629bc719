//go:build soak && unix

package checkpoint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
)

// BenchmarkTake measures a tree of 100,000 small files in 1000 directories: the first Take, then
// the median of Takes after a change of one file, and of Takes without a change. million has
// 1,000,000 files that git tracks and 1,000 others, more than are recorded.
//
//	go test -tags soak ./internal/checkpoint -run '^$' -bench Take/no-git -benchtime 31x -timeout 20m
func BenchmarkTake(b *testing.B) {
	for _, kind := range []string{"committed", "not-committed", "no-git", "million"} {
		b.Run(kind, func(b *testing.B) {
			w := newWorld(b)
			inEach := 100
			if kind == "million" {
				inEach = 1000
			}
			for d := range 1000 {
				dir := filepath.Join(w.dir, fmt.Sprintf("d%02d/e%02d", d/32, d%32))
				require.NoError(b, os.MkdirAll(dir, 0o755))
				for f := range inEach {
					text := fmt.Sprintf("file %d %d\n%d\n", d, f, d*f*7919)
					require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%03d.txt", f)), []byte(text), 0o644))
				}
			}
			switch kind {
			case "committed", "million":
				w.git("init", "-q")
				w.git("add", "-A")
				w.git("commit", "-q", "-m", "x")
				w.git("repack", "-a", "-d", "-q")
			case "not-committed":
				w.git("init", "-q")
			}
			if kind == "million" {
				for i := range 1000 {
					w.write(map[string]string{fmt.Sprintf("untracked/%d", i): "u"})
				}
			}
			w.open()
			started := time.Now()
			first := w.take()
			require.Equal(b, kind == "million", len(first.Skipped) > 0)
			b.ReportMetric(time.Since(started).Seconds(), "s/first")

			if b.N == 1 {
				return // the first round of the benchmark
			}
			median := func(change func(i int)) float64 {
				var took []time.Duration
				for i := range b.N {
					change(i)
					started := time.Now()
					w.take()
					took = append(took, time.Since(started))
				}
				slices.Sort(took)
				return float64(took[len(took)/2].Milliseconds())
			}
			b.ReportMetric(median(func(i int) { w.write(map[string]string{"d03/e04/f007.txt": fmt.Sprint("changed ", i)}) }), "ms/change")
			b.ReportMetric(median(func(i int) { w.write(map[string]string{fmt.Sprintf("d05/new%d.txt", i): "new"}) }), "ms/new-file")
			b.ReportMetric(median(func(int) {}), "ms/no-change")
			started = time.Now()
			w.git("status", "--porcelain")
			b.ReportMetric(float64(time.Since(started).Milliseconds()), "ms/git-status")
			list, err := w.List(b.Context())
			require.NoError(b, err)
			started = time.Now()
			_, err = w.Changes(b.Context(), list[len(list)-2].ID, list[len(list)-1].ID)
			require.NoError(b, err)
			b.ReportMetric(float64(time.Since(started).Milliseconds()), "ms/changes")
			started = time.Now()
			_, err = w.Restore(b.Context(), list[len(list)-1].ID, list[len(list)-2].ID, checkpoint.RestoreOptions{})
			require.NoError(b, err)
			b.ReportMetric(float64(time.Since(started).Milliseconds()), "ms/restore")
		})
	}
}
