import * as vscode from "vscode";
import { basename } from "node:path";
import { describe, groupOf, nameOf } from "../hub/groups";
import { listOthers } from "../hub/others";
import type { OtherProject } from "../hub/others";
import { projectRoot } from "../hub/root";
import type { Session } from "../hub/model";
import type { Projects } from "../projects";
import { icons } from "./sessions";

type Node = OtherProject | { root: string; session: Session };

/** The sessions of projects that are not open here. They are asked for when the list is opened, and on request. */
export class OtherProjectsTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
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

  async getChildren(node?: Node): Promise<Node[]> {
    if (node) return "session" in node ? [] : node.sessions.map((session) => ({ root: node.root, session }));
    const [first] = this.projects.all;
    if (!first) return [];
    try {
      const open = this.projects.all.map(({ folder }) => projectRoot(folder.uri.fsPath));
      const others = await listOthers(await first.connection.program(), first.folder.uri.fsPath, open, process.env);
      this.view.message = "";
      return others;
    } catch (error) {
      this.view.message = error instanceof Error ? error.message : String(error);
      return [];
    }
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (!("session" in node)) {
      const item = new vscode.TreeItem(basename(node.root), vscode.TreeItemCollapsibleState.Collapsed);
      item.id = node.root;
      item.description = node.error ?? [node.hub ? "" : "as it was kept", String(node.sessions.length)].filter((part) => part !== "").join(" · ");
      item.tooltip = node.root;
      item.iconPath = new vscode.ThemeIcon("folder");
      item.contextValue = "project";
      return item;
    }
    const { session, root } = node;
    const [icon, colour] = icons[groupOf(session)];
    const item = new vscode.TreeItem(nameOf(session));
    item.id = `${root}/${session.thread_id}`;
    item.description = describe(session, Date.now());
    item.iconPath = new vscode.ThemeIcon(icon, new vscode.ThemeColor(colour));
    item.tooltip = `${nameOf(session)}\n${session.agent}, ${session.status.replace("_", " ")}\n${root}`;
    item.accessibilityInformation = { label: `${nameOf(session)}, ${session.status.replace("_", " ")}, ${describe(session, Date.now())}` };
    item.command = { command: "duet.openProject", title: "Open the Project", arguments: [node] };
    return item;
  }

  dispose(): void {
    this.subscription.dispose();
    this.view.dispose();
    this.changed.dispose();
  }
}

/** Opens another project, in this window or in another one. */
export async function openProject({ root }: { root: string }): Promise<void> {
  const [fresh, here] = ["Open in New Window", "Open in This Window"];
  const pressed = await vscode.window.showInformationMessage(`Duet: open ${root}?`, { modal: true }, fresh, here);
  if (pressed) await vscode.commands.executeCommand("vscode.openFolder", vscode.Uri.file(root), { forceNewWindow: pressed === fresh });
}
