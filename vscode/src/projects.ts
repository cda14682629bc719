// The projects of the workspace, each with a connection to its daemon.
import * as vscode from "vscode";
import { existsSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { ResponseError } from "vscode-jsonrpc/node";
import { editorTools } from "./editortools";
import { findBinary } from "./hub/binary";
import { HubConnection } from "./hub/connection";
import { lacksProject, onHost } from "./hub/host";
import type { Place } from "./hub/host";
import { Emitter } from "./hub/events";
import type { HubNotification } from "./hub/events";
import { ProjectModel } from "./hub/model";
import type { Question, Session } from "./hub/model";
import type { HubEvent } from "./protocol";
import type { ActiveEditor } from "./panel/files";
import { byRoot, folderWith, projectRoot, realPath, usesDuet } from "./hub/root";
import { fail, inform, warn } from "./messages";

/** A project with folders in the workspace, its connection and its lists. */
export interface Project {
  /** The name of its folder, and of its host: parser@devbox. */
  name: string;
  /** The host on which its agents work. Empty: this machine. Paths of its sessions are paths there, and never name local files. */
  host: string;
  /** The first of its folders. */
  folder: vscode.WorkspaceFolder;
  /** All of its folders. */
  folders: vscode.WorkspaceFolder[];
  connection: HubConnection;
  model: ProjectModel;
  place: Place;
  /** The root of the project on this machine. */
  root: string;
}

/** placeOf returns where the settings say that agents work. In Restricted Mode, those of the workspace do not count. */
function placeOf({ uri }: vscode.WorkspaceFolder): Place {
  const settings = vscode.workspace.getConfiguration("duet", uri);
  return { host: settings.get("host", "").trim(), directory: settings.get("hostDirectory", "").trim() };
}

function isSame(a: Place, b: Place): boolean {
  return a.host === b.host && (a.host === "" || a.directory === b.directory);
}

function nameAt({ name }: vscode.WorkspaceFolder, host: string): string {
  return host === "" ? name : `${name}@${host}`;
}

/** The directory for an agent in a folder: the folder, or on a host its path in the project there. undefined: the project's own directory there. */
export function workingDirectory({ host, root }: Project, folder: string): string | undefined {
  if (!host) return folder;
  const inside = relative(root, realPath(folder)).split(sep).join("/");
  return inside === "" || inside.startsWith("..") || isAbsolute(inside) ? undefined : inside;
}

/** Whether a new session begins with the files of this machine. Only a session on a host can. */
export function sendsFiles({ host, folder }: Project): boolean {
  return Boolean(host) && vscode.workspace.getConfiguration("duet", folder.uri).get("hostSend", true);
}

/** A session and its project. */
export interface ProjectSession {
  project: Project;
  session: Session;
}

/** A question and its project. */
export interface ProjectQuestion {
  project: Project;
  question: Question;
}

/** The projects of the workspace. It follows the workspace's folders. */
export class Projects implements vscode.Disposable {
  private readonly byRoot = new Map<string, Project>();
  /** Whether the user has used the extension in this window. Until then only projects that use Duet are connected: a connection starts a daemon. */
  private wanted = false;
  private readonly changeEmitter = new Emitter<undefined>();
  private readonly questionsEmitter = new Emitter<ProjectQuestion[]>();
  private readonly eventEmitter = new Emitter<{ project: Project; event: HubEvent }>();
  private readonly notificationEmitter = new Emitter<{ project: Project; notification: HubNotification }>();
  private readonly subscriptions: vscode.Disposable[];

  readonly onChange = this.changeEmitter.on;
  readonly onQuestions = this.questionsEmitter.on;
  readonly onEvent = this.eventEmitter.on;
  readonly onNotification = this.notificationEmitter.on;

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly bundled: string,
    private readonly editor: ActiveEditor,
  ) {
    this.subscriptions = [
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.follow()),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("duet.host") || change.affectsConfiguration("duet.hostDirectory")) this.follow();
        if (!change.affectsConfiguration("duet.editorTools")) return;
        for (const { connection } of this.all) void connection.toolsChanged().catch((error: unknown) => log.warn(String(error)));
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        this.follow(); // the settings of the workspace count from now on
        for (const { connection } of this.all) {
          connection.trustChanged().catch((error: unknown) => this.log.warn(String(error)));
        }
      }),
    ];
    this.follow();
  }

  get all(): Project[] {
    return [...this.byRoot.values()];
  }

  /** The open project of a folder. */
  at(folder: string): Project | undefined {
    return this.all.find((project) => project.folder.uri.fsPath === folder) ?? this.byRoot.get(projectRoot(realPath(folder)));
  }

  /** Connects the projects, because the user uses the extension. VS Code may have had no folders yet when they were looked at. */
  start(): void {
    if (this.wanted && this.byRoot.size > 0) return;
    this.wanted = true;
    this.follow();
  }

  get sessions(): ProjectSession[] {
    return this.all.flatMap((project) => project.model.sessions.map((session) => ({ project, session })));
  }

  get questions(): ProjectQuestion[] {
    return this.all.flatMap((project) => project.model.questions.map((question) => ({ project, question })));
  }

  /** The combined state of all connections: failed if one has failed, else starting or stopped if one is. */
  get state(): "stopped" | "starting" | "ready" | "failed" {
    const states = this.all.map(({ connection }) => connection.state.is);
    return (["failed", "starting", "stopped"] as const).find((state) => states.includes(state)) ?? (states.length > 0 ? "ready" : "stopped");
  }

  /** The reasons of failed connections. */
  get reasons(): string[] {
    return this.all.flatMap(({ connection }) => (connection.state.is === "failed" ? [connection.state.reason] : []));
  }

  /** For a reason: what brings the project to its host, as a sentence. Empty: nothing that Duet does. */
  remedy(reason: string): string {
    const isMissing = this.all.some((project) => {
      const { state } = project.connection;
      return sendsFiles(project) && state.is === "failed" && state.kind === lacksProject && state.reason === reason;
    });
    return isMissing ? "a new session brings the project there, with your files" : "";
  }

  /** Why daemons that are connected do not answer now, such as a broken line to a host. */
  get troubles(): string[] {
    return this.all.flatMap(({ connection }) => (connection.trouble === undefined ? [] : [connection.trouble]));
  }

  /** The name of a project where it says which one is meant: one of several, or one on a host. */
  labels({ name, host }: Project): string[] {
    return this.byRoot.size > 1 || host !== "" ? [name] : [];
  }

  async restart(): Promise<void> {
    this.start();
    await Promise.all(this.all.map(({ connection }) => connection.restart()));
  }

  /** Stops the window's processes and resolves when they have ended. Sessions in the daemons continue. */
  async stop(): Promise<void> {
    const all = this.all;
    this.byRoot.clear();
    await Promise.all(all.map((project) => end(project)));
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changeEmitter.clear();
    void this.stop();
  }

  private follow(): void {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file");
    const roots = byRoot(folders, ({ uri }) => uri.fsPath);
    const moved = new Set<string>();
    for (const [root, project] of this.byRoot) {
      const folders = roots.get(root) ?? [];
      const [folder] = folders;
      if (folder && isSame(placeOf(folder), project.place)) Object.assign(project, { folder, folders, name: nameAt(folder, project.host) });
      else {
        this.byRoot.delete(root);
        if (folder) moved.add(root); // to another host
        void end(project);
      }
    }
    for (const [root, folders] of roots) {
      if (!this.byRoot.has(root) && (this.wanted || moved.has(root) || placeOf(folders[0]!).host !== "" || usesDuet(root))) this.byRoot.set(root, this.open(root, folders[0]!, folders));
    }
    this.changeEmitter.fire(undefined);
  }

  private open(root: string, folder: vscode.WorkspaceFolder, folders: vscode.WorkspaceFolder[]): Project {
    const place = placeOf(folder);
    const connection = new HubConnection({
      folder: folder.uri.fsPath, place,
      findBinary: () =>
        findBinary({
          env: process.env,
          setting: vscode.workspace.getConfiguration("duet", folder.uri).get("executable", ""),
          bundled: this.bundled,
          platform: process.platform,
        }),
      trusted: () => vscode.workspace.isTrusted,
      tools: editorTools(() => (this.byRoot.get(root)?.folders ?? folders).map(({ uri }) => uri.fsPath), this.editor),
      env: process.env,
      log: this.log,
    });
    const model = new ProjectModel(connection, 300, (error) => this.log.warn(String(error)));
    const project = { name: nameAt(folder, place.host), host: place.host, place, root, folder, folders, connection, model };
    model.onChange(() => this.changeEmitter.fire(undefined));
    model.onQuestions((questions) => this.questionsEmitter.fire(questions.map((question) => ({ project, question }))));
    connection.onEvent((event) => this.eventEmitter.fire({ project, event }));
    connection.onNotification((notification) => this.notificationEmitter.fire({ project, notification }));
    connection.onNotice((message) => void inform(place.host === "" ? message : `${place.host}: ${message}`));
    connection.onWarning((message) => void warn(message));
    void connection.start();
    return project;
  }
}

async function end({ model, connection }: Project): Promise<void> {
  model.dispose();
  await connection.stop();
}

/**
 * The folder of a project in which a session or a shell starts: the folder of the resource that the user clicked in the
 * explorer, else of the active editor, else the first folder.
 */
export function startFolder({ folder, folders }: Project, clicked?: vscode.Uri): vscode.WorkspaceFolder {
  const resource = clicked ?? vscode.window.activeTextEditor?.document.uri;
  return (resource?.scheme === "file" ? folderWith(folders, ({ uri }) => uri.fsPath, resource.fsPath) : undefined) ?? folder;
}

/** Returns the resource of the explorer that a command was given, if there is one. */
export function clickedResource(argument: unknown): vscode.Uri | undefined {
  return argument instanceof vscode.Uri ? argument : undefined;
}

/** Returns the project of a resource. undefined: it is in no folder of the workspace. */
function projectWith({ all }: Projects, resource: vscode.Uri | undefined): Project | undefined {
  return resource?.scheme === "file" ? all.find(({ folders }) => folderWith(folders, ({ uri }) => uri.fsPath, resource.fsPath)) : undefined;
}

/** Returns the project of the clicked resource, else of the active editor, else the first one. undefined: no folder is open, as a message says. */
export function projectAt(projects: Projects, clicked?: vscode.Uri): Project | undefined {
  const project = projectWith(projects, clicked ?? vscode.window.activeTextEditor?.document.uri) ?? projects.all[0];
  if (!project) void inform("open a folder first");
  return project;
}

/** Returns the project of the clicked resource, or the only project. Else it asks the user. undefined: no project, or cancelled. */
export async function pickProject(projects: Projects, clicked?: vscode.Uri): Promise<Project | undefined> {
  const { all } = projects;
  const within = projectWith(projects, clicked);
  if (within) return within;
  if (all.length <= 1) return projectAt(projects);
  const items = all.map((project) => ({ label: project.name, description: project.folder.uri.fsPath, project }));
  return (await vscode.window.showQuickPick(items, { title: "In which folder?" }))?.project;
}

/** The data of an error of the daemon. undefined: it has none, or is not an error of the daemon. */
export function dataOf(error: unknown): ({ kind?: string } & Record<string, unknown>) | undefined {
  return error instanceof ResponseError ? (error.data as { kind?: string } & Record<string, unknown> | undefined) : undefined;
}

/** The kind of an error of the daemon. undefined: it has none, or is not an error of the daemon. */
export function kindOf(error: unknown): string | undefined {
  return dataOf(error)?.kind;
}

/** Shows a not_trusted error, with a button that grants trust. Returns false for any other error. */
export async function showUntrusted(project: Project, error: unknown): Promise<boolean> {
  if (kindOf(error) !== "not_trusted" || !(error instanceof Error)) return false;
  if (project.host) {
    // The file is on the host, and so is the decision about it.
    const [copy, command] = ["Copy Command", ["duet-rpc", ...project.connection.flags, "trust"].join(" ")];
    if ((await fail(`${error.message};${onHost(project.host)}: ${command}`, copy)) === copy) await vscode.env.clipboard.writeText(command);
    return true;
  }
  if (!vscode.workspace.isTrusted) {
    const manage = "Manage Workspace Trust";
    if ((await fail(error.message, manage)) === manage) await vscode.commands.executeCommand("workbench.trust.manage");
    return true;
  }
  // The configuration file has changed since the workspace was trusted.
  const file = [".duet.toml"].map((name) => join(projectRoot(project.folder.uri.fsPath), name)).find((path) => existsSync(path));
  const [look, trust] = ["Look at It", "Trust This Version"];
  const pressed = await fail(error.message, ...(file ? [look] : []), trust);
  if (pressed === look && file) await vscode.window.showTextDocument(vscode.Uri.file(file));
  else if (pressed === trust) await project.connection.trustChanged();
  return true;
}
