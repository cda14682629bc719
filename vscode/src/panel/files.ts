// Finds the files that a prompt can name, follows the active editor, and reads its selection for a prompt.
import { execFile } from "node:child_process";
import { relative, sep } from "node:path";
import * as vscode from "vscode";
import { Emitter } from "../hub/events";
import { realPath } from "../hub/root";
import { foldersOf, rank, sentText } from "./content";
import type { EditorContext, FileMatch, PromptContent } from "./protocol";

/** The most files of a list. */
const most = 50_000;

/** How long a list is reused, in milliseconds: about as long as the user types a name. */
const fresh = 10_000;

/** The time limit for git, in milliseconds. */
const patience = 5_000;

const lists = new Map<string, { at: number; paths: Promise<string[]> }>();

/** The files and folders of a folder whose paths match a query, the best match first. Open editors rank higher. */
export async function findFiles(folder: string, query: string): Promise<FileMatch[]> {
  const open = openPaths(folder);
  const files = await pathsOf(folder);
  const paths = new Set([...open, ...files, ...foldersOf(files)]);
  return rank(query, paths, new Set(open)).map((path) => ({ path, uri: vscode.Uri.joinPath(vscode.Uri.file(folder), path).toString() }));
}

/** Whether a path is in a folder. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && way !== path;
}

/** The path of a file for the user: relative to the workspace, or to the folder of its session if that is outside, such as a worktree. */
export function shownPath(path: string, folder: string): string {
  return isInside(folder, path) && !vscode.workspace.getWorkspaceFolder(vscode.Uri.file(path)) ? relative(folder, path) : vscode.workspace.asRelativePath(path);
}

function openPaths(folder: string): string[] {
  return vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).flatMap(({ input }) => {
    if (!(input instanceof vscode.TabInputText) || input.uri.scheme !== "file" || !isInside(folder, input.uri.fsPath)) return [];
    return [relative(folder, input.uri.fsPath).split(sep).join("/")];
  });
}

function pathsOf(folder: string): Promise<string[]> {
  const now = Date.now();
  const known = lists.get(folder);
  if (known && now - known.at < fresh) return known.paths;
  const paths = listed(folder).catch(() => found(folder));
  lists.set(folder, { at: now, paths });
  return paths;
}

/** listed lists the files that git does not ignore. core.fsmonitor is off, because the repository's configuration could make it run a program. */
async function listed(folder: string): Promise<string[]> {
  const stdout = await new Promise<string>((resolve, reject) => {
    const options = { cwd: folder, maxBuffer: 64 << 20, timeout: patience, windowsHide: true };
    execFile("git", ["-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], options, (error, stdout) => (error ? reject(error) : resolve(stdout)));
  });
  const hidden = excluded(folder);
  const exclude = hidden.map(globTest);
  return [...new Set(stdout.split("\0"))].filter((path) => path !== "" && !exclude.some((fits) => fits(path))).slice(0, most);
}

async function found(folder: string): Promise<string[]> {
  const exclude = excluded(folder);
  const uris = await vscode.workspace.findFiles(new vscode.RelativePattern(vscode.Uri.file(folder), "**/*"), exclude.length === 0 ? null : `{${exclude.join(",")}}`, most);
  return uris.map(({ fsPath }) => relative(folder, fsPath).split(sep).join("/"));
}

/** excluded returns the patterns of the settings files.exclude and search.exclude. */
function excluded(folder: string): string[] {
  const scope = vscode.Uri.file(folder);
  const patterns = ["files", "search"].flatMap((section) => Object.entries(vscode.workspace.getConfiguration(section, scope).get<Record<string, unknown>>("exclude", {})));
  return patterns.filter(([, on]) => on === true).map(([pattern]) => pattern);
}

/** globTest supports the usual patterns of these settings: a folder or a name at any depth, with * and ?. */
function globTest(pattern: string): (path: string) => boolean {
  const source = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*\*\/?|\*|\?/g, (of) => (of === "*" ? "[^/]*" : of === "?" ? "[^/]" : of === "**" ? ".*" : "(?:.*/)?"));
  const fits = new RegExp(`^${source}(?:/.*)?$`);
  return (path) => fits.test(path);
}

/** A document and what is selected in it. */
type Selected = Pick<vscode.TextEditor, "document" | "selection">;

/**
 * The folders whose files a prompt names by relative paths: that of the agent. If that is in a worktree, also the same
 * folder of the project, for whose files duet-rpc gives the agent those of the worktree.
 */
export type PromptFolders = readonly [agents: string, projects?: string];

/** The selection as text for the prompt, such as "@a.ts#L3-5", and as content with the selected lines, saved or not. Without a selection: the whole file. */
export function selected({ document, selection }: Selected, folders: PromptFolders, host = ""): { text: string; content: PromptContent[] } {
  const { uri } = document;
  if (host) {
    // The path would name another file there, or none. The text alone is sent.
    const name = `${uri.path.slice(uri.path.lastIndexOf("/") + 1)}${linesOf(selection, ":")}`;
    return { text: "", content: [sentText(name, document.getText(selection.isEmpty ? undefined : selection))] };
  }
  const isFile = uri.scheme === "file";
  const name = isFile ? (nameIn(folders, uri) ?? uri.fsPath) : uri.path.slice(uri.path.lastIndexOf("/") + 1);
  if (selection.isEmpty && isFile) return { text: `@${name} `, content: [{ type: "resource_link", uri: uri.toString(), name }] };
  const lines = linesOf(selection, "#L");
  const text = document.getText(selection.isEmpty ? undefined : selection);
  return { text: `@${name}${lines} `, content: [{ type: "resource", resource: { uri: `${uri.toString()}${lines}`, mimeType: "text/plain", text } }] };
}

/** What a prompt can refer to by itself. undefined: the setting is off, or the editor shows no file of the workspace or the worktree in the folders. */
export function contextOf({ document: { uri }, selection }: Selected, folders: PromptFolders): EditorContext | undefined {
  const [agents, projects] = folders;
  const isKnown = vscode.workspace.getWorkspaceFolder(uri) !== undefined || (projects !== undefined && nameIn([agents], uri) !== undefined);
  const name = uri.scheme === "file" && isKnown ? nameIn(folders, uri) : undefined;
  if (name === undefined || !vscode.workspace.getConfiguration("duet", uri).get("editorContext", true)) return undefined;
  return { label: `${name.slice(name.lastIndexOf("/") + 1)}${linesOf(selection, ":")}`, reference: `@${name}${linesOf(selection, "#L")}` };
}

/** nameIn returns a file's path in the first folder that has it. undefined: it is elsewhere, possibly behind a symbolic link. */
function nameIn(folders: PromptFolders, { fsPath }: vscode.Uri): string | undefined {
  const path = realPath(fsPath);
  const root = folders.map((folder) => folder && realPath(folder)).find((folder) => folder && isInside(folder, path));
  return root && relative(root, path).split(sep).join("/");
}

/** linesOf returns the numbers of the selected lines. A selection that ends before the first character of a line does not include that line. */
function linesOf({ start, end, isEmpty }: vscode.Selection, sign: string): string {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return isEmpty ? "" : `${sign}${start.line + 1}${last > start.line ? `-${last + 1}` : ""}`;
}

/** How long a selection has to stay the same before listeners get it, in milliseconds. */
const rest = 100;

/** The text editor that was active last. It stays the same while a panel or another view has the focus, until its tab is closed. */
export class ActiveEditor implements vscode.Disposable {
  private last: Selected | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly changeEmitter = new Emitter<undefined>();
  private readonly subscriptions: vscode.Disposable[];

  /** The editor, its selection or the setting has changed. */
  readonly onChange = this.changeEmitter.on;

  constructor() {
    const { window, workspace } = vscode;
    this.subscriptions = [
      window.onDidChangeActiveTextEditor((editor) => this.follow(editor)),
      window.onDidChangeTextEditorSelection(({ textEditor }) => this.follow(textEditor === window.activeTextEditor ? textEditor : undefined)),
      window.tabGroups.onDidChangeTabs(({ closed }) => {
        if (this.last && isIn(closed, this.last.document) && !isIn(window.tabGroups.all.flatMap(({ tabs }) => tabs), this.last.document)) this.change(undefined);
      }),
      workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("duet.editorContext") && this.change(this.last)),
    ];
    this.follow(window.activeTextEditor);
  }

  get current(): Selected | undefined {
    return this.last;
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  /** follow takes an editor. One without a column is a part of another view, such as the output. */
  private follow(editor: vscode.TextEditor | undefined): void {
    if (editor?.viewColumn !== undefined) this.change({ document: editor.document, selection: editor.selection });
  }

  private change(editor: Selected | undefined): void {
    this.last = editor;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.changeEmitter.fire(undefined), rest);
  }
}

/** Whether a tab shows a document, by itself or as the later side of a comparison. */
function isIn(tabs: readonly vscode.Tab[], { uri }: vscode.TextDocument): boolean {
  return tabs.some(({ input }) => {
    const shown = (input ?? {}) as { uri?: vscode.Uri; modified?: vscode.Uri };
    return [shown.uri, shown.modified].some((one) => one?.toString() === uri.toString());
  });
}

/** The state of a file. undefined: it is not there. */
export async function stat(uri: vscode.Uri): Promise<vscode.FileStat | undefined> {
  try {
    return await vscode.workspace.fs.stat(uri);
  } catch {
    return undefined;
  }
}

/** readText returns the text of a file as the editor has it, or else the disk. Empty: it is not there. */
export async function readText(path: string): Promise<string> {
  const uri = vscode.Uri.file(path);
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
  if (open) return open.getText();
  if ((await stat(uri)) === undefined) return "";
  return new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
}
