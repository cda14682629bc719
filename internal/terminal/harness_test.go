package terminal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// consoles is an executor with scripted terminals.
type consoles struct {
	onSpawn      func(id string) // before the start is answered
	spawnFails   error
	onDescriptor func(context.Context) error // during the handover of a descriptor
	onReturn     func()

	mu       sync.Mutex
	last     int
	calls    []string
	released int
}

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
	if c.onSpawn != nil {
		c.onSpawn(r.TerminalID)
	}
	if c.spawnFails != nil {
		return r, c.spawnFails
	}
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

func (c *consoles) TerminalDescriptor(ctx context.Context, p catalog.TerminalDescriptorParams) (*os.File, error) {
	c.note("descriptor %s", p.TerminalID)
	if c.onDescriptor != nil {
		if err := c.onDescriptor(ctx); err != nil {
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

func (c *consoles) TerminalClose(_ context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	c.note("close %s", p.TerminalID)
	return catalog.TerminalCloseResult{Closed: true}, nil
}

// world fakes what a registry uses: one turn, whose agent has a secret.
type world struct {
	mu        sync.Mutex
	published []domain.Event
	kept      []domain.Event
}

const (
	root    = "/project"
	task    = "the task"
	session = 7
	secret  = "sk-0123456789abcdef"
)

func (w *world) Turn(_ context.Context, id string) (domain.TurnInSession, error) {
	if id != task {
		return domain.TurnInSession{}, domain.Errorf(domain.KindTurnNotFound, "no turn has the id %q", id)
	}
	return domain.TurnInSession{Turn: domain.Turn{ID: 3, Session: session, HumanLayerSession: "session"}, Session: domain.Session{ID: session}}, nil
}

func (w *world) Publish(e domain.Event) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, e)
	return 1
}

func (w *world) Of(id int64) *redact.Secrets {
	secrets := &redact.Secrets{}
	if id == session {
		secrets.Add(secret)
	}
	return secrets
}

// transaction only appends events.
type transaction struct {
	store.Tx
	world *world
}

func (t transaction) Append(e domain.Event) (int64, error) {
	t.world.kept = append(t.world.kept, e)
	return int64(len(t.world.kept)), nil
}

func (w *world) Enqueue(change func(store.Tx) error, done func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	done(change(transaction{world: w}))
}

func open(t *testing.T) (*Registry, *consoles, *world) {
	c, w := &consoles{}, &world{}
	r := New(t.Context(), Options{
		Acquire:   func(context.Context) (Executor, error) { return c, nil },
		Directory: func(path string) (string, error) { return filepath.Join(root, path), nil },
		Turns:     w, Events: w, Log: w, Secrets: w,
	})
	t.Cleanup(func() { assert.NoError(t, r.Close(context.Background())) })
	return r, c, w
}

// viewer records its events.
type viewer struct {
	mu       sync.Mutex
	reported []string
}

func (v *viewer) tell(e domain.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.Payload.Kind() == domain.EventTerminalExit {
		v.reported = append(v.reported, "exit")
		return
	}
	v.reported = append(v.reported, printed(e))
}

func printed(e domain.Event) string {
	p, _ := e.Payload.(domain.TerminalPrinted)
	return string(decode(catalog.TerminalOutputParams(p)))
}

func (v *viewer) heard() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	reported := strings.Join(v.reported, "|")
	v.reported = nil
	return reported
}

func prints(t *testing.T, r *Registry, id, text string) {
	t.Helper()
	require.NoError(t, r.TerminalOutput(context.Background(), catalog.TerminalOutputParams{TerminalID: id, Data: text, Encoding: "utf-8"}))
}

// kindOf returns the kind of a refusal.
func kindOf(t *testing.T, err error) string {
	t.Helper()
	var e *domain.Error
	require.ErrorAs(t, err, &e)
	return e.Kind
}
