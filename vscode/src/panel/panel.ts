// The panel of one conversation.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { groupOf, nameOf, short } from "../hub/groups";
import type { GroupId } from "../hub/groups";
import type { Session } from "../hub/model";
import type { Project, Projects, ProjectSession } from "../projects";
import { Bridge } from "./bridge";
import type { PanelHandlers } from "./bridge";
import { messageHtml, pageHtml } from "./html";
import type { PromptContent } from "./protocol";

/** What has to be known of a panel to show it again; the page keeps it. */
export interface PanelPlace {
  folder: string;
  thread: string;
  session: string;
  title: string;
}

export interface PanelParts {
  /** What no other window has, nor this one after it was loaded again. */
  window: string;
  projects: Projects;
  extension: vscode.Uri;
  /** Makes what the extension does for the page. */
  handlers: (panel: Panel) => PanelHandlers;
  onError: (error: unknown) => void;
}

export class Panel implements vscode.Disposable {
  readonly thread: string;
  private readonly bridge: Bridge;
  private readonly subscriptions: vscode.Disposable[];
  private shown = "";
  private gone = false;
  private disposed = false;

  constructor(
    readonly view: vscode.WebviewPanel,
    readonly project: Project,
    private place: PanelPlace,
    private readonly parts: PanelParts,
  ) {
    this.thread = place.thread;
    const { webview } = view;
    webview.options = { enableScripts: true, localResourceRoots: [this.dist] };
    this.bridge = new Bridge({
      webview, hub: project.connection, thread: place.thread, handlers: parts.handlers(this), onError: parts.onError,
      onLost: () => void this.verify().then((there) => there && this.load()).catch(parts.onError),
    });
    this.subscriptions = [
      view.onDidChangeViewState(() => {
        if (!view.visible) this.bridge.pause(); // its page is gone, and is loaded again when it is seen
      }),
      view.onDidDispose(() => this.dispose()),
      new vscode.Disposable(parts.projects.onChange(() => this.follow())),
      new vscode.Disposable(project.connection.onState(({ is }) => is === "ready" && void this.verify().catch(parts.onError))),
      new vscode.Disposable(project.connection.onEvent(({ event: { type, data } }) => {
        if (type === "session_deleted" && data.thread_id === this.thread) void this.verify().catch(parts.onError);
      })),
    ];
    this.follow();
    this.load();
    if (project.connection.state.is === "ready") void this.verify().catch(parts.onError);
  }

  /** The last session of the conversation, as it is known. */
  get session(): Session | undefined {
    return this.project.model.sessions.find(({ thread_id }) => thread_id === this.thread);
  }

  /** The same, asked for where it is not in the list. */
  async askSession(): Promise<ProjectSession> {
    const session = this.session ?? (await this.project.connection.request("getSessionState", { session_id: this.thread })).session;
    return { project: this.project, session };
  }

  /** The id of its last session. */
  get sessionId(): string {
    return this.session?.id ?? this.place.session;
  }

  get title(): string {
    return this.session ? nameOf(this.session) : this.place.title;
  }

  get scope(): Bridge["scope"] {
    return this.bridge.scope;
  }

  insert(text: string, content: PromptContent[] = []): void {
    this.bridge.post("panel.insert", { text, ...(content.length > 0 ? { content } : {}) });
  }

  focus(): void {
    this.bridge.post("panel.focus", {});
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    for (const subscription of this.subscriptions) subscription.dispose();
    this.bridge.dispose();
  }

  private get dist(): vscode.Uri {
    return vscode.Uri.joinPath(this.parts.extension, "dist");
  }

  /** load has the page begin anew. */
  private load(): void {
    const { webview } = this.view;
    const address = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(this.dist, name)).toString();
    this.place = { ...this.place, session: this.sessionId, title: this.title };
    webview.html = pageHtml({
      source: webview.cspSource, script: address("panel.js"), style: address("panel.css"), nonce: randomBytes(16).toString("base64url"), title: this.title, place: JSON.stringify({ ...this.place, window: this.parts.window }),
    });
  }

  /** verify looks whether the conversation is still there; if not, the panel says so. */
  private async verify(): Promise<boolean> {
    if (this.gone || this.disposed) return false;
    try {
      await this.project.connection.request("getSessionState", { session_id: this.thread });
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    if (this.disposed) return false;
    this.gone = true;
    this.bridge.pause();
    this.view.webview.html = messageHtml(this.title, "This conversation was deleted.");
    return false;
  }

  /** follow has the tab say how the session is. */
  private follow(): void {
    const { session } = this;
    if (!session && this.shown !== "") return;
    const group: GroupId = session ? groupOf(session) : "draft";
    const title = short(this.title, 40);
    if (this.shown === `${group} ${title}`) return;
    this.shown = `${group} ${title}`;
    this.view.title = title;
    this.view.iconPath = vscode.Uri.joinPath(this.parts.extension, "media", "state", `${group}.svg`);
  }
}

function isNotFound(error: unknown): boolean {
  return (error as { data?: { kind?: unknown } }).data?.kind === "session_not_found";
}
