// A subscription beside that of the lists: the events of one conversation, with those of text that is being written.
import type { EventParams } from "./events";

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
