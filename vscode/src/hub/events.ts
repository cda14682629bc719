// The events of the hub that the extension handles (docs/protocol.md, "Event types"), and how they reach listeners.
import type { EventType, HubEvent } from "../protocol";

/** The params of a notification "event". */
export interface EventParams {
  subscription_id: string;
  seq: number;
  event: HubEvent;
}

/** Output of a terminal, output that it left out, or its exit. */
export type TerminalUpdate = Extract<HubEvent, { type: "terminal_output" | "terminal_exit" | "lagged" }>;

/** The event as one of a terminal; undefined: it is none. */
export function terminalUpdate(event: HubEvent): TerminalUpdate | undefined {
  if (event.type === "terminal_output" || event.type === "terminal_exit") return event;
  return event.type === "lagged" && event.data.terminal_id !== undefined ? event : undefined;
}

/** The uuid of an event's turn; undefined: it belongs to none. */
export function turnOf({ data }: HubEvent): string | undefined {
  return "session_id" in data ? data.session_id : undefined;
}

/** A notification other than "event". */
export interface HubNotification {
  method: string;
  params: unknown;
}

/** The event types that the extension subscribes to: changes of sessions and their items, questions, builds and gates, requests for keys. */
export const followedEvents: EventType[] = [
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

/** The event types of a session that its panel subscribes to. */
export const conversationEvents: EventType[] = [
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

/** Calls any number of listeners. If one throws, the others are still called. */
export class Emitter<T> {
  private readonly listeners = new Set<(value: T) => void>();

  constructor(private readonly onError: (error: unknown) => void = (error) => console.error(error)) {}

  /** Adds a listener. The returned function removes it. */
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

/** The parameters of a subscription. */
export interface Followed {
  /** The uuid of a turn, or of a session for the events of all its turns. */
  session_id: string;
  event_types: EventType[];
}

/** The callbacks of a subscription. */
export interface FollowListener {
  /** Called for each event, in order, also for those that happened while no server ran. */
  event: (params: EventParams) => void;
  /** Called if the hub refuses to continue the subscription. No more events follow. */
  lost: (error: Error) => void;
}

/** Sends a request to the current server. */
type Send = (method: "Subscribe" | "Unsubscribe", params: Record<string, unknown>) => Promise<{ subscription_id?: string; seq?: number }>;

/** The subscription of one session, including its text deltas. It outlives servers. Its owner ends it with stop. */
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

  /** The number of the last received event, or of the event before the first one. */
  get seq(): number {
    return this.last ?? 0;
  }

  /** Whether the current server sends its events. */
  get isSubscribed(): boolean {
    return this.id !== undefined;
  }

  /** Whether this is the id of this subscription. */
  is(subscription: string): boolean {
    return this.id === subscription;
  }

  /** Continues with a server, after the last received event. */
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

  /** Notes that the server is gone. */
  serverGone(): void {
    this.id = this.send = undefined;
  }

  take(params: EventParams): void {
    if (this.stopped) return;
    if (params.seq > (this.last ?? -1)) this.last = params.seq;
    this.listener.event(params);
  }

  /** Ends the subscription, because a server refused it. */
  lose(error: Error): void {
    if (this.stopped) return;
    this.stopped = true;
    this.forget(this);
    this.listener.lost(error);
  }

  /** Ends the subscription: the listener gets no more events. Resolves when the server has answered. */
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
      // A server that is gone sends no events.
    }
  }
}
