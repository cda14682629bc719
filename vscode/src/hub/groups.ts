// The groups of sessions in a list, their names and states, and text that is safe to show.
import { turnStateWords } from "../protocol";
import type { Session } from "./model";

/** The kind of a session's state, for its icon. */
export type GroupId = "waiting" | "working" | "queued" | "failed" | "done" | "draft" | "archived";

/** A group of the list, in the order in which the list has them. */
export type ListGroupId = "waiting" | "today" | "failed" | "done" | "draft" | "archived";

export interface Group {
  id: ListGroupId;
  label: string;
  sessions: Session[];
}

const labels: Record<ListGroupId, string> = {
  waiting: capital(turnStateWords.waiting_input!),
  today: "Today",
  failed: `${capital(turnStateWords.failed!)} or ${turnStateWords.interrupted}`,
  done: capital(turnStateWords.completed!),
  draft: "Drafts",
  archived: "Archived",
};

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** The kind of a session's state. */
export function groupOf(session: Session): GroupId {
  if (session.archived) return "archived";
  if (session.waits) return "waiting";
  switch (session.state) {
    case "waiting_input":
      return "waiting";
    case "queued":
      return session.ahead === undefined ? "queued" : session.ahead.state === "waiting_input" ? "waiting" : "working";
    case "starting":
    case "running":
    case "interrupting":
      return "working";
    case "failed":
    case "timed_out":
    case "interrupted":
    case "cancelled":
      return "failed";
    case "draft":
      return "draft";
    default:
      return backgroundOf(session).length > 0 ? "working" : "done";
  }
}

/** listGroupOf returns the group of a session in the list. A session that ends stays in its group for the day. */
function listGroupOf(session: Session, now: number): ListGroupId {
  const group = groupOf(session);
  if (group === "working" || group === "queued") return "today";
  const isToday = new Date(session.active_at).toDateString() === new Date(now).toDateString();
  return isToday && (group === "failed" || group === "done") ? "today" : group;
}

/** The non-empty groups. Sessions keep their order. Those of today have the order in which they began, so that none moves when it works or ends. */
export function grouped(sessions: readonly Session[], now: number): Group[] {
  const of = (id: ListGroupId): Session[] => sessions.filter((session) => listGroupOf(session, now) === id);
  return (Object.keys(labels) as ListGroupId[])
    .map((id) => ({ id, label: labels[id], sessions: id === "today" ? of(id).sort((a, b) => b.session - a.session) : of(id) }))
    .filter((group) => group.sessions.length > 0);
}

/** Whether a session's agent works or is about to, so that it can be interrupted. */
export function isAlive({ archived, state }: Session): boolean {
  return !archived && ["queued", "starting", "running", "interrupting", "waiting_input"].includes(state);
}

/** The titles of a session's background tasks. Empty while the agent works on a prompt. */
export function backgroundOf(session: Session): string[] {
  if (isAlive(session) || session.archived) return [];
  return (session.background ?? []).map(({ title, kind }) => short(title || kind));
}

/** A phrase for a number of background tasks. Empty: there are none. */
export function backgroundWords(count: number): string {
  return count === 0 ? "" : `works in the background: ${count} task${count === 1 ? "" : "s"}`;
}

/** Whether a session's agent works, on a prompt or in the background. */
export function isInterruptible(session: Session): boolean {
  return isAlive(session) || backgroundOf(session).length > 0;
}

/** The state of a session, as a phrase. */
export function statusWords(session: Session): string {
  if (groupOf(session) === "waiting") return turnStateWords.waiting_input!;
  return session.ahead === undefined ? (turnStateWords[session.state] ?? session.state) : "running, and a prompt is queued";
}

/** Whether the last turn of a session has failed. */
export function hasFailed({ state }: Session): boolean {
  return state === "failed" || state === "timed_out";
}

/** The branch of a session's worktree, as a sentence. */
export function worktreeWords({ branch, gone }: NonNullable<Session["worktree"]>): string {
  return gone ? `The worktree of ${visible(branch)} is gone: a fork continues in the project's folder` : `In a worktree on the branch ${visible(branch)}`;
}

/** The name of a session: its title, else the beginning of its prompt. */
export function nameOf(session: Session): string {
  const name = session.title || session.session_title || session.summary || session.prompt;
  return short(name) || "untitled";
}

/** The name of a session after its number, or after that of one of its turns: 12 Fix the parser, 12.3 Fix the parser. */
export function labelOf(session: Session, number: number | string = session.session): string {
  return `${number} ${nameOf(session)}`;
}

/** The first line of a text, at most length characters, with invisible characters written out. */
export function short(text: string, length = 80): string {
  const start = text.trimStart();
  // A character has at most two UTF-16 units. One more character shows that the text goes on.
  const line = visible(start.slice(0, 2 * length + 2).split("\n", 1)[0] ?? "").trimEnd();
  const characters = Array.from(line);
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : line;
}

/**
 * A text with its invisible and direction-changing characters written out, such as <U+202E>. Joiners and selectors
 * stay where emoji and languages need them.
 */
export function visible(text: string): string {
  return writtenOut(text, false);
}

/** A text that the user decides on, with all of these characters written out. A space that is not U+0020 is one, too. */
export function exactly(text: string): string {
  return writtenOut(text, true);
}

// The rules are those of internal/visible (Go). testdata/visible.json tests both.
const ignorable = String.raw`\p{Default_Ignorable_Code_Point}\u2800\u{16fe4}\u{1d159}`;
const suspect = new RegExp(String.raw`[^\p{L}\p{N}\p{P}\p{S} \n\t]|[${ignorable}]`, "u");
const hidden = new RegExp(`[${ignorable}]`, "u");
const mark = /[\p{Mn}\p{Me}]/u;
const selector = /\p{Variation_Selector}/u;
const space = /\p{Zs}/u;
/** Spacing marks, and signs that stand over the digits after them. */
const drawn = /[\p{Mc}\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u;
const pictured = /(?![\0-\u00a8])[\p{So}\p{Sk}\p{Sm}\u203c\u2049\u3030\u303d]/u;
const joining = /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u;
/** The most combining marks on one character. */
const mostMarks = 6;

function writtenOut(text: string, exact: boolean): string {
  if (!suspect.test(text)) return text;
  const characters = Array.from(text);
  // before: the previous character of the line. base: the last one that is not a mark, joiner or selector. piled: the marks on it.
  let [out, before, base, piled] = ["", "", "", 0];
  const shown = (at: string, after: string): boolean => {
    if (!suspect.test(at)) return true;
    if (!exact && (at === "\u200d" || at === "\u200c")) {
      return at === "\u200d" && pictured.test(base) && pictured.test(after) && (pictured.test(before) || before === "\ufe0f") || joining.test(before) && joining.test(after);
    }
    if (!exact && (at === "\ufe0e" || at === "\ufe0f")) return before !== "" && before === base && (pictured.test(base) || /[0-9#*]/.test(base));
    if (hidden.test(at)) return false;
    if (space.test(at)) return !exact;
    if (mark.test(at)) return base !== "" && base !== " " && piled < mostMarks;
    return drawn.test(at);
  };
  for (const [i, at] of characters.entries()) {
    const after = characters[i + 1] ?? "";
    if (exact || at !== "\r" || after !== "\n") out += shown(at, after) ? at : `<U+${at.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}>`;
    if (at === "\n") [before, base, piled] = ["", "", 0];
    else {
      if (mark.test(at) && !selector.test(at)) piled++;
      else if (at !== "\u200d" && at !== "\u200c" && !selector.test(at)) [base, piled] = [at !== "\t" && (!suspect.test(at) || /[\p{L}\p{M}\p{S}]/u.test(at)) ? at : "", 0];
      before = at;
    }
  }
  return out;
}

/**
 * A text for VS Code's notifications and prompts, which show [words](command:…) as a link that runs a command. In the
 * returned text no such link is left, and invisible characters are written out.
 */
export function unlinked(text: string): string {
  return visible(text).replaceAll("](", "] (");
}

/** The length at which clipped cuts a text, in characters. */
export const longestShown = 10_000;

/** The beginning of a long text, and the number of characters left out. */
export function clipped(text: string, length = longestShown): string {
  return text.length > length + 100 ? `${text.slice(0, length)}… (${text.length - length} more characters)` : text;
}

/** The age of a time, in short form: now, 5m, 3h, 2d. */
export function age(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 60) return "now";
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** The text beside a session's name: its number, its agent, its state and its age. */
export function describe(session: Session, now: number): string {
  const parts = [String(session.session), session.agent, statusWords(session), age(session.active_at, now)];
  if (session.silent_since && session.silent_note) parts.push(short(session.silent_note, 60));
  else if (hasFailed(session) && session.error) parts.push(short(session.error, 60));
  parts.push(backgroundWords(backgroundOf(session).length));
  return parts.filter((part) => part !== "").join(" · ");
}
