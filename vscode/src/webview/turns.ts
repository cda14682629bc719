// The turns of a session: their states, usage and queue; and the state of the session's gates.
import type { HubEvent, SilentEvent } from "../protocol";
import { objectOf, stringOf } from "./json";
import type { Data } from "./json";

const active = new Set(["starting", "running", "waiting_input", "interrupting"]);
const ended = new Set(["completed", "failed", "timed_out", "cancelled", "interrupted", "discarded"]);

/** The turns of a session, by uuid. */
export class Turns {
  private readonly states = new Map<string, string>();
  private readonly usage = new Map<string, Data>();
  private readonly begins = new Map<string, string>();
  private readonly reasons = new Map<string, string>();
  private readonly editable = new Map<string, boolean>();
  /** Queued turns behind which another turn was active. They wait until they begin, also while no turn is active. */
  private readonly behind = new Set<string>();
  private order: ReadonlyMap<string, number> = new Map();
  private silentSince: string | undefined;

  /** Since when the agent is silent. undefined: it is not silent, or no turn waits for it. */
  get silent(): string | undefined {
    return this.silentSince;
  }

  /** The active turn. */
  get active(): string | undefined {
    return [...this.states].find(([, state]) => active.has(state))?.[0];
  }

  /** The queued turns. */
  get queued(): string[] {
    return [...this.states].filter(([, state]) => state === "queued").map(([turn]) => turn);
  }

  /** Whether a turn is queued behind another one. */
  waits(turn: string): boolean {
    return this.states.get(turn) === "queued" && this.behind.has(turn);
  }

  /** Sets the order of the queued turns. */
  setOrder(order: readonly string[]): void {
    this.order = new Map(order.map((turn, at) => [turn, at]));
  }

  /** The place of a queued turn. Turns that came after the order was set are last. */
  place(turn: string): number {
    return this.order.get(turn) ?? this.order.size;
  }

  /** Sets which queued prompts can be edited and moved. */
  setEditable(queued: ReadonlyArray<{ turn_uuid: string; editable: boolean }>): void {
    for (const { turn_uuid: turn, editable } of queued) this.editable.set(turn, editable);
  }

  /** Whether a queued prompt can be edited and moved. undefined: not known yet. */
  isEditable(turn: string): boolean | undefined {
    return this.editable.get(turn);
  }

  /** The turns with a known state. */
  get ids(): string[] {
    return [...this.states.keys()];
  }

  /** The last turn with a known state. */
  get last(): string | undefined {
    return [...this.states.keys()].at(-1);
  }

  state(turn: string): string | undefined {
    return this.states.get(turn);
  }

  hasEnded(turn: string): boolean {
    return ended.has(this.states.get(turn) ?? "");
  }

  /** Why a turn is being interrupted, if an event said so. */
  reason(turn: string): string | undefined {
    return this.reasons.get(turn);
  }

  setReason(turn: string, reason: string): void {
    this.reasons.set(turn, reason);
  }

  usageOf(turn: string): Readonly<Data> {
    return this.usage.get(turn) ?? {};
  }

  setUsage(turn: string, data: Data): void {
    this.usage.set(turn, { ...this.usage.get(turn), ...data });
  }

  /** When a turn began, if an event said so. */
  began(turn: string): string | undefined {
    return this.begins.get(turn);
  }

  /**
   * Sets the state of a turn, with the time of the event. Returns false if the turn has ended, or if it has begun and would
   * be queued again: then a reply is older than an event.
   */
  setState(turn: string, state: string, at?: string): boolean {
    const known = this.states.get(turn);
    if (known !== undefined && ended.has(known) && !ended.has(state)) return false;
    if (known !== undefined && active.has(known) && state === "queued") return false;
    this.states.set(turn, state);
    if (this.active !== undefined) for (const queued of this.queued) this.behind.add(queued);
    if (state === "starting" && at !== undefined) this.begins.set(turn, at);
    // An agent that waits for the user, or has ended, is not silent.
    if (state !== "starting" && state !== "running" && (this.active === undefined || this.active === turn)) this.silentSince = undefined;
    return true;
  }

  setSilent({ ended, since }: SilentEvent): void {
    this.silentSince = ended ? undefined : since;
  }

  /** Takes the silence from turn.get, unless an event reported one. */
  wasSilent(since: string): void {
    this.silentSince ??= since;
  }
}

/** The state of a session's gates, commands that have to succeed: from turn.get, updated by events. */
export interface Gates {
  /** working, checking, passed, failed or stopped. */
  state: string;
  /** The number of the turn, from 1, and the limit of turns. */
  turn: number | undefined;
  turns: number | undefined;
  /** The running gate. */
  gate: string | undefined;
}

/** gatesOf reads the gates of a session. undefined: it has none. */
export function gatesOf(gates: unknown): Gates | undefined {
  if (gates === undefined || gates === null) return undefined;
  const data = objectOf(gates);
  return { state: stringOf(data["state"]) ?? "", turn: numberOf(data["iteration"]), turns: numberOf(data["max_iterations"]), gate: undefined };
}

/** An event about gates. */
export type GatesUpdate = Extract<HubEvent, { kind: "gate.iteration" | "gate.started" | "gate.result" | "gate.ended" }>;

/** gatesAfter returns the state after an event about gates. */
export function gatesAfter(before: Gates | undefined, { kind, data }: GatesUpdate): Gates {
  return {
    state: kind === "gate.iteration" ? "working" : kind === "gate.ended" ? data.gates_state : "checking",
    turn: data.iteration,
    turns: kind === "gate.started" ? before?.turns : data.max_iterations,
    gate: kind === "gate.started" ? data.gate : undefined,
  };
}

/** gatesWords describes the state of the gates. Empty: there is nothing to show. */
export function gatesWords(gates: Gates | undefined): string {
  if (gates === undefined) return "";
  const turn = `turn ${gates.turn ?? "?"} of ${gates.turns ?? "?"}`;
  switch (gates.state) {
    case "working":
      return turn;
    case "checking":
      return `${turn}, checks ${gates.gate ?? "gates"}`;
    case "passed":
      return "gates passed";
    case "failed":
      return "gates failed";
    default:
      return "";
  }
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
