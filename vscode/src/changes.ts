// The changes of sessions in VS Code's diff editor, where the user accepts and reverts each hunk.
import * as vscode from "vscode";
import { decisionsFor, extents, hunkAt, partsOf, progressOf, stateWords } from "./hub/changes";
import type { ChangedFile, Decision, Part, Side } from "./hub/changes";
import { nameOf, short } from "./hub/groups";
import { sessionWithQueue } from "./hub/model";
import type { Request, Session } from "./hub/model";
import { inform } from "./messages";
import { shownPath } from "./panel/files";
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

const labels: Record<Decision, { icon: string; hunk: string; file: string }> = {
  accept: { icon: "check", hunk: "Accept", file: "Accept All of the File" },
  revert: { icon: "discard", hunk: "Revert", file: "Revert All of the File" },
  reopen: { icon: "history", hunk: "Reopen", file: "Reopen All of the File" },
};

/** The most turns of a session that are searched for changes. */
const longestWay = 50;

/** Shows the changes of sessions in the diff editor, and sends the user's decisions to the daemon. */
export class Changes implements vscode.TextDocumentContentProvider, vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly lensesChanged = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  readonly onDidChangeCodeLenses = this.lensesChanged.event;
  private readonly byTurn = new Map<string, Promise<ChangedFile[]>>();
  private readonly marks: Record<"accepted" | "reverted", vscode.TextEditorDecorationType>;
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly projects: Projects,
    private readonly onError: (error: unknown) => void,
  ) {
    const mark = (colour: string, opacity: string): vscode.TextEditorDecorationType =>
      vscode.window.createTextEditorDecorationType({
        isWholeLine: true, opacity, overviewRulerColor: new vscode.ThemeColor(colour), borderColor: new vscode.ThemeColor(colour), borderStyle: "solid", borderWidth: "0 0 0 3px",
      });
    this.marks = { accepted: mark("charts.green", "1"), reverted: mark("charts.red", "0.55") };
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(changeScheme, this),
      vscode.languages.registerCodeLensProvider({ scheme: changeScheme }, this),
      vscode.window.onDidChangeVisibleTextEditors(() => this.mark()),
      // In the editor for several files, VS Code does not expose to keybindings which file has the cursor.
      vscode.window.onDidChangeActiveTextEditor((editor) => void vscode.commands.executeCommand("setContext", "duet.inChange", placeOf(editor?.document.uri) !== undefined)),
      new vscode.Disposable(projects.onEvent(({ project, event: { kind, turn_uuid: turn } }) => {
        if (turn && (kind === "change.decided" || kind === "turn.state")) this.refresh(project, turn);
      })),
      ...(["accept", "revert", "reopen"] as const).flatMap((decision) => [
        vscode.commands.registerCommand(`duet.${decision}Hunk`, (uri?: vscode.Uri, id?: string) => this.attempt(this.decideHunk(decision, uri, id))),
        vscode.commands.registerCommand(`duet.${decision}File`, (uri?: vscode.Uri) => this.attempt(this.decideFile(decision, uri))),
      ]),
    ];
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
    const sides = (file: ChangedFile): [vscode.Uri | undefined, vscode.Uri | undefined] => {
      const side = (side: Side): vscode.Uri | undefined => (file[side] === null ? undefined : uriOf({ folder, turn, file: file.path, side }));
      return [side("before"), side("after")];
    };
    const file = path !== undefined ? files.find(isAt(of.session, path)) : files.length === 1 ? files[0] : undefined;
    if (file) {
      if (file.binary) throw new Error(`${file.path} is binary: its change cannot be shown`);
      const place = { folder, turn, file: file.path };
      // A created or deleted file has an empty side.
      await vscode.commands.executeCommand("vscode.diff", uriOf({ ...place, side: "before" }), uriOf({ ...place, side: "after" }), `${shownPath(file.path, of.session.working_dir)} (${short(nameOf(of.session), 40)})`);
      return;
    }
    await vscode.commands.executeCommand("vscode.changes", `Changes of ${short(nameOf(of.session), 40)}`, files.map((file) => [vscode.Uri.file(file.path), ...sides(file)]));
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const place = placeOf(uri);
    const file = place && (await this.file(place));
    return file?.[place!.side] ?? "";
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const place = placeOf(document.uri);
    if (place?.side !== "after") return [];
    const file = await this.file(place);
    const last = document.lineCount - 1;
    const lens = (line: number, title: string, command: string, ...args: unknown[]): vscode.CodeLens =>
      new vscode.CodeLens(new vscode.Range(Math.min(line, last), 0, Math.min(line, last), 0), { title, command, arguments: [document.uri, ...args] });
    if (!file) return [];
    const parts: Array<{ part: Part; line: number; words: string }> = extents(file, "after").map(({ hunk, extent }) => ({ part: hunk, line: extent.line, words: stateWords(hunk) }));
    const { mode } = file;
    if (mode) parts.unshift({ part: mode, line: 0, words: `Mode ${mode.old} → ${mode.new}${stateWords(mode) === "" ? "" : `: ${stateWords(mode)}`}` });
    return parts.flatMap(({ part, line, words }) =>
      decisionsFor(part).map((decision) => lens(line, `$(${labels[decision].icon}) ${words === "" ? "" : `${words} · `}${labels[decision].hunk}`, `duet.${decision}Hunk`, part.id)));
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    for (const mark of Object.values(this.marks)) mark.dispose();
    this.changed.dispose();
    this.lensesChanged.dispose();
  }

  /** find returns the last turn of a session that changed a file. Without a path: any file. */
  private async find({ project, session }: ProjectSession, path?: string): Promise<{ turn: string; files: ChangedFile[] } | undefined> {
    const request: Request = (method, params) => project.connection.request(method, params);
    const known = await sessionWithQueue(request, session.session_uuid);
    // Queued turns have changed nothing yet.
    let { turn_uuid: turn, parent } = known.ahead ?? known.session;
    for (let i = 0; i < longestWay; i++) {
      this.forget(project, turn);
      const files = await this.files(project, turn);
      if (path === undefined ? files.length > 0 : files.some(isAt(session, path))) return { turn, files };
      if (!parent) return undefined;
      ({ turn: { turn_uuid: turn, parent } } = await request("turn.get", { turn: parent }));
    }
    return undefined;
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

  /** refresh reloads the shown changes of a turn. */
  private refresh(project: Project, turn: string): void {
    const folder = project.folder.uri.fsPath;
    if (!this.byTurn.has(keyOf(folder, turn))) return;
    this.forget(project, turn);
    for (const { uri } of vscode.workspace.textDocuments) {
      const place = placeOf(uri);
      if (place?.turn === turn && place.folder === folder) this.changed.fire(uri);
    }
    this.lensesChanged.fire();
    this.mark();
  }

  private mark(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const place = placeOf(editor.document.uri);
      if (place?.side === "after") this.attempt(this.markEditor(editor, place));
    }
  }

  private async markEditor(editor: vscode.TextEditor, place: Place): Promise<void> {
    const file = await this.file(place);
    const all = file ? extents(file, "after") : [];
    const last = editor.document.lineCount - 1;
    for (const state of ["accepted", "reverted"] as const) {
      editor.setDecorations(this.marks[state], all.filter(({ hunk }) => hunk.state === state).map(({ extent: { line, count } }) => new vscode.Range(Math.min(line, last), 0, Math.min(line + Math.max(0, count - 1), last), 0)));
    }
  }

  private async decideHunk(decision: Decision, uri?: vscode.Uri, id?: string): Promise<void> {
    const place = this.placeHere(uri);
    const file = await this.file(place);
    const editor = vscode.window.activeTextEditor;
    const part = file && (id === undefined ? hunkAt(file, place.side, editor?.selection.active.line ?? 0, (editor?.document.lineCount ?? 1) - 1) : partsOf(file).find((part) => part.id === id));
    if (!part && file && id === undefined) throw new Error("there is no change at the cursor: move the cursor into a change");
    if (!part) throw new Error("this change no longer exists");
    if (!decisionsFor(part).includes(decision)) throw new Error(`this change is already ${part.state}`);
    await this.decide(place, decision, part);
  }

  private async decideFile(decision: Decision, uri?: vscode.Uri): Promise<void> {
    await this.decide(this.placeHere(uri), decision);
  }

  private async decide({ folder, turn, file }: Place, decision: Decision, part?: Part): Promise<void> {
    const project = this.projects.at(folder);
    if (!project) throw new Error(`the folder ${folder} is no longer open`);
    const decided = await project.connection.request(`change.${decision}`, { turn, path: file, ...(part ? { hunk: part.id } : {}) });
    this.refresh(project, turn);
    const progress = progressOf(partsOf(decided));
    vscode.window.setStatusBarMessage(`Duet: ${shownPath(file, project.model.ofTurn(turn)?.working_dir ?? folder)}: ${progress === "" ? "undecided" : progress}`, 5_000);
  }

  /** placeHere reads the place from a URI, or from the active editor. */
  private placeHere(uri?: vscode.Uri): Place {
    const place = placeOf(uri) ?? placeOf(vscode.window.activeTextEditor?.document.uri);
    if (!place) throw new Error("there is no change of a session here: open one with Duet: Show Changes");
    return place;
  }

  private attempt(action: Promise<void>): void {
    action.catch(this.onError);
  }
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
