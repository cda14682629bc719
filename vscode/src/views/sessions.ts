import * as vscode from "vscode";
import { describe, grouped, groupOf, isAlive, nameOf } from "../hub/groups";
import type { Group, GroupId } from "../hub/groups";
import { worktreeOf } from "../hub/others";
import { projectRoot } from "../hub/root";
import type { Projects, ProjectSession } from "../projects";

/** A row of the list: a group, or a session of one. */
type Node = { group: Group; sessions: ProjectSession[] } | ProjectSession;

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
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly subscriptions: vscode.Disposable[];
  private shown = "";

  constructor(private readonly projects: Projects) {
    this.view = vscode.window.createTreeView("duet.sessions", { treeDataProvider: this });
    const refresh = (): void => {
      // The list stays as it was; why it may not be so any more stands above it.
      // An empty list says what to do, which a message would hide.
      this.view.message = this.projects.sessions.length > 0 && this.projects.state !== "ready" ? (this.projects.reasons[0] ?? "Starting duet-rpc…") : "";
      // What is drawn anew under a click loses it.
      const now = JSON.stringify(this.rows().map(({ id, label, description, contextValue, iconPath }) => [id, label, description, contextValue, iconPath]));
      if (now === this.shown) return;
      this.shown = now;
      this.changed.fire(undefined);
    };
    this.subscriptions = [
      new vscode.Disposable(projects.onChange(refresh)),
      vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("duet") && refresh()),
      this.view.onDidChangeVisibility(refresh), // ages have changed meanwhile
    ];
  }

  getChildren(node?: Node): Node[] {
    if (!node) {
      const sessions = this.projects.sessions;
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
    item.contextValue = ["session", isAlive(session) ? "alive" : "ended", ...(session.archived ? ["archived"] : [])].join(" ");
    item.tooltip = [nameOf(session), `${session.agent}, ${session.status.replace("_", " ")}`, session.working_dir, ...(session.error_message ? [session.error_message] : [])].join("\n");
    item.accessibilityInformation = { label: `${nameOf(session)}, ${session.status.replace("_", " ")}, ${describe(session, Date.now())}` };
    item.command = { command: "duet.openSession", title: "Open Conversation", arguments: [node] };
    return item;
  }

  /** rows are all rows as they are to be shown. */
  private rows(): vscode.TreeItem[] {
    return this.getChildren().flatMap((node) => [node, ...this.getChildren(node)]).map((node) => this.getTreeItem(node));
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }
}
