package store

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Reader answers queries, of the store or within a transaction. A query for one value returns
// ErrNotFound if none exists.
type Reader interface {
	// Sessions.

	// Session finds a session by its row.
	Session(ctx context.Context, id int64) (domain.Session, error)
	// FindSession finds the session that an id of any kind names, or a number (domain.ParseNumber).
	FindSession(ctx context.Context, alias string) (int64, error)
	// FindSessionID is FindSession without numbers, for ids that clients choose: another client may
	// call its own session 12.
	FindSessionID(ctx context.Context, alias string) (int64, error)
	// FindNative finds the session of an agent's own session.
	FindNative(ctx context.Context, native string) (int64, error)
	// FindNativeOf is FindNative for the sessions of one agent.
	FindNativeOf(ctx context.Context, agent, native string) (int64, error)
	// NamesSession reports whether an id names a session, rather than one of its turns. "last" does.
	NamesSession(ctx context.Context, alias string) (bool, error)
	// RecentPaths lists the directories of sessions, the last used first, with how often each
	// was used.
	RecentPaths(ctx context.Context, limit int) ([]domain.RecentPath, error)
	// AgentSession returns the last report of a session's agent about its session, or zero.
	AgentSession(ctx context.Context, session int64) (domain.AgentSessionSeen, error)
	// LastAgentSession returns an agent's last report about its session in any session, or
	// zero. agent is its name in the configuration.
	LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error)
	// BackgroundSessions lists the sessions of agents that work in the background.
	BackgroundSessions(ctx context.Context) ([]domain.AgentSessionSeen, error)
	// ForkedUpTo returns the last turn of a session that a fork of it shares, or 0.
	ForkedUpTo(ctx context.Context, session int64) (int64, error)
	// HasUnfinished reports whether a session has a turn, other than except, that has
	// not ended and is no draft.
	HasUnfinished(ctx context.Context, session, except int64) (bool, error)

	// Turns.

	// Turn finds a turn by its row.
	Turn(ctx context.Context, id int64) (domain.Turn, error)
	// Find finds the turn that an id of any kind names: an id of the turn, or one of its
	// session, which means the session's last turn; if none is it, domain.LastTurn, or the number of
	// a turn or session (domain.ParseNumber).
	Find(ctx context.Context, alias string) (int64, error)
	// FindID is Find without numbers; see FindSessionID.
	FindID(ctx context.Context, alias string) (int64, error)
	// Session finds a turn by its row, with its session.
	TurnInSession(ctx context.Context, id int64) (domain.TurnInSession, error)
	// Sessions lists turns, the newest first.
	TurnsInSessions(ctx context.Context, f domain.TurnFilter) ([]domain.TurnInSession, error)
	// TurnsOfSession lists the turns of a session in the order of their places, up to
	// the turn upTo, or all if that is 0.
	TurnsOfSession(ctx context.Context, session, upTo int64) ([]domain.Turn, error)
	// TurnHeads is TurnsOfSession without the texts.
	TurnHeads(ctx context.Context, session, upTo int64) ([]domain.TurnHead, error)
	// LastTurn returns the last turn of a session, drafts aside.
	LastTurn(ctx context.Context, session int64) (domain.Turn, error)
	// TurnsIn lists the turns in the given states, the oldest first.
	TurnsIn(ctx context.Context, states ...domain.State) ([]domain.Turn, error)
	// TurnsFailedWith lists the turns that failed with an ErrorCode, from the turn first on, the
	// oldest first. It reads no turn before first.
	TurnsFailedWith(ctx context.Context, code string, first int64) ([]domain.Turn, error)
	// Startable lists the queued turns whose session has no active turn and no gates under way,
	// in the order in which they are to start: by priority, then by age; within a session by
	// priority, then by place.
	Startable(ctx context.Context, limit int) ([]domain.TurnInSession, error)
	// UnfinishedTurns lists the turns of a session that have not ended, drafts
	// included, in the order of their places.
	UnfinishedTurns(ctx context.Context, session int64) ([]domain.Turn, error)
	// Load is Counts for the states that scheduling depends on.
	Load(ctx context.Context) (domain.Counts, error)
	// Counts counts the turns in each state.
	Counts(ctx context.Context) (domain.Counts, error)

	// The log.

	// Events lists the log from after seq on, at most limit entries. With an error
	// it returns the entries before the one that it could not read.
	Events(ctx context.Context, after int64, limit int) ([]domain.Event, error)
	// LastSeq returns the number of the last event that was not erased, or 0.
	LastSeq(ctx context.Context) (int64, error)
	// OpenDeltas lists the deltas of a turn that no item holds yet.
	OpenDeltas(ctx context.Context, turn int64) ([]domain.Event, error)
	// HasOpenDeltas reports whether OpenDeltas has any.
	HasOpenDeltas(ctx context.Context, turn int64) (bool, error)

	// Items: messages, thoughts, tool calls, notes; and files.

	// ItemsOfTurn lists the items of a turn in order.
	ItemsOfTurn(ctx context.Context, turn int64) ([]domain.Item, error)
	// ItemsBefore lists the last items of a turn before the item with an id, at most limit, in order.
	ItemsBefore(ctx context.Context, turn, before int64, limit int) ([]domain.Item, error)
	// ItemsAfter lists the first items of a turn after the item with an id, at most limit, in order.
	ItemsAfter(ctx context.Context, turn, after int64, limit int) ([]domain.Item, error)
	// ItemsWithKey lists the items of a turn with a key.
	ItemsWithKey(ctx context.Context, turn int64, key string) ([]domain.Item, error)
	// TurnOfItem returns the turn of an item.
	TurnOfItem(ctx context.Context, item int64) (int64, error)
	// LastItem returns the last message, thought or tool call of a turn.
	LastItem(ctx context.Context, turn int64) (domain.Item, error)
	// ToolItem finds the tool call of a turn by the agent's id.
	ToolItem(ctx context.Context, turn int64, key string) (domain.Item, error)
	// NotedItem finds an item that a turn has at most once: its plan, the note about the
	// changed file key, or the note about the answer to the approval key.
	NotedItem(ctx context.Context, turn int64, kind, key string) (domain.Item, error)
	// OpenTools lists the tool calls of a turn that have not ended.
	OpenTools(ctx context.Context, turn int64) ([]domain.Item, error)
	// Attachment finds bytes by their id.
	Attachment(ctx context.Context, id string) (domain.Attachment, error)
	// AttachmentPart returns at most limit bytes of an attachment from offset on.
	AttachmentPart(ctx context.Context, id string, offset int64, limit int) (domain.AttachmentInfo, []byte, error)
	// Changes lists the files that a turn changed, by path.
	Changes(ctx context.Context, turn int64) ([]domain.Change, error)
	// ChangeDecisions lists the decisions about the changes of a turn.
	ChangeDecisions(ctx context.Context, turn int64) ([]domain.ChangeDecision, error)

	// Approvals and rules.

	// Approval finds an approval by its id, or by its CallID.
	Approval(ctx context.Context, id string) (domain.Approval, error)
	// ApprovalBeginning finds the one approval whose id begins like that.
	ApprovalBeginning(ctx context.Context, beginning string) (domain.Approval, error)
	// Approvals finds approvals by their ids.
	Approvals(ctx context.Context, ids []string) (map[string]domain.Approval, error)
	// PendingApprovals lists the pending approvals of a turn, or of all where turn is 0, the
	// oldest first.
	PendingApprovals(ctx context.Context, turn int64) ([]domain.Approval, error)
	// PendingInSession lists the pending approvals of a session, the oldest first. It reads no
	// approval of another session.
	PendingInSession(ctx context.Context, session int64) ([]domain.Approval, error)
	// StaleApprovals lists the pending approvals of a session whose process is dead, the
	// oldest first.
	StaleApprovals(ctx context.Context, session int64) ([]domain.Approval, error)
	// OvertakenApproval returns the last question of a session that asked an answered
	// question again, and was left behind when the session went on.
	OvertakenApproval(ctx context.Context, session int64, question string) (domain.Approval, error)
	// CarriedDecision returns a decision of a session that was made for a dead process and
	// answers this question.
	CarriedDecision(ctx context.Context, session int64, question string) (domain.Approval, error)
	// CarriedDecisions lists the decisions of a session that were made for dead
	// processes and are still unused, the oldest first.
	CarriedDecisions(ctx context.Context, session int64) ([]domain.Approval, error)
	// UntakenAnswers lists the answers that a turn's agent got and is not known to have acted
	// on, the oldest first.
	UntakenAnswers(ctx context.Context, turn int64) ([]domain.Approval, error)
	// HasAsked reports whether a turn asked for a tool, answered or not.
	HasAsked(ctx context.Context, turn int64, tool string) (bool, error)
	// HasDenied reports whether a person denied a request of a turn.
	HasDenied(ctx context.Context, turn int64) (bool, error)
	// Rules lists the rules of a session and of the whole project, the oldest first.
	Rules(ctx context.Context, session int64) ([]domain.Rule, error)
	// AllRules lists the rules of all sessions and of the project, the oldest first.
	AllRules(ctx context.Context) ([]domain.Rule, error)

	// Usage.

	// Usage sums up the turns of a filter. A turn that has not ended counts up to now.
	Usage(ctx context.Context, f domain.UsageFilter, now time.Time) (domain.Usage, error)
	// UsageBy is Usage for each day, the last first, or for each agent, session or
	// model, the most expensive first.
	UsageBy(ctx context.Context, f domain.UsageFilter, by domain.UsageBy, now time.Time) ([]domain.UsageRow, error)
	// LastWith returns the last turn of a session that has an ErrorCode, or 0.
	LastWith(ctx context.Context, session int64, code string) (int64, error)

	// Gates.

	// GateLoop finds the loop that a turn belongs to.
	GateLoop(ctx context.Context, turn int64) (domain.GateLoop, error)
	// GateLoops finds the loops of turns, by turn. Turns without a loop are left out.
	GateLoops(ctx context.Context, turns []int64) (map[int64]domain.GateLoop, error)
	// CheckedLoops lists the loops whose gates are being checked, the oldest first.
	CheckedLoops(ctx context.Context) ([]domain.GateLoop, error)

	// Triggers, and pages of previews.

	// TriggerExecutions lists the last executions of a trigger, or of all where trigger
	// is "", the newest first.
	TriggerExecutions(ctx context.Context, trigger string, limit int) ([]domain.TriggerExecution, error)
	// OpenTriggerExecutions lists the executions that wait for a person or are being sent, the
	// oldest first.
	OpenTriggerExecutions(ctx context.Context) ([]domain.TriggerExecution, error)
	// HasTriggerExecution reports whether a trigger has an execution for an event.
	HasTriggerExecution(ctx context.Context, trigger, key string) (bool, error)
	// TriggerState returns the state of a trigger, or an empty one.
	TriggerState(ctx context.Context, trigger string) (domain.TriggerState, error)
	// PageMessages lists the last messages of a filter, the oldest first.
	PageMessages(ctx context.Context, f domain.PageFilter) ([]domain.PageMessage, error)

	// Processes, keys, and named values.

	// Processes lists the agents that may still be alive.
	Processes(ctx context.Context) ([]domain.Process, error)
	// KeyAccesses lists the requests for API keys, the newest first.
	KeyAccesses(ctx context.Context, limit int) ([]domain.KeyAccess, error)
	// Meta returns a named value, or "" if it was never set.
	Meta(ctx context.Context, key string) (string, error)
}
