// The events of Subscribe, as far as the extension knows them (docs/protocol.md, "Events").

/** What is said of an event that belongs to a run. */
export interface RunIds {
  session_id?: string;
  run_id?: string;
  task_id?: string;
  thread_id?: string;
}

export interface HubEvent {
  type: string;
  timestamp: string;
  data: RunIds & Record<string, unknown>;
}

/** The params of a notification "event". */
export interface EventParams {
  subscription_id: string;
  seq: number;
  event: HubEvent;
}

/** What a terminal has printed, or its end. */
export type TerminalEvent =
  | { type: "terminal_output"; data: { terminal_id: string; data?: string; encoding?: "utf-8" | "base64"; dropped_bytes?: number } }
  | { type: "terminal_exit"; data: { terminal_id: string; exit_code: number; signal?: string } };

/** A notification that is no event. */
export interface HubNotification {
  method: string;
  params: unknown;
}

/** The types of events that the extension follows: what changes the lists of sessions and questions, and conversations; builds and gates; keys that are needed. */
export const followedEvents = [
  "conversation_updated",
  "session_status_changed",
  "session_settings_changed",
  "session_deleted",
  "queue_changed",
  "new_approval",
  "approval_resolved",
  "agent_session",
  "agent_silent",
  "hub_silent",
  "hub_answers",
  "build_progress",
  "gate_start",
  "gate_result",
  "gates_complete",
  "secret_requested",
  "change_decided",
];

/** The types of events of one conversation that its panel follows. */
export const conversationEvents = [
  "conversation_updated",
  "message_delta",
  "thinking_delta",
  "session_status_changed",
  "session_settings_changed",
  "session_deleted",
  "queue_changed",
  "new_approval",
  "approval_resolved",
  "diff_updated",
  "plan",
  "usage",
  "agent_session",
  "agent_silent",
  "task_progress",
  "task_error",
  "iteration_start",
  "gate_start",
  "gate_result",
  "gates_complete",
  "change_decided",
  "lagged",
  "hub_silent",
  "hub_answers",
  "log_damaged",
];
