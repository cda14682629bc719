package hub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// events returns the events of entries, as clients see them.
func events(list []query.Entry) (names []string) {
	for _, e := range list {
		names = append(names, fmt.Sprintf("%s %s", e.Kind, e.Key))
		if e.Events() == 2 {
			names = append(names, fmt.Sprintf("result of %s", e.Key))
		}
	}
	return names
}

// Every page is the matching part of the whole conversation, with and without notes, while runs
// change between pages.
func TestAnyPageOfAConversationIsAPartOfIt(t *testing.T) {
	h := openHub(t, database(t), hang)
	ctx := context.Background()
	random := rand.New(rand.NewPCG(1, 2))
	first := launch(t, h, "first")
	inState(t, h, first, domain.Running)
	var runs []domain.Run
	for range 5 {
		r := newRun(LaunchSpec{Prompt: "p", Source: domain.SourceTask}, "fake")
		r.Thread, r.State = first.Thread.ID, domain.Completed
		require.NoError(t, h.store.Write(ctx, func(tx store.Tx) error { return tx.InsertRun(&r) }))
		runs = append(runs, r)
	}
	last := runs[len(runs)-1].UUID
	var tools []domain.Item
	grow := func(n int) {
		require.NoError(t, h.store.Write(ctx, func(tx store.Tx) error {
			for range n {
				item := domain.Item{
					Thread: first.Thread.ID, Run: runs[random.IntN(len(runs)-1)].ID, Key: fmt.Sprint(random.Uint32()),
					Kind: []string{domain.ItemMessage, domain.ItemTool, domain.ItemThinking, domain.ItemPlan, domain.ItemFile}[random.IntN(5)], Created: tx.Now(), Updated: tx.Now(),
				}
				if item.Kind == domain.ItemTool && random.IntN(2) == 0 {
					item.Status = "completed"
				}
				if err := tx.InsertItem(&item); err != nil {
					return err
				}
				if item.Kind == domain.ItemTool {
					tools = append(tools, item)
				}
			}
			for range min(n/4, len(tools)) {
				i := random.IntN(len(tools))
				tools[i].Status = "failed"
				if err := tx.UpdateItem(tools[i]); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for range 6 {
		grow(random.IntN(150))
		for _, spoken := range []bool{false, true} {
			all, err := h.query.Conversation(ctx, last, query.Page{Spoken: spoken})
			require.NoError(t, err)
			want := events(all.Entries)
			require.Len(t, want, all.Total)
			for range 15 {
				p := query.Page{Offset: random.IntN(len(want) + 2), Limit: 1 + random.IntN(200), Spoken: spoken}
				c, err := h.query.Conversation(ctx, last, p)
				require.NoError(t, err)
				assert.Equal(t, all.Total, c.Total)
				got := events(c.Entries)[c.Before:]
				begin := min(p.Offset, len(want))
				end := min(begin+p.Limit, len(want))
				require.GreaterOrEqual(t, len(got), end-begin)
				require.LessOrEqual(t, len(got), end-begin+1, "a result may be one too many")
				require.Equal(t, append([]string{}, want[begin:end]...), append([]string{}, got[:end-begin]...), "%+v", p)
			}
		}
	}
}
