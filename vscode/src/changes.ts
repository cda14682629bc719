// The changes of sessions in VS Code's diff editor and in the editors of the changed files, where the user accepts and reverts each.
import * as vscode from "vscode";
import { decisionsFor, extents, partAt, partsOf, placesIn, progressOf, stateWords } from "./hub/changes";
import type { ChangedFile, Decision, Part, PlacedPart, Side } from "./hub/changes";
import { nameOf, short } from "./hub/groups";
import { onHost, shownThere } from "./hub/host";
import { sessionWithQueue } from "./hub/model";
import type { Request, Session } from "./hub/model";
import { inform, warn } from "./messages";
import { isInside, shownPath } from "./panel/files";
import type { Project, Projects, ProjectSession } from "./projects";

const changeScheme = "duet-change";

/** The content of the URI of a side. */
interface Place {
  /** The folder of the project. */
  folder: string;
  /** The uuid of the turn. */
  turn: string;
  file: string;
  side: Side;
}

const labels: Record<Decision, { icon: string; hunk: string; done: string }> = {
  accept: { icon: "check", hunk: "Accept", done: "accepted" },
  revert: { icon: "discard", hunk: "Revert", done: "reverted" },
  reopen: { icon: "history", hunk: "Reopen", done: "reopened" },
};

/** The changed files of a turn. */
interface ChangedTurn {
  project: Project;
  turn: string;
  files: ChangedFile[];
}

/** The change of an open file by a turn, and where the file now has its parts. */
interface Review {
  /** The side of the file after the turn. */
  place: Place;
  placed: PlacedPart[];
}

/** How many sessions, and turns of each, are searched for the changes of an open file. */
const searchedSessions = 5;
const searchedTurns = 5;

/** The most turns of a session that are searched for changes. */
const longestWay = 50;

/** Shows the changes of sessions in the diff editor, and sends the user's decisions to the daemon. */
export class Changes implements vscode.TextDocumentContentProvider, vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly lensesChanged = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  readonly onDidChangeCodeLenses = this.lensesChanged.event;
  private readonly byTurn = new Map<string, Promise<ChangedFile[]>>();
  /** The latest ended turns of each session, the latest first. */
  private readonly turns = new Map<string, Promise<string[]>>();
  /** The folders of the connected projects. */
  private connected = "";
  private readonly marks: Record<"open" | "accepted" | "reverted", vscode.TextEditorDecorationType>;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly projects: Projects,
    private readonly onError: (error: unknown) => void,
  ) {
    const mark = (colour: string, opacity: string): vscode.TextEditorDecorationType =>
      vscode.window.createTextEditorDecorationType({
        isWholeLine: true, opacity, overviewRulerColor: new vscode.ThemeColor(colour), borderColor: new vscode.ThemeColor(colour), borderStyle: "solid", borderWidth: "0 0 0 3px",
      });
    this.marks = { open: mark("charts.blue", "1"), accepted: mark("charts.green", "1"), reverted: mark("charts.red", "0.55") };
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(changeScheme, this),
      vscode.languages.registerCodeLensProvider([{ scheme: changeScheme }, { scheme: "file" }], this),
      vscode.window.onDidChangeVisibleTextEditors(() => this.mark()),
      vscode.window.onDidChangeActiveTextEditor(() => this.follow()),
      // Changes of a file on the disk have reached its editor, or the user has saved it.
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document.uri.scheme !== "file" || document.isDirty) return;
        this.mark();
        this.follow();
      }),
      new vscode.Disposable(projects.onChange(() => this.followConnections())),
      new vscode.Disposable(projects.onEvent(({ project, event: { kind, turn_uuid: turn } }) => {
        if (turn && (kind === "change.decided" || kind === "turn.state")) this.refresh(project, turn);
      })),
      ...(["accept", "revert", "reopen"] as const).flatMap((decision) => [
        vscode.commands.registerCommand(`duet.${decision}Hunk`, (uri?: vscode.Uri, id?: string) => this.attempt(this.decideHunk(decision, uri, id))),
        vscode.commands.registerCommand(`duet.${decision}File`, (uri?: vscode.Uri) => this.attempt(this.decideFile(decision, uri))),
      ]),
    ];
    this.follow();
  }

  /** Shows the changes of a session in one file. Without a path: in all files. */
  async open(of: ProjectSession, path?: string): Promise<void> {
    const found = await this.find(of, path);
    if (!found) {
      void inform(path === undefined ? `${nameOf(of.session)} has reported no changed file` : `${path} was not changed in ${nameOf(of.session)}`);
      return;
    }
    const { turn, files } = found;
    const folder = of.project.folder.uri.fsPath;
    const { host } = of.project;
    const sides = (file: ChangedFile): [vscode.Uri | undefined, vscode.Uri | undefined] => {
      const side = (side: Side): vscode.Uri | undefined => (file[side] === null ? undefined : uriOf({ folder, turn, file: file.path, side }));
      return [side("before"), side("after")];
    };
    const file = path !== undefined ? files.find(isAt(of.session, path)) : files.length === 1 ? files[0] : undefined;
    if (file) {
      if (file.binary) throw new Error(`${file.path} is binary: its change cannot be shown`);
      const place = { folder, turn, file: file.path };
      // A created or deleted file has an empty side.
      await vscode.commands.executeCommand("vscode.diff", uriOf({ ...place, side: "before" }), uriOf({ ...place, side: "after" }), `${shownIn(of.project, file.path, of.session.working_dir)} (${short(nameOf(of.session), 40)})`);
      return;
    }
    // VS Code opens the first address as the file itself. A file on a host is not on this machine.
    const address = (file: ChangedFile): vscode.Uri => (host ? uriOf({ folder, turn, file: file.path, side: "after" }) : vscode.Uri.file(file.path));
    await vscode.commands.executeCommand("vscode.changes", `Changes of ${short(nameOf(of.session), 40)}${onHost(host)}`, files.map((file) => [address(file), ...sides(file)]));
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const place = placeOf(uri);
    const file = place && (await this.file(place));
    return file?.[place!.side] ?? "";
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    if (document.uri.scheme === "file") return this.lensesOfFile(document);
    const place = placeOf(document.uri);
    if (place?.side !== "after") return [];
    const file = await this.file(place);
    if (!file) return [];
    const parts = extents(file, "after").map(({ part, extent }) => ({ part, line: extent.line, words: stateWords(part) }));
    const { mode } = file;
    if (mode) parts.unshift({ part: mode, line: 0, words: `Mode ${mode.old} → ${mode.new}${stateWords(mode) === "" ? "" : `: ${stateWords(mode)}`}` });
    return parts.flatMap(({ part, line, words }) => lensesOf(document, document.uri, part, line, words));
  }

  /** Decides about all files of the changes that are shown, else of those of a session. */
  async decideAll(decision: Decision, of: ProjectSession | Place): Promise<void> {
    const found = "turn" in of ? await this.turnOf(of) : await this.find(of);
    if (!found) throw new Error("project" in of ? `${nameOf(of.session)} has reported no changed file` : `the folder ${of.folder} is no longer open`);
    const { project, turn, files } = found;
    const done: string[] = [];
    const failed: string[] = [];
    for (const { path } of files) {
      await project.connection.request(`change.${decision}`, { turn, path }).then(() => done.push(path), (error: unknown) => failed.push(error instanceof Error ? error.message : String(error)));
    }
    this.refresh(project, turn);
    const words = `${done.length} of ${files.length} ${files.length === 1 ? "file" : "files"} ${labels[decision].done}`;
    if (failed.length > 0) return void (await warn(`${words}: ${failed.join("; ")}`));
    if (decision === "reopen") return void inform(words);
    if ((await inform(words, "Undo")) === "Undo") await this.decideAll("reopen", of);
  }

  /** The place of the change that has the focus. undefined: the active editor shows none. */
  placeShown(uri?: vscode.Uri): Place | undefined {
    return placeOf(uri) ?? placeOf(vscode.window.activeTextEditor?.document.uri);
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    for (const mark of Object.values(this.marks)) mark.dispose();
    this.changed.dispose();
    this.lensesChanged.dispose();
  }

  /** find returns the last turn of a session that changed a file. Without a path: any file. */
  private async find({ project, session }: ProjectSession, path?: string): Promise<ChangedTurn | undefined> {
    const request: Request = (method, params) => project.connection.request(method, params);
    const known = await sessionWithQueue(request, session.session_uuid);
    // Queued turns have changed nothing yet.
    let { turn_uuid: turn, parent } = known.ahead ?? known.session;
    for (let i = 0; i < longestWay; i++) {
      this.forget(project, turn);
      const files = await this.files(project, turn);
      if (path === undefined ? files.length > 0 : files.some(isAt(session, path))) return { project, turn, files };
      if (!parent) return undefined;
      ({ turn: { turn_uuid: turn, parent } } = await request("turn.get", { turn: parent }));
    }
    return undefined;
  }

  private async turnOf({ folder, turn }: Place): Promise<ChangedTurn | undefined> {
    const project = this.projects.at(folder);
    return project && { project, turn, files: await this.files(project, turn) };
  }

  /** reviewsOf finds the changes of an open file by the latest ended turns of the latest sessions. */
  private async reviewsOf(document: vscode.TextDocument): Promise<Review[]> {
    const path = document.uri.fsPath;
    const near = this.projects.sessions.filter(({ project, session }) => !session.archived && !project.host && project.connection.state.is === "ready" && isInside(session.working_dir, path));
    const found = await Promise.all(near.slice(0, searchedSessions).map(async ({ project, session }) => {
      const turns = await this.turnsOf(project, session);
      return Promise.all(turns.map(async (turn): Promise<Review[]> => {
        const file = (await this.files(project, turn)).find((file) => file.path === path && !file.binary);
        const placed = file ? placesIn(file, document.getText()) : [];
        return placed.length === 0 ? [] : [{ place: { folder: project.folder.uri.fsPath, turn, file: path, side: "after" }, placed }];
      }));
    }));
    return found.flat(2);
  }

  private turnsOf(project: Project, session: Session): Promise<string[]> {
    const key = keyOf(project.folder.uri.fsPath, session.session_uuid);
    let known = this.turns.get(key);
    if (!known) {
      known = project.connection.request("turn.list", { session: session.session_uuid, limit: searchedTurns }).then(({ turns }) => turns.filter(({ ended_at }) => ended_at).map(({ turn_uuid }) => turn_uuid));
      this.turns.set(key, known);
      known.catch(() => this.turns.delete(key));
    }
    return known;
  }

  private async lensesOfFile(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const reviews = await this.reviewsOf(document);
    return reviews.flatMap(({ place, placed }) => placed.flatMap(({ part, extent }) => lensesOf(document, uriOf(place), part, extent.line, stateWords(part))));
  }

  private files(project: Project, turn: string): Promise<ChangedFile[]> {
    const key = keyOf(project.folder.uri.fsPath, turn);
    let known = this.byTurn.get(key);
    if (!known) {
      known = project.connection.request("change.list", { turn }).then(({ changes }) => changes);
      this.byTurn.set(key, known);
      known.catch(() => this.byTurn.delete(key));
    }
    return known;
  }

  private async file({ folder, turn, file }: Place): Promise<ChangedFile | undefined> {
    const project = this.projects.at(folder);
    return project && (await this.files(project, turn)).find(({ path }) => path === file);
  }

  private forget({ folder }: Project, turn: string): void {
    this.byTurn.delete(keyOf(folder.uri.fsPath, turn));
  }

  /** refresh reloads the shown changes of a turn, and those of open files. */
  private refresh(project: Project, turn: string): void {
    const folder = project.folder.uri.fsPath;
    this.forget(project, turn);
    this.turns.clear();
    for (const { uri } of vscode.workspace.textDocuments) {
      const place = placeOf(uri);
      if (place?.turn === turn && place.folder === folder) this.changed.fire(uri);
    }
    this.redraw();
  }

  /** followConnections reloads everything when a project has a connection, which may have missed events. */
  private followConnections(): void {
    const connected = this.projects.all.filter(({ connection }) => connection.state.is === "ready").map(({ folder }) => folder.uri.fsPath).join("\n");
    if (connected === this.connected) return;
    this.connected = connected;
    this.byTurn.clear();
    this.turns.clear();
    this.redraw();
  }

  private redraw(): void {
    this.lensesChanged.fire();
    this.mark();
    this.follow();
  }

  /** follow tells VS Code whether the active editor has changes. In the editor for several files, VS Code does not expose to keybindings which file has the cursor. */
  private follow(): void {
    const editor = vscode.window.activeTextEditor;
    const set = (is: boolean): void => {
      if (vscode.window.activeTextEditor === editor) void vscode.commands.executeCommand("setContext", "duet.inChange", is);
    };
    if (editor?.document.uri.scheme !== "file") return set(placeOf(editor?.document.uri) !== undefined);
    this.attempt(this.reviewsOf(editor.document).then((reviews) => set(reviews.length > 0)));
  }

  private mark(): void {
    for (const editor of vscode.window.visibleTextEditors) this.attempt(this.markEditor(editor));
  }

  private async markEditor(editor: vscode.TextEditor): Promise<void> {
    const place = placeOf(editor.document.uri);
    const isFile = editor.document.uri.scheme === "file";
    if (!isFile && place?.side !== "after") return;
    const file = place && (await this.file(place));
    const all = isFile ? (await this.reviewsOf(editor.document)).flatMap(({ placed }) => placed) : file ? extents(file, "after") : [];
    const last = editor.document.lineCount - 1;
    for (const state of ["open", "accepted", "reverted"] as const) {
      // The diff editor itself shows what has changed.
      const marked = all.filter(({ part, extent }) => part.state === state && (isFile ? state === "open" && extent.count > 0 : state !== "open"));
      editor.setDecorations(this.marks[state], marked.map(({ extent: { line, count } }) => new vscode.Range(Math.min(line, last), 0, Math.min(line + Math.max(0, count - 1), last), 0)));
    }
  }

  private async decideHunk(decision: Decision, uri?: vscode.Uri, id?: string): Promise<void> {
    if (id === undefined) return this.decideAtCursor(decision);
    const place = placeOf(uri);
    const file = place && (await this.file(place));
    const part = file && partsOf(file).find((part) => part.id === id);
    if (!place || !part) throw new Error("this change no longer exists");
    await this.decidePart(place, decision, part);
  }

  private async decideAtCursor(decision: Decision): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const changes = editor ? await this.changesIn(editor.document) : [];
    if (!editor || changes.length === 0) throw new Error("there is no change of a session here: open one with Duet: Show Changes");
    const [line, last] = [editor.selection.active.line, editor.document.lineCount - 1];
    for (const { place, placed } of changes) {
      const part = partAt(placed, line, last);
      if (part) return this.decidePart(place, decision, part);
    }
    throw new Error("there is no change at the cursor: move the cursor into a change");
  }

  /** changesIn returns the changes that an editor shows: one in the diff editor, or those of an open file. */
  private async changesIn(document: vscode.TextDocument): Promise<Review[]> {
    const place = placeOf(document.uri);
    if (!place) return document.uri.scheme === "file" ? this.reviewsOf(document) : [];
    const file = await this.file(place);
    return file ? [{ place, placed: extents(file, place.side) }] : [];
  }

  private async decidePart(place: Place, decision: Decision, part: Part): Promise<void> {
    if (!decisionsFor(part).includes(decision)) throw new Error(`this change is already ${part.state}`);
    await this.decide(place, decision, part);
  }

  private async decideFile(decision: Decision, uri?: vscode.Uri): Promise<void> {
    const shown = this.placeShown(uri);
    const document = vscode.window.activeTextEditor?.document;
    const places = shown ? [shown] : document ? (await this.changesIn(document)).map(({ place }) => place) : [];
    if (places.length === 0) throw new Error("there is no change of a session here: open one with Duet: Show Changes");
    for (const place of places) await this.decide(place, decision);
  }

  private async decide({ folder, turn, file }: Place, decision: Decision, part?: Part): Promise<void> {
    const project = this.projects.at(folder);
    if (!project) throw new Error(`the folder ${folder} is no longer open`);
    if (decision !== "accept" && !project.host) refuseUnsaved(file);
    const decided = await project.connection.request(`change.${decision}`, { turn, path: file, ...(part ? { hunk: part.id } : {}) });
    this.refresh(project, turn);
    const progress = progressOf(partsOf(decided));
    vscode.window.setStatusBarMessage(`Duet: ${shownIn(project, file, project.model.ofTurn(turn)?.working_dir ?? folder)}: ${progress === "" ? "undecided" : progress}`, 5_000);
  }

  private attempt(action: Promise<void>): void {
    action.catch(this.onError);
  }
}

/** lensesOf returns the decisions about a part of a change, above its first line. */
function lensesOf(document: vscode.TextDocument, uri: vscode.Uri, part: Part, line: number, words: string): vscode.CodeLens[] {
  const shown = Math.min(line, document.lineCount - 1);
  return decisionsFor(part).map((decision) => {
    const title = `$(${labels[decision].icon}) ${words === "" ? "" : `${words} · `}${labels[decision].hunk}`;
    return new vscode.CodeLens(new vscode.Range(shown, 0, shown, 0), { title, command: `duet.${decision}Hunk`, arguments: [uri, part.id] });
  });
}

/** shownIn returns the path of a changed file for the user. */
function shownIn({ host }: Project, path: string, folder: string): string {
  return host ? shownThere(path, folder, host) : shownPath(path, folder);
}

/** refuseUnsaved throws if a file has unsaved changes: VS Code would not show what a decision writes. */
function refuseUnsaved(path: string): void {
  const document = vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === "file" && uri.fsPath === path);
  if (document?.isDirty) throw new Error(`${shownPath(path, path)} has unsaved changes: save them first`);
}

function keyOf(folder: string, turn: string): string {
  return `${folder}\n${turn}`;
}

function uriOf(place: Place): vscode.Uri {
  return vscode.Uri.from({ scheme: changeScheme, path: vscode.Uri.file(place.file).path, query: JSON.stringify(place) });
}

function placeOf(uri: vscode.Uri | undefined): Place | undefined {
  return uri?.scheme === changeScheme ? (JSON.parse(uri.query) as Place) : undefined;
}

/** isAt matches a file by its path, absolute or relative to the working directory of the session. */
function isAt({ working_dir }: Session, path: string): (file: ChangedFile) => boolean {
  const whole = vscode.Uri.joinPath(vscode.Uri.file(working_dir), path).fsPath;
  return (file) => file.path === path || file.path === whole;
}
