// The groups of sessions in a list, their names and states, and text that is safe to show.
import type { Session } from "./model";

/** A group of sessions, in the order in which the list has them. */
export type GroupId = "waiting" | "working" | "queued" | "failed" | "done" | "draft" | "archived";

export interface Group {
  id: GroupId;
  label: string;
  sessions: Session[];
}

const labels: Record<GroupId, string> = {
  waiting: "Waiting for you",
  working: "Working",
  queued: "Queued",
  failed: "Failed or interrupted",
  done: "Done",
  draft: "Drafts",
  archived: "Archived",
};

/** The group of a session in the list. */
export function groupOf(session: Session): GroupId {
  if (session.archived) return "archived";
  if (session.waits) return "waiting";
  switch (session.status) {
    case "waiting_input":
      return "waiting";
    case "starting":
      if (session.state !== "queued") return "working";
      return session.ahead === undefined ? "queued" : session.ahead.status === "waiting_input" ? "waiting" : "working";
    case "running":
    case "interrupting":
      return "working";
    case "failed":
    case "interrupted":
      return "failed";
    case "draft":
      return "draft";
    default:
      return backgroundOf(session).length > 0 ? "working" : "done";
  }
}

/** The non-empty groups. Sessions keep their order. */
export function grouped(sessions: readonly Session[]): Group[] {
  return (Object.keys(labels) as GroupId[])
    .map((id) => ({ id, label: labels[id], sessions: sessions.filter((session) => groupOf(session) === id) }))
    .filter((group) => group.sessions.length > 0);
}

/** Whether a session's agent works or is about to, so that it can be interrupted. */
export function isAlive({ archived, status }: Session): boolean {
  return !archived && ["starting", "running", "interrupting", "waiting_input"].includes(status);
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

/** The state of a conversation, as a phrase. */
export function statusWords(session: Session): string {
  if (groupOf(session) === "waiting") return "waits for you";
  return session.ahead === undefined ? session.status.replace("_", " ") : "works, and a prompt is queued";
}

/** The branch of a conversation's worktree, as a sentence. */
export function worktreeWords({ branch, gone }: NonNullable<Session["worktree"]>): string {
  return gone ? `The worktree of ${visible(branch)} is gone: a fork continues in the project's folder` : `In a worktree on the branch ${visible(branch)}`;
}

/** The name of a session: its title, else the beginning of its prompt. */
export function nameOf(session: Session): string {
  const name = session.title || session.conversation_title || session.summary || session.query;
  return short(name) || session.task_id;
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
 * A text with invisible and direction-changing characters written out, such as <U+202E>. Text of an
 * agent or a file must not look like something else.
 */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, (character) =>
    `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`);
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

/** The text beside a session's name: its agent, its age and its state. */
export function describe(session: Session, now: number): string {
  const parts = [session.agent, age(session.last_activity_at, now)];
  if (session.status === "interrupting") parts.push("is being interrupted");
  else if (session.silent_since && session.silent_note) parts.push(short(session.silent_note, 60));
  else if (session.status === "failed" && session.error_message) parts.push(short(session.error_message, 60));
  parts.push(backgroundWords(backgroundOf(session).length));
  return parts.filter((part) => part !== "").join(" · ");
}
