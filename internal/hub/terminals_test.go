package hub

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// consoles is an executor whose terminals do what the test says.
type consoles struct {
	leased
	onDescriptor func() error // while a descriptor is handed over
	onReturn     func()

	mu       sync.Mutex
	last     int
	calls    []string
	released int
}

func (c *consoles) Acquire(context.Context, catalog.LeaseRequest) (Lease, error) { return c, nil }
func (c *consoles) Count() int                                                   { return 1 }
func (c *consoles) HasRoom(catalog.LeaseRequest) bool                            { return true }

func (c *consoles) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released++
}

func (c *consoles) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
}

func (c *consoles) took() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

func (c *consoles) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams) (r catalog.SpawnTerminalResult, err error) {
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	c.mu.Lock()
	c.last++
	r = catalog.SpawnTerminalResult{TerminalID: fmt.Sprint("t", c.last), PTYPID: 40 + c.last, Program: "/bin/sh", Args: p.Args, Cols: 80, Rows: 24}
	c.mu.Unlock()
	if p.Descriptor {
		r.File, err = os.Open(os.DevNull)
	}
	return r, err
}

func (c *consoles) TerminalWrite(_ context.Context, p catalog.TerminalWriteParams) error {
	c.note("write %s", p.Data)
	return nil
}

func (c *consoles) TerminalResize(_ context.Context, p catalog.TerminalResizeParams) error {
	c.note("resize %dx%d", p.Cols, p.Rows)
	return nil
}

func (c *consoles) TerminalDescriptor(_ context.Context, p catalog.TerminalDescriptorParams) (*os.File, error) {
	c.note("descriptor %s", p.TerminalID)
	if c.onDescriptor != nil {
		if err := c.onDescriptor(); err != nil {
			return nil, err
		}
	}
	return os.Open(os.DevNull)
}

func (c *consoles) TerminalReturn(_ context.Context, p catalog.TerminalReturnParams) error {
	c.note("return %s", p.TerminalID)
	if c.onReturn != nil {
		c.onReturn()
	}
	return nil
}

func consoleHub(t *testing.T) (*Hub, *consoles) {
	c := &consoles{}
	return openHub(t, database(t), hang, func(o *Options) { o.Executors = func(catalog.Daemon) Executors { return c } }), c
}

// A viewer keeps what it is told.
type viewer struct {
	mu   sync.Mutex
	told []string
}

func (v *viewer) tell(n Notice) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n.Type == EventTerminalExit {
		v.told = append(v.told, "exit")
		return
	}
	var p catalog.TerminalOutputParams
	_ = json.Unmarshal(n.Data, &p)
	v.told = append(v.told, string(outputBytes(p)))
}

func (v *viewer) heard() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	told := strings.Join(v.told, "|")
	v.told = nil
	return told
}

func prints(t *testing.T, h *Hub, id, text string) {
	t.Helper()
	require.NoError(t, h.TerminalOutput(context.Background(), catalog.TerminalOutputParams{TerminalID: id, Data: text, Encoding: "utf-8"}))
}

func TestSeveralWatchATerminal(t *testing.T) {
	ctx := context.Background()
	h, c := consoleHub(t)
	assert.Equal(t, []Terminal{}, h.Terminals())
	var first, second, third viewer
	one, err := h.SpawnTerminal(ctx, catalog.SpawnTerminalParams{Args: []string{"-i"}, UseTmux: true, TmuxSessionName: "a:b.c"}, first.tell)
	require.NoError(t, err)
	id := one.Terminal.ID
	prints(t, h, id, "a\x1b[c\x1b]11;?\x07")
	require.NoError(t, h.TerminalOutput(ctx, catalog.TerminalOutputParams{TerminalID: id, Data: base64.StdEncoding.EncodeToString([]byte("b\xff")), Encoding: "base64"}))
	two, err := h.AttachTerminal(ctx, id, AttachParams{Cols: 100, Rows: 30}, second.tell)
	require.NoError(t, err)
	assert.Equal(t, []string{"resize 100x30"}, c.took())
	prints(t, h, id, "c")
	assert.Equal(t, "a\x1b[c\x1b]11;?\x07|b\xff|c", first.heard(), "who was there may answer")
	assert.Equal(t, "ab\xff|c", second.heard())
	list := h.Terminals()
	require.Len(t, list, 1)
	list[0].Started = one.Terminal.Started
	assert.Equal(t, Terminal{
		ID: id, PID: 41, Program: "/bin/sh", Args: []string{"-i"}, CWD: h.opts.Root, Cols: 100, Rows: 30, Tmux: "a_b_c",
		Started: one.Terminal.Started, Views: 2,
	}, list[0])
	assert.Equal(t, list[0], two.Terminal)

	one.Close()
	one.Close()
	prints(t, h, id, "d")
	assert.Empty(t, first.heard())
	assert.Equal(t, "d", second.heard())
	// One in the place of another.
	three, err := h.AttachTerminal(ctx, id, AttachParams{Instead: two}, third.tell)
	require.NoError(t, err)
	assert.Equal(t, 1, three.Terminal.Views)
	assert.Empty(t, c.took(), "its size stays")
	require.NoError(t, h.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: id}))
	assert.Empty(t, second.heard())
	assert.Equal(t, "ab\xffcd|exit", third.heard())
	three.Close()
	assert.Empty(t, h.Terminals())
	_, err = h.AttachTerminal(ctx, id, AttachParams{}, third.tell)
	assert.Equal(t, domain.KindTerminalNotFound, kindOf(t, err))
	require.Eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.released == 1 }, within, 5*time.Millisecond, "its executor is not given back")
}

func TestADescriptorIsForOne(t *testing.T) {
	ctx := context.Background()
	h, c := consoleHub(t)
	var first, second viewer
	one, err := h.SpawnTerminal(ctx, catalog.SpawnTerminalParams{Descriptor: true}, first.tell)
	require.NoError(t, err)
	require.NotNil(t, one.File)
	one.File.Close()
	id := one.Terminal.ID
	assert.True(t, one.Terminal.Taken)
	for _, p := range []AttachParams{{}, {Descriptor: true}, {Instead: one}} {
		_, err = h.AttachTerminal(ctx, id, p, second.tell)
		assert.Equal(t, domain.KindTerminalTaken, kindOf(t, err))
	}
	assert.Equal(t, domain.KindTerminalTaken, kindOf(t, h.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: id})))
	require.NoError(t, h.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: 5, Rows: 6}))

	// It is nobody else's before the executor has it back.
	closed := make(chan bool)
	c.onReturn = func() {
		_, err := h.AttachTerminal(ctx, id, AttachParams{}, second.tell)
		assert.Equal(t, domain.KindTerminalTaken, kindOf(t, err))
		go func() {
			one.Close()
			closed <- h.Terminals()[0].Taken
		}()
		select {
		case <-closed:
			t.Fatal("whoever closes it may go on only when it is given back")
		case <-time.After(20 * time.Millisecond):
		}
	}
	one.Close()
	assert.False(t, <-closed)
	assert.Equal(t, []string{"resize 5x6", "return " + id}, c.took())
	c.onReturn = nil

	two, err := h.AttachTerminal(ctx, id, AttachParams{}, second.tell)
	require.NoError(t, err)
	_, err = h.AttachTerminal(ctx, id, AttachParams{Descriptor: true}, first.tell)
	assert.Equal(t, domain.KindTerminalTaken, kindOf(t, err), "others watch")

	// What comes while it is handed over belongs to the past.
	c.onDescriptor = func() error { prints(t, h, id, "late"); return nil }
	three, err := h.AttachTerminal(ctx, id, AttachParams{Descriptor: true, Instead: two, Cols: 7, Rows: 8}, first.tell)
	require.NoError(t, err)
	three.File.Close()
	assert.Equal(t, "late", string(three.Recent))
	assert.Equal(t, []string{"resize 7x8", "descriptor " + id}, c.took())
	assert.Equal(t, 7, three.Terminal.Cols)
	require.NoError(t, h.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: id}))
	assert.Equal(t, "exit", first.heard())
	assert.Empty(t, second.heard())
	three.Close()
	assert.Empty(t, c.took(), "nothing is there to give back")

	// An executor that does not hand it over.
	one, err = h.SpawnTerminal(ctx, catalog.SpawnTerminalParams{}, first.tell)
	require.NoError(t, err)
	id = one.Terminal.ID
	c.onDescriptor = func() error { return errors.New("no") }
	_, err = h.AttachTerminal(ctx, id, AttachParams{Descriptor: true, Instead: one}, second.tell)
	require.EqualError(t, err, "no")
	prints(t, h, id, "x")
	assert.Equal(t, "x", first.heard(), "who watched still does")
	assert.Equal(t, 1, h.Terminals()[0].Views)
}

func TestAgentsTerminalsAreWatchedAlone(t *testing.T) {
	ctx := context.Background()
	h, _ := consoleHub(t)
	require.NoError(t, h.TerminalStarted(ctx, catalog.TerminalStartedParams{TerminalID: "a", PID: 7, Program: "ls", Args: []string{"-l"}, CWD: "/", TaskID: "nobody"}))
	list := h.Terminals()
	require.Len(t, list, 1)
	assert.True(t, list[0].Agents)
	prints(t, h, "a", "x")
	var v viewer
	view, err := h.AttachTerminal(ctx, "a", AttachParams{Cols: 5, Rows: 5}, v.tell)
	require.NoError(t, err)
	assert.Zero(t, view.Terminal.Cols)
	_, err = h.AttachTerminal(ctx, "a", AttachParams{Descriptor: true, Instead: view}, v.tell)
	assert.Equal(t, domain.KindTerminalReadOnly, kindOf(t, err))
	assert.Equal(t, domain.KindTerminalReadOnly, kindOf(t, h.TerminalWrite(ctx, catalog.TerminalWriteParams{TerminalID: "a"})))
	assert.Equal(t, domain.KindTerminalReadOnly, kindOf(t, h.TerminalResize(ctx, catalog.TerminalResizeParams{TerminalID: "a"})))
	_, err = h.TerminalClose(ctx, catalog.TerminalCloseParams{TerminalID: "a"})
	assert.Equal(t, domain.KindTerminalReadOnly, kindOf(t, err))
	require.NoError(t, h.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: "a"}))
	assert.Equal(t, "x|exit", v.heard())
	assert.Empty(t, h.Terminals())

	// What an executor tells of terminals that nobody knows is not kept.
	prints(t, h, "stray", "x")
	require.NoError(t, h.TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: "stray"}))
	assert.Empty(t, h.terminals)
}

func TestAStartThatNobodyWaitsForIsKnown(t *testing.T) {
	h, _ := consoleHub(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := h.SpawnTerminal(ctx, catalog.SpawnTerminalParams{}, (&viewer{}).tell)
	require.NoError(t, err)
	assert.Len(t, h.Terminals(), 1)
}

func TestHowMuchOfTheOutputIsKept(t *testing.T) {
	var r recent
	r.add([]byte(strings.Repeat("x", recentMost)))
	assert.Len(t, r.bytes(), recentMost, "all of it, as long as it fits")
	r.add([]byte("y"))
	assert.Len(t, r.bytes(), recentMost)

	// Cut at the beginning of a line, if that is near, or of a character.
	for _, c := range []struct{ text, begins string }{
		{strings.Repeat("x", 10) + "line\n" + strings.Repeat("y", recentMost-3), "yyy"},
		{strings.Repeat("x", 10) + strings.Repeat("y", recentLine-1) + "\n" + strings.Repeat("z", recentMost-recentLine), "zzz"},
		{strings.Repeat("x", 10) + strings.Repeat("y", recentLine) + "\n" + strings.Repeat("z", recentMost-recentLine-1), "yyy"},
		{"€" + strings.Repeat("z", recentMost-2), "zzz"},
		{"€" + strings.Repeat("z", recentMost-3), "€zz"},
		{strings.Repeat("\x80", recentMost+1), "\x80\x80"},
	} {
		r = recent{}
		r.add([]byte(c.text))
		assert.True(t, strings.HasPrefix(string(r.bytes()), c.begins), "%.20q…: %.20q", c.text, r.bytes())
		assert.LessOrEqual(t, len(r.bytes()), recentMost)
	}
	r = recent{}
	for range 1000 {
		r.add([]byte(strings.Repeat("0123456789", 1000)))
		require.LessOrEqual(t, len(r.kept), 2*recentMost+10_000)
	}
}

func TestOldQuestionsAreNotAskedAgain(t *testing.T) {
	for _, question := range []string{
		"\x1b[c", "\x1b[0c", "\x1b[>c", "\x1b[=0c", "\x1b[6n", "\x1b[?6n", "\x1b[?2026$p", "\x1b[>q", "\x1b[>0q", "\x1b[?u",
		"\x1b]10;?\x07", "\x1b]11;?\x1b\\", "\x1b]4;1;?\x07", "\x1bP+q544e\x1b\\", "\x1bP$qm\x1b\\",
	} {
		assert.Equal(t, "ab", string(unasked([]byte("a"+question+"b"))), "%q", question)
	}
	for _, other := range []string{"\x1b[1m", "\x1b[?1049h", "\x1b[2J", "\x1b[u", "\x1b]0;title?\x07", "\x1b[10;20H", "[c", "\x1b[3 q"} {
		assert.Equal(t, other, string(unasked([]byte(other))), "%q", other)
	}
}

// Who gives up waiting for a terminal is answered at once, however long its
// executor takes, and what comes later is nobody's.
func TestWhoCancelsDoesNotWaitForTheExecutor(t *testing.T) {
	h, c := consoleHub(t)
	ctx := context.Background()
	var told viewer
	view, err := h.SpawnTerminal(ctx, catalog.SpawnTerminalParams{}, told.tell)
	require.NoError(t, err)
	id := view.Terminal.ID
	view.Close()

	asked, answer, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c.onDescriptor = func() error { close(asked); <-answer; return nil }
	c.onReturn = func() { close(returned) }
	c.took()
	cancelled, cancel := context.WithCancel(ctx)
	go func() {
		<-asked
		cancel()
	}()
	_, err = h.AttachTerminal(cancelled, id, AttachParams{Descriptor: true}, told.tell)
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.AttachTerminal(ctx, id, AttachParams{}, told.tell)
	assert.Equal(t, domain.KindTerminalTaken, kindOf(t, err), "its executor may have handed it over")
	close(answer)
	<-returned
	require.Eventually(t, func() bool {
		_, err := h.AttachTerminal(ctx, id, AttachParams{}, told.tell)
		return err == nil
	}, within, time.Millisecond)
	assert.Equal(t, []string{"descriptor " + id, "return " + id}, c.took())
}
