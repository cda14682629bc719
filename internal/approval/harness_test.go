package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const within = 20 * time.Second

// must returns the value of a call that may not fail: must(f(x))(t).
func must[T any](value T, err error) func(t testing.TB, why ...any) T {
	return func(t testing.TB, why ...any) T {
		t.Helper()
		require.NoError(t, err, why...)
		return value
	}
}

// errorOf returns the error of a call that has to fail.
func errorOf[T any](_ T, err error) error { return err }

// harness is an inbox with a store. It also implements Turns and Transcript.
type harness struct {
	*Inbox
	store   store.Store
	written testkit.Witness // signalled by each transaction

	mu       sync.Mutex // guards the fields below
	rules    []config.Rule
	read     map[string]int // approvals read in transactions, by query
	resumed  []string       // prompts
	reported []string       // prompts
	refused  []string       // tool calls
	edited   []string       // tool calls
	notes    []string

	deliveries []string // texts of notes about deliveries

	gone    chan struct{} // returned by AgentEnded
	kept    func()        // if not nil, called after a commit, before its caller continues
	foreign bool
	place   Place         // for an Inquiry
	ended   []bool        // EndQuestion's kept arguments
	later   time.Duration // added to the time of transactions
	failing int           // the call, counted from 1, that fails; 0: none
	calls   int           // calls since failAt
}

// errBroken is the error of a call that failAt makes fail.
var errBroken = errors.New("the store is broken")

// failAt makes the n-th following call of a transaction to the store, the turns or the transcript
// fail.
func (h *harness) failAt(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failing, h.calls = n, 0
}

// hasFailed reports whether a call has failed since failAt.
func (h *harness) hasFailed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failing > 0 && h.calls >= h.failing
}

// attempt counts a call and returns its error if it is to fail.
func (h *harness) attempt() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if h.calls == h.failing {
		return errBroken
	}
	return nil
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{read: make(map[string]int)}
	ctx, cancel := context.WithCancel(context.Background())
	h.store = must(sqlite.Opener(filepath.Join(t.TempDir(), "duet.db"))(ctx, store.Options{}))(t)
	t.Cleanup(func() { cancel(); require.NoError(t, h.store.Close()) })
	h.Inbox = New(ctx, Options{
		Store: h.store, Policy: NewPolicy("/p", h.configured), Turns: h, Transcript: h, Logger: slog.New(slog.DiscardHandler),
	})
	return h
}

func (h *harness) configured() []config.Rule {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rules
}

func (h *harness) setRules(rules ...config.Rule) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rules = rules
}

func (h *harness) Write(ctx context.Context, change func(store.Tx) error) error {
	defer h.written.Note(func() {})
	return h.store.Write(ctx, func(t store.Tx) error {
		if err := change(countingTx{t, h}); err != nil || h.kept == nil {
			return err
		}
		t.AfterCommit(h.kept)
		return nil
	})
}

func (h *harness) Find(ctx context.Context, r store.Reader, id string) (domain.Turn, error) {
	n, err := r.Find(ctx, id)
	if err != nil {
		return domain.Turn{}, err
	}
	return r.Turn(ctx, n)
}

func (h *harness) AwaitInput(t store.Tx, turn *domain.Turn) error {
	turn.State = domain.WaitingInput
	return t.UpdateTurn(*turn)
}

func (h *harness) GoOn(t store.Tx, turn *domain.Turn) error {
	turn.State = domain.Running
	return t.UpdateTurn(*turn)
}

func (h *harness) Resume(_ store.Tx, _ domain.Turn, prompt string, _ bool) error {
	if err := h.attempt(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resumed = append(h.resumed, prompt)
	return nil
}

func (h *harness) Tell(_ store.Tx, _ domain.Turn, prompt string, _ bool) (domain.Turn, error) {
	if err := h.attempt(); err != nil {
		return domain.Turn{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reported = append(h.reported, prompt)
	return domain.Turn{Task: int64(len(h.reported))}, nil
}

func (h *harness) RefuseTool(_ store.Tx, _ domain.Turn, a domain.Approval, why string) error {
	if err := h.attempt(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = append(h.refused, a.ToolUseID()+": "+a.DecidedBy+": "+why)
	return nil
}

func (h *harness) EditTool(_ store.Tx, _ domain.Turn, a domain.Approval) error {
	if err := h.attempt(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.edited = append(h.edited, a.ToolUseID()+": "+string(a.UpdatedInput))
	return nil
}

func (h *harness) ConfirmsAnswers(domain.Turn) bool { return !h.foreign }

func (h *harness) AgentEnded(int64) <-chan struct{} { return h.gone }

func (h *harness) PlaceOf(context.Context, store.Tx, Inquiry) (Place, error) {
	return h.place, h.attempt()
}

func (h *harness) BeginQuestion(context.Context, store.Tx, *Place, Inquiry) error {
	return h.attempt()
}

func (h *harness) EndQuestion(_ store.Tx, _ *domain.Turn, kept bool) error {
	h.mu.Lock()
	h.ended = append(h.ended, kept)
	h.mu.Unlock()
	return h.attempt()
}

func (h *harness) KeepsQuestions(int64) bool { return false }

func (h *harness) CloseMessage(store.Tx, *domain.Turn) error { return h.attempt() }

func (h *harness) BeginTool(store.Tx, domain.Turn, domain.Approval) error { return h.attempt() }

func (h *harness) NoteApproval(_ store.Tx, _ domain.Turn, _, text string, note domain.ApprovalNote) error {
	if err := h.attempt(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, text)
	if note.Delivery != "" {
		h.deliveries = append(h.deliveries, note.Delivery)
	}
	return nil
}

// countingTx counts the approvals that are read, and fails as failAt sets.
type countingTx struct {
	store.Tx
	of *harness
}

func (t countingTx) count(query string, n int) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.read[query] += n
}

// get makes a call that returns a T, unless it is to fail.
func get[T any](t countingTx, call func() (T, error)) (found T, err error) {
	if err := t.of.attempt(); err != nil {
		return found, err
	}
	return call()
}

// list is get for a query and counts its approvals.
func (t countingTx) list(query string, call func() ([]domain.Approval, error)) ([]domain.Approval, error) {
	list, err := get(t, call)
	t.count(query, len(list))
	return list, err
}

// put makes a writing call, unless it is to fail.
func (t countingTx) put(call func() error) error {
	if err := t.of.attempt(); err != nil {
		return err
	}
	return call()
}

func (t countingTx) Now() time.Time { return t.Tx.Now().Add(t.of.later) }

func (t countingTx) Latest() time.Time { return t.Tx.Latest().Add(t.of.later) }

func (t countingTx) Approval(ctx context.Context, id string) (domain.Approval, error) {
	t.count("Approval", 1)
	return get(t, func() (domain.Approval, error) { return t.Tx.Approval(ctx, id) })
}

func (t countingTx) PendingApprovals(ctx context.Context, turn int64) ([]domain.Approval, error) {
	return t.list("PendingApprovals", func() ([]domain.Approval, error) { return t.Tx.PendingApprovals(ctx, turn) })
}

func (t countingTx) PendingInSession(ctx context.Context, session int64) ([]domain.Approval, error) {
	return t.list("PendingInSession", func() ([]domain.Approval, error) { return t.Tx.PendingInSession(ctx, session) })
}

func (t countingTx) StaleApprovals(ctx context.Context, session int64) ([]domain.Approval, error) {
	return t.list("StaleApprovals", func() ([]domain.Approval, error) { return t.Tx.StaleApprovals(ctx, session) })
}

func (t countingTx) CarriedDecisions(ctx context.Context, session int64) ([]domain.Approval, error) {
	return t.list("CarriedDecisions", func() ([]domain.Approval, error) { return t.Tx.CarriedDecisions(ctx, session) })
}

func (t countingTx) UntakenAnswers(ctx context.Context, turn int64) ([]domain.Approval, error) {
	return t.list("UntakenAnswers", func() ([]domain.Approval, error) { return t.Tx.UntakenAnswers(ctx, turn) })
}

func (t countingTx) Turn(ctx context.Context, id int64) (domain.Turn, error) {
	return get(t, func() (domain.Turn, error) { return t.Tx.Turn(ctx, id) })
}

func (t countingTx) Find(ctx context.Context, id string) (int64, error) {
	return get(t, func() (int64, error) { return t.Tx.Find(ctx, id) })
}

func (t countingTx) Session(ctx context.Context, id int64) (domain.Session, error) {
	return get(t, func() (domain.Session, error) { return t.Tx.Session(ctx, id) })
}

func (t countingTx) AgentSession(ctx context.Context, session int64) (domain.AgentSessionSeen, error) {
	return get(t, func() (domain.AgentSessionSeen, error) { return t.Tx.AgentSession(ctx, session) })
}

func (t countingTx) Rules(ctx context.Context, session int64) ([]domain.Rule, error) {
	return get(t, func() ([]domain.Rule, error) { return t.Tx.Rules(ctx, session) })
}

func (t countingTx) CarriedDecision(ctx context.Context, session int64, question string) (domain.Approval, error) {
	return get(t, func() (domain.Approval, error) { return t.Tx.CarriedDecision(ctx, session, question) })
}

func (t countingTx) OvertakenApproval(ctx context.Context, session int64, question string) (domain.Approval, error) {
	return get(t, func() (domain.Approval, error) { return t.Tx.OvertakenApproval(ctx, session, question) })
}

func (t countingTx) HasUnfinished(ctx context.Context, session, turn int64) (bool, error) {
	return get(t, func() (bool, error) { return t.Tx.HasUnfinished(ctx, session, turn) })
}

func (t countingTx) HasAsked(ctx context.Context, turn int64, tool string) (bool, error) {
	return get(t, func() (bool, error) { return t.Tx.HasAsked(ctx, turn, tool) })
}

func (t countingTx) ToolItem(ctx context.Context, turn int64, key string) (domain.Item, error) {
	return get(t, func() (domain.Item, error) { return t.Tx.ToolItem(ctx, turn, key) })
}

func (t countingTx) Append(e domain.Event) (int64, error) {
	return get(t, func() (int64, error) { return t.Tx.Append(e) })
}

func (t countingTx) UpdateItem(i domain.Item) error {
	return t.put(func() error { return t.Tx.UpdateItem(i) })
}

func (t countingTx) InsertApproval(a *domain.Approval) error {
	return t.put(func() error { return t.Tx.InsertApproval(a) })
}

func (t countingTx) UpdateApproval(a domain.Approval) error {
	return t.put(func() error { return t.Tx.UpdateApproval(a) })
}

func (t countingTx) TakeAnswer(id string, turn int64) error {
	return t.put(func() error { return t.Tx.TakeAnswer(id, turn) })
}

func (t countingTx) PutRule(r domain.Rule) error {
	return t.put(func() error { return t.Tx.PutRule(r) })
}

func (t countingTx) DeleteRule(id int64) error {
	return t.put(func() error { return t.Tx.DeleteRule(id) })
}

func (t countingTx) UpdateTurn(r domain.Turn) error {
	return t.put(func() error { return t.Tx.UpdateTurn(r) })
}

// reads returns how many approvals f reads, by query, without zeros.
func (h *harness) reads(f func()) map[string]int {
	h.mu.Lock()
	clear(h.read)
	h.mu.Unlock()
	f()
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make(map[string]int)
	for query, n := range h.read {
		if n > 0 {
			found[query] = n
		}
	}
	return found
}

// turn adds a turn to a new session.
func (h *harness) turn(t *testing.T, state domain.State) domain.Turn {
	t.Helper()
	session := domain.Session{UUID: uuid.NewString(), CWD: "/p", Agent: "fake", Mode: catalog.ModeDefault, Created: time.Now(), Active: time.Now()}
	require.NoError(t, h.store.Write(context.Background(), func(tx store.Tx) error { return tx.InsertSession(&session) }))
	return h.runIn(t, session.ID, state)
}

func (h *harness) runIn(t *testing.T, session int64, state domain.State) domain.Turn {
	t.Helper()
	r := domain.Turn{
		UUID: uuid.NewString(), HumanLayerSession: uuid.NewString(), HumanLayerRun: uuid.NewString(), Session: session, State: state, Agent: "fake",
		Prompt: "the request", Created: time.Now(), Active: time.Now(),
	}
	require.NoError(t, h.store.Write(context.Background(), func(tx store.Tx) error { return tx.InsertTurn(&r) }))
	return r
}

// write returns an agent's request to write a file.
func write(file string) catalog.RequestPermissionParams {
	return catalog.RequestPermissionParams{
		ToolName: "Write", ToolKind: "edit", Title: "Write " + file, ToolInput: json.RawMessage(fmt.Sprintf(`{"file_path":%q}`, file)), ToolUseID: file,
	}
}

// ask has the agent of a turn ask until the test ends, and waits until the question is open.
func (h *harness) ask(t *testing.T, turn domain.Turn, p catalog.RequestPermissionParams) (asked domain.Approval, answered chan catalog.RequestPermissionResult) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	answered = make(chan catalog.RequestPermissionResult, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if r, err := h.Ask(ctx, turn.ID, p); err == nil {
			answered <- r
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	h.written.Await(t, func() bool {
		list := must(h.Pending(context.Background(), turn.UUID))(t)
		for _, a := range list {
			if a.ToolUseID() == p.ToolUseID && !a.Stale {
				asked = a
				return true
			}
		}
		return false
	}, "the question")
	return asked, answered
}

// pending returns the ids of the open questions of a turn.
func (h *harness) pending(t *testing.T, turn domain.Turn) (ids []string) {
	t.Helper()
	list := must(h.Pending(context.Background(), turn.UUID))(t)
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	return ids
}
