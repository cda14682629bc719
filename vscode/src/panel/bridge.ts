// Connects the page of a panel with duet-rpc: passes on the methods and events of one session, and nothing else.
import type { HubConnection } from "../hub/connection";
import { sessionEvents } from "../hub/events";
import type { Following } from "../hub/events";
import { wholeQuestions } from "../hub/model";
import { plainDenial } from "../hub/questions";
import type { HubEvent } from "../protocol";
import { JSONRPCClient } from "../rpc/client";
import { ErrorCode, RPCError } from "../rpc/messages";
import { JSONRPCServer } from "../rpc/server";
import { webviewTransport } from "../rpc/transport";
import type { WebviewTarget } from "../rpc/transport";
import { passedMethods } from "./protocol";
import type { PanelConnection, PanelMethod, PanelMethods, PanelNotifications, PanelStart } from "./protocol";
import { Scope } from "./scope";

export type PanelHub = Pick<HubConnection, "request" | "follow" | "state" | "onState" | "trouble" | "onTrouble" | "answers" | "host">;

/** The extension's own methods for a page. The bridge adds session and connection to the result of panel.start. */
export type PanelHandlers = {
  [M in Exclude<PanelMethod, "panel.start">]: (params: PanelMethods[M]["params"]) => PanelMethods[M]["result"] | Promise<PanelMethods[M]["result"]>;
} & { "panel.start": () => Promise<Omit<PanelStart, "session" | "connection">> };

export interface BridgeOptions {
  webview: WebviewTarget;
  hub: PanelHub;
  /** The uuid of the session. */
  session: string;
  handlers: PanelHandlers;
  /** The name of the client in decisions. Default: VS Code. */
  client?: string;
  /** Reports whether the session does not exist yet, so that there is nothing to follow. */
  isNew?: () => Promise<boolean>;
  /** Called if the daemon no longer has the events that the page needs. The page has to reload. */
  onLost: () => void;
  onError: (error: unknown) => void;
}

/** signed returns a decision with the name of the client, also in the reason of a denial that has no other. */
function signed(decision: Record<string, unknown>, client: string): Record<string, unknown> {
  return { ...decision, client, ...(decision["comment"] === plainDenial() && { comment: plainDenial(client) }) };
}

/** How long to wait for missed events, in milliseconds. */
const patience = 2_000;

/** The extension's side of a panel. Its owner disposes it. */
export class Bridge {
  readonly scope: Scope;
  private readonly server: JSONRPCServer;
  private readonly client: JSONRPCClient;
  private readonly stops: Array<() => void>;
  private following: Following | undefined;
  /** Counts starts and stops. A slow start compares it and gives up if another one began. */
  private generation = 0;
  private started = false;
  private isNew = false;
  private readonly waiting = new Set<() => void>();
  private readonly later: Array<() => void> = [];

  constructor(private readonly options: BridgeOptions) {
    const { webview, hub, session, handlers, onError } = options;
    const transport = webviewTransport(webview);
    this.scope = new Scope(session, (method, params) => hub.request(method, params));
    this.client = new JSONRPCClient(transport);
    this.server = new JSONRPCServer(transport, { onError });
    for (const method of passedMethods) {
      this.server.method(method, async (given) => {
        const params = await this.scope.check(method, given ?? {});
        const result: unknown = await hub.request(method, method === "approval.decide" ? signed(params, options.client ?? "VS Code") : params);
        if (method === "approval.list") return { approvals: await wholeQuestions((of, given) => hub.request(of, given), this.scope.own(result as never).approvals) };
        this.scope.note(result);
        return result;
      });
    }
    for (const method of Object.keys(handlers) as PanelMethod[]) {
      if (method !== "panel.start") this.server.method(method, (params) => handlers[method]((params ?? {}) as never));
    }
    this.server.method("panel.start", () => this.start());
    this.stops = [hub.onState(() => this.stateChanged()), hub.onTrouble(() => this.stateChanged())];
  }

  /** Notifies the page, if it has started. */
  notify<M extends keyof PanelNotifications>(method: M, params: PanelNotifications[M]): void {
    if (this.started) this.client.notify(method, params as Record<string, unknown>);
  }

  /** Notifies the page, now or after its start. */
  post<M extends "panel.insert" | "panel.focus" | "panel.entered" | "panel.showQuestion" | "panel.showItem">(method: M, params: PanelNotifications[M]): void {
    if (this.started) this.notify(method, params);
    else this.later.push(() => this.notify(method, params));
  }

  /** Stops following: the page is gone, such as that of a hidden panel. The next page begins with panel.start. */
  pause(): void {
    this.generation++;
    this.started = this.isNew = false;
    const following = this.following;
    this.following = undefined;
    void following?.stop();
    for (const settle of [...this.waiting]) settle();
  }

  dispose(): void {
    for (const stop of this.stops) stop();
    this.pause();
    this.server.destroy();
    this.client.destroy();
  }

  private async start(): Promise<PanelStart> {
    this.pause();
    const generation = this.generation;
    const { hub, session, handlers } = this.options;
    if (hub.answers) await this.follow(generation);
    const start = await handlers["panel.start"]();
    this.scope.note(start.newSession?.before);
    if (generation !== this.generation) throw new RPCError(ErrorCode.RequestCancelled, "The page has started again");
    this.started = true;
    // After the response, with which the page fills its prompt box.
    setTimeout(() => this.later.splice(0).forEach((notify) => notify()), 0);
    // The daemon may have become ready meanwhile.
    if (hub.answers && !this.following && !this.isNew) this.caughtUp(generation).catch(this.options.onError);
    return { session, ...start, connection: this.connection() };
  }

  private connection(): PanelConnection {
    const { state, trouble, host } = this.options.hub;
    const of = host === "" ? {} : { host };
    if (state.is === "ready" && trouble !== undefined) return { is: "ready", trouble, ...of };
    // Without events the page would not update.
    if (state.is === "ready" && !this.following && !this.isNew) return { is: "starting", ...of };
    return state.is === "failed" ? { is: "failed", reason: state.reason, ...of } : { is: state.is, ...of };
  }

  private stateChanged(): void {
    if (!this.started) return;
    if (this.options.hub.answers) this.caughtUp(this.generation).catch(this.options.onError);
    else this.notify("panel.connection", this.connection());
  }

  /** caughtUp reports the connection as ready, after the page has the missed events. */
  private async caughtUp(generation: number): Promise<void> {
    if (this.following) await this.missed();
    else await this.follow(generation);
    if (generation === this.generation && this.options.hub.answers) this.notify("panel.connection", this.connection());
  }

  /**
   * missed waits for the event of the session's last item. A replay has no end marker, so the number of that
   * event marks its end.
   */
  private async missed(): Promise<void> {
    const { hub, session } = this.options;
    const { items } = await hub.request("session.items", { session, limit: 20 });
    const last = Math.max(0, ...items.map(({ seq }) => seq ?? 0));
    if (!this.following || this.following.seq >= last) return;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.waiting.delete(look);
        resolve();
      };
      const look = (): void => {
        if (!this.following || this.following.seq >= last) settle();
      };
      const timer = setTimeout(settle, patience);
      this.waiting.add(look);
    });
  }

  private async follow(generation: number): Promise<void> {
    const { hub, session, onLost, isNew } = this.options;
    const current = (): boolean => generation === this.generation;
    const nothing = (await isNew?.()) === true;
    if (!current()) return;
    this.isNew = nothing;
    if (nothing) return;
    const following = await hub.follow(
      { session, kinds: sessionEvents },
      { event: (event) => current() && this.forward(event), lost: () => current() && onLost() },
    );
    if (current() && !this.following) this.following = following;
    else await following.stop();
  }

  private forward(event: HubEvent): void {
    if (event.turn_uuid) this.scope.noteTurn(event.turn_uuid);
    // The line may break before the page's next approval.list, and its answer waits for the next line then.
    if (event.kind === "approval.opened") this.scope.noteApproval(event.data.approval);
    if (!event.kind.endsWith(".delta")) this.scope.note(event.data); // deltas name no ids, and there are many
    this.client.notify("event", event);
    for (const look of [...this.waiting]) look();
  }
}
