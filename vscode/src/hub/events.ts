// The events of the hub, as far as the extension knows them (docs/protocol.md, "Events"), and how they reach listeners.

/** What is said of an event that belongs to a run. */
interface RunIds {
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

/** Tells any number of listeners. What one of them throws does not keep the others from hearing. */
export class Emitter<T> {
  private readonly listeners = new Set<(value: T) => void>();

  constructor(private readonly onError: (error: unknown) => void = (error) => console.error(error)) {}

  /** Calls listener from now on; the function that is returned ends that. */
  readonly on = (listener: (value: T) => void): (() => void) => {
    const own = (value: T): void => listener(value);
    this.listeners.add(own);
    return () => void this.listeners.delete(own);
  };

  fire(value: T): void {
    for (const listener of [...this.listeners]) {
      try {
        listener(value);
      } catch (error) {
        this.onError(error);
      }
    }
  }

  clear(): void {
    this.listeners.clear();
  }
}

/** What is followed. */
export interface Followed {
  /** Any id of a session: its events; the id of a conversation: those of all its sessions. */
  session_id: string;
  event_types: string[];
}

export interface FollowListener {
  /** An event. They come in order, also those that happened while there was no server. */
  event: (params: EventParams) => void;
  /** It cannot go on where it was, since the hub refuses that: nothing more comes. */
  lost: (error: Error) => void;
}

/** Sends a request to the server that is there. */
type Send = (method: "Subscribe" | "Unsubscribe", params: Record<string, unknown>) => Promise<{ subscription_id?: string; seq?: number }>;

/** A subscription that outlives servers. Its owner ends it with stop. */
export class Following {
  private id: string | undefined;
  private send: Send | undefined;
  private last: number | undefined;
  private stopped = false;

  constructor(
    private readonly followed: Followed,
    private readonly listener: FollowListener,
    private readonly forget: (following: Following) => void,
  ) {}

  /** The number of the last event that has come, or of the one after which they begin. */
  get seq(): number {
    return this.last ?? 0;
  }

  /** Whether the server that is there sends its events. */
  get isSubscribed(): boolean {
    return this.id !== undefined;
  }

  /** Whether events with this id of a subscription are its own. */
  is(subscription: string): boolean {
    return this.id === subscription;
  }

  /** Goes on with a server: after the last event that has come. */
  async subscribe(send: Send): Promise<void> {
    if (this.stopped) return;
    const { subscription_id: id, seq } = await send("Subscribe", { ...this.followed, ...(this.last === undefined ? {} : { since: this.last }) });
    this.last ??= seq;
    if (id === undefined) return;
    if (this.stopped) {
      await send("Unsubscribe", { subscription_id: id });
      return;
    }
    this.id = id;
    this.send = send;
  }

  /** The server is gone. */
  serverGone(): void {
    this.id = this.send = undefined;
  }

  take(params: EventParams): void {
    if (this.stopped) return;
    if (params.seq > (this.last ?? -1)) this.last = params.seq;
    this.listener.event(params);
  }

  /** Ends it, since a server has refused it. */
  lose(error: Error): void {
    if (this.stopped) return;
    this.stopped = true;
    this.forget(this);
    this.listener.lost(error);
  }

  /** Ends it: no event is handed on any more. Resolves when the server knows. */
  async stop(): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    this.forget(this);
    const { id, send } = this;
    this.serverGone();
    if (id === undefined) return;
    try {
      await send?.("Unsubscribe", { subscription_id: id });
    } catch {
      // A server that is gone sends nothing either.
    }
  }
}
