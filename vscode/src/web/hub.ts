// One project behind the line, as a panel uses it (src/panel/bridge.ts): requests, the subscriptions of sessions, and whether it
// answers.
import { Emitter, Following } from "../hub/events";
import type { Followed, FollowListener, Send } from "../hub/events";
import type { ConnectionState } from "../hub/connection";
import { titleOf } from "../hub/questions";
import type { PanelHub } from "../panel/bridge";
import type { HubEvent, Method, Params, Result } from "../protocol";
import { RPCError } from "../rpc/messages";
import { OfflineError } from "./line";
import type { Line } from "./line";
import type { Outbox } from "./outbox";
import type { Approval, Project } from "./protocol";

/** An event of a project. */
export type ProjectEvent = HubEvent & { project: string };

/** Why a project does not answer while there is no connection. */
const offline = "you are offline";

/** A project behind the line. */
export class ProjectHub implements PanelHub {
  private readonly stateEmitter = new Emitter<ConnectionState>();
  private readonly troubleEmitter = new Emitter<string | undefined>();
  private readonly followings = new Set<Following>();
  private readonly followed = new Map<Following, string | undefined>();
  /** The fingerprints of the questions that this page has got, by their ids. */
  private readonly questions = new Map<string, Approval>();
  private daemonTrouble: string | undefined;
  private isOffline: boolean;

  readonly onState = this.stateEmitter.on;
  readonly onTrouble = this.troubleEmitter.on;
  readonly state: ConnectionState = { is: "ready", version: "" };

  constructor(
    public project: Project,
    private readonly line: Line,
    private readonly outbox: Outbox,
  ) {
    this.isOffline = !line.ready;
  }

  get host(): string {
    return this.project.host ?? "";
  }

  get trouble(): string | undefined {
    return this.isOffline ? offline : this.daemonTrouble;
  }

  get answers(): boolean {
    return this.trouble === undefined;
  }

  /** Notes that the daemon does not answer, and why. null: it answers. */
  setTrouble(reason: string | null): void {
    this.daemonTrouble = reason ?? undefined;
    this.troubleEmitter.fire(this.trouble);
  }

  /** Notes that the line has broken. */
  broken(): void {
    this.isOffline = true;
    for (const following of this.followings) following.serverGone();
    this.troubleEmitter.fire(this.trouble);
  }

  /** Subscribes again after the line is back, each after its last event. */
  async resume(): Promise<void> {
    this.daemonTrouble = undefined; // the server tells of a trouble that lasts
    await Promise.all([...this.followings].map(async (following) => {
      try {
        following.serverGone();
        await following.subscribe(this.sendEvents);
      } catch (error) {
        if (error instanceof RPCError) following.lose(error);
      }
    }));
    if (!this.line.ready) return;
    this.isOffline = false;
    this.troubleEmitter.fire(this.trouble);
  }

  /** Passes on an event to the subscription that it belongs to. */
  take(event: HubEvent): void {
    if (event.kind === "approval.opened") Object.assign(event.data, this.shown(event.data as unknown as Approval));
    for (const following of [...this.followings]) if (following.is(event.subscription_id)) following.take(event);
  }

  /** Notes a question that this page shows, so that an answer names what was shown. */
  note(approval: Approval): void {
    const { approval: id } = approval;
    const known = this.questions.get(id);
    this.questions.set(id, { ...known, ...approval });
  }

  /** Sends a request. Decisions and prompts wait for a connection; others reject with an OfflineError. */
  async request<M extends Method>(method: M, params: Params<M>): Promise<Result<M>> {
    if (method === "approval.decide") return (await this.decide(params as Params<"approval.decide">));
    if (method === "session.prompt") return (await this.outbox.prompt(this.project.id, params as Params<"session.prompt">, crypto.randomUUID()));
    const result = await this.ask<Result<M>>(method, params as object);
    if (method === "approval.list") return { approvals: (result as Result<"approval.list">).approvals.map((approval) => this.shown(approval)) } as Result<M>;
    if (method === "approval.get") return { approval: this.shown((result as Result<"approval.get">).approval) } as Result<M>;
    return result;
  }

  async follow(followed: Followed, listener: FollowListener): Promise<Following> {
    const following = new Following(followed, listener, (ended) => {
      this.followings.delete(ended);
      this.followed.delete(ended);
    });
    this.followings.add(following);
    this.followed.set(following, followed.session);
    try {
      await following.subscribe(this.sendEvents);
    } catch (error) {
      if (!(error instanceof OfflineError)) {
        void following.stop();
        throw error;
      }
    }
    return following;
  }

  private readonly sendEvents: Send = (method, params) => this.ask(method, params);

  private ask<T>(method: string, params: object): Promise<T> {
    return this.line.send<T>(method, { ...params, project: this.project.id });
  }

  private async decide(params: Params<"approval.decide">): Promise<Result<"approval.decide">> {
    const question = this.questions.get(params.approval);
    const title = question ? titleOf(question) : params.approval;
    try {
      return await this.outbox.decide(this.project.id, title, { ...params, ...(question?.fingerprint !== undefined && { fingerprint: question.fingerprint }) });
    } catch (error) {
      if (kindOf(error) === "changed") await this.showChanged(params.approval).catch(() => undefined);
      throw error;
    }
  }

  /** showChanged gives the pages a question as it is now. */
  private async showChanged(id: string): Promise<void> {
    const { approval } = await this.request("approval.get", { approval: id });
    for (const [following, session] of this.followed) {
      if (session === approval.session_uuid) following.take({ kind: "approval.opened", time: approval.created_at, turn_uuid: approval.turn_uuid, data: approval } as unknown as HubEvent);
    }
  }

  /** shown notes a question that goes to a page. The page has no editor for the input of a tool. */
  private shown(approval: Approval): Approval {
    this.note(approval);
    return { ...approval, input_editable: false };
  }
}

/** The kind of an error of the daemon. */
export function kindOf(error: unknown): string | undefined {
  const kind = error instanceof RPCError && ((error.data ?? {}) as { kind?: unknown }).kind;
  return typeof kind === "string" ? kind : undefined;
}

