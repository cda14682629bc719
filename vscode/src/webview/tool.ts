// What is told of a tool call, and of a plan.
import type { FileDiff, PlanStep, ToolCall } from "./entry";
import { objectOf, objectsOf, stringOf, stringsOf } from "./json";
import type { Data } from "./json";

export function newTool(id: string): ToolCall {
  return {
    id, name: "", title: "", kind: "other", status: "pending", input: undefined, result: "", paths: [], diffs: [],
    terminal: undefined, approval: undefined, refusedBy: undefined, refusal: undefined,
  };
}

/**
 * Takes into a tool call what an event conversation_updated, or an item of getConversation, has of it.
 * What they do not have stays as it was. Returns the attachments, where they are told.
 */
export function tellTool(call: ToolCall, data: Data): Data[] | undefined {
  call.name = stringOf(data["tool_name"]) ?? call.name;
  call.title = stringOf(data["tool_title"]) ?? stringOf(data["title"]) ?? call.title;
  call.kind = stringOf(data["tool_kind"]) ?? call.kind;
  call.status = stringOf(data["tool_status"]) ?? stringOf(data["status"]) ?? call.status;
  const result = stringOf(data["tool_result_content"]);
  // An event's text may be cut where all of it is known.
  if (result !== undefined && !(data["truncated"] === true && call.result.startsWith(result))) call.result = result;
  call.approval = stringOf(data["approval_id"]) ?? call.approval;
  call.refusedBy = stringOf(data["refused_by"]) ?? call.refusedBy;
  call.refusal = stringOf(data["refusal"]) ?? call.refusal;
  call.input = data["tool_input"] ?? parsed(stringOf(data["tool_input_json"])) ?? call.input;
  const more = data["tool_data"] ?? (stringOf(data["tool_result_for_id"]) === undefined ? data["data"] : undefined);
  if (more === undefined || more === null) return undefined;
  const details = objectOf(more);
  call.paths = stringsOf(details["paths"]);
  call.diffs = objectsOf(details["diffs"]).map(diffOf);
  call.terminal = stringOf(details["terminal"]);
  return objectsOf(details["attachments"]);
}

export function planOf(data: Data): PlanStep[] {
  return objectsOf(data["entries"]).map((step) => ({ content: stringOf(step["content"]) ?? "", status: stringOf(step["status"]) ?? "pending" }));
}

function diffOf(diff: Data): FileDiff {
  const before = diff["old_text"];
  return { path: stringOf(diff["path"]) ?? "", before: typeof before === "string" ? before : undefined, after: stringOf(diff["new_text"]) ?? "" };
}

function parsed(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return json;
  }
}
