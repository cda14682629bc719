import * as vscode from "vscode";
import { backgroundOf, describe, grouped, groupOf, isAlive, nameOf, statusWords } from "../hub/groups";
import type { Group, GroupId } from "../hub/groups";
import { worktreeOf } from "../hub/others";
import { projectRoot } from "../hub/root";
import type { Projects, ProjectSession } from "../projects";

/** A row of the list: a group, or a session of one. */
type Node = { group: Group; sessions: ProjectSession[] } | ProjectSession;

/** A row as it is drawn. */
interface Row {
  node: Node;
  id: string;
  parent: string;
  drawn: string;
}

/** The dot of each group. */
export const icons: Record<GroupId, [icon: string, colour: string]> = {
  waiting: ["circle-filled", "charts.yellow"],
  working: ["circle-filled", "charts.blue"],
  queued: ["circle-outline", "charts.blue"],
  failed: ["circle-filled", "charts.red"],
  done: ["circle-filled", "charts.green"],
  draft: ["circle-outline", "descriptionForeground"],
  archived: ["archive", "descriptionForeground"],
};

/** The list of sessions, in groups. */
export class SessionsTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Node[] | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly subscriptions: vscode.Disposable[];
  private shown: Row[] = [];
  /** What VS Code has for a conversation: always the same object, so that a row can be drawn anew by itself. */
  private readonly nodes = new Map<string, ProjectSession>();
  /**
   * A row is opened by a command without arguments. Those of a row's command are forgotten when the row is drawn
   * anew, so that a click at that moment would be answered with an error of VS Code's.
   */
  private readonly commands = new Map<string, vscode.Disposable>();

  constructor(private readonly projects: Projects) {
    this.view = vscode.window.createTreeView("duet.sessions", { treeDataProvider: this });
    this.subscriptions = [
      new vscode.Disposable(projects.onChange(() => this.refresh())),
      vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("duet") && this.refresh()),
      this.view.onDidChangeVisibility(({ visible }) => {
        if (visible) projects.start();
        this.refresh(); // ages have changed meanwhile
      }),
    ];
    if (this.view.visible) projects.start();
  }

  getChildren(node?: Node): Node[] {
    if (!node) {
      const sessions = this.projects.sessions.map((of) => this.nodeOf(of));
      const withArchive = vscode.workspace.getConfiguration("duet").get("showArchived", false);
      return grouped(sessions.map(({ session }) => session))
        .filter(({ id }) => withArchive || id !== "archived")
        .map((group) => ({ group, sessions: sessions.filter(({ session }) => group.sessions.includes(session)) }));
    }
    return "group" in node ? node.sessions : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
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
    item.id = session.thread_id;
    const worktree = worktreeOf(session.working_dir, projectRoot(project.folder.uri.fsPath));
    item.description = [describe(session, Date.now()), ...(worktree ? [`in ${worktree}`] : []), ...(this.projects.all.length > 1 ? [project.name] : [])].join(" · ");
    item.iconPath = new vscode.ThemeIcon(icon, new vscode.ThemeColor(colour));
    const background = backgroundOf(session);
    item.contextValue = ["session", isAlive(session) ? "alive" : "ended", ...(background.length > 0 ? ["background"] : []), ...(session.archived ? ["archived"] : [])].join(" ");
    item.tooltip = [nameOf(session), `${session.agent}, ${statusWords(session)}`, ...background.map((title) => `In the background: ${title}`), session.working_dir, ...(session.error_message ? [session.error_message] : [])].join("\n");
    item.accessibilityInformation = { label: `${nameOf(session)}, ${statusWords(session)}, ${describe(session, Date.now())}` };
    item.command = { command: commandOf(session.thread_id), title: "Open Conversation" };
    return item;
  }

  /** refresh draws what is otherwise than it was drawn last, and nothing else: what is drawn anew under a click loses it. */
  private refresh(): void {
    // The list stays as it was; why it may not be so any more stands above it.
    // An empty list says what to do, which a message would hide.
    this.view.message = this.projects.sessions.length > 0 && this.projects.state !== "ready" ? (this.projects.reasons[0] ?? "Starting duet-rpc…") : "";
    const [before, now] = [this.shown, this.rows()];
    this.shown = now;
    this.registerCommands(now);
    const moved = before.length !== now.length || now.some(({ id, parent }, i) => before[i]!.id !== id || before[i]!.parent !== parent);
    // Of groups VS Code has other objects than these.
    const changed = now.filter(({ drawn }, i) => before[i]?.drawn !== drawn);
    if (moved || changed.some(({ node }) => "group" in node)) this.changed.fire(undefined);
    else if (changed.length > 0) this.changed.fire(changed.map(({ node }) => node));
  }

  private nodeOf({ project, session }: ProjectSession): ProjectSession {
    const known = this.nodes.get(session.thread_id);
    if (!known) {
      const node = { project, session };
      this.nodes.set(session.thread_id, node);
      return node;
    }
    return Object.assign(known, { project, session });
  }

  /** rows are all rows as they are to be shown. */
  private rows(): Row[] {
    const row = (node: Node, parent: string): Row => {
      const { id, label, description, contextValue, iconPath, tooltip } = this.getTreeItem(node);
      return { node, id: id!, parent, drawn: JSON.stringify([label, description, contextValue, iconPath, tooltip]) };
    };
    return this.getChildren().flatMap((group) => [row(group, ""), ...this.getChildren(group).map((node) => row(node, this.getTreeItem(group).id!))]);
  }

  private registerCommands(rows: readonly Row[]): void {
    const wanted = new Set<string>();
    for (const { node } of rows) {
      if ("group" in node) continue;
      const command = commandOf(node.session.thread_id);
      wanted.add(command);
      if (!this.commands.has(command)) this.commands.set(command, vscode.commands.registerCommand(command, () => vscode.commands.executeCommand("duet.openSession", node)));
    }
    for (const [command, registered] of this.commands) {
      if (wanted.has(command)) continue;
      registered.dispose();
      this.commands.delete(command);
    }
  }

  dispose(): void {
    for (const subscription of [...this.commands.values(), ...this.subscriptions]) subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }
}

function commandOf(thread: string): string {
  return `duet.openSession/${thread}`;
}
