package protocol

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Types of events on the wire (docs/methods.md, "Event types").
const (
	TypeStatus       = "session_status_changed"
	TypeConversation = "conversation_updated"
	TypeApproval     = "new_approval"
	TypeResolved     = "approval_resolved"
	TypeSettings     = "session_settings_changed"
	TypeDelta        = "message_delta"
	TypeThinking     = "thinking_delta"
	TypePlan         = "plan"
	TypeUsage        = "usage"
	TypeDiff         = "diff_updated"
	TypeTerminal     = "terminal_output"
	TypeTerminalExit = "terminal_exit"
	TypeProgress     = "task_progress"
	TypeError        = "task_error"
	TypeUpdate       = "agent_update"
	TypeSilent       = "agent_silent"
	TypeLagged       = "lagged"
	TypeLogDamaged   = "log_damaged"
	TypeSecret       = "secret_requested"
	TypeAgentSession = "agent_session"
	TypeDeleted      = "session_deleted"
	TypeTrigger      = "trigger_executed"
	TypeBuild        = "build_progress"
	TypeIteration    = "iteration_start"
	TypeGateStart    = "gate_start"
	TypeGate         = "gate_result"
	TypeGatesEnded   = "gates_complete"
	TypeDecided      = "change_decided"
	TypeQueue        = "queue_changed"
	TypeHubSilent    = "hub_silent"
	TypeHubAnswers   = "hub_answers"
)

// Kind implements [Event].
func (*StatusEvent) Kind() string { return TypeStatus }

// Kind implements [Event].
func (*ItemEvent) Kind() string { return TypeConversation }

// Kind implements [Event].
func (*ApprovalEvent) Kind() string { return TypeApproval }

// Kind implements [Event].
func (*ResolvedEvent) Kind() string { return TypeResolved }

// Kind implements [Event].
func (*SettingsEvent) Kind() string { return TypeSettings }

// Kind implements [Event].
func (*DeltaEvent) Kind() string { return TypeDelta }

// Kind implements [Event].
func (*ThinkingEvent) Kind() string { return TypeThinking }

// Kind implements [Event].
func (*PlanEvent) Kind() string { return TypePlan }

// Kind implements [Event].
func (*UsageEvent) Kind() string { return TypeUsage }

// Kind implements [Event].
func (*DiffEvent) Kind() string { return TypeDiff }

// Kind implements [Event].
func (*TerminalEvent) Kind() string { return TypeTerminal }

// Kind implements [Event].
func (*TerminalExitEvent) Kind() string { return TypeTerminalExit }

// Kind implements [Event].
func (*ProgressEvent) Kind() string { return TypeProgress }

// Kind implements [Event].
func (*ErrorEvent) Kind() string { return TypeError }

// Kind implements [Event].
func (*UpdateEvent) Kind() string { return TypeUpdate }

// Kind implements [Event].
func (*GateEvent) Kind() string { return TypeGate }

// Kind implements [Event].
func (*BuildEvent) Kind() string { return TypeBuild }

// Kind implements [Event].
func (*LaggedEvent) Kind() string { return TypeLagged }

// Kind implements [Event].
func (*LogDamagedEvent) Kind() string { return TypeLogDamaged }

// Kind implements [Event].
func (*SecretEvent) Kind() string { return TypeSecret }

// Kind implements [Event].
func (*AgentSessionEvent) Kind() string { return TypeAgentSession }

// Kind implements [Event].
func (*SilentEvent) Kind() string { return TypeSilent }

// Kind implements [Event].
func (*DeletedEvent) Kind() string { return TypeDeleted }

// Kind implements [Event].
func (*TriggerExecutedEvent) Kind() string { return TypeTrigger }

// Kind implements [Event].
func (*IterationEvent) Kind() string { return TypeIteration }

// Kind implements [Event].
func (*GateStartEvent) Kind() string { return TypeGateStart }

// Kind implements [Event].
func (*GatesEndedEvent) Kind() string { return TypeGatesEnded }

// Kind implements [Event].
func (*DecidedEvent) Kind() string { return TypeDecided }

// Kind implements [Event].
func (*QueueEvent) Kind() string { return TypeQueue }

// Kind implements [Event].
func (*HubSilentEvent) Kind() string { return TypeHubSilent }

// Kind implements [Event].
func (*HubAnswersEvent) Kind() string { return TypeHubAnswers }

// An EventKind describes a kind of event.
type EventKind struct {
	Type string       // on the wire
	Doc  string       // when clients get it, as Markdown without a capital and a period
	Data reflect.Type // a struct, whose pointer implements Event

	stored []domain.EventKind // the kinds in the log; none: the editor's process sends it
	empty  func() Event
}

// EventKinds are all kinds of events, in the order of initialize.
var EventKinds = []EventKind{
	eventKind[StatusEvent](
		"every change of state. Without `seq`: the disk is full, and the hub stores the end of the session when there is space", domain.EventTurnState),
	eventKind[ItemEvent](
		"a message is complete; it comes again, under its `message_id`, if the agent adds text after its turn. A tool call starts, changes or ends", domain.EventMessage, domain.EventToolCall),
	eventKind[ApprovalEvent](
		"a question", domain.EventApprovalRequested),
	eventKind[ResolvedEvent](
		"the end of a question", domain.EventApprovalResolved),
	eventKind[SettingsEvent](
		"settings, title, mode, or the agent's own session changed", domain.EventSettings, domain.EventNativeSession, domain.EventAgentMode),
	eventKind[DeltaEvent](
		"text in progress: the first of a message at once, then at most 20 a second, or as `delta_interval_ms` of `Subscribe` says", domain.EventDelta),
	eventKind[ThinkingEvent](
		"text of a thought in progress, at the pace of `message_delta`", domain.EventThoughtDelta),
	eventKind[PlanEvent](
		"the agent's plan, whole", domain.EventPlan),
	eventKind[UsageEvent](
		"tokens, context, cost", domain.EventUsage),
	eventKind[DiffEvent](
		"the turn has changed a file", domain.EventFileChange),
	eventKind[TerminalEvent](
		"output of a terminal of an agent, or of one of yours", domain.EventTerminalOutput),
	eventKind[TerminalExitEvent](
		"the end of a terminal's program", domain.EventTerminalExit),
	eventKind[ProgressEvent](
		"an agent's report of its progress", domain.EventProgress),
	eventKind[ErrorEvent](
		"an error that an agent reports, or one about it. `CONTENT_REFUSED`: an image or another file of the agent was broken or too long (10 MiB; 64 MiB in a turn), and was omitted. `MCP_SERVER_FAILED`: an MCP server of the agent does not work. `SETTING_IGNORED`: the agent has no way to apply a setting, such as a model if it lists none. `RULES_NOT_ASKED`: the agent may act without asking in its current mode. These also come as a `conversation_updated` of type `system`, which the conversation keeps", domain.EventAgentError),
	eventKind[UpdateEvent](
		"an agent's update of an unknown kind", domain.EventAgentUpdate),
	eventKind[GateEvent](
		"the result of a gate", domain.EventGate),
	eventKind[BuildEvent](
		"a build of the project (`build`, `buildBackend`) has started or ended; its caller gets more. It belongs to no turn", domain.EventBuild),
	eventKind[LaggedEvent](
		"you did not keep up: deltas or output of a terminal were omitted, and nothing else", domain.EventLagged, domain.EventTerminalLagged),
	eventKind[LogDamagedEvent](
		"the database is damaged and these events cannot be read, whatever you subscribed to; the events after them follow", domain.EventLogDamaged),
	eventKind[SecretEvent](
		"a key is needed; answer with `secret.provide`. It is not in the log; a client that subscribes while it is pending gets it, too", domain.EventSecretRequested),
	eventKind[AgentSessionEvent](
		"the agent's report about its session changed; the event has the changed parts, each whole", domain.EventAgentSession),
	eventKind[SilentEvent](
		"an agent has given no sign of life for 5 s, or for 30 s during a tool call, and does not wait for a person; it writes to its stderr meanwhile; with `ended`, it works again. The silence also ends when the session ends, is interrupted or waits for input. Its error output, or a silence of a minute or longer, then comes as a `conversation_updated` of type `system`, which the conversation keeps", domain.EventAgentSilent),
	eventKind[DeletedEvent](
		"turns of a session were deleted (`session.delete`). Its other members name no single session. The log keeps the numbers of deleted events and sends them to no client: a client that resumes after one of them misses nothing else", domain.EventSessionDeleted),
	eventKind[TriggerExecutedEvent](
		"a trigger has acted, waits for a person, or has reached a limit ([automation.md](automation.md)); it has the turn's ids if one started", domain.EventTrigger),
	eventKind[IterationEvent](
		"a turn of work that has gates starts ([gates.md](gates.md))", domain.EventIteration),
	eventKind[GateStartEvent](
		"a gate starts after that turn", domain.EventGateStart),
	eventKind[GatesEndedEvent](
		"the work with gates has ended", domain.EventLoopEnded),
	eventKind[DecidedEvent](
		"a client accepted or reverted a change of the turn, or withdrew that decision", domain.EventChangeDecided),
	eventKind[QueueEvent](
		"a client edited a queued prompt, or moved it within the queue of its session", domain.EventQueue),
	eventKind[HubSilentEvent](
		"the hub does not answer (the editor's process sends this)"),
	eventKind[HubAnswersEvent](
		"the hub answers again"),
}

// eventKind describes the kind of event whose type is T.
func eventKind[T any, P interface {
	*T
	Event
}](doc string, stored ...domain.EventKind) EventKind {
	return EventKind{Type: P(nil).Kind(), Doc: doc, Data: reflect.TypeFor[T](), stored: stored, empty: func() Event { return P(new(T)) }}
}

// EventTypes are the types that a subscription can select.
var EventTypes = selectable()

func selectable() (types []string) {
	for _, k := range EventKinds {
		if k.stored != nil {
			types = append(types, k.Type)
		}
	}
	return types
}

// eventTypes maps kinds of events in the log to the clients' names.
var eventTypes = namesOfStored()

func namesOfStored() map[domain.EventKind]string {
	names := make(map[domain.EventKind]string)
	for _, k := range EventKinds {
		for _, stored := range k.stored {
			names[stored] = k.Type
		}
	}
	return names
}

// TypeOf returns the clients' name for a kind of event.
func TypeOf(kind domain.EventKind) string { return eventTypes[kind] }

// DecodeEvent decodes the data of an event of a type on the wire. The event is never nil: with an
// error, it has the members that could be read. An unknown type yields an [UnknownEvent].
func DecodeEvent(eventType string, data json.RawMessage) (Event, error) {
	i := slices.IndexFunc(EventKinds, func(k EventKind) bool { return k.Type == eventType })
	if i < 0 {
		e := &UnknownEvent{Type: eventType, Data: data}
		_ = json.Unmarshal(data, &e.TurnIDs) // the ids are optional
		return e, nil
	}
	e := EventKinds[i].empty()
	return e, json.Unmarshal(data, e)
}

// formerTypes are the names with which HumanLayer's terminal client of June 2025 subscribes. It
// expects the later names in the events themselves.
var formerTypes = map[string]string{
	TypeApproval: "approval_requested",
	TypeResolved: "approval_responded",
	TypeStatus:   "session_updated",
}

// Kinds returns the kinds of events with the given names, and ignores unknown names. Without names
// it returns nil, which selects all.
func Kinds(types []string) []domain.EventKind {
	if len(types) == 0 {
		return nil
	}
	kinds := []domain.EventKind{}
	for kind, name := range eventTypes {
		former, has := formerTypes[name]
		if slices.Contains(types, name) || has && slices.Contains(types, former) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
