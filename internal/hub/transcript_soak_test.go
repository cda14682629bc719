//go:build soak

package hub

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/query"
)

// Reading a transcript page by page costs in proportion to its length, also with an approval for
// each tool call.
func TestPagesOfALongTranscriptCostNoMoreThanThoseOfAShortOne(t *testing.T) {
	h := openHub(t, database(t), hang)
	ctx := context.Background()
	cost := func(entries int) uint64 {
		r := insertQuestions(t, h, entries)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		offset := 0
		for {
			c := must(h.query.Transcript(ctx, r.UUID, query.Page{Offset: offset, Limit: 100}))(t)
			for _, e := range c.Entries {
				require.NotNil(t, e.Approval)
			}
			if offset += len(events(c.Entries)) - c.Before; offset >= c.Total {
				break
			}
		}
		runtime.ReadMemStats(&after)
		require.Equal(t, 2*entries, offset)
		return after.Mallocs - before.Mallocs
	}
	cost(100) // warms caches
	short, long := cost(500), cost(2000)
	t.Logf("%d allocations for 1,000 events, %d for 4,000: %.2f times as many", short, long, float64(long)/float64(short))
	assert.Less(t, float64(long), 5*float64(short))
}
