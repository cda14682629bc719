// Commands about whole conversations: rename, delete and search them, and revoke the rules that answers have made.
import * as vscode from "vscode";
import { age, nameOf, short } from "./hub/groups";
import { confirm, inform } from "./messages";
import type { Project, ProjectSession } from "./projects";
import type { Result } from "./protocol";

type Hit = Result<"searchConversations">["hits"][number];
type Rule = Result<"getRules">["rules"][number];

/** The most hits of a search in each project. */
const mostHits = 100;

/** Asks for a title, and gives it to a conversation. */
export async function rename({ project, session }: ProjectSession): Promise<void> {
  const title = await vscode.window.showInputBox({
    title: `Rename ${nameOf(session)}`, value: session.title || session.conversation_title, ignoreFocusOut: true,
    prompt: "The title of the conversation. Empty: its first prompt is its title.",
  });
  if (title !== undefined) await project.connection.request("updateSessionTitle", { session_id: session.id, title: title.trim() });
}

/** Deletes a conversation, after the user has confirmed it. */
export async function deleteConversation({ project, session }: ProjectSession): Promise<void> {
  const remove = "Delete";
  const detail = "Its messages, questions and recorded changes are deleted. Your files stay as they are. This cannot be undone.";
  const pressed = await confirm(`delete the conversation "${nameOf(session)}"?`, detail, remove);
  if (pressed === remove) await project.connection.request("session.delete", { session_id: session.id });
}

/** Searches the conversations of all projects for words, and opens the one that the user chooses. */
export async function search(projects: readonly Project[], open: (of: ProjectSession) => unknown): Promise<void> {
  const query = await vscode.window.showInputBox({ title: "Search conversations", placeHolder: "Words to find. The last one may be the beginning of a word.", ignoreFocusOut: true });
  if (query === undefined || query.trim() === "") return;
  const found = await Promise.all(projects.map(async (project) => {
    const { hits } = await project.connection.request("searchConversations", { query, limit: mostHits });
    return hits.map((hit) => ({ project, hit }));
  }));
  const items = best(found.flat()).map(({ project, hit }) => ({
    label: short(hit.title) || hit.session_id,
    description: [hit.agent, age(hit.created_at, Date.now()), ...(projects.length > 1 ? [project.name] : [])].join(" · "),
    detail: short(hit.snippet.replace(/\s+/g, " "), 160),
    project, hit,
  }));
  if (items.length === 0) {
    void inform(`no conversation contains "${short(query)}"`);
    return;
  }
  const chosen = await vscode.window.showQuickPick(items, { title: "Which conversation?", matchOnDetail: true });
  if (!chosen) return;
  const { session } = await chosen.project.connection.request("getSessionState", { session_id: chosen.hit.thread_id });
  await open({ project: chosen.project, session });
}

/** best returns the best hit of each conversation, the best first. */
function best<H extends { hit: Hit }>(hits: readonly H[]): H[] {
  const threads = new Map<string, H>();
  for (const of of [...hits].sort((a, b) => a.hit.rank - b.hit.rank)) if (!threads.has(of.hit.thread_id)) threads.set(of.hit.thread_id, of);
  return [...threads.values()];
}

/** Lists the rules that answers have made, those of a conversation first, and deletes the chosen ones. */
export async function revokeRules({ connection }: Project, thread?: string): Promise<void> {
  const { rules } = await connection.request("getRules", {});
  if (rules.length === 0) {
    void inform("this project has no rules from answers");
    return;
  }
  const own = (rule: Rule): number => (thread !== undefined && rule.thread_id === thread ? 0 : 1);
  const items = [...rules].sort((a, b) => own(a) - own(b)).map((rule) => ({ label: ruleWords(rule), description: scopeWords(rule), id: rule.rule_id }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Revoke which rules? The agent asks again then.", canPickMany: true, matchOnDescription: true });
  for (const { id } of chosen ?? []) await connection.request("deleteRule", { rule_id: id });
}

/** What a rule allows or denies, in one line. */
export function ruleWords({ effect, tool_name, command, pattern, path, same_input }: Rule): string {
  const of = command !== undefined ? `: ${command}${pattern ? " (a pattern)" : ""}` : path !== undefined ? ` of ${path}` : same_input ? " with one exact input" : " with any input";
  return short(`${effect === "deny" ? "Deny" : "Allow"} ${tool_name}${of}`, 120);
}

function scopeWords({ scope, title }: Rule): string {
  return scope === "project" ? "in the project" : `in the conversation ${short(title ?? "", 60)}`.trimEnd();
}
