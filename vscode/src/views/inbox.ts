import * as vscode from "vscode";
import { nameOf, short } from "../hub/groups";
import { choicesOf, detailsOf, titleOf } from "../hub/questions";
import type { Choice } from "../hub/questions";
import type { ProjectQuestion, Projects } from "../projects";

/** A row of the inbox: a question, or an answer to one. */
type Node = ProjectQuestion | { of: ProjectQuestion; choice: Choice };

/** The questions that wait, each with its answers. The badge has their number. */
export class InboxTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly stop: () => void;
  private shown = "";
  /**
   * Each answer that is shown is a command without arguments. Those of a row's command are forgotten when the
   * row is drawn anew, so that a click at that moment would be answered with an error of VS Code's.
   */
  private readonly commands = new Map<string, vscode.Disposable>();

  constructor(private readonly projects: Projects) {
    this.view = vscode.window.createTreeView("duet.inbox", { treeDataProvider: this });
    this.view.onDidChangeVisibility(({ visible }) => visible && projects.start());
    this.stop = projects.onChange(() => {
      // What is drawn anew under a click loses it.
      const now = JSON.stringify(this.rows().map((row) => [row.id, row.label, row.description]));
      if (now === this.shown) return;
      this.shown = now;
      this.registerAnswers();
      const value = this.projects.questions.length;
      this.view.badge = value === 0 ? undefined : { value, tooltip: value === 1 ? "1 question waits for you" : `${value} questions wait for you` };
      this.changed.fire(undefined);
    });
  }

  getChildren(node?: Node): Node[] {
    if (!node) return this.projects.questions;
    if ("of" in node) return [];
    return choicesOf(node.question).map((choice) => ({ of: node, choice }));
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if ("of" in node) {
      const { of, choice } = node;
      const item = new vscode.TreeItem(choice.label);
      item.id = `${of.question.id}/${choice.id}`;
      item.iconPath = new vscode.ThemeIcon(choice.icon);
      item.contextValue = "choice";
      if (choice.detail) {
        item.description = short(choice.detail);
        item.tooltip = choice.detail;
      }
      item.command = { command: commandOf(of, choice), title: choice.label };
      return item;
    }
    const { project, question } = node;
    const item = new vscode.TreeItem(titleOf(question), vscode.TreeItemCollapsibleState.Expanded);
    const session = project.model.conversationOf(question);
    item.id = question.id;
    item.description = [...(session ? [nameOf(session)] : []), ...(this.projects.all.length > 1 ? [project.name] : []), ...(question.stale ? ["its agent has ended"] : [])].join(" · ");
    item.iconPath = new vscode.ThemeIcon("question", new vscode.ThemeColor("charts.yellow"));
    item.contextValue = `question ${question.type === "human_contact" ? "contact" : "permission"}`;
    item.tooltip = new vscode.MarkdownString(detailsOf(question)); // not trusted: no command in it runs
    return item;
  }

  /** rows are all rows as they are to be shown. */
  private rows(): vscode.TreeItem[] {
    const all = this.projects.questions.flatMap((question): Node[] => [question, ...this.getChildren(question)]);
    return all.map((node) => this.getTreeItem(node));
  }

  private registerAnswers(): void {
    const wanted = new Set<string>();
    for (const of of this.projects.questions) {
      for (const choice of choicesOf(of.question)) {
        const command = commandOf(of, choice);
        wanted.add(command);
        if (!this.commands.has(command)) this.commands.set(command, vscode.commands.registerCommand(command, () => vscode.commands.executeCommand("duet.answer", of, choice.id)));
      }
    }
    for (const [command, registered] of this.commands) {
      if (wanted.has(command)) continue;
      registered.dispose();
      this.commands.delete(command);
    }
  }

  dispose(): void {
    for (const registered of this.commands.values()) registered.dispose();
    this.stop();
    this.view.dispose();
    this.changed.dispose();
  }
}

function commandOf({ question }: ProjectQuestion, { id }: Choice): string {
  return `duet.answer/${question.id}/${id}`;
}
