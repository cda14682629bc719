// The questions of a conversation: those that wait, and those that were answered.
import { stringOf } from "./json";
import type { Data } from "./json";

/** A question that waits for an answer: the members of fetchApprovals, or of the event new_approval. */
export interface OpenQuestion {
  id: string;
  run: string;
  /** The key of the tool call that waits for it, if the conversation has it. */
  tool: string | undefined;
  /** An event told of it without what is too long for one: it cannot be answered until fetchApprovals has told the rest. */
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

export class Questions {
  private readonly waiting = new Map<string, OpenQuestion>();
  private readonly outcomes = new Map<string, Outcome>();

  get open(): readonly OpenQuestion[] {
    return [...this.waiting.values()];
  }

  outcome(id: string): Outcome | undefined {
    return this.outcomes.get(id);
  }

  /** Takes a question of an event, or of fetchApprovals; false: it was answered already, and a reply still had it. */
  ask(data: Data, keyOf: (run: string, call: string) => string | undefined, fetched = false): boolean {
    const id = stringOf(data["approval_id"]) ?? stringOf(data["id"]);
    if (id === undefined || this.outcomes.has(id)) return false;
    const run = stringOf(data["session_id"]) ?? "";
    const call = callOf(data);
    const known = this.waiting.get(id);
    const cut = !fetched && data["truncated"] === true;
    const partial = cut && (known?.partial ?? true);
    // What was fetched has more than an event that leaves something out.
    const merged = cut && !partial ? { ...data, ...known?.data } : { ...known?.data, ...data };
    if (fetched) merged["truncated"] = data["truncated"];
    this.waiting.set(id, { id, run, tool: call === undefined ? undefined : keyOf(run, call), partial, data: merged });
    return true;
  }

  /** Takes the end of a question; true: it was one that waited. */
  resolve(id: string, data: Data): boolean {
    const known = this.waiting.get(id);
    this.outcomes.set(id, {
      title: stringOf(data["title"]) ?? stringOf(known?.data["title"]) ?? "",
      decision: stringOf(data["decision"]) ?? "",
      by: stringOf(data["decided_by"]) ?? "",
    });
    return this.waiting.delete(id);
  }

  /** Closes those of a run that has ended: no event tells of each. */
  endRun(run: string): boolean {
    return this.close(this.open.filter((question) => question.run === run));
  }

  /** Closes some of which nothing more is known. */
  close(questions: readonly OpenQuestion[]): boolean {
    return questions.filter(({ id }) => this.waiting.delete(id)).length > 0;
  }

  /** Says where the tool call of a question stands, which came later than the question. */
  link(run: string, call: string, key: string): boolean {
    const linked = this.open.filter((question) => question.run === run && callOf(question.data) === call && question.tool === undefined);
    for (const question of linked) question.tool = key;
    return linked.length > 0;
  }
}

function callOf(data: Data): string | undefined {
  return stringOf(data["tool_use_id"]) ?? stringOf(data["call_id"]);
}
