// The attempts of several agents at one prompt, as text. The extension and the page of the comparison use it.
import type { Attempt } from "../protocol";

export type { Attempt } from "../protocol";

/** The data of the page that compares attempts. */
export interface Comparison {
  prompt: string;
  attempts: Attempt[];
  /** What became of the attempts when one was chosen. */
  notes: string[];
}

/** The methods of the extension for that page. session is the uuid of the session of an attempt. */
export interface ComparisonMethods {
  load: Record<string, never>;
  openSession: { session: string };
  openFile: { session: string; path: string };
  choose: { session: string };
}

/** The agent that a choice names, and its model: AGENT or AGENT=MODEL, as in the shell and Emacs. */
export function agentOf(choice: string): { agent: string; model?: string } {
  const at = choice.indexOf("=");
  return at < 0 ? { agent: choice } : { agent: choice.slice(0, at), model: choice.slice(at + 1) };
}

/** The agent of an attempt, and its model. */
export function agentWords({ agent, model }: Pick<Attempt, "agent" | "model">): string {
  return model ? `${agent} (${model})` : agent;
}

/** Whether the agent of an attempt works, or its gates run. */
export function isWorking({ state, gates }: Pick<Attempt, "state" | "gates">): boolean {
  return ["queued", "starting", "running", "interrupting", "waiting_input"].includes(state) || gates?.state === "checking";
}

/** Whether an attempt can be chosen: it has ended, and its worktree is there. */
export function isChoosable(attempt: Attempt): boolean {
  return !isWorking(attempt) && attempt.worktree !== undefined && !attempt.worktree.gone;
}

/** The state of the gates. Empty: there are none. */
export function gatesWords({ gates }: Pick<Attempt, "gates">): string {
  if (!gates) return "";
  return gates.failing.length > 0 ? `gates ${gates.state}: ${gates.failing.join(", ")}` : `gates ${gates.state}`;
}

/** How much an attempt has changed. */
export function changeWords(attempt: Pick<Attempt, "state" | "gates" | "unknown" | "files" | "more" | "added" | "removed" | "landed">): string {
  const { unknown, files, more = 0, added, removed, landed } = attempt;
  if (unknown) return unknown;
  const count = files.length + more;
  if (count === 0) return isWorking(attempt) ? "no change yet" : "nothing to land";
  return `${count} file${count === 1 ? "" : "s"}, +${added} -${removed}${landed ? ", landed" : ""}`;
}
