package store

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// MostTriggerExecutions limits how many executions of triggers are kept, beside those that are
// not over.
const MostTriggerExecutions = 500

// MostPageMessages limits how many messages of a preview's pages are kept.
const MostPageMessages = 1000

// A Tx is a transaction: all of its changes are committed, or none. It is valid only in the function
// that gets it, and it sees its own changes. There is one at a time.
type Tx interface {
	Reader

	// Now is the time of the change.
	Now() time.Time
	// Latest is [Store.Latest].
	Latest() time.Time
	// Append adds an event to the log and returns its number.
	Append(e domain.Event) (int64, error)
	// Seq is the number of the last event of the log, this transaction's included.
	Seq() int64
	// AfterCommit runs f in the writer's goroutine after the commit, before its events are
	// announced, and before callers that wait for the change or have read it continue. f must
	// not block and not use the store.
	AfterCommit(f func())

	// Sessions, turns, and their items. An Update writes every field that can change. Its error is
	// ErrNotFound if the row does not exist.

	// InsertSession adds a session and sets its ID.
	InsertSession(session *domain.Session) error
	UpdateSession(session domain.Session) error
	// PutAgentSession keeps an agent's report about the session of a session.
	PutAgentSession(s domain.AgentSessionSeen) error
	// InsertTurn adds a turn, sets its ID, Number, Task and Place, and makes its ids aliases. It skips
	// a number whose task name is an alias already.
	InsertTurn(r *domain.Turn) error
	UpdateTurn(r domain.Turn) error
	// SetPrompt changes the prompt of a turn that has not begun. UpdateTurn does not write it.
	SetPrompt(turn int64, prompt string, content []domain.Block) error
	// SetPlace writes the Place, Priority and Parent of a queued turn, of which
	// UpdateTurn writes the Priority alone. Places in a session differ.
	SetPlace(r domain.Turn) error
	// MoveDirectories replaces the directory from by to in the directories of sessions and in
	// the files that turns changed, as after a move of the project.
	MoveDirectories(from, to string) error
	// SetAlias makes an id name a turn, or a session where turn is 0.
	SetAlias(alias string, turn, session int64) error
	// IsTaken reports whether an id names something.
	IsTaken(alias string) (bool, error)
	// DeleteTurns deletes the turns of a session that come after the turn after, or all with the
	// session where that is 0, and everything that only they have: items, approvals,
	// rules, changes of files, attachments that no other turn has, aliases. Their events in the
	// log are erased, and keep their numbers. The turns must have ended.
	DeleteTurns(session, after int64) error
	// InsertItem adds an item and sets its ID.
	InsertItem(i *domain.Item) error
	UpdateItem(i domain.Item) error
	// PutAttachment keeps bytes under their id, unless they are there.
	PutAttachment(a domain.Attachment) error
	// PutChange keeps how a turn changed a file. Before is kept from the first time.
	PutChange(c domain.Change) error
	// PutChangeDecision replaces the decision about a change. ChangeOpen removes it.
	PutChangeDecision(d domain.ChangeDecision) error

	// Approvals and rules.

	// InsertApproval adds an approval. It changes the CallID if another approval has it:
	// old clients know an approval by nothing else.
	InsertApproval(a *domain.Approval) error
	UpdateApproval(a domain.Approval) error
	// TakeAnswer notes that the agent of a turn has acted on the answer to an approval. It
	// does nothing if that turn did not get the answer, or has acted on it before.
	TakeAnswer(id string, turn int64) error
	// PutRule adds a rule, or renews the time of an equal one.
	PutRule(r domain.Rule) error
	// DeleteRule removes a rule. The error is ErrNotFound if there is none.
	DeleteRule(id int64) error

	// Gates, triggers, and pages of previews.

	// InsertGateLoop adds a loop, sets its ID, and adds its turn to it.
	InsertGateLoop(l *domain.GateLoop) error
	// UpdateGateLoop changes a loop, and adds its turn to it.
	UpdateGateLoop(l domain.GateLoop) error
	// InsertTriggerExecution adds an execution, sets its ID, and deletes the oldest beyond
	// MostTriggerExecutions. It fails if the trigger has an execution with that key.
	InsertTriggerExecution(e *domain.TriggerExecution) error
	UpdateTriggerExecution(e domain.TriggerExecution) error
	PutTriggerState(s domain.TriggerState) error
	// PutPageMessage adds a message, sets its ID, and deletes the oldest beyond
	// MostPageMessages. Of a message with an ID it writes the count and the time.
	PutPageMessage(m *domain.PageMessage) error

	// Processes, keys, and named values.

	// PutProcess notes that an agent was started.
	PutProcess(p domain.Process) error
	// DropProcess notes that an agent has ended.
	DropProcess(mark string) error
	// NoteKeyAccess notes a request for the API key of a service. outcome is a text, without
	// the key.
	NoteKeyAccess(turn int64, service, outcome string) error
	SetMeta(key, value string) error
}
