package store

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A ThreadReader finds conversations.
type ThreadReader interface {
	// Thread finds a thread by its row.
	Thread(ctx context.Context, id int64) (domain.Thread, error)
	// FindThread is the thread that an id of any kind names.
	FindThread(ctx context.Context, alias string) (int64, error)
	// FindNative is the thread that has an agent's own session.
	FindNative(ctx context.Context, native string) (int64, error)
	// FindNativeOf is the thread that has a session of this agent's own.
	FindNativeOf(ctx context.Context, agent, native string) (int64, error)
	// NamesThread reports whether an id names a conversation, rather than one of
	// its runs.
	NamesThread(ctx context.Context, alias string) (bool, error)
	// RecentPaths are the directories of threads, the last used first, with how
	// often each was used.
	RecentPaths(ctx context.Context, limit int) ([]domain.RecentPath, error)
	// AgentSession is what the agent of a thread has told of its session, and zero
	// where it has told nothing.
	AgentSession(ctx context.Context, thread int64) (domain.AgentSessionSeen, error)
	// LastAgentSession is what an agent has told of its session last, in any thread,
	// and zero where it never has. agent is its name in the configuration.
	LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error)
	// BackgroundSessions are those of agents that do something in the background.
	BackgroundSessions(ctx context.Context) ([]domain.AgentSessionSeen, error)
	// ForkedUpTo is the last run of a thread with which a fork of it begins, or 0.
	ForkedUpTo(ctx context.Context, thread int64) (int64, error)
	// HasUnfinished reports whether a thread has a run, other than except, that has
	// not ended and is no draft.
	HasUnfinished(ctx context.Context, thread, except int64) (bool, error)
}

// A RunReader finds runs.
type RunReader interface {
	// Run finds a run by its row.
	Run(ctx context.Context, id int64) (domain.Run, error)
	// Find is the run that an id of any kind names: one of the run's own, or one
	// of its thread's, which means the thread's last run, or domain.LastRun.
	Find(ctx context.Context, alias string) (int64, error)
	// Session finds a run by its row, with its thread.
	Session(ctx context.Context, id int64) (domain.Session, error)
	// Sessions lists runs, the newest first.
	Sessions(ctx context.Context, f domain.RunFilter) ([]domain.Session, error)
	// RunsOfThread lists the runs of a thread in the order of the conversation, up to
	// the run upTo, or all if that is 0.
	RunsOfThread(ctx context.Context, thread, upTo int64) ([]domain.Run, error)
	// RunHeads is RunsOfThread without most of it.
	RunHeads(ctx context.Context, thread, upTo int64) ([]domain.RunHead, error)
	// LastRun is the last run of a thread, drafts aside.
	LastRun(ctx context.Context, thread int64) (domain.Run, error)
	// RunsIn lists the runs that are in one of the states, the oldest first.
	RunsIn(ctx context.Context, states ...domain.State) ([]domain.Run, error)
	// RunsFailedWith lists the runs that have failed with an ErrorCode, from the run
	// first on, the oldest first. It looks at no run before that.
	RunsFailedWith(ctx context.Context, code string, first int64) ([]domain.Run, error)
	// Startable lists the queued runs whose thread has no active run, in the order
	// in which they are to start: by priority, then by age; of one thread by priority,
	// then by their places.
	Startable(ctx context.Context, limit int) ([]domain.Session, error)
	// UnfinishedRuns lists the runs of a thread that have not ended, drafts
	// included, in the order of the conversation.
	UnfinishedRuns(ctx context.Context, thread int64) ([]domain.Run, error)
	// Load is Counts for the states that scheduling looks at.
	Load(ctx context.Context) (domain.Counts, error)
	// Counts tells how many runs are in which state.
	Counts(ctx context.Context) (domain.Counts, error)
}

// A EventReader reads the log.
type EventReader interface {
	// Events lists the log from after seq on, at most limit entries. With an error
	// it returns those before what could not be read.
	Events(ctx context.Context, after int64, limit int) ([]domain.Event, error)
	// LastSeq is the number of the last event, or 0.
	LastSeq(ctx context.Context) (int64, error)
	// OpenDeltas lists the deltas of a run that no item holds yet.
	OpenDeltas(ctx context.Context, run int64) ([]domain.Event, error)
	// HasOpenDeltas reports whether OpenDeltas has any.
	HasOpenDeltas(ctx context.Context, run int64) (bool, error)
}

// A ItemReader reads what was said and done.
type ItemReader interface {
	// ItemsOfRun lists what a run added to its conversation, in order.
	ItemsOfRun(ctx context.Context, run int64) ([]domain.Item, error)
	// LastItem is the last message, thought or tool call of a run.
	LastItem(ctx context.Context, run int64) (domain.Item, error)
	// ToolItem is the tool call of a run that has the agent's id.
	ToolItem(ctx context.Context, run int64, key string) (domain.Item, error)
	// NotedItem is what a run has one of at most: a plan, the note of a change of
	// the file that is its key, or of the answer to the approval that is.
	NotedItem(ctx context.Context, run int64, kind, key string) (domain.Item, error)
	// OpenTools lists the tool calls of a run that have not ended.
	OpenTools(ctx context.Context, run int64) ([]domain.Item, error)
	// Attachment finds bytes by their id.
	Attachment(ctx context.Context, id string) (domain.Attachment, error)
	// AttachmentPart is at most limit bytes of an attachment from offset on.
	AttachmentPart(ctx context.Context, id string, offset int64, limit int) (domain.AttachmentInfo, []byte, error)
	// Changes lists the files that a run changed, by path.
	Changes(ctx context.Context, run int64) ([]domain.Change, error)
}

// A ApprovalReader finds questions.
type ApprovalReader interface {
	// Approval finds an approval by its id, or by its CallID. Databases from
	// before that was unique have several for one: then the only pending one is
	// meant, or it is ErrAmbiguous.
	Approval(ctx context.Context, id string) (domain.Approval, error)
	// ApprovalBeginning finds the one approval whose id begins like that.
	ApprovalBeginning(ctx context.Context, beginning string) (domain.Approval, error)
	// Approvals finds approvals by their ids.
	Approvals(ctx context.Context, ids []string) (map[string]domain.Approval, error)
	// PendingApprovals lists what waits for a human, the oldest first: of one run,
	// or of all where run is 0.
	PendingApprovals(ctx context.Context, run int64) ([]domain.Approval, error)
	// PendingInThread lists what waits for a human in a thread, the oldest first. It
	// looks at nothing that waits elsewhere.
	PendingInThread(ctx context.Context, thread int64) ([]domain.Approval, error)
	// StaleApprovals lists what dead processes of a thread have asked and waits
	// for a human, the oldest first.
	StaleApprovals(ctx context.Context, thread int64) ([]domain.Approval, error)
	// OvertakenApproval is the last question of a thread that asked again what was
	// answered, and that the thread has left behind.
	OvertakenApproval(ctx context.Context, thread int64, question string) (domain.Approval, error)
	// CarriedDecision is a decision of a thread, made for a dead process, that
	// answers the same question.
	CarriedDecision(ctx context.Context, thread int64, question string) (domain.Approval, error)
	// CarriedDecisions lists the decisions of a thread that were made for dead
	// processes and have answered nothing yet, the oldest first.
	CarriedDecisions(ctx context.Context, thread int64) ([]domain.Approval, error)
	// UntakenAnswers lists the answers that a run's agent was given and is not
	// known to have taken, the oldest first.
	UntakenAnswers(ctx context.Context, run int64) ([]domain.Approval, error)
	// HasAsked reports whether a run has asked for a tool, whoever answered.
	HasAsked(ctx context.Context, run int64, tool string) (bool, error)
	// Rules lists the rules of a thread and of the whole project, the oldest
	// first.
	Rules(ctx context.Context, thread int64) ([]domain.Rule, error)
	// AllRules lists the rules of all threads and of the project, the oldest
	// first.
	AllRules(ctx context.Context) ([]domain.Rule, error)
}

// A ExecutorReader finds what executors left.
type ExecutorReader interface {
	// Processes lists the agents that may still be alive.
	Processes(ctx context.Context) ([]domain.Process, error)
	// KeyAccesses lists when API keys were asked for, the newest first.
	KeyAccesses(ctx context.Context, limit int) ([]domain.KeyAccess, error)
	// Meta is a named value, or "" if it was never set.
	Meta(ctx context.Context, key string) (string, error)
}

// A UsageReader sums up what runs have used.
type UsageReader interface {
	// Usage is what the runs of a filter have used; now is when those that go on are
	// looked at.
	Usage(ctx context.Context, f domain.UsageFilter, now time.Time) (domain.Usage, error)
	// UsageBy is Usage for each day, the last first, or for each agent, conversation or
	// model, what cost most first.
	UsageBy(ctx context.Context, f domain.UsageFilter, by domain.UsageBy, now time.Time) ([]domain.UsageRow, error)
	// LastWith is the last run of a thread that has an ErrorCode, or 0.
	LastWith(ctx context.Context, thread int64, code string) (int64, error)
}

// A Reader answers what can be asked of a store, and inside a change.
type Reader interface {
	ThreadReader
	RunReader
	EventReader
	ItemReader
	UsageReader
	ApprovalReader
	ExecutorReader
	TriggerReader
	GateReader
	PageReader
	ReviewReader
}
