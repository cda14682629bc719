package protocol

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Kinds of events on the wire (docs/methods.md, "Kinds of events").
const (
	KindTurnState      = "turn.state"
	KindItemAdded      = "item.added"
	KindItemChanged    = "item.changed"
	KindText           = "text.delta"
	KindThought        = "thought.delta"
	KindApprovalOpened = "approval.opened"
	KindApprovalClosed = "approval.closed"
	KindSession        = "session.changed"
	KindSessionDeleted = "session.deleted"
	KindQueue          = "queue.changed"
	KindPlan           = "plan"
	KindUsage          = "usage"
	KindProgress       = "progress"
	KindChange         = "change.made"
	KindChangeDecided  = "change.decided"
	KindAgentSession   = "agent.session"
	KindAgentError     = "agent.error"
	KindAgentSilent    = "agent.silent"
	KindAgentUpdate    = "agent.update"
	KindGateIteration  = "gate.iteration"
	KindGateStarted    = "gate.started"
	KindGateResult     = "gate.result"
	KindGatesEnded     = "gate.ended"
	KindTrigger        = "trigger.fired"
	KindBuild          = "build.progress"
	KindTerminalOutput = "terminal.output"
	KindTerminalExited = "terminal.exited"
	KindTerminalLagged = "terminal.lagged"
	KindSecret         = "secret.requested"
	KindLagged         = "lagged"
	KindLogDamaged     = "log.damaged"
	KindDaemonSilent   = "daemon.silent"
	KindDaemonAnswers  = "daemon.answers"
)

// An EventKind describes a kind of event.
type EventKind struct {
	Name string       // on the wire
	Doc  string       // when clients get it, as Markdown without a capital and a period
	Data reflect.Type // of the data, a struct

	Stored []domain.EventKind // the hub's kinds; none: the editor's process sends it
}

// EventKinds are all kinds of events, in the order of initialize.
var EventKinds = []EventKind{
	eventKind[TurnStateEvent](KindTurnState,
		"every change of a turn's state. Without `seq`: the disk is full, and the daemon stores the end of the turn when there is "+
			"space", domain.EventTurnState),
	eventKind[Item](KindItemAdded,
		"a message, thought or notice is complete. A message comes again if the agent adds text after its turn", domain.EventMessage),
	eventKind[Item](KindItemChanged,
		"a tool call starts, changes or ends", domain.EventToolCall),
	eventKind[TextEvent](KindText,
		"text of a message in progress: the first of a message at once, then at most 20 a second, or as `delta_interval_ms` of "+
			"`event.subscribe` says", domain.EventDelta),
	eventKind[TextEvent](KindThought,
		"text of a thought in progress, at the pace of `text.delta`", domain.EventThoughtDelta),
	eventKind[ApprovalOpenedEvent](KindApprovalOpened,
		"a question", domain.EventApprovalRequested),
	eventKind[ApprovalClosedEvent](KindApprovalClosed,
		"the end of a question", domain.EventApprovalResolved),
	eventKind[SessionEvent](KindSession,
		"settings, title, mode, or the agent's own session changed; absent members did "+
			"not", domain.EventSettings, domain.EventNativeSession, domain.EventAgentMode),
	eventKind[SessionDeletedEvent](KindSessionDeleted,
		"turns of a session were deleted (`session.delete`). The log keeps the numbers of deleted events and sends them to no client: a client "+
			"that resumes after one of them misses nothing else", domain.EventSessionDeleted),
	eventKind[QueueEvent](KindQueue,
		"a client edited a queued prompt, or moved it within the queue of its session", domain.EventQueue),
	eventKind[PlanEvent](KindPlan,
		"the agent's plan, whole", domain.EventPlan),
	eventKind[UsageEvent](KindUsage,
		"tokens, context, cost", domain.EventUsage),
	eventKind[ProgressEvent](KindProgress,
		"an agent's report of its progress", domain.EventProgress),
	eventKind[ChangeEvent](KindChange,
		"the turn has changed a file", domain.EventFileChange),
	eventKind[ChangeDecidedEvent](KindChangeDecided,
		"a client accepted or reverted a change of the turn, or withdrew that decision", domain.EventChangeDecided),
	eventKind[AgentSessionEvent](KindAgentSession,
		"the agent's report about its session changed; the event has the changed parts, each whole", domain.EventAgentSession),
	eventKind[AgentErrorEvent](KindAgentError,
		"an error that an agent reports, or one about it. `CONTENT_REFUSED`: an image or another file of the agent was broken or too long (10 "+
			"MiB; 64 MiB in a turn), and was omitted. `MCP_SERVER_FAILED`: an MCP server of the agent does not work. `SETTING_IGNORED`: the agent "+
			"has no way to apply a setting, such as a model if it lists none. `RULES_NOT_ASKED`: the agent may act without asking in its current "+
			"mode. These also come as a notice, which the session keeps", domain.EventAgentError),
	eventKind[SilentEvent](KindAgentSilent,
		"an agent has given no sign of life for 5 s, or for 30 s during a tool call, and does not wait for a person; it writes to its stderr "+
			"meanwhile; with `ended`, it works again. The silence also ends when the turn ends, is interrupted or waits for input. Its error "+
			"output, or a silence of a minute or longer, then comes as a notice, which the session keeps", domain.EventAgentSilent),
	eventKind[AgentUpdateEvent](KindAgentUpdate,
		"an agent's update of an unknown kind", domain.EventAgentUpdate),
	eventKind[GateIterationEvent](KindGateIteration,
		"a turn of work that has gates starts ([gates.md](gates.md))", domain.EventIteration),
	eventKind[GateStartedEvent](KindGateStarted,
		"a gate starts after that turn", domain.EventGateStart),
	eventKind[GateResultEvent](KindGateResult,
		"the result of a gate", domain.EventGate),
	eventKind[GatesEndedEvent](KindGatesEnded,
		"the work with gates has ended", domain.EventLoopEnded),
	eventKind[TriggerFiredEvent](KindTrigger,
		"a trigger has acted, waits for a person, or has reached a limit ([automation.md](automation.md)). If a turn started, the event names "+
			"it", domain.EventTrigger),
	eventKind[BuildEvent](KindBuild,
		"a build of the project (`build.run`) has started or ended; its caller gets more. It belongs to no turn", domain.EventBuild),
	eventKind[TerminalOutputEvent](KindTerminalOutput,
		"output of a terminal of an agent, or of one of yours", domain.EventTerminalOutput),
	eventKind[TerminalExitedEvent](KindTerminalExited,
		"the end of a terminal's program", domain.EventTerminalExit),
	eventKind[TerminalLaggedEvent](KindTerminalLagged,
		"you did not keep up: output of a terminal was omitted", domain.EventTerminalLagged),
	eventKind[SecretEvent](KindSecret,
		"a key is needed; answer with `secret.provide`. It is not in the log; a client that subscribes while it is pending gets it, "+
			"too", domain.EventSecretRequested),
	eventKind[LaggedEvent](KindLagged,
		"you did not keep up: deltas were omitted, and nothing else", domain.EventLagged),
	eventKind[LogDamagedEvent](KindLogDamaged,
		"the database is damaged and these events cannot be read, whatever you subscribed to; the events after them "+
			"follow", domain.EventLogDamaged),
	eventKind[DaemonEvent](KindDaemonSilent,
		"the daemon does not answer (the editor's process sends this)"),
	eventKind[DaemonEvent](KindDaemonAnswers,
		"the daemon answers again"),
}

// eventKind describes a kind of event whose data are a T.
func eventKind[T any](name, doc string, stored ...domain.EventKind) EventKind {
	return EventKind{Name: name, Doc: doc, Data: reflect.TypeFor[T](), Stored: stored}
}

// SubscribedKinds are the kinds that a subscription can select.
var SubscribedKinds = selectable()

func selectable() (kinds []string) {
	for _, k := range EventKinds {
		if k.Stored != nil {
			kinds = append(kinds, k.Name)
		}
	}
	return kinds
}

// kindNames maps the hub's kinds of events to those of clients.
var kindNames = namesOfKinds()

func namesOfKinds() map[domain.EventKind]string {
	names := make(map[domain.EventKind]string)
	for _, k := range EventKinds {
		for _, stored := range k.Stored {
			names[stored] = k.Name
		}
	}
	return names
}

// KindOf returns the clients' name for a kind of event.
func KindOf(kind domain.EventKind) string { return kindNames[kind] }

// Kinds returns the hub's kinds of events with the given names, and the names that are unknown.
// Without names it returns nil, which selects all.
func Kinds(names []string) (kinds []domain.EventKind, unknown []string) {
	if len(names) == 0 {
		return nil, nil
	}
	kinds = []domain.EventKind{}
	for _, name := range names {
		i := slices.IndexFunc(EventKinds, func(k EventKind) bool { return k.Name == name })
		if i < 0 {
			unknown = append(unknown, name)
			continue
		}
		kinds = append(kinds, EventKinds[i].Stored...)
	}
	return kinds, unknown
}

// DecodeEvent decodes the data of an event of a kind: the result is a pointer to the type that
// EventKinds has for it. With an error, it has the members that could be read. An unknown kind, such
// as one of a newer daemon, yields nil.
func DecodeEvent(kind string, data json.RawMessage) (any, error) {
	i := slices.IndexFunc(EventKinds, func(k EventKind) bool { return k.Name == kind })
	if i < 0 {
		return nil, nil
	}
	event := reflect.New(EventKinds[i].Data).Interface()
	return event, json.Unmarshal(data, event)
}
