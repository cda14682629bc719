package store

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A ConversationWriter keeps conversations, their runs and what is in them.
type ConversationWriter interface {
	// InsertThread adds a thread and sets its ID.
	InsertThread(th *domain.Thread) error
	// UpdateThread writes everything of a thread that can change.
	UpdateThread(th domain.Thread) error
	// PutAgentSession keeps what the agent of a thread tells of its session.
	PutAgentSession(s domain.AgentSessionSeen) error
	// InsertRun adds a run, numbers it, sets its ID and Task, and makes it found
	// by its ids. A number whose name is somebody's id already is left out.
	InsertRun(r *domain.Run) error
	// UpdateRun writes everything of a run that can change.
	UpdateRun(r domain.Run) error
	// SetPrompt changes what a run asks for that has not begun. What was asked once
	// stays: UpdateRun does not write it.
	SetPrompt(run int64, prompt string, content []domain.Block) error
	// SetPlace writes the Place, Priority and Parent of a queued run, of which
	// UpdateRun writes the Priority alone. Places in a thread differ.
	SetPlace(r domain.Run) error
	// MoveDirectories changes the directories of threads, and the files that runs
	// have changed, that are from, or below it, as after a move of the project.
	MoveDirectories(from, to string) error
	// SetAlias makes a run, or a thread where run is 0, found by an id.
	SetAlias(alias string, run, thread int64) error
	// DropAlias makes an id name nothing.
	DropAlias(alias string) error
	// IsTaken reports whether an id names something.
	IsTaken(alias string) (bool, error)
	// PutAttachment keeps bytes under their id, unless they are there.
	PutAttachment(a domain.Attachment) error
	// InsertItem adds an item and sets its ID.
	InsertItem(i *domain.Item) error
	// UpdateItem writes everything of an item that can change.
	UpdateItem(i domain.Item) error
	// DeleteRuns deletes the runs of a thread that come after one, or all with the
	// thread where that is 0, and everything that only they have: items, questions,
	// rules, changes of files, attachments that no other run has, ids. What the log
	// has of them is erased, and keeps its numbers. They must have ended.
	DeleteRuns(thread, after int64) error
	// PutChange keeps how a run changed a file. What the file was before is kept
	// from the first time.
	PutChange(c domain.Change) error
}

// An ApprovalWriter keeps questions and rules.
type ApprovalWriter interface {
	// InsertApproval adds an approval. Its CallID is changed if another one has
	// it: old clients know an approval by nothing else.
	InsertApproval(a *domain.Approval) error
	// UpdateApproval writes everything of an approval that can change.
	UpdateApproval(a domain.Approval) error
	// TakeAnswer notes that the agent of a run has taken the answer to an
	// approval. An answer that this run was not given, or that was taken, is left
	// alone.
	TakeAnswer(id string, run int64) error
	// PutRule adds a rule. One that is there is as one that was made now.
	PutRule(r domain.Rule) error
	// DeleteRule takes a rule away. The error is ErrNotFound if there is none.
	DeleteRule(id int64) error
}

// An ExecutorWriter keeps what is known of executors.
type ExecutorWriter interface {
	// PutProcess notes that an agent was started.
	PutProcess(p domain.Process) error
	// DropProcess notes that an agent has ended.
	DropProcess(mark string) error
	// NoteKeyAccess notes that the API key of a service was asked for. outcome is
	// in words; it never has the key.
	NoteKeyAccess(run int64, service, outcome string) error
	// SetMeta sets a named value.
	SetMeta(key, value string) error
}

// A Tx is a change under way: all of it is kept, or nothing. It belongs to the
// function that it was given to, and sees what that has changed. Only one is under
// way at a time.
type Tx interface {
	Reader
	ConversationWriter
	ApprovalWriter
	ExecutorWriter
	TriggerWriter
	GateWriter
	PageWriter
	ReviewWriter

	// Now is the time of the change.
	Now() time.Time
	// Append adds an event to the log and returns its number.
	Append(e domain.Event) (int64, error)
	// Seq is the number of the last event of the log, this transaction's included.
	Seq() int64
	// AfterCommit runs f in the writer's goroutine when the transaction was
	// committed, before its events are announced, and whoever waits for the change, or
	// has read it, goes on. f must not block and not use the store.
	AfterCommit(f func())
}
