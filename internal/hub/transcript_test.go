package hub

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
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

// Every page is the matching part of the whole transcript, with and without notes, while turns
// change between pages.
func TestAnyPageOfATranscriptIsAPartOfIt(t *testing.T) {
	h := openHub(t, database(t), hang)
	ctx := context.Background()
	random := rand.New(rand.NewPCG(1, 2))
	first := launch(t, h, "first")
	inState(t, h, first, domain.Running)
	var turns []domain.Turn
	for range 5 {
		r := newTurn(LaunchSpec{Prompt: "p", Source: domain.SourceTask}, "fake")
		r.Session, r.State = first.Session.ID, domain.Completed
		require.NoError(t, h.store.Write(ctx, func(tx store.Tx) error { return tx.InsertTurn(&r) }))
		turns = append(turns, r)
	}
	last := turns[len(turns)-1].UUID
	var tools []domain.Item
	grow := func(n int) {
		require.NoError(t, h.store.Write(ctx, func(tx store.Tx) error {
			for range n {
				item := domain.Item{
					Session: first.Session.ID, Turn: turns[random.IntN(len(turns)-1)].ID, Key: fmt.Sprint(random.Uint32()),
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
			all := must(h.query.Transcript(ctx, last, query.Page{Spoken: spoken}))(t)
			want := events(all.Entries)
			require.Len(t, want, all.Total)
			for range 15 {
				p := query.Page{Offset: random.IntN(len(want) + 2), Limit: 1 + random.IntN(200), Spoken: spoken}
				c := must(h.query.Transcript(ctx, last, p))(t)
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

func TestNoIdOfACallersNamesTheChat(t *testing.T) {
	ctx := context.Background()
	path := database(t)
	play := func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }
	h := openHub(t, path, play)
	before := await(t, h, launchIn(t, h, "chat_thread", "mine"))
	chat := must(h.Launch(ctx, LaunchSpec{Prompt: "one", Source: domain.SourceChat, Chat: true}))(t)
	assert.NotEqual(t, before.Session.ID, chat.Session.ID)
	await(t, h, chat)
	require.NoError(t, h.Close())
	h = openHub(t, path, play)
	assert.Equal(t, before.Session.ID, await(t, h, launchIn(t, h, "chat_thread", "mine too")).Session.ID)
	assert.Equal(t, chat.Session.ID, must(h.Launch(ctx, LaunchSpec{Prompt: "two", Source: domain.SourceChat, Chat: true}))(t).Session.ID)
}

// named is a set of agents; the first is the default.
type named struct{ names *atomic.Pointer[[]string] }

func (n named) Resolve(name string) (config.Agent, error) {
	names := *n.names.Load()
	if name == "" {
		name = names[0]
	}
	if !slices.Contains(names, name) {
		return config.Agent{}, &config.UnknownAgentError{Name: name, Known: names}
	}
	return config.Agent{Name: name, Driver: "acp", Command: []string{name}}, nil
}

func TestTheChatUsesTheDefaultAgent(t *testing.T) {
	ctx := context.Background()
	for name, left := range map[string][]string{"both are there": {"new", "old"}, "the old one is gone": {"new"}} {
		t.Run(name, func(t *testing.T) {
			var names atomic.Pointer[[]string]
			names.Store(&[]string{"old"})
			var mu sync.Mutex
			reported := map[string][]string{}
			h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
				before, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.p.SessionToken})
				if err != nil {
					return catalog.ExecutePromptResult{Status: catalog.StatusFailed}
				}
				x.report(catalog.EventNativeSession, catalog.NativeSession{SessionID: "of " + x.p.Agent})
				mu.Lock()
				defer mu.Unlock()
				reported[x.p.Prompt] = []string{x.p.Agent, before.NativeSessionID}
				for _, m := range before.Messages {
					reported[x.p.Prompt] = append(reported[x.p.Prompt], m.Content)
				}
				return completed
			}, func(o *Options) { fakeOf(o).Agents = named{&names} })
			chat := func(message string) domain.TurnInSession {
				return await(t, h, must(h.Launch(ctx, LaunchSpec{Prompt: message, Source: domain.SourceChat, Chat: true}))(t))
			}
			one, two := chat("one"), chat("two")
			assert.Equal(t, one.Session.ID, two.Session.ID)
			names.Store(&left)
			three, four := chat("three"), chat("four")
			assert.Equal(t, []any{domain.Completed, domain.SourceChat, "new", two.HumanLayerSession}, []any{three.State, three.Source, three.Agent, three.ParentHumanLayerSession})
			assert.NotEqual(t, two.Session.ID, three.Session.ID)
			assert.Equal(t, three.Session.ID, four.Session.ID, "it goes on there")
			assert.Equal(t, 4, transcriptOf(t, h, four.HumanLayerSession).Total)
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, map[string][]string{
				"one": {"old", ""}, "two": {"old", "of old", "one"}, "three": {"new", "", "one", "two"}, "four": {"new", "of new", "one", "two", "three"},
			}, reported)
		})
	}
}
