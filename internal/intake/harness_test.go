package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

// disk is a store's writer that can be blocked or fail. Otherwise the caller runs its transactions
// at once.
type disk struct {
	mu       sync.Mutex // guards the fields below
	held     bool
	waiting  []func()
	notBegun error // transactions cannot begin
	notKept  error // commits fail
	asked    int
	asking   func() // if set, called with each request
}

func (d *disk) Enqueue(change func(store.Tx) error, done func(error)) {
	if d.asking != nil {
		d.asking()
	}
	d.mu.Lock()
	d.asked++
	held := d.held
	if held {
		d.waiting = append(d.waiting, func() { done(d.commit(change)) })
	}
	d.mu.Unlock()
	if !held {
		done(d.commit(change))
	}
}

func (d *disk) commit(change func(store.Tx) error) (err error) {
	d.mu.Lock()
	notBegun, notKept := d.notBegun, d.notKept
	d.mu.Unlock()
	if notBegun != nil {
		return notBegun
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a change panicked: %v", p)
		}
	}()
	if err := change(nil); err != nil {
		return err
	}
	return notKept
}

func (d *disk) set(change func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

func (d *disk) timesAsked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked
}

// release unblocks the writer.
func (d *disk) release() {
	d.mu.Lock()
	waiting := d.waiting
	d.held, d.waiting = false, nil
	d.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// desk is an intake with one turn. It fakes the turn functions and Health, and records reports as
// they are.
type desk struct {
	*Intake
	disk disk
	turn *Turn

	mu       sync.Mutex // guards the fields below
	ended    bool
	recorded []report
	fail     func(report) error // replaces recording
	noRoom   int
	lostSome int
}

const token = "token"

func newDesk(t *testing.T, secrets ...string) *desk {
	t.Helper()
	d := &desk{}
	ctx, cancel := context.WithCancel(context.Background())
	d.Intake = New(ctx, Options{Store: &d.disk, Turns: d, Health: d, Root: func(string) string { return "/root" }})
	d.recorder.write = d.keep
	t.Cleanup(func() { d.Close(); cancel() })
	var known redact.Secrets
	for _, s := range secrets {
		known.Add(s)
	}
	d.turn = d.Begin(1, "task", &known)
	return d
}

func (d *desk) TurnOf(_ context.Context, have, _ string) (int64, error) {
	if have != token {
		return 0, errors.New("unknown")
	}
	return 1, nil
}

func (d *desk) GoesOn(int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.ended
}

func (d *desk) Changed(store.Tx, int64) {}

func (d *desk) AgentStarted(int64) {}

// keep replaces the recording of a report in a store.
func (d *desk) keep(_ store.Tx, r report) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail(r)
	}
	d.recorded = append(d.recorded, r)
	return nil
}

func (d *desk) NoRoom(error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noRoom++
}

func (d *desk) ReportsLost(error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lostSome++
}

// problems returns how often NoRoom and ReportsLost were called.
func (d *desk) problems() [2]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return [2]int{d.noRoom, d.lostSome}
}

// say reports a piece of a message with each sequence number, in this order.
func (d *desk) say(t *testing.T, sequences ...int64) {
	t.Helper()
	for _, n := range sequences {
		d.report(t, n, fmt.Sprintf("%d ", n))
	}
}

func (d *desk) report(t *testing.T, sequence int64, text string) {
	t.Helper()
	data, err := json.Marshal(catalog.ContentDelta{Delta: catalog.Delta{Text: text}})
	require.NoError(t, err)
	require.NoError(t, d.ReportMessage(t.Context(), catalog.ReportMessageParams{
		SessionToken: token, Sequence: sequence, EventType: catalog.EventContentDelta, EventData: data,
	}))
}

// said returns all recorded text in order.
func (d *desk) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, r := range d.recorded {
		b.WriteString(r.delta.Delta.Text)
	}
	return b.String()
}
