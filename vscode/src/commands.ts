// The commands of the extension, for the palette, the lists and the keyboard.
import * as vscode from "vscode";
import { setUpAgent } from "./agents";
import type { Comparisons } from "./attempts";
import type { BuildCommand, Problems } from "./builds";
import type { Changes } from "./changes";
import { deleteSession, editPrompt, forkChoices, rename, revokeRules, rewind, search } from "./sessions";
import type { Documents } from "./documents";
import { listGates } from "./hub/builds";
import type { Decision } from "./hub/changes";
import { describe, isAlive, isInterruptible, labelOf, nameOf } from "./hub/groups";
import { choicesOf, isComplete, titleOf } from "./hub/questions";
import { listHosts } from "./hub/host";
import { inform } from "./messages";
import { selected } from "./panel/files";
import type { Panel, Panels } from "./panel/panel";
import type { Previews } from "./preview/panel";
import { clickedResource, pickProject, projectAt, startFolder, showUntrusted } from "./projects";
import type { Project, ProjectQuestion, Projects, ProjectSession } from "./projects";
import type { KeyChoice, Keys } from "./secrets";
import type { Terminals } from "./terminals";
import { openProject } from "./views";
import type { OtherProjectsTree } from "./views";
import { discardWorktree, hasWorktree, land, openWorktree } from "./worktrees";

/** The parts of the extension that commands use. */
export interface CommandContext {
  projects: Projects;
  documents: Documents;
  panels: Panels;
  changes: Changes;
  builds: BuildCommand;
  problems: Problems;
  terminals: Terminals;
  keys: Keys;
  previews: Previews;
  comparisons: Comparisons;
  others: OtherProjectsTree;
  log: vscode.LogOutputChannel;
  attempt: (action: () => Promise<void>) => void;
}

/** Registers all commands, except those of the diff editor (changes.ts) and of rows (views.ts). */
export function registerCommands(context: CommandContext): vscode.Disposable[] {
  const { projects, documents, panels, changes, builds, problems, terminals, keys, previews, comparisons, others, log } = context;
  const command = <A extends unknown[]>(name: string, action: (...args: A) => Promise<void> | void): vscode.Disposable =>
    vscode.commands.registerCommand(`duet.${name}`, (...args: A) => {
      projects.start();
      context.attempt(async () => action(...args));
    });
  // A panel names a turn for a command that is about one. VS Code passes the selected rows after the row that was pressed.
  const ofSession = (name: string, which: (of: ProjectSession) => boolean, action: (of: ProjectSession, turn?: string) => Promise<void> | void, none?: string): vscode.Disposable =>
    command(name, async (of?: unknown, turn?: unknown) => {
      const chosen = given(of) ?? (await ofPanel(panels, which)) ?? (await pickSession(projects, which, none));
      if (chosen) await action(chosen, typeof turn === "string" ? turn : undefined);
    });
  // VS Code passes the URI of the editor in whose title bar a button was pressed.
  const decideAll = (name: string, decision: Decision): vscode.Disposable =>
    command(name, async (of?: unknown) => {
      const shown = given(of) ?? changes.placeShown(of instanceof vscode.Uri ? of : undefined) ?? (await ofPanel(panels, () => true)) ?? (await pickSession(projects, () => true));
      if (shown) await changes.decideAll(decision, shown);
    });
  const inProject = (name: string, action: (project: Project) => Promise<void> | void): vscode.Disposable =>
    command(name, async () => {
      const project = await pickProject(projects);
      if (project) await action(project);
    });
  return [
    command("newSession", async (argument?: unknown) => {
      const clicked = clickedResource(argument);
      const project = projectAt(projects, clicked);
      if (project) await newSession(project, panels, clicked);
    }),
    command("newSessionWithGates", async (argument?: unknown) => {
      const clicked = clickedResource(argument);
      const project = await pickProject(projects, clicked);
      if (project) await newSessionWithGates(project, panels, clicked);
    }),
    ofSession("continue", () => true, async (of) => (await panels.open(of)).focus()),
    ofSession("fork", () => true, (of, turn) => fork(of, panels, turn)),
    ofSession("rewind", ({ session }) => !isAlive(session), (of, turn) => rewind(of, panels, turn)),
    ofSession("editPrompt", () => true, (of, turn) => editPrompt(of, panels, turn)),
    ofSession("land", ({ session }) => hasWorktree(session) && !isAlive(session), (of) => land(of, panels), noWorktree),
    ofSession("discardWorktree", ({ session }) => hasWorktree(session) && !isAlive(session), discardWorktree, noWorktree),
    ofSession("openWorktree", ({ session }) => hasWorktree(session), openWorktree, noWorktree),
    ofSession("compareAttempts", ({ session }) => Boolean(session.attempts), (of) => comparisons.show(of), "no prompt had several agents: choose Several Agents… in a new session"),
    ofSession("interrupt", ({ session }) => isInterruptible(session), async ({ project, session }) => {
      await project.connection.request("turn.interrupt", { turn: session.ahead?.turn_uuid ?? session.turn_uuid, reason: "interrupted in VS Code" });
    }),
    ofSession("archive", ({ session }) => !session.archived && !isAlive(session), (of) => archive(of, true)),
    ofSession("unarchive", ({ session }) => session.archived, (of) => archive(of, false)),
    ofSession("rename", () => true, rename),
    ofSession("delete", ({ session }) => !isAlive(session), (of) => deleteSession(of, panels)),
    inProject("setUpAgent", (project) => setUpAgent(project, () => void newSession(project, panels))),
    command("search", () => search(projects.all, async (of, hit) => (await panels.open(of)).showItem(hit))),
    command("revokeRules", async (of?: unknown) => {
      const session = given(of);
      const project = session?.project ?? (await pickProject(projects));
      if (project) await revokeRules(project, session?.session.session_uuid);
    }),
    command("openSession", async (of?: unknown) => {
      const chosen = given(of) ?? (await pickSession(projects, () => true));
      if (chosen) await panels.open(chosen);
    }),
    ofSession("openSessionBeside", () => true, async (of) => void (await panels.open(of, vscode.ViewColumn.Beside))),
    ofSession("openText", () => true, (of) => documents.openTranscript(of)),
    ofSession("showChanges", () => true, (of) => changes.open(of)),
    decideAll("acceptAll", "accept"),
    decideAll("revertAll", "revert"),
    decideAll("reopenAll", "reopen"),
    command("addSelection", () => addSelection(projects, panels)),
    command("answer", async (of?: ProjectQuestion | string, choice?: unknown) => {
      const question = of === undefined ? await pickQuestion(projects) : questionOf(projects, of);
      // VS Code passes further arguments after the row that was pressed.
      if (question) await answer(question, panels, typeof choice === "string" ? choice : undefined);
    }),
    command("approve", (of: ProjectQuestion) => answer(of, panels, "approve")),
    command("deny", (of: ProjectQuestion) => answer(of, panels, "deny")),
    command("showQuestion", async (of: ProjectQuestion | string) => {
      const question = questionOf(projects, of);
      if (question) await showQuestion(question, panels);
    }),
    command("answerKey", (id: string, choice?: KeyChoice) => keys.answer(id, choice)),
    command("refreshProjects", () => others.refresh()),
    command("openProject", (of: { host: string; root: string }) => openProject(projects, of)),
    inProject("build", (project) => builds.run(project)),
    command("clearProblems", () => problems.clear()),
    inProject("newTerminal", (project) => terminals.create(project)),
    command("watchTerminal", async (of?: ProjectSession) => {
      const project = of?.project ?? (await pickProject(projects));
      if (project) await terminals.watch(project, of?.session);
    }),
    command("forgetKeys", () => keys.forget()),
    inProject("preview", (project) => previews.show(project)),
    command("chooseHost", () => chooseHost(projects)),
    command("restart", () => projects.restart()),
    command("showLog", () => log.show()),
    command("openSettings", async () => void (await vscode.commands.executeCommand("workbench.action.openSettings", "duet."))),
  ];
}

/** chooseHost lets the user choose where the agents of a folder work, and stores it in the folder's settings. */
export async function chooseHost(projects: Projects): Promise<void> {
  const project = await pickProject(projects);
  if (!project) return;
  const { host, folder, connection } = project;
  const names = await listHosts(await connection.program(), process.env);
  const item = (name: string, label: string, detail: string): vscode.QuickPickItem & { name: string } => ({ label, detail, name, description: name === host ? "chosen" : "" });
  const items = [
    item("", "$(device-desktop) This machine", vscode.env.remoteName ? "Where VS Code runs its extensions" : "Agents work on the files of this folder"),
    ...names.map((name) => item(name, `$(remote) ${name}`, `Agents work in ${folder.name} on ${name}. Its files are there`)),
  ];
  const none = "; duet-rpc hosts add NAME COMMAND… in a terminal adds a host";
  const chosen = await vscode.window.showQuickPick(items, { title: `Where do the agents of ${folder.name} work?`, placeHolder: names.length === 0 ? `Your configuration names no host${none}` : host });
  if (!chosen || chosen.name === host) return;
  const settings = vscode.workspace.getConfiguration("duet", folder.uri);
  // In a window with one folder, the settings of the folder are those of the workspace.
  if (host !== "") await settings.update("hostDirectory", undefined, vscode.ConfigurationTarget.WorkspaceFolder); // it was one of that host
  await settings.update("host", chosen.name === "" ? undefined : chosen.name, vscode.ConfigurationTarget.WorkspaceFolder);
  // A host of the user's own settings is for all folders.
  if (chosen.name === "" && vscode.workspace.getConfiguration("duet", folder.uri).get("host", "") !== "") await settings.update("host", "", vscode.ConfigurationTarget.WorkspaceFolder);
}

/** newSession opens a panel whose first prompt starts a session. */
function newSession(project: Project, panels: Panels, clicked?: vscode.Uri, column?: vscode.ViewColumn): Promise<Panel> {
  const { uri } = startFolder(project, clicked);
  return panels.begin(project, { title: "New session", chosen: { folder: uri.fsPath } }, column);
}

/** fork opens a panel whose first prompt continues a session in a new one, after its last turn or after another one. */
async function fork(of: ProjectSession, panels: Panels, turn = of.session.turn_uuid): Promise<void> {
  const { project, session } = of;
  const name = nameOf(session);
  const chosen = forkChoices(of);
  const until = turn === session.turn_uuid ? "" : ` until ${(await project.connection.request("turn.get", { turn })).turn.turn}`;
  const about = `Your first prompt starts a fork of "${name}". It has the history of that session${until}. That session does not change.`;
  await panels.begin(project, { title: `Fork of ${name}`, about, chosen, fork: { turn, chosen } });
}

/** newSessionWithGates asks for gates and turns, and opens a panel whose first prompt starts the session. */
async function newSessionWithGates(project: Project, panels: Panels, clicked?: vscode.Uri): Promise<void> {
  let gates: string[] | undefined;
  try {
    gates = await pickGates(project);
  } catch (error) {
    if (await showUntrusted(project, error)) return;
    throw error;
  }
  if (!gates) return;
  const until = `until ${gates.join(" and ")} ${gates.length === 1 ? "passes" : "pass"}`;
  const turns = await vscode.window.showInputBox({
    title: `New session, ${until}`, value: String(usual), prompt: "How many turns may the agent take? The first one counts.", ignoreFocusOut: true,
    validateInput: (text) => (/^\s*([1-9]\d?|100)\s*$/.test(text) ? undefined : "A number from 1 to 100"),
  });
  if (turns === undefined) return;
  const folder = startFolder(project, clicked).uri.fsPath;
  const about = `The agent works ${until}, for ${Number(turns) === 1 ? "1 turn" : `at most ${Number(turns)} turns`}.`;
  await panels.begin(project, { title: `New session, ${until}`, about, chosen: { folder }, gates, turns: Number(turns) });
}

/** addSelection puts the selection into the prompt of the panel that was used last, else of a session that the user picks. Without sessions, it opens a new one. */
async function addSelection(projects: Projects, panels: Panels): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    void inform("select something in an editor first");
    return;
  }
  let panel = panels.recent;
  if (!panel && projects.sessions.length > 0) {
    const chosen = await pickSession(projects, () => true);
    panel = chosen && (await panels.open(chosen, panels.beside));
  } else if (!panel) {
    const project = projectAt(projects);
    panel = project && (await newSession(project, panels, undefined, panels.beside));
  }
  if (!panel) return;
  const { text, content } = selected(editor, panel.folders, panel.project.host);
  panel.view.reveal();
  panel.insert(text, content);
  panel.focus();
}

/** questionOf returns the question that a command was given, possibly by its id. undefined: it no longer waits, as a message says. */
function questionOf({ questions }: Projects, of: ProjectQuestion | string): ProjectQuestion | undefined {
  if (typeof of !== "string") return of;
  const question = questions.find((one) => one.question.approval === of);
  if (!question) void inform("the question has been answered");
  return question;
}

/** answer sends an answer. Without a choice, or if the choice needs further input, the panel of the session asks for it at the question. */
async function answer(of: ProjectQuestion, panels: Panels, choice?: string): Promise<void> {
  const chosen = choicesOf(of.question).find(({ id }) => id === choice);
  if (!chosen || !isComplete(chosen)) return showQuestion(of, panels, choice);
  const { success, error } = await of.project.connection.request("approval.decide", { approval: of.question.approval, client: "VS Code", ...chosen.decision });
  if (!success) void inform(error ?? "the question has been answered");
}

/** showQuestion opens the session of a question, at the question, and begins an answer there. */
async function showQuestion({ project, question }: ProjectQuestion, panels: Panels, choice?: string): Promise<void> {
  const session = project.model.sessionOf(question) ?? (await project.connection.request("turn.get", { turn: question.session_uuid })).turn;
  (await panels.open({ project, session })).showQuestion(question.approval, choice);
}

async function archive({ project, session }: ProjectSession, archived: boolean): Promise<void> {
  await project.connection.request("session.archive", { sessions: [session.session_uuid], archived });
}

/** given returns the session argument of a command. The title bar of an editor passes a URI instead. */
function given(of: unknown): ProjectSession | undefined {
  return typeof of === "object" && of !== null && "project" in of && "session" in of ? (of as ProjectSession) : undefined;
}

/** ofPanel returns the session of the active panel, if the command applies to it. */
async function ofPanel(panels: Panels, which: (of: ProjectSession) => boolean): Promise<ProjectSession | undefined> {
  const panel = panels.active;
  const of = panel?.beginning ? undefined : await panel?.askSession();
  return of && which(of) ? of : undefined;
}

const noWorktree = "no session has a worktree, or the agent still works in it";

/** pickSession asks for one of the sessions. none says that there are none. */
async function pickSession(projects: Projects, which: (of: ProjectSession) => boolean, none = "no such session"): Promise<ProjectSession | undefined> {
  const items = projects.sessions.filter(which).map((of) => ({ label: nameOf(of.session), description: describe(of.session, Date.now()), of }));
  if (items.length === 0) {
    void inform(none);
    return undefined;
  }
  return (await vscode.window.showQuickPick(items, { title: "Which session?" }))?.of;
}

async function pickQuestion(projects: Projects): Promise<ProjectQuestion | undefined> {
  const { questions } = projects;
  if (questions.length <= 1) {
    if (questions.length === 0) void inform("no question waits for you");
    return questions[0];
  }
  const items = questions.map((of) => {
    const session = of.project.model.sessionOf(of.question);
    return { label: titleOf(of.question), description: session ? labelOf(session, of.question.turn) : "", of };
  });
  return (await vscode.window.showQuickPick(items, { title: "Which question?" }))?.of;
}

/** The default number of turns, as in the daemon. */
const usual = 5;

async function pickGates(project: Project): Promise<string[] | undefined> {
  const typed = "$(edit) A command…";
  const configured = await listGates(project.connection);
  const items = [
    ...configured.map(({ name, command, waitsForTrust }) => ({ label: name, detail: command.join(" "), description: waitsForTrust ? "waits for your trust" : "" })),
    { label: typed, detail: "A line for the shell, such as make test", description: "" },
  ];
  const picked = configured.length === 0 ? [{ label: typed }] : await vscode.window.showQuickPick(items, { title: "Which gates have to pass?", canPickMany: true, matchOnDetail: true, ignoreFocusOut: true });
  if (!picked || picked.length === 0) return undefined;
  const gates = picked.map(({ label }) => label).filter((label) => label !== typed);
  if (gates.length === picked.length) return gates;
  const line = await vscode.window.showInputBox({
    title: "Which gates have to pass?", prompt: "A line for the shell, run after each turn where the agent works", placeHolder: "make test", ignoreFocusOut: true,
    validateInput: (text) => (text.trim() === "" ? "Type a command, or press Escape" : undefined),
  });
  return line === undefined ? undefined : [...gates, line.trim()];
}
