// A conversation as Markdown. Each text is in a quotation or a code block of its own, so it cannot look like another
// author's text or a part of the document.
import type { ConversationEvent } from "../protocol";
import { limitLevels } from "./depth";
import { visible } from "./groups";

/** An item of getConversation. */
export type Item = ConversationEvent;

/** The longest input or output of a tool in the document, in characters. */
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

/** The input of a tool: its command if it has one, else all of it. */
function inputOf(item: Item): string {
  if (!item.tool_input_json) return "";
  try {
    const input = limitLevels(JSON.parse(item.tool_input_json) as Record<string, unknown>);
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
