package humanlayer

import (
	"cmp"
	"context"
	"math"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/dialect/native"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// Family has HumanLayer's codes: its server knows no others than those of JSON-RPC.
var Family = protocol.Family{Name: "HumanLayer", Codes: map[string]protocol.Code{
	domain.KindTurnNotFound:   {Code: jsonrpc2.CodeInternalError, Kind: "session_not_found", Message: "Internal error: "},
	domain.KindNotCancellable: {Code: jsonrpc2.CodeInternalError, Kind: "session_not_running", Message: "Internal error: "},

	domain.KindTooManySubscriptions: {Code: server.CodeOverloaded, Kind: "too_many_subscriptions", Message: "Overloaded: "},
}, Params: map[string]string{
	"prompt": "query", "mode": "permission_mode", "start_id": "launch_id", "session_uuid": "conversation_id", "session": "session_id",
	"turn": "session_id", "approval": "call_id",
}, Tasks: true}

// Register registers HumanLayer's methods.
func Register(m native.Methods) {
	over := methods{
		fork:      native.Call[protocol.ForkParams, protocol.Started](m, "session.fork"),
		prompt:    native.Call[protocol.PromptParams, protocol.Started](m, "session.prompt"),
		archive:   native.Call[protocol.ArchiveSessionsParams, protocol.ArchiveSessionsResult](m, "session.archive"),
		decide:    native.Call[protocol.DecisionParams, protocol.DecisionResult](m, "approval.decide"),
		subscribe: native.Call[protocol.SubscribeParams, protocol.SubscribeResult](m, "event.subscribe"),
		turn:      native.Call[protocol.TurnParams, protocol.TurnResult](m, "turn.get"),
		items:     native.Call[protocol.ItemsParams, protocol.ItemList](m, "session.items"),
		set:       native.Call[protocol.SetSessionParams, protocol.SetSessionResult](m, "session.set"),
	}
	registerSessions(m, over)
	registerSettings(m, over)
	registerApprovals(m, over)
	native.Compose(m, Family, "Subscribe", "Sends events to this connection, in HumanLayer's form. With since, it first replays the stored "+
		"events after that seq. "+
		"With LSP framing they are notifications of the method event; as NDJSON they are results without an id. "+
		"Pending approvals come first. After 30 s without an event, a heartbeat is sent. The connection still serves requests. A connection "+
		"has at most 64 subscriptions.",
		over.follow)
	native.Over(m, Family, "Unsubscribe", "event.unsubscribe", "Ends a subscription of this connection.",
		func(p protocol.UnsubscribeParams) protocol.UnsubscribeParams { return p }, native.Same[protocol.Success])
	native.Compose(m, Family, "getConversation", "Returns the conversation up to a session, with its tool calls, the oldest first. If not "+
		"all fits, pass next_offset as offset to get more. Texts that are cut say so.",
		over.conversation)
	native.Over(m, Family, "getSessionSnapshots", "change.list", "Returns the files that a session changed, their diffs, and the decision "+
		"about each change.",
		func(p SessionParams) protocol.TurnParams { return protocol.TurnParams{Turn: protocol.Ref(p.SessionID)} }, snapshotsOf)
}

// methods are the native methods that [native.Compose] makes HumanLayer's of.
type methods struct {
	fork      func(context.Context, protocol.ForkParams) (protocol.Started, error)
	prompt    func(context.Context, protocol.PromptParams) (protocol.Started, error)
	archive   func(context.Context, protocol.ArchiveSessionsParams) (protocol.ArchiveSessionsResult, error)
	decide    func(context.Context, protocol.DecisionParams) (protocol.DecisionResult, error)
	subscribe func(context.Context, protocol.SubscribeParams) (protocol.SubscribeResult, error)
	turn      func(context.Context, protocol.TurnParams) (protocol.TurnResult, error)
	items     func(context.Context, protocol.ItemsParams) (protocol.ItemList, error)
	set       func(context.Context, protocol.SetSessionParams) (protocol.SetSessionResult, error)
}

func registerSessions(m native.Methods, over methods) {
	native.Over(m, Family, "launchSession", "session.start", "Starts a session: an agent runs a prompt in a new conversation.",
		LaunchParams.Native, func(_ context.Context, s protocol.Started) LaunchResult { return Launched(s) })
	native.Over(m, Family, "listSessions", "turn.list", "Lists sessions, the newest first. If not all fit, pass next_before as before to "+
		"get more.",
		ListSessionsParams.Native, func(ctx context.Context, l protocol.TurnList) SessionList { return listOf(ctx, l.Turns, l.NextBefore) })
	native.Over(m, Family, "getSessionState", "turn.get", "Returns a session without its conversation.",
		func(p SessionParams) protocol.TurnParams { return protocol.TurnParams{Turn: protocol.Ref(p.SessionID)} },
		func(ctx context.Context, r protocol.TurnResult) SessionStateResult {
			one := []*Session{SessionOf(&r.Turn)}
			protocol.Fit(one, protocol.Room(ctx))
			return SessionStateResult{Session: *one[0]}
		})
	native.Over(m, Family, "getSessionLeaves", "session.list", "Lists the last session of each conversation, the newest first.",
		func(p SessionLeavesParams) protocol.SessionListParams {
			return protocol.SessionListParams{Filter: p.Filter, Limit: p.Limit, Before: protocol.Ref(p.Before)}
		},
		func(ctx context.Context, r protocol.SessionsResult) SessionList {
			return listOf(ctx, r.Sessions, r.NextBefore)
		})
	native.Compose(m, Family, "continueSession", "Continues a session's conversation with another prompt. From the last session of the "+
		"conversation, or one that has not ended, the prompt waits its turn there. From an earlier session, or with fork, it starts a new "+
		"conversation that shares the history up to that session. A draft is launched: it keeps its ids, and the parameters replace its own. "+
		"The new session has the permissions of the session before, but a fork never keeps a mode in which tools run without approval.",
		over.continueSession)
	native.Over(m, Family, "interruptSession", "turn.interrupt", "Interrupts a session, also while it waits for input. It can be continued. "+
		"For a session that has ended, this stops the background work of its agent. With background, it stops only that task, whether or not "+
		"the session has ended.",
		func(p InterruptParams) protocol.InterruptTurnParams {
			return protocol.InterruptTurnParams{Turn: protocol.Ref(p.SessionID), Reason: p.Reason, Background: p.Background}
		},
		func(_ context.Context, r protocol.InterruptTurnResult) InterruptResult {
			return InterruptResult{Success: true, SessionID: r.Of.HumanLayerSession, Status: StatusOf(r.Of.State)}
		})
}

// listOf returns a page of turns in HumanLayer's form, shortened again: that form is longer.
func listOf(ctx context.Context, turns []*protocol.Turn, nextBefore string) SessionList {
	list := make([]*Session, 0, len(turns))
	for _, t := range turns {
		list = append(list, SessionOf(t))
	}
	r := SessionList{Sessions: protocol.Fit(list, protocol.Room(ctx))}
	if n := len(r.Sessions); n > 0 && (n < len(list) || nextBefore != "") {
		r.NextBefore = r.Sessions[n-1].ID
	}
	return r
}

func (m methods) continueSession(ctx context.Context, p ContinueParams) (ContinueResult, error) {
	if p.Fork {
		r, err := m.fork(ctx, p.ForkParams())
		return Continued(r), err
	}
	r, err := m.prompt(ctx, p.Prompt())
	return Continued(r), err
}

func registerSettings(m native.Methods, over methods) {
	native.Compose(m, Family, "updateSessionSettings", "Changes settings of a session's conversation. A working agent gets a new mode, model "+
		"or options at once. If it refuses one, the event task_error says so; session.set waits for the agent instead.",
		over.update)
	native.Over(m, Family, "updateSessionTitle", "session.rename", "Sets the title of a session's conversation.",
		func(p UpdateTitleParams) protocol.RenameSessionParams {
			return protocol.RenameSessionParams{Session: protocol.Ref(p.SessionID), Title: p.Title}
		},
		func(context.Context, protocol.Empty) protocol.Success { return protocol.Success{Success: true} })
	native.Over(m, Family, "archiveSession", "session.archive", "Archives a session's conversation, or restores it. Refused (`bad_state`) "+
		"while its agent works in the background or goes on by itself. Continuing a session also restores it.",
		func(p ArchiveParams) protocol.ArchiveSessionsParams {
			return protocol.ArchiveSessionsParams{Sessions: []protocol.Ref{protocol.Ref(p.SessionID)}, Archived: p.Archived}
		},
		func(context.Context, protocol.ArchiveSessionsResult) protocol.Success {
			return protocol.Success{Success: true}
		})
	native.Compose(m, Family, "bulkArchiveSessions", "Archives the conversations of several sessions, or restores them.", over.archiveMany)
	native.Over(m, Family, "getRecentPaths", "project.directories", "Lists working directories of sessions, the last used first.",
		func(p RecentPathsParams) protocol.DirectoriesParams { return protocol.DirectoriesParams(p) },
		func(_ context.Context, l protocol.DirectoryList) RecentPathsResult {
			r := RecentPathsResult{Paths: []RecentPath{}}
			for _, d := range l.Directories {
				r.Paths = append(r.Paths, RecentPath{Path: d.Path, LastUsed: d.LastUsed, UsageCount: d.Sessions})
			}
			return r
		})
}

func (m methods) update(ctx context.Context, p UpdateSettingsParams) (protocol.Success, error) {
	skip := int64(min(uint64(protocol.Value(p.SkipTimeoutMillis)), math.MaxInt64))
	_, err := m.set(ctx, protocol.SetSessionParams{
		Session: protocol.Ref(p.SessionID), Title: p.Title, Mode: p.PermissionMode, Model: p.Model, AutoAcceptEdits: p.AutoAcceptEdits,
		SkipPermissions: p.SkipPermissions, SkipPermissionsMS: &skip, Archived: p.Archived,
		AdditionalDirectories: p.AdditionalDirectories, Options: p.Options, Wait: new(false),
	})
	return protocol.Success{Success: err == nil}, err
}

func (m methods) archiveMany(ctx context.Context, p ArchiveManyParams) (ArchiveManyResult, error) {
	var r ArchiveManyResult
	for _, id := range p.SessionIDs {
		if _, err := m.archive(ctx, protocol.ArchiveSessionsParams{Sessions: []protocol.Ref{protocol.Ref(id)}, Archived: p.Archived}); err != nil {
			if kind := native.KindOf(err); kind == "" || kind == domain.KindUnavailable {
				return ArchiveManyResult{}, err
			}
			r.FailedSessions = append(r.FailedSessions, id)
		}
	}
	r.Success = len(r.FailedSessions) == 0
	return r, nil
}

func registerApprovals(m native.Methods, over methods) {
	native.Over(m, Family, "createApproval", "approval.create", "Asks the user whether a tool may run, or another question. The answer "+
		"comes as the event approval_resolved, or from getApproval.",
		CreateApprovalParams.Native, func(_ context.Context, r protocol.ApprovalResult) CreateApprovalResult {
			return CreateApprovalResult{ApprovalID: r.Approval.ApprovalID, CallID: r.Approval.CallID, Status: string(r.Approval.Status)}
		})
	native.Over(m, Family, "fetchApprovals", "approval.list", "Lists what waits for a human's answer, the oldest first.",
		func(p FetchApprovalsParams) protocol.ApprovalListParams {
			return protocol.ApprovalListParams{Turn: protocol.Ref(cmp.Or(p.SessionID, p.RunID))}
		},
		func(ctx context.Context, l protocol.ApprovalList) ApprovalList {
			return ApprovalList{Approvals: protocol.FitApprovals(l.Approvals, protocol.Room(ctx), ApprovalOf)}
		})
	native.Over(m, Family, "getApproval", "approval.get", "Returns an approval.",
		func(p ApprovalIDs) protocol.ApprovalParams { return protocol.ApprovalParams{Approval: p.ID()} },
		func(ctx context.Context, r protocol.ApprovalResult) ApprovalResult {
			return ApprovalResult{Approval: *protocol.FitApprovals([]*protocol.Approval{&r.Approval}, protocol.Room(ctx), ApprovalOf)[0]}
		})
	native.Compose(
		m, Family, "sendDecision", "Answers an approval. The first answer wins: for a later one, success is false and error has the decision.",
		over.sendDecision,
	)
}

// longestName limits an id of a client in an error, in characters.
const longestName = 80

func (m methods) sendDecision(ctx context.Context, p DecisionParams) (DecisionResult, error) {
	r, err := m.decide(ctx, p.Native())
	if native.KindOf(err) == domain.KindApprovalNotFound {
		return DecisionResult{Error: "approval not found: " + protocol.Headline(p.IDs().ID(), longestName)}, nil
	}
	return Decided(r), err
}

func (m methods) follow(ctx context.Context, p SubscribeParams) (SubscribeResult, error) {
	if err := m.checkRun(ctx, p); err != nil {
		return SubscribeResult{}, err
	}
	conn := server.ConnFrom(ctx)
	in := p.Native()
	in.Form, in.Only = FormOf(conn), Kinds(p.EventTypes)
	r, err := m.subscribe(ctx, in)
	result := SubscribeResult{SubscriptionID: r.SubscriptionID, Message: "Subscription established. Waiting for events...", Notice: r.Notice}
	if !IsLines(conn) {
		result.Seq = &r.Seq
	}
	return result, err
}

// checkRun refuses a run of another session.
func (m methods) checkRun(ctx context.Context, p SubscribeParams) error {
	if p.SessionID == "" || p.RunID == "" {
		return nil
	}
	of, err := m.turn(ctx, protocol.TurnParams{Turn: protocol.Ref(p.SessionID)})
	if err != nil {
		return err
	}
	turn, err := m.turn(ctx, protocol.TurnParams{Turn: protocol.Ref(p.RunID)})
	if err == nil && turn.Turn.Session != of.Turn.Session {
		err = server.InvalidParam(server.ParamError{Param: "run_id", Expected: "a run of the session", Received: "another one's"})
	}
	return err
}

// snapshotsOf returns changes in HumanLayer's form.
func snapshotsOf(ctx context.Context, l protocol.ChangeList) SnapshotsResult {
	list := make([]*Snapshot, 0, len(l.Changes))
	for _, c := range l.Changes {
		list = append(list, SnapshotOf(l.TurnUUID, c))
	}
	return SnapshotsResult{
		Snapshots: protocol.Fit(list, protocol.Room(ctx)-protocol.EncodedSize(l.Diff)), Diff: l.Diff, NotRecorded: l.NotRecorded,
	}
}
