package hub

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

type Hub struct{}

func (h *Hub) Launch(ctx context.Context, spec LaunchSpec) (Session, error)                { panic("") }
func (h *Hub) Chat(ctx context.Context, message string, priority int) (Session, error)    { panic("") }
func (h *Hub) Continue(ctx context.Context, spec ContinueSpec) (Session, error)            { panic("") }
func (h *Hub) Interrupt(ctx context.Context, id, reason string) (Session, error)           { panic("") }
func (h *Hub) Cancel(ctx context.Context, id, reason string) (Session, error)              { panic("") }
func (h *Hub) Await(ctx context.Context, id string) (Session, error)                       { panic("") }
func (h *Hub) Session(ctx context.Context, id string) (Session, error)                     { panic("") }
func (h *Hub) SessionOfNative(ctx context.Context, native string) (Session, error)         { panic("") }
func (h *Hub) Sessions(ctx context.Context, f RunFilter) ([]Session, error)                { panic("") }
func (h *Hub) Counts(ctx context.Context) (Counts, error)                                  { panic("") }
func (h *Hub) Conversation(ctx context.Context, id string, p Page) (Conversation, error)   { panic("") }
func (h *Hub) Search(ctx context.Context, words string, limit, offset int) ([]Hit, error)  { panic("") }
func (h *Hub) Changes(ctx context.Context, id string) ([]Change, error)                    { panic("") }
func (h *Hub) Approvals(ctx context.Context, run string) ([]Approval, error)               { panic("") }
func (h *Hub) Approval(ctx context.Context, id string) (Approval, error)                   { panic("") }
func (h *Hub) CreateApproval(ctx context.Context, spec ApprovalSpec) (Approval, error)     { panic("") }
func (h *Hub) Decide(ctx context.Context, d Decision) (Approval, error)                    { panic("") }
func (h *Hub) UpdateSettings(ctx context.Context, id string, c SettingsChange) (Session, error) { panic("") }
func (h *Hub) RecentPaths(ctx context.Context, limit int) ([]RecentPath, error)            { panic("") }
func (h *Hub) CreateMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	panic("")
}
func (h *Hub) Status(ctx context.Context) (Status, error)                              { panic("") }
func (h *Hub) CheckToken(token string) error                                           { panic("") }
func (h *Hub) ProvideSecret(ctx context.Context, requestID, service, secret string) error { panic("") }
func (h *Hub) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams, watch func(Notice)) (catalog.SpawnTerminalResult, error) {
	panic("")
}
func (h *Hub) TerminalWrite(ctx context.Context, p catalog.TerminalWriteParams) error   { panic("") }
func (h *Hub) TerminalResize(ctx context.Context, p catalog.TerminalResizeParams) error { panic("") }
func (h *Hub) TerminalClose(ctx context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	panic("")
}

// Page is part of a conversation: Limit items from Offset on, the oldest
// first; Limit 0 means all.
type Page struct{ Offset, Limit int }

// A Conversation is what was said up to a run: Entries in order.
type Conversation struct {
	Session  Session
	Entries  []Entry
	Total    int
}

// An Entry is an item with the run that it belongs to.
type Entry struct {
	Item
	SessionID string // of the item's run
	Native    string // of its thread
	Approval  *Approval
	Open      bool // still being written
}

// Subscribe sends deliver the events that filter chooses: those after since
// that are in the log already if since >= 0, then what happens. Pending
// approvals are delivered first, as new_approval events, unless since brings
// them. deliver is called by one goroutine at a time and may block; the
// subscription ends with ctx, or when deliver returns an error.
func (h *Hub) Subscribe(ctx context.Context, f Filter, since int64, deliver func(context.Context, Notice) error) (*Subscription, error) {
	panic("")
}

type Subscription struct{ ID string }

// Start begins to deliver. Until then nothing is.
func (s *Subscription) Start() {}

// Close ends the subscription and waits until deliver has returned.
func (s *Subscription) Close() {}

// Idle is how long nothing was delivered.
func (s *Subscription) Idle() time.Duration { return 0 }

// Watch calls f with every committed event, in order; f must not block.
func (h *Hub) Watch(f func(Event, Session)) (stop func()) { panic("") }
