// The events of the daemon that the extension handles (docs/methods.md, "Kinds of events"), and how they reach listeners.
import type { EventKind, HubEvent, Params, Result } from "../protocol";

/** Output of a terminal, output that it left out, or its exit. */
export type TerminalUpdate = Extract<HubEvent, { kind: "terminal.output" | "terminal.lagged" | "terminal.exited" }>;

/** The event as one of a terminal; undefined: it is none. */
export function terminalUpdate(event: HubEvent): TerminalUpdate | undefined {
  return event.kind === "terminal.output" || event.kind === "terminal.lagged" || event.kind === "terminal.exited" ? event : undefined;
}

/** A notification other than "event". */
export interface HubNotification {
  method: string;
  params: unknown;
}

/** The kinds of events that the extension subscribes to: changes of sessions and their items, questions, builds and gates, requests for keys. */
export const followedEvents: EventKind[] = [
  "item.added",
  "item.changed",
  "turn.state",
  "session.changed",
  "session.deleted",
  "queue.changed",
  "approval.opened",
  "approval.closed",
  "agent.session",
  "agent.silent",
  "daemon.silent",
  "daemon.answers",
  "build.progress",
  "gate.started",
  "gate.result",
  "gate.ended",
  "secret.requested",
  "change.decided",
];

/** The kinds of events of a session that its panel subscribes to. */
export const sessionEvents: EventKind[] = [
  "item.added",
  "item.changed",
  "text.delta",
  "thought.delta",
  "turn.state",
  "session.changed",
  "session.deleted",
  "queue.changed",
  "approval.opened",
  "approval.closed",
  "change.made",
  "plan",
  "usage",
  "agent.session",
  "agent.silent",
  "progress",
  "agent.error",
  "gate.iteration",
  "gate.started",
  "gate.result",
  "gate.ended",
  "change.decided",
  "lagged",
  "daemon.silent",
  "daemon.answers",
  "log.damaged",
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
  /** The uuid of a turn, or of a session for the events of all its turns. Absent: the events of all sessions. */
  session?: string;
  kinds: EventKind[];
}

/** The callbacks of a subscription. */
export interface FollowListener {
  /** Called for each event, in order, also for those that happened while no server ran. */
  event: (event: HubEvent) => void;
  /** Called if the daemon refuses to continue the subscription. No more events follow. */
  lost: (error: Error) => void;
}

/** Sends a request to the current server. */
export type Send = <M extends "event.subscribe" | "event.unsubscribe">(method: M, params: Params<M>) => Promise<Result<M>>;

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
  is(subscription: string | undefined): boolean {
    return subscription !== undefined && this.id === subscription;
  }

  /** Continues with a server, after the last received event. */
  async subscribe(send: Send): Promise<void> {
    if (this.stopped) return;
    const { subscription_id: id, seq } = await send("event.subscribe", { ...this.followed, ...(this.last === undefined ? {} : { since: this.last }) });
    this.last ??= seq;
    if (this.stopped) {
      await send("event.unsubscribe", { subscription_id: id });
      return;
    }
    this.id = id;
    this.send = send;
  }

  /** Notes that the server is gone. */
  serverGone(): void {
    this.id = this.send = undefined;
  }

  take(event: HubEvent): void {
    if (this.stopped) return;
    if ((event.seq ?? 0) > (this.last ?? -1)) this.last = event.seq;
    this.listener.event(event);
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
      await send?.("event.unsubscribe", { subscription_id: id });
    } catch {
      // A server that is gone sends no events.
    }
  }
}
