// What a person can do, by the palette, the lists and the keyboard.
import * as vscode from "vscode";
import { answer } from "./answer";
import type { Documents } from "./documents";
import { launchWithGates } from "./gatesession";
import { describe, isAlive, nameOf, short } from "./hub/groups";
import { titleOf } from "./hub/questions";
import { pickProject } from "./projects";
import type { Project, ProjectQuestion, Projects, ProjectSession } from "./projects";

export interface CommandContext {
  projects: Projects;
  documents: Documents;
  log: vscode.LogOutputChannel;
  attempt: (action: () => Promise<void>) => void;
}

export function registerCommands(context: CommandContext): vscode.Disposable[] {
  const { projects, documents, log } = context;
  const command = <A extends unknown[]>(name: string, action: (...args: A) => Promise<void>): vscode.Disposable =>
    vscode.commands.registerCommand(`duet.${name}`, (...args: A) => context.attempt(() => action(...args)));
  const ofSession = (name: string, which: (of: ProjectSession) => boolean, action: (of: ProjectSession) => Promise<void>): vscode.Disposable =>
    command(name, async (of?: ProjectSession) => {
      const chosen = of ?? (await pickSession(projects, which));
      if (chosen) await action(chosen);
    });
  return [
    command("newSession", () => newSession(projects, documents)),
    command("newSessionWithGates", async () => {
      const project = await pickProject(projects);
      const agent = project && (await pickAgent(project));
      const id = agent && (await launchWithGates(project, agent.name));
      if (id !== undefined) await openWhenListed(project!, id, documents);
    }),
    ofSession("continue", () => true, (of) => goOn(of, documents, false)),
    ofSession("fork", () => true, (of) => goOn(of, documents, true)),
    ofSession("interrupt", ({ session }) => isAlive(session), async ({ project, session }) => {
      await project.connection.request("interruptSession", { session_id: session.id, reason: "interrupted in VS Code" });
    }),
    ofSession("archive", ({ session }) => !session.archived && !isAlive(session), (of) => archive(of, true)),
    ofSession("unarchive", ({ session }) => session.archived, (of) => archive(of, false)),
    ofSession("openSession", () => true, (of) => documents.openConversationOf(of)),
    ofSession("showChanges", () => true, (of) => documents.openChanges(of)),
    command("answer", async (of?: ProjectQuestion, choice?: unknown) => {
      const question = of ?? (await pickQuestion(projects));
      // The list of VS Code gives other things behind the row that was pressed.
      if (question) await answer(question, typeof choice === "string" ? choice : undefined);
    }),
    command("approve", (of: ProjectQuestion) => answer(of, "approve")),
    command("deny", (of: ProjectQuestion) => answer(of, "deny")),
    command("showQuestion", (of: ProjectQuestion) => documents.openQuestion(of)),
    command("restart", () => projects.restart()),
    command("showLog", () => Promise.resolve(log.show())),
    command("openSettings", async () => void (await vscode.commands.executeCommand("workbench.action.openSettings", "duet."))),
  ];
}

async function newSession(projects: Projects, documents: Documents): Promise<void> {
  const project = await pickProject(projects);
  if (!project) return;
  const agent = await pickAgent(project);
  if (agent === undefined) return;
  const query = await prompt(`New session with ${agent.title}`, "What is to be done?");
  if (query === undefined) return;
  const { session_id } = await project.connection.request("launchSession", { query, agent: agent.name, working_dir: project.folder.uri.fsPath });
  await openWhenListed(project, session_id, documents);
}

async function goOn({ project, session }: ProjectSession, documents: Documents, fork: boolean): Promise<void> {
  const query = await prompt(nameOf(session), fork ? "What is to be done, in a conversation of its own?" : "What is next?");
  if (query === undefined) return;
  const { session_id } = await project.connection.request("continueSession", { session_id: session.id, query, ...(fork ? { fork } : {}) });
  await openWhenListed(project, session_id, documents);
}

async function archive({ project, session }: ProjectSession, archived: boolean): Promise<void> {
  await project.connection.request("archiveSession", { session_id: session.id, archived });
}

/** openWhenListed shows a conversation. The hub has told of the session before it answered, or is about to. */
async function openWhenListed(project: Project, id: string, documents: Documents): Promise<void> {
  const { session } = await project.connection.request("getSessionState", { session_id: id });
  project.model.add(session);
  await documents.openConversationOf({ project, session });
}

async function prompt(title: string, placeHolder: string): Promise<string | undefined> {
  const text = await vscode.window.showInputBox({ title, placeHolder, ignoreFocusOut: true, prompt: "Press Enter to begin, or Escape to leave it." });
  return text === undefined || text.trim() === "" ? undefined : text;
}

/** pickAgent is the agent that is configured, or the only one that is installed, else the one that the person chooses. */
async function pickAgent(project: Project): Promise<{ name: string; title: string } | undefined> {
  const configured = vscode.workspace.getConfiguration("duet", project.folder.uri).get("agent", "");
  if (configured !== "") return { name: configured, title: configured };
  const { agents } = await project.connection.request("agent.list", {});
  const available = agents.filter(({ available }) => available);
  if (available.length <= 1) return available[0];
  const items = available.map(({ name, title, default: first, version }) => ({ label: title || name, description: [name, version ?? "", first ? "the default" : ""].filter((part) => part !== "").join(" · "), agent: { name, title: title || name } }));
  return (await vscode.window.showQuickPick(items, { title: "Which agent?" }))?.agent;
}

async function pickSession(projects: Projects, which: (of: ProjectSession) => boolean): Promise<ProjectSession | undefined> {
  const items = projects.sessions.filter(which).map((of) => ({ label: nameOf(of.session), description: describe(of.session, Date.now()), of }));
  if (items.length === 0) {
    void vscode.window.showInformationMessage("Duet: there is no such session");
    return undefined;
  }
  return (await vscode.window.showQuickPick(items, { title: "Which session?" }))?.of;
}

async function pickQuestion(projects: Projects): Promise<ProjectQuestion | undefined> {
  const { questions } = projects;
  if (questions.length <= 1) {
    if (questions.length === 0) void vscode.window.showInformationMessage("Duet: nobody waits for you");
    return questions[0];
  }
  const items = questions.map((of) => ({ label: titleOf(of.question), description: short(of.project.model.session(of.question.session_id)?.query ?? "", 60), of }));
  return (await vscode.window.showQuickPick(items, { title: "Which question?" }))?.of;
}
