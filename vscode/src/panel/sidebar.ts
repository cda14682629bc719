// The view in the side bar (duet.openIn), which shows one session at a time.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { emptyHtml } from "./html";

const viewId = "duet.panel";
const emptyTitle = "Session";

/** The parts of an editor tab that a panel uses. A session in the side bar has them, too. */
export interface PanelView {
  readonly webview: vscode.Webview;
  readonly visible: boolean;
  /** Whether commands without a session are about it. */
  readonly active: boolean;
  readonly isSideBar?: boolean;
  title: string;
  iconPath?: vscode.WebviewPanel["iconPath"];
  readonly onDidChangeViewState: vscode.Event<unknown>;
  readonly onDidDispose: vscode.Event<void>;
  reveal(column?: vscode.ViewColumn): void;
  dispose(): void;
}

/** The view of the side bar. VS Code creates it when the user first sees it, and again after the user has moved it. */
export class SideBar implements vscode.WebviewViewProvider, vscode.Disposable {
  private view: vscode.WebviewView | undefined;
  private shown: SideBarPlace | undefined;
  private waiting: Array<(view: vscode.WebviewView) => void> = [];
  private readonly registration = vscode.window.registerWebviewViewProvider(viewId, this);

  /** restore shows the session whose page has left a state, in the window before a reload. */
  constructor(
    private readonly extension: vscode.Uri,
    private readonly restore: (place: PanelView, state: unknown) => void,
  ) {}

  /** Whether the setting says that sessions open here. */
  get isChosen(): boolean {
    return vscode.workspace.getConfiguration("duet").get<string>("openIn") === "sideBar";
  }

  /** Shows the view, and returns its place for a session. The place of the session before it is disposed. */
  async take(): Promise<PanelView> {
    if (this.view) {
      this.view.show();
      return this.place(this.view);
    }
    const created = new Promise<vscode.WebviewView>((resolve) => this.waiting.push(resolve));
    await vscode.commands.executeCommand(`${viewId}.focus`);
    return this.place(await created);
  }

  /** Whether a panel is here. */
  has(view: PanelView): boolean {
    return view === this.shown;
  }

  /** VS Code calls this when it has created the view. */
  resolveWebviewView(view: vscode.WebviewView, { state }: vscode.WebviewViewResolveContext): void {
    this.view = view;
    view.onDidDispose(() => {
      if (this.view !== view) return;
      this.view = undefined;
      this.shown?.end();
      this.shown = undefined;
    });
    const waiting = this.waiting.splice(0);
    for (const take of waiting) take(view);
    if (waiting.length > 0) return;
    if (state === undefined) this.clear();
    else this.restore(this.place(view), state);
  }

  dispose(): void {
    this.registration.dispose();
  }

  private place(view: vscode.WebviewView): SideBarPlace {
    this.shown?.end();
    return (this.shown = new SideBarPlace(view, () => this.clear()));
  }

  /** clear shows that there is no session. */
  private clear(): void {
    this.shown = undefined;
    if (!this.view) return;
    const { webview } = this.view;
    const dist = vscode.Uri.joinPath(this.extension, "dist");
    this.view.title = emptyTitle;
    webview.options = { enableScripts: true, enableCommandUris: ["duet.newSession", "duet.openSession"], localResourceRoots: [dist] };
    webview.html = emptyHtml({ source: webview.cspSource, style: webview.asWebviewUri(vscode.Uri.joinPath(dist, "panel.css")).toString(), nonce: randomBytes(16).toString("base64url"), title: emptyTitle });
  }
}

/** The place of one session in the side bar. It ends before the view does. */
class SideBarPlace implements PanelView {
  private readonly disposed = new vscode.EventEmitter<void>();
  readonly onDidDispose = this.disposed.event;
  readonly isSideBar = true;
  private ended = false;

  constructor(
    private readonly view: vscode.WebviewView,
    private readonly clear: () => void,
  ) {}

  get webview(): vscode.Webview {
    return this.view.webview;
  }

  get visible(): boolean {
    return !this.ended && this.view.visible;
  }

  get active(): boolean {
    return this.visible;
  }

  get title(): string {
    return this.view.title ?? "";
  }

  set title(title: string) {
    this.view.title = title;
  }

  get onDidChangeViewState(): vscode.Event<unknown> {
    return this.view.onDidChangeVisibility;
  }

  reveal(): void {
    this.view.show();
  }

  dispose(): void {
    if (this.ended) return;
    this.end();
    this.clear();
  }

  /** Ends the panel of the session, and leaves the page to the next one. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.disposed.fire();
    this.disposed.dispose();
  }
}
