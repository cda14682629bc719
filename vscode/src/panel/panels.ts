// The panels of a window: one a conversation.
import * as vscode from "vscode";
import { nameOf } from "../hub/groups";
import type { Projects, ProjectSession } from "../projects";
import { messageHtml } from "./html";
import { Panel } from "./panel";
import type { PanelParts, PanelPlace } from "./panel";

export const panelType = "duet.session";

export class Panels implements vscode.WebviewPanelSerializer, vscode.Disposable {
  private readonly all = new Map<string, Panel>();
  private readonly subscriptions: vscode.Disposable[];
  /** The panel in which somebody was last. */
  private last: Panel | undefined;

  constructor(
    private readonly projects: Projects,
    private readonly parts: PanelParts,
  ) {
    this.subscriptions = [vscode.window.registerWebviewPanelSerializer(panelType, this)];
  }

  /** Shows a conversation, where it is already, else in a column. */
  open({ project, session }: ProjectSession, column = vscode.ViewColumn.Active): Panel {
    project.model.add(session);
    const open = this.all.get(session.thread_id);
    if (open) {
      open.view.reveal(column === vscode.ViewColumn.Active ? undefined : column);
      return open;
    }
    const view = vscode.window.createWebviewPanel(panelType, nameOf(session), column, { enableFindWidget: true });
    return this.add(view, { folder: project.folder.uri.fsPath, thread: session.thread_id, session: session.id, title: nameOf(session) })!;
  }

  /** Whether a person has a conversation before the eyes. */
  isShown({ session }: ProjectSession): boolean {
    return vscode.window.state.focused && this.all.get(session.thread_id)?.view.visible === true;
  }

  /** The panel that has the keyboard. */
  get active(): Panel | undefined {
    return [...this.all.values()].find(({ view }) => view.active);
  }

  /** The panel in which somebody was last, if it is still open. */
  get recent(): Panel | undefined {
    return this.active ?? this.last ?? [...this.all.values()].at(-1);
  }

  /** Called by VS Code for each panel that was open before the window was loaded again. */
  deserializeWebviewPanel(view: vscode.WebviewPanel, state: unknown): Promise<void> {
    this.projects.start();
    this.restore(view, state);
    return Promise.resolve();
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    for (const panel of this.all.values()) panel.dispose();
    this.all.clear();
  }

  private restore(view: vscode.WebviewPanel, state: unknown): void {
    const place = (state as { place?: Partial<PanelPlace> } | undefined)?.place;
    if (typeof place?.folder !== "string" || typeof place.thread !== "string" || typeof place.session !== "string" || typeof place.title !== "string") {
      view.webview.html = messageHtml(view.title, "It is not known which conversation this panel has shown. Open it from the list of sessions.");
      return;
    }
    const twin = this.all.get(place.thread);
    if (twin && twin.view !== view) twin.view.dispose();
    if (!this.add(view, place as PanelPlace)) view.webview.html = messageHtml(place.title, `The folder ${place.folder}, to which this conversation belongs, is not open in this window.`);
  }

  private add(view: vscode.WebviewPanel, place: PanelPlace): Panel | undefined {
    const project = this.projects.at(place.folder);
    if (!project) return undefined;
    const panel = new Panel(view, project, place, this.parts);
    this.all.set(place.thread, panel);
    this.last = panel;
    view.onDidChangeViewState(() => {
      if (view.active) this.last = panel;
    });
    view.onDidDispose(() => {
      if (this.all.get(place.thread) === panel) this.all.delete(place.thread);
      if (this.last === panel) this.last = undefined;
    });
    return panel;
  }
}
