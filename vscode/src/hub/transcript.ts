// A conversation as Markdown, for a person to read. Each text stands in a quotation or in a code
// block of its own: no text passes for another author's, or for a part of the document.
import type { Result } from "../protocol";
import { visible } from "./groups";

/** What was said or done, as getConversation has it. */
export type Item = Result<"getConversation">["events"][number];

/** How much of a tool's input or output is shown, in characters. */
const longest = 4_000;

/** The whole conversation. */
export function transcript(title: string, items: readonly Item[]): string {
  const parts = [`# ${oneLine(title)}`];
  for (const item of items) {
    const part = partOf(item);
    if (part !== "") parts.push(part);
  }
  return `${parts.join("\n\n")}\n`;
}

function partOf(item: Item): string {
  const content = visible(item.content ?? "").trim();
  switch (item.event_type) {
    case "message":
      if (content === "") return "";
      return `## ${item.role === "user" ? "You" : "Agent"}\n\n${quoted(content)}`;
    case "thinking":
      return content === "" ? "" : `*Thinking*\n\n${quoted(content)}`;
    case "tool_call":
      return [`**${oneLine(item.title || item.tool_name || "Tool")}** — ${statusOf(item)}`, inputOf(item)].filter((part) => part !== "").join("\n\n");
    case "tool_result":
      return fenced(item.tool_result_content ?? "");
    case "plan":
      return content === "" ? "" : `**Plan**\n\n${quoted(content)}`;
    case "diff":
      return `Changed ${oneLine(content)}`;
    case "system":
      return content === "" ? "" : quoted(content);
    default:
      return content === "" ? "" : quoted(content);
  }
}

function statusOf(item: Item): string {
  if (item.approval_status === "denied") return "denied";
  if (item.approval_status === "pending") return "waits for your answer";
  return item.status ?? (item.is_completed ? "completed" : "running");
}

/** What a tool got: its command, if it has one, else all of it. */
function inputOf(item: Item): string {
  if (!item.tool_input_json) return "";
  try {
    const input = JSON.parse(item.tool_input_json) as Record<string, unknown>;
    if (typeof input["command"] === "string") return fenced(input["command"], "sh");
    return Object.keys(input).length === 0 ? "" : fenced(JSON.stringify(input, null, 2), "json");
  } catch {
    return fenced(item.tool_input_json);
  }
}

function quoted(text: string): string {
  return text.split("\n").map((line) => (line === "" ? ">" : `> ${line}`)).join("\n");
}

function oneLine(text: string): string {
  return visible(text).replace(/\s+/g, " ").replace(/([*_`[\]<])/g, "\\$1").trim();
}

/** A fence that a text has not. */
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
