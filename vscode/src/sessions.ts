// Commands about whole sessions: rename, delete, rewind and search them, and revoke the rules that answers have made.
import { relative } from "node:path";
import * as vscode from "vscode";
import { age, nameOf, short } from "./hub/groups";
import type { Session } from "./hub/model";
import { confirm, inform, listed, warn } from "./messages";
import type { Panels } from "./panel/panel";
import type { Choices } from "./panel/protocol";
import { kindOf } from "./projects";
import type { Project, ProjectSession } from "./projects";
import type { Result, Turn } from "./protocol";
import { discardWorktree, hasWorktree, land } from "./worktrees";

type Hit = Result<"session.search">["hits"][number];
type Rule = Result<"rule.list">["rules"][number];

/** The most hits of a search in each project. */
const mostHits = 100;

/** Asks for a title, and gives it to a session. */
export async function rename({ project, session }: ProjectSession): Promise<void> {
  const title = await vscode.window.showInputBox({
    title: `Rename ${nameOf(session)}`, value: session.title || session.session_title, ignoreFocusOut: true,
    prompt: "The title of the session. Empty: its first prompt is its title.",
  });
  if (title !== undefined) await project.connection.request("session.rename", { session: session.session_uuid, title: title.trim() });
}

/** Deletes a session with its worktree, after the user has confirmed it. If work in the worktree is not landed, it offers to land or discard that. */
export async function deleteSession(of: ProjectSession, panels: Panels): Promise<void> {
  const { project, session } = of;
  const remove = "Delete";
  const detail = `Its messages, questions and recorded changes are deleted${hasWorktree(session) ? ", and its worktree" : ""}. Your files stay as they are. This cannot be undone.`;
  const pressed = await confirm(`delete the session "${nameOf(session)}"?`, detail, remove);
  if (pressed !== remove) return;
  try {
    const { worktree } = await project.connection.request("session.delete", { session: session.session_uuid });
    if (worktree) void inform(`the session is deleted; its worktree stays: ${worktree}`);
  } catch (error) {
    if (kindOf(error) !== "would_lose_work") throw error;
    const [bring, discard] = ["Land…", "Discard Worktree…"];
    const next = await warn(`"${nameOf(session)}" was not deleted: its worktree has work that is not landed. Land or discard it first.`, bring, discard);
    if (next === bring) await land(of, panels);
    else if (next === discard) await discardWorktree(of);
  }
}

/** The choices of a fork, as its session has them. Permissions do not carry over. Without its worktree, a session continues in the project. */
export function forkChoices({ project, session }: ProjectSession): Choices {
  const { agent, working_dir, mode, requested_model: model, requested_options: options, worktree } = session;
  const folder = worktree?.gone && !project.host ? project.folder.uri.fsPath : working_dir;
  return { folder, agent, mode: mode === "plan" ? "plan" : "", ...(model && { model }), ...(options && { options }) };
}

type Rewound = Result<"session.rewind">;

/** pickTurn returns a turn by its uuid, or asks for one of a session. undefined: the user has chosen none. */
async function pickTurn({ project: { connection }, session }: ProjectSession, title: string, uuid?: string): Promise<Turn | undefined> {
  const get = async (of: string): Promise<Turn> => (await connection.request("turn.get", { turn: of })).turn;
  if (uuid !== undefined) return get(uuid);
  const { turns } = await connection.request("turn.list", { session: session.session_uuid, limit: 1000 });
  const items = turns.map((turn) => ({ label: short(turn.prompt.replace(/\s+/g, " "), 80), description: `${turn.turn} · ${age(turn.created_at, Date.now())}`, turn }));
  const chosen = await vscode.window.showQuickPick(items, { title });
  return chosen && get(chosen.turn.turn_uuid); // only this has the turn before it
}

/** Opens a panel with a prompt of a session. When the user sends it, a new session continues from before that prompt. No file changes. */
export async function editPrompt(of: ProjectSession, panels: Panels, uuid?: string): Promise<void> {
  const name = nameOf(of.session);
  const turn = await pickTurn(of, `Edit and send again which prompt of ${name}?`, uuid);
  if (!turn) return;
  const { parent, prompt } = turn;
  const chosen = forkChoices(of);
  const about = `Your prompt continues "${name}" from before ${turn.turn}, in a new session. The old session stays, too, and the files stay as they are.`;
  await panels.begin(of.project, { title: name, about, chosen, prompt, ...(parent && { fork: { turn: parent, chosen } }) });
}

/**
 * Goes back to before a turn of a session, which the user chooses if it is not given: the files become as they were, and a
 * panel continues the session from there. Asks first, with the files that change and those that stay.
 */
export async function rewind({ project, session }: ProjectSession, panels: Panels, uuid?: string): Promise<void> {
  const { connection } = project;
  const turn = await pickTurn({ project, session }, `Rewind to before which prompt of ${nameOf(session)}?`, uuid);
  if (!turn) return;
  const preview = await connection.request("session.rewind", { turn: turn.turn_uuid, preview: true });
  const restored = preview.files.filter(({ left }) => !left).length;
  const [restore, all, keep] = [`Restore ${files(restored)}`, "Restore All Files", "Keep the Files"];
  const buttons = [...(restored > 0 ? [restore] : []), ...(restored < preview.files.length ? [all] : []), keep];
  const pressed = await confirm(`go back to before "${short(turn.prompt, 60)}"?`, rewindDetail(preview, session.working_dir), ...buttons);
  if (pressed === undefined) return;
  if (pressed !== keep) {
    const done = await connection.request("session.rewind", { turn: turn.turn_uuid, all: pressed === all });
    void offerUndo(project, turn.turn_uuid, done);
  }
  const name = nameOf(session);
  const { fork_turn: from, prompt } = preview;
  const about = `Your first prompt continues "${name}" from before ${turn.turn}. The old session stays, too.`;
  const chosen = forkChoices({ project, session });
  await panels.begin(project, { title: name, about, chosen, prompt, ...(from && { fork: { turn: from, chosen } }) });
}

/** Says what a rewind has restored, and offers to undo it. */
async function offerUndo({ connection }: Project, id: string, done: Rewound): Promise<void> {
  const busy = done.files.filter(({ left }) => left === "busy").length;
  const text = `${files(done.files.filter(({ left }) => !left).length)} restored${busy > 0 ? `; ${files(busy)} could not be` : ""}`;
  if ((await inform(text, "Undo")) !== "Undo") return;
  const undone = await connection.request("session.rewind", { turn: id, undo: true });
  const left = undone.files.filter((file) => file.left).length;
  void inform(`${files(undone.files.length - left)} restored${left > 0 ? `; ${files(left)} edited meanwhile, which ${left === 1 ? "stays" : "stay"}` : ""}`);
}

function files(n: number): string {
  return `${n} ${n === 1 ? "file" : "files"}`;
}

/** rewindDetail lists the files that a rewind restores and leaves. */
function rewindDetail({ checkpoint, files, more, not_recorded: missing = [], more_not_recorded: moreMissing = 0 }: Rewound, folder: string): string {
  if (!checkpoint) return "The files before it are not recorded, or no longer, so they stay as they are. Checkpoints need git, and can be disabled in your configuration.";
  const lines = files.map(({ path, change, left, added, removed }) => {
    const what = left === "edited" ? "stays, edited since" : left ? "stays, others changed it" : change === "deleted" ? "is deleted" : "is restored";
    return `${relative(folder, path)}: ${what}${left ? "" : ` (+${added} -${removed})`}`;
  });
  const notRecorded = missing.map(({ path, reason }) => reason === "untracked"
    ? "All files that git does not track stay: there are too many to record."
    : `${relative(folder, path)}: stays, not recorded`);
  return [listed(lines, more) || "No file has changed since.", listed(notRecorded, moreMissing)].filter(Boolean).join("\n");
}

/** Searches the sessions of all projects for words, and opens the one that the user chooses at its match. */
export async function search(projects: readonly Project[], open: (of: ProjectSession, hit: Hit) => unknown): Promise<void> {
  const query = await vscode.window.showInputBox({ title: "Search sessions", placeHolder: "Words to find. The last one may be the beginning of a word.", ignoreFocusOut: true });
  if (query === undefined || query.trim() === "") return;
  const found = await Promise.all(projects.map(async (project) => {
    const { hits } = await project.connection.request("session.search", { query, limit: mostHits });
    return hits.map((hit) => ({ project, hit }));
  }));
  const items = await Promise.all(best(found.flat()).map(async ({ project, hit }) => ({
    label: short(hit.title) || nameOf(await sessionWith(project, hit.session_uuid)),
    description: [hit.turn, hit.agent, age(hit.created_at, Date.now()), ...(projects.length > 1 ? [project.name] : [])].join(" · "),
    detail: short(hit.snippet.replace(/\s+/g, " "), 160),
    project, hit,
  })));
  if (items.length === 0) {
    void inform(`no session contains "${short(query)}"`);
    return;
  }
  const chosen = await vscode.window.showQuickPick(items, { title: "Which session?", matchOnDetail: true });
  if (!chosen) return;
  await open({ project: chosen.project, session: await sessionWith(chosen.project, chosen.hit.session_uuid) }, chosen.hit);
}

/** Returns a session by its last turn. */
export async function sessionWith({ connection }: Project, uuid: string): Promise<Session> {
  return (await connection.request("turn.get", { turn: uuid })).turn;
}

/** best returns the best hit of each session, the best first. */
function best<H extends { hit: Hit }>(hits: readonly H[]): H[] {
  const sessions = new Map<string, H>();
  for (const of of [...hits].sort((a, b) => a.hit.rank - b.hit.rank)) if (!sessions.has(of.hit.session_uuid)) sessions.set(of.hit.session_uuid, of);
  return [...sessions.values()];
}

/** Lists the rules that answers have made, those of a session first, and deletes the chosen ones. */
export async function revokeRules({ connection }: Project, session?: string): Promise<void> {
  const { rules } = await connection.request("rule.list", {});
  if (rules.length === 0) {
    void inform("this project has no rules from answers");
    return;
  }
  const own = (rule: Rule): number => (session !== undefined && rule.session_uuid === session ? 0 : 1);
  const items = [...rules].sort((a, b) => own(a) - own(b)).map((rule) => ({ label: ruleWords(rule), description: scopeWords(rule), id: rule.rule_id }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Revoke which rules? The agent asks again then.", canPickMany: true, matchOnDescription: true });
  for (const { id } of chosen ?? []) await connection.request("rule.delete", { rule_id: id });
}

/** What a rule allows or denies, in one line. */
export function ruleWords({ effect, tool_name, command, pattern, path, same_input }: Rule): string {
  const of = command !== undefined ? `: ${command}${pattern ? " (a pattern)" : ""}` : path !== undefined ? ` of ${path}` : same_input ? " with one exact input" : " with any input";
  return short(`${effect === "deny" ? "Deny" : "Allow"} ${tool_name}${of}`, 120);
}

function scopeWords({ session, title }: Rule): string {
  return session === undefined ? "in the project" : `in session ${session} ${short(title ?? "", 60)}`.trimEnd();
}
