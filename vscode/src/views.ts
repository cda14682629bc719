// The lists of the side bar: the sessions, the questions, and the sessions of other projects.
import * as vscode from "vscode";
import { basename, posix } from "node:path";
import { backgroundOf, describe, grouped, groupOf, isAlive, labelOf, nameOf, short, statusWords, visible, worktreeWords } from "./hub/groups";
import type { Group, GroupId } from "./hub/groups";
import type { Session } from "./hub/model";
import { choicesOf, detailsOf, titleOf } from "./hub/questions";
import { onHost, withoutHost } from "./hub/host";
import { listOthers, projectRoot, worktreeOf } from "./hub/root";
import type { OtherProject } from "./hub/root";
import { confirm } from "./messages";
import { keyChoices } from "./secrets";
import type { Keys, OpenKeyRequest } from "./secrets";
import { pickProject } from "./projects";
import type { ProjectQuestion, Projects, ProjectSession } from "./projects";
import { hasWorktree } from "./worktrees";

/**
 * Gives each row of a list a command of its own without arguments. VS Code forgets the arguments of a row's command when
 * it redraws the row, so a click at that moment would fail.
 */
class RowCommands implements vscode.Disposable {
  private readonly registered = new Map<string, vscode.Disposable>();

  /** Registers the commands of the shown rows with their actions, and removes the commands of all others. */
  show(rows: ReadonlyArray<readonly [command: string, action: () => unknown]>): void {
    for (const [command, action] of rows) if (!this.registered.has(command)) this.registered.set(command, vscode.commands.registerCommand(command, action));
    const shown = new Set(rows.map(([command]) => command));
    for (const [command, registration] of this.registered) {
      if (shown.has(command)) continue;
      registration.dispose();
      this.registered.delete(command);
    }
  }

  dispose(): void {
    for (const registration of this.registered.values()) registration.dispose();
  }
}

/** A row of the list: a group, or a session of one. */
type SessionNode = { group: Group; sessions: ProjectSession[] } | ProjectSession;

/** A row and its drawn text, to find the rows that changed. */
interface Row {
  node: SessionNode;
  id: string;
  parent: string;
  drawn: string;
}

/** The icon of each group, and its colour. */
const icons: Record<GroupId, [icon: string, colour: string]> = {
  waiting: ["circle-filled", "charts.yellow"],
  working: ["circle-filled", "charts.blue"],
  queued: ["circle-outline", "charts.blue"],
  failed: ["circle-filled", "charts.red"],
  done: ["circle-filled", "charts.green"],
  draft: ["circle-outline", "descriptionForeground"],
  archived: ["archive", "descriptionForeground"],
};

/** The list of sessions, in groups. */
export class SessionsTree implements vscode.TreeDataProvider<SessionNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<SessionNode[] | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<SessionNode>;
  private readonly subscriptions: vscode.Disposable[];
  private shown: Row[] = [];
  /** The object of each session for VS Code. It stays the same, so that VS Code can redraw a single row. */
  private readonly nodes = new Map<string, ProjectSession>();
  private readonly commands = new RowCommands();

  constructor(private readonly projects: Projects) {
    this.view = vscode.window.createTreeView("duet.sessions", { treeDataProvider: this });
    this.subscriptions = [
      new vscode.Disposable(projects.onChange(() => this.refresh())),
      vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("duet") && this.refresh()),
      this.view.onDidChangeVisibility(({ visible }) => {
        if (visible) projects.start();
        this.refresh(); // update the ages
      }),
    ];
    if (this.view.visible) projects.start();
  }

  getChildren(node?: SessionNode): SessionNode[] {
    if (!node) {
      const sessions = this.projects.sessions.map((of) => this.nodeOf(of));
      const withArchive = vscode.workspace.getConfiguration("duet").get("showArchived", false);
      return grouped(sessions.map(({ session }) => session), Date.now())
        .filter(({ id }) => withArchive || id !== "archived")
        .map((group) => ({ group, sessions: group.sessions.map((session) => sessions.find((of) => of.session === session)!) }));
    }
    return "group" in node ? node.sessions : [];
  }

  getTreeItem(node: SessionNode): vscode.TreeItem {
    if ("group" in node) {
      const { group, sessions } = node;
      const closed = group.id === "done" || group.id === "archived";
      const item = new vscode.TreeItem(group.label, closed ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.Expanded);
      item.id = `group-${group.id}`;
      item.description = String(sessions.length);
      return item;
    }
    const { project, session } = node;
    const group = groupOf(session);
    const [icon, colour] = icons[group];
    const item = new vscode.TreeItem(nameOf(session));
    item.id = session.session_uuid;
    const where = whereWords({ project, session });
    item.description = [describe(session, Date.now()), ...(session.attempts ? ["one of several attempts"] : []), ...(where ? [where] : []), ...this.projects.labels(project)].join(" · ");
    item.iconPath = new vscode.ThemeIcon(icon, new vscode.ThemeColor(colour));
    const background = backgroundOf(session);
    item.contextValue = ["session", isAlive(session) ? "alive" : "ended", ...(background.length > 0 ? ["background"] : []), ...(session.archived ? ["archived"] : []), ...(hasWorktree(session) ? ["worktree"] : []), ...(session.attempts ? ["attempts"] : [])].join(" ");
    item.tooltip = [nameOf(session), `${session.agent}, ${statusWords(session)}`, ...background.map((title) => `In the background: ${title}`), project.host ? `${visible(session.working_dir)}${onHost(project.host)}` : session.working_dir, ...(session.worktree ? [worktreeWords(session.worktree)] : []), ...(session.attempts ? ["One of several attempts at its prompt"] : []), ...(session.error ? [session.error] : [])].join("\n");
    item.accessibilityInformation = { label: `${nameOf(session)}, ${describe(session, Date.now())}${session.attempts ? ", one of several attempts" : ""}${where ? `, ${where}` : ""}${project.host ? `, ${project.name}` : ""}` };
    item.command = { command: openCommand(session.session_uuid), title: "Open Session" };
    return item;
  }

  /** refresh redraws only the rows that changed: a row that is redrawn during a click loses the click. */
  private refresh(): void {
    // The list stays, with a message above it that says why it may be outdated.
    // An empty list has a welcome text, which a message would hide.
    const hosts = this.projects.all.filter(({ host }) => host !== "");
    const [reason] = this.projects.reasons;
    const remedy = reason === undefined ? "" : this.projects.remedy(reason);
    const trouble = remedy === "" ? (reason ?? this.projects.troubles[0]) : `${reason}; ${remedy}`;
    const starting = hosts.some(({ connection }) => connection.state.is === "starting") ? `Connecting to ${hosts.map(({ host }) => host).join(", ")}…` : "Starting duet-rpc…";
    const words = trouble ?? (this.projects.state === "ready" ? "" : starting);
    // The welcome text is about duet-rpc here, not about a host.
    this.view.message = this.projects.sessions.length > 0 || hosts.length > 0 ? words : "";
    const [before, now] = [this.shown, this.rows()];
    this.shown = now;
    this.commands.show(now.flatMap(({ node }) => ("group" in node ? [] : [[openCommand(node.session.session_uuid), () => vscode.commands.executeCommand("duet.openSession", node)]])));
    const moved = before.length !== now.length || now.some(({ id, parent }, i) => before[i]!.id !== id || before[i]!.parent !== parent);
    // The objects of groups are new each time, so VS Code does not know these.
    const changed = now.filter(({ drawn }, i) => before[i]?.drawn !== drawn);
    if (moved || changed.some(({ node }) => "group" in node)) this.changed.fire(undefined);
    else if (changed.length > 0) this.changed.fire(changed.map(({ node }) => node));
  }

  private nodeOf({ project, session }: ProjectSession): ProjectSession {
    const known = this.nodes.get(session.session_uuid);
    if (!known) {
      const node = { project, session };
      this.nodes.set(session.session_uuid, node);
      return node;
    }
    return Object.assign(known, { project, session });
  }

  /** rows returns all rows of the list. */
  private rows(): Row[] {
    const row = (node: SessionNode, parent: string): Row => {
      const { id, label, description, contextValue, iconPath, tooltip } = this.getTreeItem(node);
      return { node, id: id!, parent, drawn: JSON.stringify([label, description, contextValue, iconPath, tooltip]) };
    };
    return this.getChildren().flatMap((group) => [row(group, ""), ...this.getChildren(group).map((node) => row(node, this.getTreeItem(group).id!))]);
  }

  dispose(): void {
    for (const subscription of [this.commands, ...this.subscriptions]) subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }
}

/** The branch of a session's worktree, or the name of another worktree that it works in. Empty: it works in the project's folder. */
function whereWords({ project, session: { worktree, working_dir } }: ProjectSession): string {
  if (worktree ?? project.host) return !worktree ? "" : worktree.gone ? `${visible(worktree.branch)} is gone` : `on ${visible(worktree.branch)}`;
  const name = worktreeOf(working_dir, projectRoot(project.folder.uri.fsPath));
  return name ? `in ${name}` : "";
}

function openCommand(session: string): string {
  return `duet.openSession/${session}`;
}

/** A row of the inbox: a question, a request for a key, or an answer to one. */
type InboxNode = ProjectQuestion | OpenKeyRequest | Answer;

/** A possible answer: the text of its row, and what it does. */
interface Answer {
  id: string;
  label: string;
  icon: string;
  detail?: string;
  send: () => unknown;
}

/** The open questions and requests for keys, each with its answers. The badge shows their number. Without any, VS Code hides the list. */
export class InboxTree implements vscode.TreeDataProvider<InboxNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<InboxNode>;
  private readonly stops: Array<() => void>;
  private shown = "";
  private readonly commands = new RowCommands();

  constructor(
    private readonly projects: Projects,
    private readonly keys: Keys,
  ) {
    this.view = vscode.window.createTreeView("duet.inbox", { treeDataProvider: this });
    this.view.onDidChangeVisibility(({ visible }) => visible && projects.start());
    this.stops = [projects.onChange(() => this.refresh()), keys.onChange(() => this.refresh())];
  }

  getChildren(node?: InboxNode): InboxNode[] {
    if (!node) return [...this.keys.open, ...this.projects.questions];
    if ("send" in node) return [];
    if ("question" in node) {
      const { approval } = node.question;
      return choicesOf(node.question).map(({ id: choice, ...row }) => ({ ...row, id: `${approval}/${choice}`, send: () => vscode.commands.executeCommand("duet.answer", node, choice) }));
    }
    return node.choices.map((choice) => ({ ...keyChoices[choice], id: `${node.id}/${choice}`, send: () => this.keys.answer(node.id, choice) }));
  }

  getTreeItem(node: InboxNode): vscode.TreeItem {
    if ("send" in node) {
      const { id, label, icon, detail } = node;
      const item = new vscode.TreeItem(label);
      item.id = id;
      item.iconPath = new vscode.ThemeIcon(icon);
      item.contextValue = "choice";
      if (detail) {
        item.description = short(detail);
        item.tooltip = detail;
      }
      item.command = { command: inboxCommand(id), title: label };
      return item;
    }
    const item = new vscode.TreeItem("question" in node ? titleOf(node.question) : node.what, vscode.TreeItemCollapsibleState.Expanded);
    if ("question" in node) {
      const { project, question } = node;
      const session = project.model.sessionOf(question);
      item.id = question.approval;
      item.description = [...(session ? [labelOf(session, question.turn)] : []), ...this.projects.labels(project), ...(question.stale ? ["its agent has ended"] : [])].join(" · ");
      item.iconPath = new vscode.ThemeIcon("question", new vscode.ThemeColor("charts.yellow"));
      item.contextValue = `question ${question.type === "human_contact" ? "contact" : "permission"}`;
      item.tooltip = new vscode.MarkdownString(detailsOf(question)); // not trusted: it cannot run commands
      item.command = { command: inboxCommand(question.approval), title: "Show Question" };
    } else {
      item.id = node.id;
      item.description = node.about;
      item.iconPath = new vscode.ThemeIcon("key", new vscode.ThemeColor("charts.yellow"));
      item.contextValue = "key";
    }
    return item;
  }

  /** refresh redraws the list only if a row has changed: a row that is redrawn during a click loses the click. */
  private refresh(): void {
    const nodes = this.getChildren().flatMap((node) => [node, ...this.getChildren(node)]);
    const now = JSON.stringify(nodes.map((node) => this.getTreeItem(node)).map((row) => [row.id, row.label, row.description]));
    if (now === this.shown) return;
    this.shown = now;
    this.commands.show(nodes.flatMap((node): Array<[string, () => unknown]> => {
      if ("send" in node) return [[inboxCommand(node.id), node.send]];
      return "question" in node ? [[inboxCommand(node.question.approval), () => vscode.commands.executeCommand("duet.showQuestion", node)]] : [];
    }));
    const value = this.getChildren().length;
    void vscode.commands.executeCommand("setContext", "duet.hasQuestions", value > 0);
    this.view.badge = value === 0 ? undefined : { value, tooltip: waitingWords(value) };
    this.changed.fire(undefined);
  }

  dispose(): void {
    this.commands.dispose();
    for (const stop of this.stops) stop();
    this.view.dispose();
    this.changed.dispose();
  }
}

function inboxCommand(id: string): string {
  return `duet.inbox/${id}`;
}

/** How many questions wait, for a tooltip. */
export function waitingWords(count: number): string {
  return count === 1 ? "1 question waits for you" : `${count} questions wait for you`;
}

type OtherNode = OtherProject | { host: string; root: string; session: Session };

/** The root of a project for the user: devbox:/srv/parser. */
function placed({ host, root }: { host: string; root: string }): string {
  return host === "" ? root : `${host}:${root}`;
}

/** The sessions of projects that are not open in this window. The list loads when it becomes visible, and on request. */
export class OtherProjectsTree implements vscode.TreeDataProvider<OtherNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<OtherNode>;
  private readonly subscription: vscode.Disposable;

  constructor(private readonly projects: Projects) {
    this.view = vscode.window.createTreeView("duet.otherProjects", { treeDataProvider: this });
    this.subscription = this.view.onDidChangeVisibility(({ visible }) => {
      if (!visible) return;
      projects.start();
      this.refresh();
    });
  }

  refresh(): void {
    this.changed.fire(undefined);
  }

  async getChildren(node?: OtherNode): Promise<OtherNode[]> {
    if (node) return "session" in node ? [] : node.sessions.map((session) => ({ host: node.host, root: node.root, session }));
    const [first] = this.projects.all;
    if (!first) return [];
    try {
      const roots = this.projects.all.filter(({ host }) => host === "").map(({ folder }) => projectRoot(folder.uri.fsPath));
      const known = new Set(this.projects.sessions.filter(({ project }) => project.host !== "").map(({ session }) => session.session_uuid));
      const isOpen = ({ host, root, sessions }: OtherProject): boolean => (host === "" ? roots.includes(root) : sessions.some(({ session_uuid }) => known.has(session_uuid)));
      const others = await listOthers(await first.connection.program(), first.folder.uri.fsPath, isOpen, withoutHost(process.env));
      this.view.message = "";
      return others;
    } catch (error) {
      this.view.message = error instanceof Error ? error.message : String(error);
      return [];
    }
  }

  getTreeItem(node: OtherNode): vscode.TreeItem {
    if (!("session" in node)) {
      const name = node.host === "" ? basename(node.root) : [posix.basename(node.root), node.host].filter((part) => part !== "").join("@");
      const item = new vscode.TreeItem(name, node.sessions.length > 0 ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None);
      item.id = placed(node);
      item.description = node.error ?? [node.hub ? "" : "as it was kept", String(node.sessions.length)].filter((part) => part !== "").join(" · ");
      item.tooltip = placed(node);
      item.iconPath = new vscode.ThemeIcon(node.host === "" ? "folder" : "remote");
      item.contextValue = node.root === "" ? "" : "project";
      return item;
    }
    const { session } = node;
    const [icon, colour] = icons[groupOf(session)];
    const item = new vscode.TreeItem(nameOf(session));
    item.id = `${placed(node)}/${session.session_uuid}`;
    item.description = describe(session, Date.now());
    item.iconPath = new vscode.ThemeIcon(icon, new vscode.ThemeColor(colour));
    item.tooltip = `${nameOf(session)}\n${session.agent}, ${statusWords(session)}\n${placed(node)}`;
    item.accessibilityInformation = { label: `${nameOf(session)}, ${describe(session, Date.now())}` };
    item.command = { command: "duet.openProject", title: "Open the Project", arguments: [node] };
    return item;
  }

  dispose(): void {
    this.subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }
}

/** Opens another project: in this window or in a new one, or on its host in place of a folder's own project. */
export async function openProject(projects: Projects, of: { host: string; root: string }): Promise<void> {
  if (of.host !== "") return workThere(projects, of);
  const [fresh, here] = ["Open in New Window", "Open in This Window"];
  const pressed = await confirm(`open ${of.root}?`, "", fresh, here);
  if (pressed) await vscode.commands.executeCommand("vscode.openFolder", vscode.Uri.file(of.root), { forceNewWindow: pressed === fresh });
}

async function workThere(projects: Projects, { host, root }: { host: string; root: string }): Promise<void> {
  const project = await pickProject(projects);
  if (!project) return;
  const { folder } = project;
  const there = "Show Its Sessions";
  if ((await confirm(`show the sessions of ${host}:${root} in this window?`, `They take the place of those of ${folder.name} until you choose where agents work.`, there)) !== there) return;
  const settings = vscode.workspace.getConfiguration("duet", folder.uri);
  await settings.update("hostDirectory", root, vscode.ConfigurationTarget.WorkspaceFolder);
  await settings.update("host", host, vscode.ConfigurationTarget.WorkspaceFolder);
}
