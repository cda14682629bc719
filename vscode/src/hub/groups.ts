// How sessions are grouped and called in a list.
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
      return "done";
  }
}

/** The groups that have sessions; these stay in their order. */
export function grouped(sessions: readonly Session[]): Group[] {
  return (Object.keys(labels) as GroupId[])
    .map((id) => ({ id, label: labels[id], sessions: sessions.filter((session) => groupOf(session) === id) }))
    .filter((group) => group.sessions.length > 0);
}

/** Whether a session's agent works, or is about to: it can be interrupted. */
export function isAlive({ archived, status }: Session): boolean {
  return !archived && ["starting", "running", "interrupting", "waiting_input"].includes(status);
}

/** The titles of what a session's agent does in the background, while it works on no prompt. */
export function backgroundOf(session: Session): string[] {
  if (isAlive(session) || session.archived) return [];
  return (session.background ?? []).map(({ title, kind }) => short(title || kind));
}

/** What is said of work in the background; empty: there is none. */
export function backgroundWords(count: number): string {
  return count === 0 ? "" : `works in the background: ${count} task${count === 1 ? "" : "s"}`;
}

/** Whether a session's agent does something that can be ended. */
export function isInterruptible(session: Session): boolean {
  return isAlive(session) || backgroundOf(session).length > 0;
}

/** How a conversation is, in words. */
export function statusWords(session: Session): string {
  if (groupOf(session) === "waiting") return "waits for you";
  return session.ahead === undefined ? session.status.replace("_", " ") : "works, and a prompt is queued";
}

/** What a session is called: its title, else the beginning of its prompt. */
export function nameOf(session: Session): string {
  const name = session.title || session.conversation_title || session.summary || session.query;
  return short(name) || session.task_id;
}

/** The first line of a text, at most length characters of it, and nothing in it that is not seen. */
export function short(text: string, length = 80): string {
  const start = text.trimStart();
  // A character has two units at most, and one more tells that there is more.
  const line = visible(start.slice(0, 2 * length + 2).split("\n", 1)[0] ?? "").trimEnd();
  const characters = Array.from(line);
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : line;
}

/**
 * A text with what steers the direction of others, or is not seen at all, written out: what an
 * agent or a file has written must not look like something else.
 */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, (character) =>
    `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`);
}

/** How much of a text is shown where nothing else cuts it, in characters. */
export const longestShown = 10_000;

/** The beginning of a long text, and how much is left out. */
export function clipped(text: string, length = longestShown): string {
  return text.length > length + 100 ? `${text.slice(0, length)}… (${text.length - length} more characters)` : text;
}

/** How long ago a time was, in few characters: now, 5m, 3h, 2d. */
export function age(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 60) return "now";
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** What stands beside a session's name: its agent, how it is, since when. */
export function describe(session: Session, now: number): string {
  const parts = [session.agent, age(session.last_activity_at, now)];
  if (session.status === "interrupting") parts.push("is being interrupted");
  else if (session.silent_since && session.silent_note) parts.push(short(session.silent_note, 60));
  else if (session.status === "failed" && session.error_message) parts.push(short(session.error_message, 60));
  parts.push(backgroundWords(backgroundOf(session).length));
  return parts.filter((part) => part !== "").join(" · ");
}
