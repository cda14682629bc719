package terminal

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestSeveralWatchATerminal(t *testing.T) {
	ctx := context.Background()
	r, c, _ := open(t)
	assert.Equal(t, []Info{}, r.List())
	var first, second, third viewer
	one, err := r.Spawn(ctx, catalog.SpawnTerminalParams{Args: []string{"-i"}, UseTmux: true, TmuxSessionName: "a:b.c"}, first.tell)
	require.NoError(t, err)
	id := one.Terminal.ID
	prints(t, r, id, "a\x1b[c\x1b]11;?\x07")
	require.NoError(t, r.TerminalOutput(ctx, catalog.TerminalOutputParams{TerminalID: id, Data: base64.StdEncoding.EncodeToString([]byte("b\xff")), Encoding: "base64"}))
	two, err := r.Attach(ctx, id, AttachParams{Cols: 100, Rows: 30}, second.tell)
	require.NoError(t, err)
	assert.Equal(t, []string{"resize 100x30"}, c.took())
	prints(t, r, id, "c")
	assert.Equal(t, "a\x1b[c\x1b]11;?\x07|b\xff|c", first.heard(), "who was there may answer")
	assert.Equal(t, "ab\xff|c", second.heard())
	list := r.List()
	require.Len(t, list, 1)
	list[0].Started = one.Terminal.Started
	assert.Equal(t, Info{
		ID: id, PID: 41, Program: "/bin/sh", Args: []string{"-i"}, CWD: root, Cols: 100, Rows: 30, Tmux: "a_b_c",
		Started: one.Terminal.Started, Views: 2,
	}, list[0])
	assert.Equal(t, list[0], two.Terminal)

	one.Close()
	one.Close()
	prints(t, r, id, "d")
	assert.Empty(t, first.heard())
	assert.Equal(t, "d", second.heard())
	// One view replaces another.
	three, err := r.Attach(ctx, id, AttachParams{Replaces: two}, third.tell)
	require.NoError(t, err)
	assert.Equal(t, 1, three.Terminal.Views)
	assert.Empty(t, c.took(), "its size stays")
	require.NoError(t, r.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: id}))
	assert.Empty(t, second.heard())
	assert.Equal(t, "ab\xffcd|exit", third.heard())
	three.Close()
	assert.Empty(t, r.List())
	_, err = r.Attach(ctx, id, AttachParams{}, third.tell)
	assert.Equal(t, domain.KindTerminalNotFound, kindOf(t, err))
	assert.Equal(t, 1, c.released, "its executor is given back")
}

func TestWhoeverClosesAViewGoesOnWhenItIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		r, c, _ := open(t)
		var reported viewer
		view, err := r.Spawn(ctx, catalog.SpawnTerminalParams{Descriptor: true}, reported.tell)
		require.NoError(t, err)
		view.File.Close()
		goesOn := make(chan bool, 1)
		c.onReturn = func() {
			go func() {
				view.Close()
				goesOn <- r.List()[0].Taken
			}()
			synctest.Wait()
			assert.Empty(t, goesOn, "it is not given back yet")
		}
		view.Close()
		assert.False(t, <-goesOn)
	})
}

func TestADescriptorIsForOne(t *testing.T) {
	ctx := context.Background()
	r, c, _ := open(t)
	var first, second viewer
	one, err := r.Spawn(ctx, catalog.SpawnTerminalParams{Descriptor: true}, first.tell)
	require.NoError(t, err)
	require.NotNil(t, one.File)
	one.File.Close()
	id := one.Terminal.ID
	assert.True(t, one.Terminal.Taken)
	for _, p := range []AttachParams{{}, {Descriptor: true}, {Replaces: one}} {
		_, err = r.Attach(ctx, id, p, second.tell)
		assert.Equal(t, domain.KindTerminalTaken, kindOf(t, err))
	}
	assert.Equal(t, domain.KindTerminalTaken, kindOf(t, r.Write(ctx, catalog.TerminalWriteParams{TerminalID: id})))
	require.NoError(t, r.Resize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: 5, Rows: 6}))

	// It stays taken until the executor has it back.
	c.onReturn = func() {
		_, err := r.Attach(ctx, id, AttachParams{}, second.tell)
		assert.Equal(t, domain.KindTerminalTaken, kindOf(t, err))
	}
	one.Close()
	assert.False(t, r.List()[0].Taken)
	assert.Equal(t, []string{"resize 5x6", "return " + id}, c.took())
	c.onReturn = nil

	two, err := r.Attach(ctx, id, AttachParams{}, second.tell)
	require.NoError(t, err)
	_, err = r.Attach(ctx, id, AttachParams{Descriptor: true}, first.tell)
	assert.Equal(t, domain.KindTerminalTaken, kindOf(t, err), "others watch")

	// Output during the handover belongs to the past.
	c.onDescriptor = func(context.Context) error { prints(t, r, id, "late"); return nil }
	three, err := r.Attach(ctx, id, AttachParams{Descriptor: true, Replaces: two, Cols: 7, Rows: 8}, first.tell)
	require.NoError(t, err)
	three.File.Close()
	assert.Equal(t, "late", string(three.Recent))
	assert.Equal(t, []string{"resize 7x8", "descriptor " + id}, c.took())
	assert.Equal(t, 7, three.Terminal.Cols)
	require.NoError(t, r.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: id}))
	assert.Equal(t, "exit", first.heard())
	assert.Empty(t, second.heard())
	three.Close()
	assert.Empty(t, c.took(), "nothing is there to give back")

	// An executor that does not hand it over.
	one, err = r.Spawn(ctx, catalog.SpawnTerminalParams{}, first.tell)
	require.NoError(t, err)
	id = one.Terminal.ID
	c.onDescriptor = func(context.Context) error { return errors.New("no") }
	_, err = r.Attach(ctx, id, AttachParams{Descriptor: true, Replaces: one}, second.tell)
	require.EqualError(t, err, "no")
	prints(t, r, id, "x")
	assert.Equal(t, "x", first.heard(), "who watched still does")
	assert.Equal(t, 1, r.List()[0].Views)
}

func TestAgentsTerminalsAreWatchedAlone(t *testing.T) {
	ctx := context.Background()
	r, _, _ := open(t)
	require.NoError(t, r.TerminalStarted(ctx, catalog.TerminalStartedParams{TerminalID: "a", PID: 7, Program: "ls", Args: []string{"-l"}, CWD: "/", TaskID: "nobody"}))
	list := r.List()
	require.Len(t, list, 1)
	assert.True(t, list[0].OfAgent)
	prints(t, r, "a", "x")
	var v viewer
	view, err := r.Attach(ctx, "a", AttachParams{Cols: 5, Rows: 5}, v.tell)
	require.NoError(t, err)
	assert.Zero(t, view.Terminal.Cols)
	_, err = r.Attach(ctx, "a", AttachParams{Descriptor: true, Replaces: view}, v.tell)
	assert.Equal(t, domain.KindTerminalReadOnly, kindOf(t, err))
	assert.Equal(t, domain.KindTerminalReadOnly, kindOf(t, r.Write(ctx, catalog.TerminalWriteParams{TerminalID: "a"})))
	assert.Equal(t, domain.KindTerminalReadOnly, kindOf(t, r.Resize(ctx, catalog.TerminalResizeParams{TerminalID: "a"})))
	_, err = r.End(ctx, catalog.TerminalCloseParams{TerminalID: "a"})
	assert.Equal(t, domain.KindTerminalReadOnly, kindOf(t, err))
	require.NoError(t, r.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: "a"}))
	assert.Equal(t, "x|exit", v.heard())
	assert.Empty(t, r.List())

	// Reports of unknown terminals are not kept.
	prints(t, r, "stray", "x")
	require.NoError(t, r.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: "stray"}))
	assert.Empty(t, r.terminals)
}

func TestAStartThatNobodyWaitsForIsKnown(t *testing.T) {
	r, _, _ := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := r.Spawn(ctx, catalog.SpawnTerminalParams{}, (&viewer{}).tell)
	require.NoError(t, err)
	assert.Len(t, r.List(), 1)
}

// A cancelled start or attach returns at once, however slow the executor, and its late terminal is
// discarded.
func TestWhoCancelsDoesNotWaitForTheExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c, _ := open(t)
		ctx := context.Background()
		var reported viewer
		view, err := r.Spawn(ctx, catalog.SpawnTerminalParams{}, reported.tell)
		require.NoError(t, err)
		id := view.Terminal.ID
		view.Close()

		asked, answer, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
		c.onDescriptor = func(context.Context) error { close(asked); <-answer; return nil }
		c.onReturn = func() { close(returned) }
		c.took()
		cancelled, cancel := context.WithCancel(ctx)
		go func() {
			<-asked
			cancel()
		}()
		_, err = r.Attach(cancelled, id, AttachParams{Descriptor: true}, reported.tell)
		require.ErrorIs(t, err, context.Canceled)
		_, err = r.Attach(ctx, id, AttachParams{}, reported.tell)
		assert.Equal(t, domain.KindTerminalTaken, kindOf(t, err), "its executor may have handed it over")
		close(answer)
		<-returned
		synctest.Wait()
		_, err = r.Attach(ctx, id, AttachParams{}, reported.tell)
		require.NoError(t, err)
		assert.Equal(t, []string{"descriptor " + id, "return " + id}, c.took())
	})
}

// An executor may report on a terminal before it has answered its start.
func TestReportsBeforeTheStartIsAnswered(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		pieces int
		exits  bool
	}{"none": {0, false}, "prints": {3, false}, "prints and ends": {3, true}, "prints much and ends": {100, true}} {
		t.Run(name, func(t *testing.T) {
			r, executor, _ := open(t)
			executor.onSpawn = func(id string) {
				for range c.pieces {
					prints(t, r, id, "x")
				}
				if c.exits {
					require.NoError(t, r.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: id}))
				}
			}
			var v viewer
			view, err := r.Spawn(ctx, catalog.SpawnTerminalParams{}, v.tell)
			require.NoError(t, err)
			id := view.Terminal.ID
			if !c.exits {
				require.NoError(t, r.Write(ctx, catalog.TerminalWriteParams{TerminalID: id, Data: "y"}))
				require.NoError(t, r.Resize(ctx, catalog.TerminalResizeParams{TerminalID: id}))
				_, err = r.End(ctx, catalog.TerminalCloseParams{TerminalID: id})
				require.NoError(t, err)
				assert.Equal(t, []string{"write y", "resize 0x0", "close " + id}, executor.took())
				prints(t, r, id, "x")
				require.NoError(t, r.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: id}))
			}
			assert.Equal(t, 1, executor.released)
			reported := v.heard()
			assert.True(t, strings.HasPrefix(reported, "x") && strings.HasSuffix(reported, "|exit"), reported)
			for _, id := range []string{id, "nobody"} {
				assert.Equal(t, domain.KindTerminalNotFound, kindOf(t, r.Write(ctx, catalog.TerminalWriteParams{TerminalID: id})))
				assert.Equal(t, domain.KindTerminalNotFound, kindOf(t, r.Resize(ctx, catalog.TerminalResizeParams{TerminalID: id})))
				_, err := r.End(ctx, catalog.TerminalCloseParams{TerminalID: id})
				assert.Equal(t, domain.KindTerminalNotFound, kindOf(t, err))
			}
		})
	}
}

func TestAnExecutorThatStartsNothingIsGivenBack(t *testing.T) {
	r, executor, _ := open(t)
	ctx := context.Background()
	r.opts.Directory = func(string) (string, error) { return "", errors.New("no directory") }
	_, err := r.Spawn(ctx, catalog.SpawnTerminalParams{}, nil)
	require.EqualError(t, err, "no directory")
	r.opts.Directory = func(path string) (string, error) { return path, nil }
	executor.onSpawn = func(id string) { prints(t, r, id, "x") }
	executor.spawnFails = errors.New("no program")
	_, err = r.Spawn(ctx, catalog.SpawnTerminalParams{}, nil)
	require.EqualError(t, err, "no program")
	assert.Equal(t, 1, executor.released)
	assert.Empty(t, r.terminals, "what it printed is forgotten")
	r.opts.Acquire = func(context.Context) (Executor, error) { return nil, errors.New("none") }
	_, err = r.Spawn(ctx, catalog.SpawnTerminalParams{}, nil)
	assert.Equal(t, domain.KindExecutor, kindOf(t, err))
}

// An agent's secret is shown to no view, even if reports split it. A possible beginning of a secret
// is shown at the end.
func TestKeysAreTakenOutOfAgentsTerminals(t *testing.T) {
	ctx := context.Background()
	r, _, w := open(t)
	require.NoError(t, r.TerminalStarted(ctx, catalog.TerminalStartedParams{TerminalID: "a", Program: "echo", Args: []string{secret}, TaskID: task}))
	assert.Equal(t, []string{"[secret]"}, r.List()[0].Args)
	var v viewer
	_, err := r.Attach(ctx, "a", AttachParams{}, v.tell)
	require.NoError(t, err)
	for _, p := range []catalog.TerminalOutputParams{
		{Data: "one " + secret[:4], Encoding: "utf-8"},
		{Data: base64.StdEncoding.EncodeToString([]byte(secret[4:] + "\xff")), Encoding: "base64"},
		{Data: secret[:6], Encoding: "utf-8"},
	} {
		p.TerminalID, p.TaskID = "a", task
		require.NoError(t, r.TerminalOutput(ctx, p))
	}
	require.NoError(t, r.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: "a", TaskID: task, ExitCode: 2}))
	want := "one |[secret]\xff|" + secret[:6]
	assert.Equal(t, want+"|exit", v.heard())
	var published []string
	for _, e := range w.published {
		assert.EqualValues(t, 3, e.Turn)
		assert.EqualValues(t, session, e.Session)
		published = append(published, printed(e))
	}
	assert.Equal(t, want, strings.Join(published, "|"), "to subscribers, too")
	require.Len(t, w.kept, 1, "output is not kept, the end is")
	assert.EqualValues(t, 3, w.kept[0].Turn)
	assert.Equal(t, domain.TerminalExited{TerminalID: "a", TaskID: "the task", ExitCode: 2}, w.kept[0].Payload)
	assert.Empty(t, r.redacted)
}

// Close waits for an unresponsive executor only as long as its context allows.
func TestCloseEndsWhatAsksAnExecutor(t *testing.T) {
	r, c, _ := open(t)
	var v viewer
	view, err := r.Spawn(context.Background(), catalog.SpawnTerminalParams{}, v.tell)
	require.NoError(t, err)
	view.Close()
	ctx, cancel := context.WithCancel(context.Background())
	c.onDescriptor = func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }
	_, err = r.Attach(ctx, view.Terminal.ID, AttachParams{Descriptor: true}, v.tell)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, r.Close(context.Background()))
	assert.False(t, r.List()[0].Taken)
	_, err = r.Attach(context.Background(), view.Terminal.ID, AttachParams{Descriptor: true}, v.tell)
	assert.Equal(t, domain.KindUnavailable, kindOf(t, err))
}
