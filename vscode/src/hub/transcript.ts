// A session as Markdown. Each text is in a quotation or a code block of its own, so it cannot look like another
// author's text or a part of the document.
import type { SessionItem } from "../protocol";
import { visible } from "./groups";

/** The longest input or output of a tool in the document, in characters. */
const longest = 4_000;

/** The whole session. */
export function transcript(title: string, items: readonly SessionItem[]): string {
  // A denied tool call says its denial itself.
  const denied = new Set(items.flatMap(({ type, approval, approval_status }) => (type === "tool_call" && approval && approval_status === "denied" ? [approval] : [])));
  const parts = [`# ${oneLine(title)}`, ...items.filter(({ type, key }) => type !== "answer" || !denied.has(key)).map(partOf)];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function partOf(item: SessionItem): string {
  if (item.type === "tool_call") {
    const head = `**${oneLine(item.title || item.tool_name || "Tool")}** — ${statusOf(item)}`;
    return [head, inputOf(item.tool_input), fenced(item.result ?? "")].filter((part) => part !== "").join("\n\n");
  }
  if (item.type === "change") return `Changed ${oneLine(item.change?.path ?? "")}`;
  const text = visible(item.text ?? "").trim();
  if (text === "") return "";
  switch (item.type) {
    case "message":
      return `## ${item.role === "user" ? "You" : "Agent"}\n\n${quoted(text)}`;
    case "thought":
      return `*Thinking*\n\n${quoted(text)}`;
    case "plan":
      return `**Plan**\n\n${quoted(text)}`;
    default:
      return quoted(text);
  }
}

function statusOf(item: SessionItem): string {
  if (item.approval_status === "denied") return item.refusal ? `denied: ${oneLine(item.refusal)}` : "denied";
  if (item.approval_status === "pending") return "waits for your answer";
  return item.status ?? (item.open ? "running" : "completed");
}

/** The input of a tool: its command if it has one, else all of it. */
function inputOf(input: unknown): string {
  if (input === undefined || input === null) return "";
  if (typeof input === "string") return fenced(input);
  const { command } = input as { command?: unknown };
  if (typeof command === "string") return fenced(command, "sh");
  return Object.keys(input).length === 0 ? "" : fenced(JSON.stringify(input, null, 2), "json");
}

function quoted(text: string): string {
  return text.split("\n").map((line) => (line === "" ? ">" : `> ${line}`)).join("\n");
}

function oneLine(text: string): string {
  return visible(text).replace(/\s+/g, " ").replace(/([*_`[\]<])/g, "\\$1").trim();
}

/** A fence that does not occur in a text. */
export function fenceFor(text: string): string {
  let longest = 2;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return "`".repeat(longest + 1);
}

/** A block that its text cannot end. */
export function fenced(text: string, language = ""): string {
  if (text.trim() === "") return "";
  const shown = visible(text.length > longest ? `${text.slice(0, longest)}\n… ${text.length - longest} more characters` : text).replace(/\n+$/, "");
  const fence = fenceFor(shown);
  return `${fence}${language}\n${shown}\n${fence}`;
}
