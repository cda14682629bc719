// What the user has sent and no connection has carried yet: decisions, prompts, and first prompts of sessions. It outlives the
// page. Each has an id with which duet-rpc carries it out once, however often it is sent.
import { Emitter } from "../hub/events";
import { short } from "../hub/groups";
import type { Params, Result } from "../protocol";
import { ErrorCode, RPCError } from "../rpc/messages";
import { OfflineError } from "./line";
import type { Approval } from "./protocol";
import type { Store } from "./store";

/** A request that waits. */
export interface Waiting {
  id: string;
  method: "approval.decide" | "session.prompt" | "session.start";
  /** The id of the project. */
  project: string;
  params: Record<string, unknown>;
  /** For people: the question, or the beginning of the prompt. */
  title: string;
  /** Its place in the order. */
  at: number;
  /** It was sent before, and may have been carried out. */
  tried?: boolean;
}

/** The end of a request that has waited. */
export interface Outcome {
  waiting: Waiting;
  /** Why it had no effect. undefined: it had. */
  why?: string;
}

/** The user took a request back before it was sent. */
export class TakenBack extends Error {
  constructor() {
    super("you took it back");
  }
}

type Send = <T>(method: string, params: Record<string, unknown>) => Promise<T>;

/** The first word of the keys in the store, one for each request. Several tabs share it. */
const storeKey = "outbox ";

/** How long a project whose daemon has died gets before the next attempt, in milliseconds. */
const daemonPause = 1_000;

/** The status of an approval after a decision. */
const statusAfter: Record<string, string> = { approve: "approved", deny: "denied", respond: "responded", cancel: "cancelled" };

interface Settling {
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

/** Sends requests of the user in order, keeps them while there is no connection, and reports what became of those that waited. */
export class Outbox {
  private readonly changeEmitter = new Emitter<undefined>();
  private readonly outcomeEmitter = new Emitter<Outcome>();
  private readonly all = new Map<string, Waiting>();
  private readonly settling = new Map<string, Settling>();
  private readonly sending = new Set<string>();
  private readonly draining = new Set<string>();
  /** Those that have waited, so that their ends are reported. */
  private readonly late = new Set<string>();

  /** The list has changed. */
  readonly onChange = this.changeEmitter.on;
  /** A request that has waited has ended. */
  readonly onOutcome = this.outcomeEmitter.on;

  constructor(
    private readonly store: Store,
    private readonly send: Send,
    private readonly later: (milliseconds: number, then: () => void) => void = (milliseconds, then) => void setTimeout(then, milliseconds),
  ) {
    for (const key of store.keys(storeKey)) {
      const waiting = read(store.get(key));
      if (!waiting) continue;
      this.all.set(waiting.id, waiting);
      this.late.add(waiting.id);
    }
  }

  /** What waits, the oldest first. */
  get waiting(): Waiting[] {
    return this.list.filter(({ id }) => this.late.has(id));
  }

  /** Sends a decision. Without a connection, it resolves once there is one. A later decision replaces one that waits. */
  decide(project: string, title: string, params: Record<string, unknown>): Promise<Result<"approval.decide">> {
    const id = `decide ${project} ${String(params["approval"])}`;
    if (this.sending.has(id)) return Promise.reject(new Error("your answer is being sent"));
    this.takeBack(id);
    return this.keep<Result<"approval.decide">>({ id, at: this.next, method: "approval.decide", project, params, title });
  }

  /** Sends a prompt. Without a connection, it resolves at once, and the prompt waits. */
  async prompt(project: string, params: Params<"session.prompt">, id: string): Promise<Result<"session.prompt"> | { delivered: "kept" }> {
    return this.orKept(this.keep({ id, at: this.next, method: "session.prompt", project, params: { ...params, prompt_id: id }, title: short(params.prompt ?? "") }), id);
  }

  /** Starts a session. Without a connection, it resolves at once, and the start waits. */
  async start(project: string, params: Params<"session.start">, id: string): Promise<Result<"session.start"> | { delivered: "kept" }> {
    return this.orKept(this.keep({ id, at: this.next, method: "session.start", project, params: { ...params, start_id: id }, title: short(params.prompt) }), id);
  }

  /** Sends all that waits. The requests of a project keep their order. */
  flush(): void {
    for (const project of new Set(this.list.map((waiting) => waiting.project))) void this.drain(project);
  }

  /** Removes a request that waits. Its caller gets a TakenBack. */
  takeBack(id: string): Waiting | undefined {
    const waiting = this.all.get(id);
    if (!waiting || this.sending.has(id)) return undefined;
    this.remove(id);
    this.settling.get(id)?.reject(new TakenBack());
    this.settling.delete(id);
    return waiting;
  }

  /** Removes all, because this device is no longer paired. */
  clear(): void {
    for (const id of [...this.all.keys()]) this.remove(id);
  }

  private keep<T>(waiting: Waiting): Promise<T> {
    this.write(waiting);
    this.changeEmitter.fire(undefined);
    return new Promise<T>((resolve, reject) => {
      this.settling.set(waiting.id, { resolve: (result) => resolve(result as T), reject });
      // A prompt does not overtake those that wait.
      if (waiting.method !== "approval.decide" && this.waiting.some(({ project }) => project === waiting.project)) this.late.add(waiting.id);
      else void this.deliver(waiting);
    });
  }

  /** orKept resolves with kept as soon as a request waits. */
  private orKept<T>(sent: Promise<T>, id: string): Promise<T | { delivered: "kept" }> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!this.late.has(id)) return;
        stop();
        resolve({ delivered: "kept" }); // the outcome reports the rest
      };
      const stop = this.changeEmitter.on(look);
      sent.then(resolve, reject).finally(stop);
      look();
    });
  }

  /** drain sends what waits for a project, one after the other. */
  private async drain(project: string): Promise<void> {
    if (this.draining.has(project)) return;
    this.draining.add(project);
    for (;;) {
      const next = this.list.find((waiting) => waiting.project === project && !this.sending.has(waiting.id));
      if (!next || !(await this.deliver(next))) break;
    }
    this.draining.delete(project);
  }

  /** deliver sends a request. It returns false if the request waits on. */
  private async deliver({ id }: Waiting): Promise<boolean> {
    const waiting = this.all.get(id);
    if (!waiting) return true;
    const { method, project, params } = waiting;
    this.sending.add(id);
    try {
      this.write({ ...waiting, tried: true });
      let result = await this.send<unknown>(method, { ...params, project });
      if (method === "approval.decide") result = await this.ownDecision(waiting, result as Result<"approval.decide">);
      this.end(waiting, (settling) => settling.resolve(result), (result as { success?: boolean; error?: string }).success === false ? ((result as { error?: string }).error ?? "another client was quicker") : undefined);
      return true;
    } catch (error) {
      const isLost = error instanceof RPCError && error.code === ErrorCode.HubLost;
      if (error instanceof OfflineError || isLost) {
        if (isLost) this.later(daemonPause, () => this.flush());
        if (error instanceof OfflineError && error.unsent) this.write(waiting);
        this.late.add(id);
        this.changeEmitter.fire(undefined);
        return false;
      }
      this.end(waiting, (settling) => settling.reject(error), (error as Error).message);
      return true;
    } finally {
      this.sending.delete(id);
    }
  }

  /** ownDecision corrects the answer to a decision that was sent twice: the first one may have won. */
  private async ownDecision({ tried, project, params }: Waiting, result: Result<"approval.decide">): Promise<Result<"approval.decide">> {
    if (result.success || !tried) return result;
    const status = result.status ?? (await this.send<{ approval: Approval }>("approval.get", { approval: params["approval"], project })).approval.status;
    return status === statusAfter[String(params["decision"])] ? { success: true, status } : result;
  }

  private end(waiting: Waiting, settle: (settling: Settling) => void, why: string | undefined): void {
    const isLate = this.late.delete(waiting.id);
    const settling = this.settling.get(waiting.id);
    this.settling.delete(waiting.id);
    this.remove(waiting.id);
    if (settling) settle(settling);
    if (isLate) this.outcomeEmitter.fire({ waiting, ...(why !== undefined && { why }) });
  }

  private get list(): Waiting[] {
    return [...this.all.values()].sort((a, b) => a.at - b.at);
  }

  /** The place of the next request, behind all others. */
  private get next(): number {
    return Math.max(Date.now(), 1 + (this.list.at(-1)?.at ?? 0));
  }

  private remove(id: string): void {
    this.all.delete(id);
    this.late.delete(id);
    this.store.set(storeKey + id, undefined);
    this.changeEmitter.fire(undefined);
  }

  private write(waiting: Waiting): void {
    this.all.set(waiting.id, waiting);
    this.store.set(storeKey + waiting.id, JSON.stringify(waiting));
  }
}

function read(text: string | undefined): Waiting | undefined {
  try {
    const waiting = JSON.parse(text ?? "") as Waiting;
    return typeof waiting.id === "string" && typeof waiting.project === "string" ? waiting : undefined;
  } catch {
    return undefined;
  }
}
