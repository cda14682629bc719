// The panels of a window: one for each session, in an editor tab or in the side bar.
import { randomBytes, randomUUID } from "node:crypto";
import { join, relative } from "node:path";
import * as vscode from "vscode";
import { Emitter } from "../hub/events";
import { groupOf, nameOf, short } from "../hub/groups";
import type { GroupId } from "../hub/groups";
import type { Session } from "../hub/model";
import { realPath, repositoryOf } from "../hub/root";
import type { Project, Projects, ProjectSession } from "../projects";
import { Bridge } from "./bridge";
import type { PanelHandlers } from "./bridge";
import { contextOf } from "./files";
import type { ActiveEditor, PromptFolders } from "./files";
import { messageHtml, pageHtml } from "./html";
import type { Beginning, Beginnings } from "./newsession";
import type { EditorContext, ItemKey, PromptContent } from "./protocol";
import { SideBar } from "./sidebar";
import type { PanelView } from "./sidebar";

/** The data that restores a panel. The page keeps it. */
export interface PanelPlace {
  folder: string;
  /** The uuid of the session. */
  session: string;
  title: string;
  /** The host of the session. Absent: this machine. */
  host?: string;
}

/** The parts that all panels share. */
export interface PanelParts {
  /** An id of this window that is new after a reload. */
  window: string;
  projects: Projects;
  extension: vscode.Uri;
  beginnings: Beginnings;
  editor: ActiveEditor;
  /** Creates the extension's own methods for the page. */
  handlers: (panel: Panel) => PanelHandlers;
  onError: (error: unknown) => void;
}

/** The panel of one session. */
export class Panel implements vscode.Disposable {
  /** The uuid of the session. */
  readonly uuid: string;
  private readonly bridge: Bridge;
  private readonly subscriptions: vscode.Disposable[];
  private shown = "";
  private shownFolder = "";
  private gone = false;
  private disposed = false;
  private wasActive: boolean;

  constructor(
    readonly view: PanelView,
    readonly project: Project,
    private place: PanelPlace,
    private readonly parts: PanelParts,
  ) {
    this.uuid = place.session;
    this.wasActive = view.active;
    const { webview } = view;
    webview.options = { enableScripts: true, localResourceRoots: [this.dist] };
    this.bridge = new Bridge({
      webview, hub: project.connection, session: place.session, handlers: parts.handlers(this), isNew: () => this.isNew(), onError: parts.onError,
      onLost: () => void this.verify().then((there) => there && this.load()).catch(parts.onError),
    });
    this.subscriptions = [
      view.onDidChangeViewState(() => {
        if (!view.visible) this.bridge.pause(); // the page is gone; VS Code loads it again when the panel is visible
        // The view of the side bar may become visible while the user works elsewhere.
        if (view.active && !this.wasActive && !view.isSideBar) this.enter();
        this.wasActive = view.active;
      }),
      view.onDidDispose(() => this.dispose()),
      new vscode.Disposable(parts.projects.onChange(() => this.follow())),
      new vscode.Disposable(parts.editor.onChange(() => this.tellContext())),
      new vscode.Disposable(project.connection.onState(({ is }) => is === "ready" && void this.verify().catch(parts.onError))),
      new vscode.Disposable(project.connection.onEvent(({ kind, data }) => {
        if (kind === "session.deleted" && data.session_uuid === this.uuid) void this.verify().catch(parts.onError);
      })),
    ];
    this.follow();
    this.load();
    if (project.connection.state.is === "ready") void this.verify().catch(parts.onError);
  }

  /** The session, from the list. */
  get session(): Session | undefined {
    return this.project.model.sessionOf({ session_uuid: this.uuid });
  }

  /** What its first prompt starts. undefined: the session exists. */
  get beginning(): Beginning | undefined {
    return this.parts.beginnings.of(this.uuid);
  }

  /** The working directory of the agent, as far as the list has it. */
  get folder(): string {
    return this.beginning?.chosen.folder ?? this.session?.working_dir ?? this.project.folder.uri.fsPath;
  }

  /** The folders whose files its prompts name. */
  get folders(): PromptFolders {
    if (this.project.host) return [this.folder]; // its files are on the host
    const { session = this.project.model.ofTurn(this.beginning?.fork?.turn ?? ""), folder } = this;
    const worktree = session?.worktree;
    const top = worktree && !worktree.gone && repositoryOf(realPath(this.project.folder.uri.fsPath));
    return top ? [folder, join(top, relative(worktree.dir, folder))] : [folder];
  }

  /**
   * Asks the daemon whether the first prompt still has to start the session. A window may end, or lose its daemon, before
   * it learns of the start.
   */
  async isNew(): Promise<boolean> {
    if (!this.beginning) return false;
    try {
      await this.project.connection.request("turn.get", { turn: this.uuid });
    } catch (error) {
      if (isNotFound(error)) return true;
      throw error;
    }
    this.parts.beginnings.forget(this.uuid);
    return false;
  }

  /** The session, from the daemon if it is not in the list. */
  async askSession(): Promise<ProjectSession> {
    if (this.beginning) throw new Error("this session has not started: send its first prompt");
    const session = this.session ?? (await this.project.connection.request("turn.get", { turn: this.uuid })).turn;
    return { project: this.project, session };
  }

  get title(): string {
    return this.session ? nameOf(this.session) : this.place.title;
  }

  get scope(): Bridge["scope"] {
    return this.bridge.scope;
  }

  get editor(): ActiveEditor["current"] {
    return this.parts.editor.current;
  }

  /** What its prompts refer to by themselves. */
  get context(): EditorContext | undefined {
    // The path of a file here would name another one on a host.
    return this.project.host ? undefined : this.editor && contextOf(this.editor, this.folders);
  }

  insert(text: string, content: PromptContent[] = []): void {
    this.bridge.post("panel.insert", { text, ...(content.length > 0 ? { content } : {}) });
  }

  focus(): void {
    this.bridge.post("panel.focus", {});
  }

  /** Moves the focus to an open question, else to the prompt box, because the user has come to the panel. */
  enter(): void {
    this.bridge.post("panel.entered", {});
  }

  /** Shows an open question of the session, and moves the focus to it. With a choice, the panel asks for the input that it needs. */
  showQuestion(id: string, choice?: string): void {
    this.bridge.post("panel.showQuestion", { id, ...(choice !== undefined && { choice }) });
  }

  /** Shows an item of the session. */
  showItem({ turn_uuid, type, key }: ItemKey): void {
    this.bridge.post("panel.showItem", { turn_uuid, type, key });
  }

  /** What restores the panel. */
  get placed(): PanelPlace {
    return { ...this.place, title: this.title };
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

  /** load loads the page, or reloads it. */
  private load(): void {
    const { webview } = this.view;
    const address = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(this.dist, name)).toString();
    this.place = this.placed;
    webview.html = pageHtml({
      source: webview.cspSource, script: address("panel.js"), style: address("panel.css"), nonce: randomBytes(16).toString("base64url"), title: this.title, place: JSON.stringify({ ...this.place, window: this.parts.window }),
    });
  }

  /** verify reports whether the session exists. If it was deleted, the panel says so. */
  private async verify(): Promise<boolean> {
    if (this.gone || this.disposed || (await this.isNew())) return false;
    try {
      await this.project.connection.request("turn.get", { turn: this.uuid });
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    if (this.disposed) return false;
    this.gone = true;
    this.bridge.pause();
    this.view.webview.html = messageHtml(this.title, "This session was deleted.");
    return false;
  }

  private tellContext(): void {
    this.bridge.notify("panel.contextChanged", { context: this.context ?? null });
  }

  /** follow updates the tab's title and icon, and the files that are in the folder. */
  private follow(): void {
    const { session, folder } = this;
    if (folder !== this.shownFolder) this.tellContext();
    this.shownFolder = folder;
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
  return (error as { data?: { kind?: unknown } }).data?.kind === "not_found";
}

const panelType = "duet.session";

/** The panels of a window, by the uuids of their sessions. */
export class Panels implements vscode.WebviewPanelSerializer, vscode.Disposable {
  private readonly all = new Map<string, Panel>();
  private readonly sideBar: SideBar;
  private readonly subscriptions: Array<{ dispose(): unknown }>;
  /** The panel that was active last. */
  private last: Panel | undefined;
  private readonly shownEmitter = new Emitter<undefined>();
  /** The views whose sessions are on a host that their folder no longer has, or on this machine while it has one. */
  private readonly elsewhere = new Map<PanelView, PanelPlace>();

  /** The user may see another session (isShown). */
  readonly onShown = this.shownEmitter.on;

  constructor(
    private readonly projects: Projects,
    private readonly parts: PanelParts,
  ) {
    this.sideBar = new SideBar(parts.extension, (place, state) => {
      this.projects.start();
      this.restore(place, state);
    });
    this.subscriptions = [
      this.sideBar, vscode.window.registerWebviewPanelSerializer(panelType, this), new vscode.Disposable(projects.onChange(() => this.followHosts())),
      vscode.window.onDidChangeWindowState(() => this.shownEmitter.fire(undefined)),
    ];
  }

  /** Shows a session: reveals its panel, or opens one. With a column, it opens in an editor tab there, else where the setting duet.openIn says. */
  async open({ project, session }: ProjectSession, column?: vscode.ViewColumn): Promise<Panel> {
    project.model.add(session);
    const open = this.all.get(session.session_uuid);
    if (open && !(column !== undefined && this.sideBar.has(open.view))) {
      open.view.reveal(column);
      open.enter();
      return open;
    }
    open?.view.dispose();
    const view = await this.view(nameOf(session), column);
    const panel = this.add(view, { ...placeIn(project), session: session.session_uuid, title: nameOf(session) })!;
    panel.enter();
    return panel;
  }

  /** Opens a panel whose first prompt starts a session. */
  async begin(project: Project, beginning: Omit<Beginning, "session">, column?: vscode.ViewColumn): Promise<Panel> {
    const session = randomUUID();
    this.parts.beginnings.keep({ ...beginning, session });
    const view = await this.view(beginning.title, column);
    const panel = this.add(view, { ...placeIn(project), session, title: beginning.title })!;
    panel.focus();
    return panel;
  }

  /** The column of a panel that must not cover the active editor. undefined: panels open in the side bar. */
  get beside(): vscode.ViewColumn | undefined {
    return this.sideBar.isChosen ? undefined : vscode.ViewColumn.Beside;
  }

  /** Gives a panel whose session has not started to another project, after the user has chosen a folder of it. */
  move({ view, uuid, title }: Panel, project: Project): void {
    this.all.get(uuid)?.dispose();
    this.add(view, { ...placeIn(project), session: uuid, title })?.focus();
  }

  /** Whether the user sees a session. */
  isShown({ session }: ProjectSession): boolean {
    return vscode.window.state.focused && this.all.get(session.session_uuid)?.view.visible === true;
  }

  /** The active panel: of the active editor tab, else of the side bar if that is visible. */
  get active(): Panel | undefined {
    const active = [...this.all.values()].filter(({ view }) => view.active);
    return active.find(({ view }) => !this.sideBar.has(view)) ?? active[0];
  }

  /** The panel that was active last, if it is still open; else any panel. */
  get recent(): Panel | undefined {
    return this.active ?? this.last ?? [...this.all.values()].at(-1);
  }

  /** VS Code calls this for each panel that was open before a reload. */
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

  /** view makes the view of a new panel. */
  private async view(title: string, column?: vscode.ViewColumn): Promise<PanelView> {
    if (column === undefined && this.sideBar.isChosen) return this.sideBar.take();
    return vscode.window.createWebviewPanel(panelType, title, column ?? vscode.ViewColumn.Active, { enableFindWidget: true });
  }

  private restore(view: PanelView, state: unknown): void {
    const place = (state as { place?: Partial<PanelPlace> } | undefined)?.place;
    if (typeof place?.folder !== "string" || typeof place.session !== "string" || typeof place.title !== "string") {
      view.webview.html = messageHtml(view.title, "The session of this panel is unknown. Open it from the list of sessions.");
      return;
    }
    const twin = this.all.get(place.session);
    // The side bar may have the state of a session that was opened in a tab after it.
    if (twin && this.sideBar.has(view)) return view.dispose();
    if (twin && twin.view !== view) twin.view.dispose();
    const { folder, session, title, host = "" } = place;
    const project = this.projects.at(folder);
    if (project && project.host !== host) return this.leave(view, { folder, session, title, ...(host && { host }) });
    if (!this.add(view, place as PanelPlace)) view.webview.html = messageHtml(place.title, `The folder ${place.folder}, to which this session belongs, is not open in this window.`);
  }

  /** followHosts ends the panels of projects that have moved to another host, and restores those whose host has come back. */
  private followHosts(): void {
    for (const panel of this.all.values()) {
      if (this.projects.all.includes(panel.project)) continue;
      if (!this.projects.at(panel.project.folder.uri.fsPath)) continue; // its folder was closed
      panel.dispose();
      this.leave(panel.view, panel.placed);
    }
    for (const [view, place] of this.elsewhere) {
      if (this.projects.at(place.folder)?.host !== (place.host ?? "")) continue;
      this.elsewhere.delete(view);
      this.add(view, place);
    }
  }

  /** leave shows in the view of a session that it is on another host than the folder now has. */
  private leave(view: PanelView, place: PanelPlace): void {
    if (this.all.get(place.session)?.view === view) this.all.delete(place.session);
    if (this.last?.view === view) this.last = undefined;
    this.elsewhere.set(view, place);
    view.onDidDispose(() => this.elsewhere.delete(view));
    view.webview.html = messageHtml(place.title, `This session is on ${place.host ?? "this machine"}, and the agents of its folder now work elsewhere. “Duet: Choose Where Agents Work…” changes that.`);
  }

  private add(view: PanelView, place: PanelPlace): Panel | undefined {
    const project = this.projects.at(place.folder);
    if (!project) return undefined;
    const panel = new Panel(view, project, place, this.parts);
    this.all.set(place.session, panel);
    this.last = panel;
    const subscription = view.onDidChangeViewState(() => {
      if (view.active) this.last = panel;
      this.shownEmitter.fire(undefined);
    });
    view.onDidDispose(() => {
      subscription.dispose();
      if (this.all.get(place.session) === panel) this.all.delete(place.session);
      if (this.last === panel) this.last = undefined;
    });
    this.shownEmitter.fire(undefined);
    return panel;
  }
}

/** placeIn returns where a panel of a project is. */
function placeIn({ folder, host }: Project): Pick<PanelPlace, "folder" | "host"> {
  return { folder: folder.uri.fsPath, ...(host && { host }) };
}
