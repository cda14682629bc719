// Sessions that the first prompt of their panel starts: new ones, and forks.
import * as vscode from "vscode";
import { demo } from "../agents";
import { agentOf } from "../hub/attempts";
import { realPath, repositoryOf } from "../hub/root";
import { visible } from "../hub/groups";
import { during, warn } from "../messages";
import { sendsFiles, workingDirectory } from "../projects";
import type { Project, Projects } from "../projects";
import type { Result } from "../protocol";
import type { Choices, NewSession, PromptContent } from "./protocol";

/** A session that has not started. */
export interface Beginning {
  /** The uuid that it will have. */
  session: string;
  title: string;
  /** Tells the user what is special about it. */
  about?: string;
  chosen: Choices;
  /** The turn after which it forks, with the agent and settings of that session. It has the folder of that session. */
  fork?: { turn: string; chosen: Choices };
  /** The text of the prompt box at first. */
  prompt?: string;
  gates?: string[];
  /** With gates: the most turns. */
  turns?: number;
}

/** How many beginnings are kept. Those of closed panels are among them, because VS Code can open such a panel again. */
const most = 50;

const [beginningsKey, agentKey] = ["beginnings", "agent"];

/**
 * The beginnings of a workspace, and the agent that the user chose last. They outlive a window. A page does not keep
 * them, because it must not name the folder of a session or its gates.
 */
export class Beginnings {
  constructor(private readonly state: vscode.Memento) {}

  of(session: string): Beginning | undefined {
    return this.all.find((beginning) => beginning.session === session);
  }

  keep(beginning: Beginning): void {
    this.store([...this.others(beginning.session), beginning].slice(-most));
  }

  /** Forgets the beginning of a session, because it has started. */
  forget(session: string): void {
    this.store(this.others(session));
  }

  get agent(): string {
    return this.state.get(agentKey, "");
  }

  /** Stores choices of the user. Another agent ends the choice of a mode, a model and options. */
  choose(beginning: Beginning, choices: Partial<Choices>): void {
    if (choices.agent) void this.state.update(agentKey, choices.agent);
    const { chosen, fork } = beginning;
    const before: Choices = choices.agent === undefined && choices.agents === undefined ? chosen : fork && choices.agent === fork.chosen.agent ? fork.chosen : { folder: chosen.folder, ...(chosen.worktree && { worktree: chosen.worktree }), ...(chosen.sandbox && { sandbox: chosen.sandbox }) };
    this.keep({ ...beginning, chosen: { ...before, ...choices, ...(choices.options && { options: { ...before.options, ...choices.options } }) } });
  }

  private get all(): Beginning[] {
    return this.state.get<Beginning[]>(beginningsKey, []);
  }

  private others(session: string): Beginning[] {
    return this.all.filter((beginning) => beginning.session !== session);
  }

  private store(all: Beginning[]): void {
    void this.state.update(beginningsKey, all);
  }
}

/** The mode in which Duet allows all that an agent asks. */
const bypass = "bypassPermissions";

/** How many items before a fork its page shows. */
const itemsBefore = 60;

/** What a page shows of a beginning. Requests the agents and their settings, if the daemon is ready. */
export async function newSessionOf({ about = "", chosen: { worktree, agents: several, ...chosen }, fork }: Beginning, of: Project, projects: Projects, lastAgent: string): Promise<NewSession> {
  const { connection, host, name: project } = of;
  const folder = vscode.Uri.file(chosen.folder);
  // Whether the project on a host is a git repository is known there alone.
  const worktrees = !fork && (Boolean(host) || repositoryOf(realPath(chosen.folder)) !== undefined);
  const sends = !fork && sendsFiles(of);
  const place = { ...(worktrees && { worktrees }), ...(sends && { sends: host }), chosen: { ...chosen, ...(worktrees && worktree && { worktree }), ...(worktrees && several && { agents: several }) } };
  const where = host ? project : (vscode.workspace.getWorkspaceFolder(folder)?.name ?? chosen.folder);
  if (!fork) {
    const what = place.chosen.agents ? `${several!.length} sessions in ${where}, each in its own git worktree, whose results you compare` : `a session in ${where}${place.chosen.worktree === "yes" ? ", in its own git worktree" : sends && !place.chosen.worktree ? ", which begins with your files" : ""}`;
    about = `Your first prompt starts ${what}. ${about}`;
  }
  const all = fork ? [] : projects.all.flatMap(({ folders, host }) => folders.map(({ name, uri }) => ({ path: uri.fsPath, name: host ? `${name}@${host}` : name })));
  const folders = all.length > 1 ? all : [];
  const configured = vscode.workspace.getConfiguration("duet", folder).get("agent", "");
  if (!connection.answers) return { about, folders, agents: [], ...place, ...(sends && { chosen: { ...place.chosen, agent: chosen.agent || configured } }) };
  // Without them, the fork can still get its prompt.
  const before = fork && (await connection.request("session.items", { session: fork.turn, limit: itemsBefore }).then(({ items }) => items, () => undefined));
  const available = (await connection.request("agent.list", {})).agents.filter((agent) => agent.available);
  const remembered = available.some(({ name }) => name === lastAgent) ? lastAgent : "";
  const agent = chosen.agent || configured || remembered || available[0]?.name || "";
  const agents = available.map(({ name, title, version }) => ({ name, title: title || name, description: version ?? "" }));
  if (agent !== "" && !agents.some(({ name }) => name === agent)) agents.push({ name: agent, title: agent, description: "" });
  // Without its settings, the agent can still get a prompt, or say why not.
  const described = agent === "" ? undefined : await connection.request("agent.describe", { agent: place.chosen.agents ? agentOf(place.chosen.agents[0]!).agent : agent }).catch(() => undefined);
  // Several agents have Duet's own modes in common.
  const description = described && place.chosen.agents ? { agent, modes: described.modes.filter(({ by }) => by === "duet"), ...(described.sandboxes && { sandboxes: described.sandboxes }) } : described;
  if (description?.sandboxes && place.chosen.mode === bypass && !place.chosen.sandbox) about = `${about.trim()} The agent asks nothing: a sandbox keeps its writes in the project.`;
  return { about, folders, agents, onlyDemo: available.every(({ name }) => name === demo), ...(before && { before }), ...(description && { description }), ...place, chosen: { ...place.chosen, agent } };
}

/** The first prompt of a session. */
export interface FirstPrompt {
  prompt: string;
  content?: PromptContent[];
}

/** Starts a session with its first prompt. */
export async function launch({ session, fork, gates, turns }: Beginning, { folder, worktree, sandbox, agent, mode, model, options }: Choices, project: Project, prompt: FirstPrompt): Promise<Result<"session.start">> {
  const { connection } = project;
  // A fork keeps the options of its session, so an empty one must be sent there.
  const set = Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => fork || value !== ""));
  const params = {
    ...prompt, session_uuid: session,
    ...(agent && { agent }), ...(mode && { mode }), ...(model && { model }), ...(Object.keys(set).length > 0 && { options: set }),
  };
  if (fork) return connection.request("session.fork", { ...params, turn: fork.turn });
  const start = { ...params, ...directoryOf(project, folder), ...(worktree && { worktree: worktree === "yes" }), ...(sandbox && { sandbox }), ...(gates && { gates }), ...(turns !== undefined && { max_iterations: turns }) };
  if (worktree || !sendsFiles(project)) return connection.request("session.start", start);
  const started = await during(`sending your files to ${project.host}…`, () => connection.sendFiles({ ...start, send: true }));
  const { count, first } = started.not_sent ?? { count: 0, first: [] };
  if (count > 0) void warn(`${project.host} lacks ${count === 1 ? "a file" : `${count} files`} of yours, not committed, and too large or in a nested repository: ${visible(first.slice(0, 3).join(", "))}${count > 3 ? ", …" : ""}`);
  return started;
}

function directoryOf(project: Project, folder: string): { working_dir?: string } {
  const directory = workingDirectory(project, folder);
  return directory === undefined ? {} : { working_dir: directory };
}

/** Sends the first prompt to several agents, all of them or none. Each starts a session of its own. */
export async function launchAttempts({ gates, turns }: Beginning, { folder, mode, sandbox }: Choices, agents: readonly string[], project: Project, prompt: FirstPrompt): Promise<Result<"attempt.start">> {
  return project.connection.request("attempt.start", {
    ...prompt, ...directoryOf(project, folder), agents: agents.map((choice) => ({ ...agentOf(choice), ...(mode && { mode }) })), ...(sandbox && { sandbox }),
    ...(gates && { gates }), ...(turns !== undefined && { max_iterations: turns }),
  });
}
