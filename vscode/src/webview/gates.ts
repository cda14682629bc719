// Where work stands that has gates, commands that have to succeed: what getSessionState says, and what events have
// changed since. What came of each check stands in the conversation as a note.
import { objectOf, stringOf } from "./json";
import type { Data } from "./json";

export interface Gates {
  /** working, checking, passed, failed or stopped. */
  state: string;
  /** Which turn it is, from 1, and how many there may be. */
  turn: number | undefined;
  turns: number | undefined;
  /** The one that runs. */
  gate: string | undefined;
}

/** gatesOf takes what a session has as its gates; undefined: it has none. */
export function gatesOf(gates: unknown): Gates | undefined {
  if (gates === undefined || gates === null) return undefined;
  const data = objectOf(gates);
  return { state: stringOf(data["state"]) ?? "", turn: numberOf(data["iteration"]), turns: numberOf(data["max_iterations"]), gate: undefined };
}

/** gatesAfter is where they stand after an event of one of the types that tell of gates. */
export function gatesAfter(before: Gates | undefined, type: string, data: Data): Gates {
  const state = type === "iteration_start" ? "working" : type === "gates_complete" ? (stringOf(data["gates_state"]) ?? "") : "checking";
  return {
    state,
    turn: numberOf(data["iteration"]) ?? before?.turn,
    turns: numberOf(data["max_iterations"]) ?? before?.turns,
    gate: type === "gate_start" ? stringOf(data["gate"]) : undefined,
  };
}

/** gatesWords says where they stand; empty: there is nothing to say. */
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
