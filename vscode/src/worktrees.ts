// Commands about the git worktree of a session: land its changes, discard it, and open it in a window.
import * as vscode from "vscode";
import { nameOf, visible } from "./hub/groups";
import type { Session } from "./hub/model";
import { landsHere, notHere, onHost } from "./hub/host";
import { confirm, inform, listed } from "./messages";
import type { Panels } from "./panel/panel";
import { dataOf } from "./projects";
import type { ProjectSession } from "./projects";
import type { Params, Result } from "./protocol";

/** The data of an error of session.land and session.discard (docs/protocol.md). */
interface Refusal {
  kind?: string;
  paths?: string[];
  /** Further paths. */
  more?: number;
  /** Of a conflict with work on a host: the name that the user's branch has there. */
  ref?: string;
  losses?: Losses;
}

type Losses = Partial<Record<"commits" | "uncommitted" | "untracked" | "nested" | "ignored", { count: number; first: string[] }>>;

/** Whether a session has a worktree that is there. */
export function hasWorktree({ worktree }: Session): boolean {
  return worktree !== undefined && !worktree.gone;
}

const methods: Array<{ label: string; detail: string; method: NonNullable<Params<"session.land">["method"]> }> = [
  { label: "Merge", detail: "A merge commit, or none if your branch can be moved forward", method: "merge" },
  { label: "Squash", detail: "One commit of all changes", method: "squash" },
  { label: "Rebase", detail: "Each commit again on your branch, without a merge commit", method: "rebase" },
  { label: "Patch", detail: "Changes your files, without a commit", method: "patch" },
];

/** Asks how to land changes. */
export async function pickMethod(title: string): Promise<Params<"session.land">["method"]> {
  return (await vscode.window.showQuickPick(methods, { title, matchOnDetail: true }))?.method;
}

/** Brings the changes in a session's worktree to the branch that was checked out when it began, in a way that the user chooses. */
export async function land(of: ProjectSession, panels: Panels): Promise<void> {
  const { project, session } = of;
  const method = await pickMethod(`How to land the changes of "${nameOf(session)}"?`);
  if (!method) return;
  let done: Result<"session.land">;
  try {
    done = await project.connection.request("session.land", { session: session.session_uuid, method });
  } catch (error) {
    return showRefusal(error, of, panels);
  }
  const here = !project.host || (await landsHere(project.root, session.session_uuid));
  void inform(`${landedWords(done)}${here ? "" : onHost(project.host)}`);
}

/** What was landed, as a sentence. */
export function landedWords({ branch, commits, files, more = 0, nested = [], unfiltered }: Result<"session.land">): string {
  const where = branch === "" ? "landed without a commit: " : `landed on ${branch}: ${counted(commits.length, "commit")}, `;
  const what = files.length + commits.length === 0 ? "there is nothing new to land" : `${where}${counted(files.length + more, "file")}`;
  const all = [what, ...nested.map((path) => `not landed, a nested repository: ${path}`)];
  if (unfiltered) {
    const rest = unfiltered.count - unfiltered.first.length;
    all.push(`committed without the filter that .gitattributes names (look before you push): ${unfiltered.first.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`);
  }
  return all.join("; ");
}

/** Says which files kept changes from being landed, and what to do. Throws any other error. */
export async function showRefusal(error: unknown, of: ProjectSession, panels: Pick<Panels, "open">): Promise<void> {
  const { kind, paths = [], more, ref }: Refusal = dataOf(error) ?? {};
  if (kind === "overlap") {
    await confirm("nothing was landed: these files of yours are not committed and would be overwritten", `${listed(paths, more)}\n\nCommit or stash them first.`);
  } else if (kind === "conflict") {
    const merge = "Let the Agent Merge";
    if ((await confirm("nothing was landed: these files conflict with your branch", listed(paths, more), merge)) !== merge) return;
    const panel = await panels.open(of);
    panel.insert(`Merge ${ref === undefined ? "my branch" : visible(ref)} into yours and resolve the conflicts`);
    panel.focus();
  } else throw error;
}

/** Deletes the worktree of a session and its branch. If work is not landed, the user is asked first, and git keeps it. */
export async function discardWorktree({ project, session }: ProjectSession): Promise<void> {
  const discard = (force: boolean): Promise<Result<"session.discard">> => project.connection.request("session.discard", { session: session.session_uuid, force });
  let done: Result<"session.discard">;
  try {
    done = await discard(false);
  } catch (error) {
    const { losses }: Refusal = dataOf(error) ?? {};
    if (!losses) throw error;
    const anyway = "Discard";
    if ((await confirm("discard the worktree with this work?", lossesDetail(losses), anyway)) !== anyway) return;
    done = await discard(true);
  }
  const { ref, branch_kept, cleanup_error: cleanup } = done;
  const text = `the worktree${onHost(project.host)} is discarded${branch_kept ? "; its branch stays, because another working tree has it checked out" : ""}${cleanup ? `; its cleanup failed: ${cleanup}` : ""}`;
  if (!ref) return void inform(text);
  const [back, copy] = [`git branch NAME ${ref}`, "Copy Command"];
  if ((await inform(`${text}; its work is kept; bring it back with: ${back}`, copy)) === copy) await vscode.env.clipboard.writeText(back);
}

const lossWords: Array<[kind: keyof Losses, one: string, several: string]> = [
  ["commits", "commit that is not landed", "commits that are not landed"],
  ["uncommitted", "changed file that is not committed", "changed files that are not committed"],
  ["untracked", "new file that is not committed", "new files that are not committed"],
  ["nested", "nested repository, which is not kept", "nested repositories, which are not kept"],
  ["ignored", "ignored file or directory, which is not kept", "ignored files or directories, which are not kept"],
];

/** The most commits or files of a kind in a dialog. */
const mostOfKind = 5;

/** lossesDetail lists the work that would be discarded, and says what git keeps of it. */
function lossesDetail(losses: Losses): string {
  const lists = lossWords.flatMap(([kind, one, several]) => {
    const { count, first } = losses[kind] ?? { count: 0, first: [] };
    return count === 0 ? [] : [`${count} ${count === 1 ? one : several}:\n${listed(first, count - first.length, mostOfKind)}`];
  });
  const isKept = losses.commits ?? losses.uncommitted ?? losses.untracked;
  return [...lists, ...(isKept ? ["A git ref keeps commits and uncommitted files."] : [])].join("\n\n");
}

/** Opens the worktree of a session in a new window. */
export async function openWorktree({ project: { host }, session: { worktree } }: ProjectSession): Promise<void> {
  if (!worktree || worktree.gone) throw new Error(worktree ? `the worktree of ${visible(worktree.branch)} is gone` : "the session has no worktree");
  if (host) throw notHere(visible(worktree.dir), host);
  await vscode.commands.executeCommand("vscode.openFolder", vscode.Uri.file(worktree.dir), { forceNewWindow: true });
}

function counted(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}
