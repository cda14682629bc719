package dialect

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Types of events, as clients know them (docs/protocol.md, "Events").
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
)

// EventTypes are those that a subscription can choose.
var EventTypes = []string{
	TypeStatus, TypeConversation, TypeApproval, TypeResolved, TypeSettings,
	TypeDelta, TypeThinking, TypePlan, TypeUsage, TypeDiff, TypeTerminal, TypeTerminalExit,
	TypeProgress, TypeError, TypeUpdate, TypeGate, TypeBuild, TypeLagged, TypeLogDamaged, TypeSecret, TypeAgentSession,
	TypeSilent, TypeDeleted, TypeTrigger, TypeIteration, TypeGateStart, TypeGatesEnded, TypeDecided, TypeQueue,
}

// eventTypes are what clients call the kinds of events.
var eventTypes = map[domain.EventKind]string{
	domain.EventRunState:          TypeStatus,
	domain.EventMessage:           TypeConversation,
	domain.EventToolCall:          TypeConversation,
	domain.EventDelta:             TypeDelta,
	domain.EventThoughtDelta:      TypeThinking,
	domain.EventApprovalRequested: TypeApproval,
	domain.EventApprovalResolved:  TypeResolved,
	domain.EventSettings:          TypeSettings,
	domain.EventNativeSession:     TypeSettings,
	domain.EventAgentMode:         TypeSettings,
	domain.EventAgentSession:      TypeAgentSession,
	domain.EventPlan:              TypePlan,
	domain.EventUsage:             TypeUsage,
	domain.EventFileChange:        TypeDiff,
	domain.EventChangeDecided:     TypeDecided,
	domain.EventQueue:             TypeQueue,
	domain.EventProgress:          TypeProgress,
	domain.EventAgentError:        TypeError,
	domain.EventAgentUpdate:       TypeUpdate,
	domain.EventAgentSilent:       TypeSilent,
	domain.EventTerminalOutput:    TypeTerminal,
	domain.EventTerminalExit:      TypeTerminalExit,
	domain.EventTerminalLagged:    TypeLagged,
	domain.EventSecretRequested:   TypeSecret,
	domain.EventThreadDeleted:     TypeDeleted,
	domain.EventTrigger:           TypeTrigger,
	domain.EventBuild:             TypeBuild,
	domain.EventIteration:         TypeIteration,
	domain.EventGateStart:         TypeGateStart,
	domain.EventGate:              TypeGate,
	domain.EventLoopEnded:         TypeGatesEnded,
	domain.EventLagged:            TypeLagged,
	domain.EventLogDamaged:        TypeLogDamaged,
}

// formerTypes are names by which HumanLayer's terminal client of June 2025 subscribes, and
// what it wants: it knows the events themselves by the later names.
var formerTypes = map[string]string{
	TypeApproval: "approval_requested",
	TypeResolved: "approval_responded",
	TypeStatus:   "session_updated",
}

// Kinds are the kinds of events that clients call by one of the names; nil, for
// all, where there are no names. Names of no kind are ignored.
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
