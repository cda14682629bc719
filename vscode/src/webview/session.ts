// The head of a panel: the title of the session, its agent, its state and its usage.
import { backgroundWords, visible, worktreeWords } from "../hub/groups";
import type { PanelResult, Totals } from "../panel/protocol";
import { turnStateWords } from "../protocol";
import type { Contents } from "./contents";
import { button, icon, make, setText } from "./dom";
import { continuePrompt, interruptionReason } from "./interruption";
import type { Interruption } from "./interruption";
import { objectsOf, stringOf } from "./json";
import type { Data } from "./json";
import { gatesWords } from "./turns";
import type { Actions } from "./view";

/** The panel's session by its last turn. */
export type SessionState = PanelResult<"turn.get">["turn"];

/** The data in the head of a panel. */
export interface Session {
  /** The number of the session. Empty: not known yet. */
  number: string;
  agent: string;
  /** The state of the active turn, else of the last one. */
  state: string;
  /** An agent works, or waits for the user. */
  working: boolean;
  /** The start of the turn, in milliseconds since 1970. */
  since: number | undefined;
  /** The duration of the last turn, in milliseconds. */
  took: number | undefined;
  /** Since when the agent is silent. */
  silent: string | undefined;
  /** The titles of the agent's background tasks. Empty while it works on a prompt. */
  background: string[];
  questions: number;
  /** The git worktree of the session. undefined: it has none. */
  worktree: SessionState["worktree"];
  /** The session is one of several attempts at its prompt. */
  isAttempt: boolean;
  /** The state of the gates, as text. Empty: there are none. */
  gates: string;
  tokens: number;
  contextUsed: number;
  contextSize: number;
  cost: number;
  /** The sums over all turns. undefined: there is one turn, or they are not known. */
  totals: Pick<Totals, "tokens" | "cost" | "time"> | undefined;
}

/** Combines the result of turn.get with the later events. */
export function sessionOf(known: SessionState | undefined, contents: Contents, totals?: Totals): Session {
  const { turns } = contents;
  const turn = turns.active ?? known?.turn_uuid ?? turns.last ?? "";
  const isKnown = known?.turn_uuid === turn;
  const used: Data = turns.usageOf(turn);
  const number = (name: string, byState: number | undefined): number => {
    const byEvent = used[name];
    return typeof byEvent === "number" ? byEvent : isKnown ? (byState ?? 0) : 0;
  };
  const began = turns.began(turn) ?? (isKnown ? (known.started_at ?? known.created_at) : undefined);
  const tokens = number("input_tokens", known?.input_tokens) + number("output_tokens", known?.output_tokens);
  const cost = number("cost_usd", known?.cost_usd);
  const took = turns.active === undefined && isKnown ? known.duration_ms : undefined;
  const isCounted = totals?.last === turn;
  return {
    number: known === undefined ? "" : String(known.session),
    agent: known?.agent ?? "",
    state: turns.state(turn) ?? known?.state ?? "",
    working: turns.active !== undefined,
    since: began === undefined ? undefined : Date.parse(began),
    took,
    silent: turns.silent,
    background: turns.active === undefined ? objectsOf(contents.agent.background ?? known?.background).map(({ title, kind }) => stringOf(title) ?? stringOf(kind) ?? "") : [],
    questions: contents.questions.length,
    worktree: known?.worktree,
    isAttempt: Boolean(known?.attempts),
    gates: gatesWords(contents.gates),
    tokens,
    contextUsed: number("context_used", known?.context_tokens),
    contextSize: number("context_size", known?.context_size),
    cost,
    totals: !totals || totals.turns + (isCounted ? 0 : 1) < 2 ? undefined
      : isCounted ? totals : { tokens: totals.tokens + tokens, cost: totals.cost + cost, time: totals.time + (took ?? 0) },
  };
}

/** The interrupted or failed last turn of a session. undefined: it ended otherwise, or a turn or a question came after it. */
export function interruptionOf(known: SessionState | undefined, contents: Contents): Interruption | undefined {
  const { turns, questions } = contents;
  if (!known || turns.last !== known.turn_uuid || turns.active !== undefined || turns.queued.length > 0 || questions.length > 0) return undefined;
  const prompt = known.prompt ?? "";
  switch (known.state) {
    case "interrupted": {
      const reason = interruptionReason(known.error, turns.reason(known.turn_uuid));
      return { failed: false, reason, prompt: continuePrompt(reason, prompt), attached: [] };
    }
    case "failed":
    case "timed_out":
      return { failed: true, reason: known.error || turnWords(known.state).text, prompt, attached: contents.promptOf(known.turn_uuid)?.attachments ?? [] };
    default:
      return undefined;
  }
}

/** The text of a state, including background work, and its id for the style sheet. */
export function stateWords(session: Session, now: number): { id: string; text: string } {
  const { id, text } = ownStateWords(session, now);
  return { id, text: [text, backgroundWords(session.background.length)].filter((part) => part !== "").join("; ") };
}

function ownStateWords(session: Session, now: number): { id: string; text: string } {
  if (session.questions > 0) return { id: "waiting", text: session.questions === 1 ? "waits for your answer" : `waits for ${session.questions} answers` };
  if (session.silent !== undefined) return { id: "silent", text: `silent for ${duration(now - Date.parse(session.silent))}` };
  return turnWords(session.state);
}

/** The ids for the style sheet, by the state of a turn. */
const ids: Readonly<Record<string, string>> = {
  queued: "queued",
  starting: "working",
  running: "working",
  waiting_input: "waiting",
  interrupting: "working",
  failed: "failed",
  timed_out: "failed",
  interrupted: "failed",
  cancelled: "failed",
  completed: "done",
};

/** The words for a turn's state, and its id for the style sheet. */
export function turnWords(state: string): { id: string; text: string } {
  return { id: ids[state] ?? "idle", text: turnStateWords[state] ?? state };
}

/** A time in milliseconds: 4s, 1m 05s, 2h 03m. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000));
  const two = (number: number): string => String(number).padStart(2, "0");
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3_600)}h ${two(Math.floor((seconds % 3_600) / 60))}m`;
}

/** A count: 999, 1.2k, 45k, 1.3M. */
export function thousands(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 9_950) return `${(count / 1_000).toFixed(1)}k`;
  if (count < 999_500) return `${Math.round(count / 1_000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** Tokens and cost. Empty: neither is known. */
function usageWords({ tokens, cost }: Pick<Totals, "tokens" | "cost">): string {
  return [tokens > 0 ? `${thousands(tokens)} tokens` : "", cost > 0 ? money(cost) : ""].filter((part) => part !== "").join(" · ");
}

/** An amount in US dollars. */
export function money(dollars: number): string {
  return dollars < 0.01 ? "< $0.01" : `$${dollars.toFixed(2)}`;
}

const interruptTip = "Interrupt the agent and stop the queue (Escape)";

/** The head of a panel. */
export class Head {
  readonly element: HTMLElement;
  private readonly number = make("span", { class: "number" });
  private readonly title = make("h1", {});
  private readonly where = make("span", { class: "where" });
  private readonly agent = make("span", { class: "agent" });
  private readonly dot = make("span", { class: "dot", is: { "aria-hidden": "true" } });
  private readonly state = make("span", { class: "state" });
  private readonly elapsed = make("span", { class: "elapsed" });
  private readonly gates = make("span", { class: "gates" });
  private readonly usage = make("span", { class: "usage" });
  private readonly context = make("progress", { class: "context", is: { "aria-label": "Context used", max: "100" } });
  private readonly branch = make("span", { class: "branch" });
  private readonly ofWorktree: HTMLButtonElement[];
  private readonly compare: HTMLButtonElement;
  private readonly worktree: HTMLElement;
  private readonly interrupt: HTMLButtonElement;
  private readonly ofSession: HTMLElement[];

  constructor(actions: Actions, interrupt: () => void) {
    this.interrupt = button({ icon: "stop", label: "Interrupt", class: "text-button interrupt", tip: interruptTip, press: interrupt });
    this.ofSession = [
      button({ icon: "edit", name: "Rename the session", command: "duet.rename", press: () => actions.command("duet.rename") }),
      button({ icon: "diff", name: "Show changes", press: () => actions.openChanges() }),
      button({ icon: "fork", name: "Fork the session", command: "duet.fork", press: () => actions.command("duet.fork") }),
      button({ icon: "rewind", name: "Rewind to before a prompt", command: "duet.rewind", press: () => actions.command("duet.rewind") }),
      make("div", { class: "head-line facts" }, this.dot, this.agent, this.state, this.elapsed, this.gates, make("span", { class: "spent" }, this.usage, this.context)),
    ];
    this.ofWorktree = [
      button({ class: "text-button", label: "Land…", tip: "Bring the changes to your branch", command: "duet.land", press: () => actions.command("duet.land") }),
      button({ class: "text-button", label: "Discard…", tip: "Delete the worktree and its branch", command: "duet.discardWorktree", press: () => actions.command("duet.discardWorktree") }),
      button({ class: "text-button", label: "Open in New Window", tip: "Open the worktree in a new window", command: "duet.openWorktree", press: () => actions.command("duet.openWorktree") }),
    ];
    this.compare = button({ class: "text-button", label: "Compare Attempts", tip: "Compare the attempts at this prompt, and choose one", command: "duet.compareAttempts", press: () => actions.command("duet.compareAttempts") });
    this.worktree = make("div", { class: "head-line facts", is: { role: "group", "aria-label": "Worktree" } }, make("span", {}, icon("branch"), " ", this.branch), ...this.ofWorktree, this.compare);
    const [rename, changes, fork, rewind, facts] = this.ofSession;
    this.element = make(
      "header",
      { class: "head" },
      make("div", { class: "head-line" }, this.number, this.title, this.where, rename, this.interrupt, changes, rewind, fork),
      facts,
      this.worktree,
    );
    this.setWhere("");
    this.updateNew(""); // until the page knows its session
  }

  /** Shows where a session on a host is, such as parser@devbox. Empty: on this machine. */
  setWhere(where: string): void {
    setText(this.where, where);
    this.where.hidden = where === "";
    this.where.title = where === "" ? "" : `The agent works on ${where.slice(where.lastIndexOf("@") + 1)}, and so do its paths and commands`;
  }

  /** Shows a title alone, because the session does not exist yet. */
  updateNew(title: string): void {
    this.updateTitle(title, true);
    this.number.hidden = this.interrupt.hidden = this.worktree.hidden = true;
  }

  update(title: string, session: Session, now: number): void {
    this.updateTitle(title, false);
    const state = stateWords(session, now);
    this.number.hidden = session.number === "";
    setText(this.number, session.number);
    this.number.title = `Session ${session.number}`;
    this.updateWorktree(session);
    setText(this.agent, session.agent);
    setText(this.state, state.text);
    this.element.dataset["state"] = state.id;
    const background = session.background.join("\n");
    this.state.title = visible(background);
    this.interrupt.hidden = !session.working && background === "";
    // Escape ends a turn, and no background work.
    if (background === "") this.interrupt.setAttribute("aria-keyshortcuts", "Escape");
    else this.interrupt.removeAttribute("aria-keyshortcuts");
    this.interrupt.title = background === "" ? interruptTip : visible(`Stop the agent's background work:\n${background}`);
    setText(this.elapsed, session.working && session.since !== undefined ? duration(now - session.since) : session.took !== undefined && session.took >= 1_000 ? `took ${duration(session.took)}` : "");
    setText(this.gates, session.gates);
    const { totals, contextUsed, contextSize } = session;
    const used = usageWords(session);
    setText(this.usage, totals ? [usageWords(totals), `${duration(totals.time)} in all turns`].filter((part) => part !== "").join(" · ") : used);
    this.usage.title = totals && used !== "" ? `The last turn: ${used}` : "";
    const share = contextSize > 0 ? Math.min(100, Math.round((100 * contextUsed) / contextSize)) : 0;
    this.context.hidden = share === 0;
    if (this.context.value !== share) this.context.value = share;
    this.context.title = contextSize > 0 ? `Context: ${thousands(contextUsed)} of ${thousands(contextSize)} tokens (${share} %)` : "";
  }

  private updateWorktree({ worktree, working, isAttempt }: Session): void {
    this.compare.hidden = !isAttempt;
    this.worktree.hidden = worktree === undefined;
    if (!worktree) return;
    setText(this.branch, worktree.gone ? worktreeWords(worktree) : worktree.branch);
    this.branch.title = visible(worktree.gone ? worktree.dir : `${worktreeWords(worktree)}: ${worktree.dir}`);
    for (const element of this.ofWorktree) element.hidden = worktree.gone === true;
    const [land, discard] = this.ofWorktree;
    land!.disabled = discard!.disabled = working; // the daemon refuses them then
  }

  private updateTitle(title: string, isNew: boolean): void {
    setText(this.title, title);
    this.title.title = title;
    for (const element of this.ofSession) element.hidden = isNew;
  }
}
