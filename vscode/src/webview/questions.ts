// The questions of a session, open and answered.
import { stringOf } from "./json";
import type { Data } from "./json";

/** An open question, from approval.list or the event approval.opened. */
export interface OpenQuestion {
  id: string;
  turn: string;
  /** The key of the tool call that waits for the answer, if the session has it. */
  tool: string | undefined;
  /** The event has cut the question. It cannot be answered until approval.list has returned all of it. */
  partial: boolean;
  data: Data;
}

/** How a question ended. */
export interface Outcome {
  title: string;
  decision: string;
  /** user, rule=…, mode=…, timeout, end, overtaken or changed. */
  by: string;
}

/** The open questions of a session, and the outcomes of the others. */
export class Questions {
  private readonly waiting = new Map<string, OpenQuestion>();
  private readonly outcomes = new Map<string, Outcome>();

  get open(): readonly OpenQuestion[] {
    return [...this.waiting.values()];
  }

  outcome(id: string): Outcome | undefined {
    return this.outcomes.get(id);
  }

  /** Takes a question from an event or from approval.list. Returns false if it was answered already. */
  ask(data: Data, keyOf: (turn: string, call: string) => string | undefined, fetched = false): boolean {
    const id = stringOf(data["approval"]);
    if (id === undefined || this.outcomes.has(id)) return false;
    const turn = stringOf(data["turn_uuid"]) ?? "";
    const call = callOf(data);
    const known = this.waiting.get(id);
    const cut = !fetched && data["truncated"] === true;
    const partial = cut && (known?.partial ?? true);
    // A fetched question is more complete than a cut event.
    const merged = cut && !partial ? { ...data, ...known?.data } : { ...known?.data, ...data };
    if (fetched) merged["truncated"] = data["truncated"];
    this.waiting.set(id, { id, turn, tool: call === undefined ? undefined : keyOf(turn, call), partial, data: merged });
    return true;
  }

  /** Takes the end of a question. Returns true if it was open. */
  resolve(id: string, data: Data): boolean {
    const known = this.waiting.get(id);
    this.outcomes.set(id, {
      title: stringOf(data["title"]) ?? stringOf(known?.data["title"]) ?? "",
      decision: stringOf(data["status"]) ?? "",
      by: stringOf(data["decided_by"]) ?? "",
    });
    return this.waiting.delete(id);
  }

  /** Closes the questions of an ended turn, because there is no event for each. */
  endTurn(turn: string): boolean {
    return this.close(this.open.filter((question) => question.turn === turn));
  }

  /** Closes questions without a known outcome. */
  close(questions: readonly OpenQuestion[]): boolean {
    return questions.filter(({ id }) => this.waiting.delete(id)).length > 0;
  }

  /** Links a question to its tool call, which came later. */
  link(turn: string, call: string, key: string): boolean {
    const linked = this.open.filter((question) => question.turn === turn && callOf(question.data) === call && question.tool === undefined);
    for (const question of linked) question.tool = key;
    return linked.length > 0;
  }
}

function callOf(data: Data): string | undefined {
  return stringOf(data["tool_use_id"]) ?? stringOf(data["call_id"]);
}
