// Replaces the module vscode in unit tests: a test sets the user's answers, and reads the displayed texts.
import { readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

type Item = { label: string };

/** The user's next answers. An input box takes a text, a message the label of a button, a list the labels of its items. */
export const answers: Array<string | string[] | undefined> = [];

/** The displayed texts: the title or text, the labels, and the detail of a dialog. */
export const shown: Array<{ text: string; labels: string[]; detail?: string }> = [];

/** The titles of the progress notifications that have not ended. */
export const standing = new Set<string>();

/** The commands that were executed, with their arguments. */
export const executed: unknown[][] = [];

/** The settings, by their names without a section. */
export const settings: Record<string, unknown> = {};

function next(text: string, labels: string[]): string | string[] | undefined {
  shown.push({ text, labels });
  return answers.shift();
}

export class Disposable {
  constructor(readonly dispose: () => void) {}
}

const listeners = new Map<string, Set<(value: never) => void>>();

function event(name: string): (listener: (value: never) => void) => Disposable {
  const own = new Set<(value: never) => void>();
  listeners.set(name, own);
  return (listener) => {
    own.add(listener);
    return new Disposable(() => own.delete(listener));
  };
}

/** Fires an event of window or workspace. */
export function fire(name: string, value?: unknown): void {
  for (const listener of listeners.get(name) ?? []) listener(value as never);
}

/** The settings that were stored. */
export const updated: unknown[][] = [];

/** The documents that were opened. */
export const opened: Array<{ path: string }> = [];

/** The item of the status bar. */
export const statusItem: { text?: string; tooltip?: string } & Record<string, unknown> = { show: () => {}, hide: () => {}, dispose: () => {} };

export class EventEmitter<T> {
  private readonly listeners = new Set<(value: T) => void>();
  readonly event = (listener: (value: T) => void): Disposable => {
    this.listeners.add(listener);
    return new Disposable(() => this.listeners.delete(listener));
  };
  fire(value: T): void {
    for (const listener of this.listeners) listener(value);
  }
  dispose(): void {
    this.listeners.clear();
  }
}

export class ThemeColor {
  constructor(readonly id: string) {}
}

/** The paths of the workspace's folders. */
export const openFolders: string[] = [];

export const window = {
  activeTextEditor: undefined as unknown,
  onDidChangeActiveTextEditor: event("onDidChangeActiveTextEditor"),
  onDidChangeTextEditorSelection: event("onDidChangeTextEditorSelection"),
  onDidChangeVisibleTextEditors: event("onDidChangeVisibleTextEditors"),
  onDidChangeWindowState: event("onDidChangeWindowState"),
  createTextEditorDecorationType: () => new Disposable(() => {}),
  createStatusBarItem: () => statusItem,
  setStatusBarMessage: () => new Disposable(() => {}),
  registerWebviewViewProvider: () => new Disposable(() => {}),
  registerWebviewPanelSerializer: () => new Disposable(() => {}),
  visibleTextEditors: [] as Array<{ document: unknown }>,
  /** Shows a document in the visible editor of it. */
  showTextDocument: (document: unknown): Promise<unknown> => Promise.resolve(window.visibleTextEditors.find((editor) => editor.document === document)),
  tabGroups: { all: [] as unknown[], onDidChangeTabs: event("onDidChangeTabs") },
  showInputBox: ({ title, value }: { title?: string; value?: string }): Promise<unknown> => Promise.resolve(next(title ?? "", [value ?? ""])),
  showQuickPick: (items: Item[], { title, canPickMany }: { title?: string; canPickMany?: boolean }): Promise<unknown> => {
    const chosen = next(title ?? "", items.map(({ label }) => label));
    if (chosen === undefined) return Promise.resolve(undefined);
    const fits = items.filter(({ label }) => [chosen].flat().includes(label));
    return Promise.resolve(canPickMany ? fits : fits[0]);
  },
  showWarningMessage: (text: string, ...given: unknown[]): Promise<unknown> => {
    const answer = next(text, given.filter((label) => typeof label === "string"));
    const { detail } = (given[0] ?? {}) as { detail?: string };
    if (detail !== undefined) shown.at(-1)!.detail = detail;
    return Promise.resolve(answer);
  },
  showInformationMessage: (text: string, ...labels: string[]): Promise<unknown> => {
    if (labels.length > 0) return Promise.resolve(next(text, labels));
    shown.push({ text, labels });
    return Promise.resolve(undefined);
  },
  state: { focused: true },
  withProgress: <T>({ title }: { title: string }, task: (progress: { report: () => void }) => T): T => {
    shown.push({ text: title, labels: [] });
    standing.add(title);
    const result = task({ report: () => {} });
    const end = (): unknown => standing.delete(title);
    void Promise.resolve(result).then(end, end);
    return result;
  },
  /** Records a terminal's command or program, and does not run it. */
  createTerminal: ({ name, shellArgs = [] }: { name: string; shellArgs?: string[] }) => {
    if (shellArgs.length > 0) shown.push({ text: name, labels: shellArgs });
    return { show: () => {}, sendText: (text: string) => void shown.push({ text: name, labels: [text] }) };
  },
};

export const languages = { registerCodeLensProvider: () => new Disposable(() => {}) };

export const StatusBarAlignment = { Left: 1 };

export const ConfigurationTarget = { WorkspaceFolder: 3 };

export const UIKind = { Desktop: 1 };

export const commands = {
  registerCommand: () => new Disposable(() => {}),
  executeCommand: (...given: unknown[]): Promise<void> => Promise.resolve(void executed.push(given)) };

/** The texts in the clipboard, the last one at the end. */
export const copied: string[] = [];

export const env = { uiKind: UIKind.Desktop, clipboard: { writeText: (text: string): Promise<void> => Promise.resolve(void copied.push(text)) } };

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export class Range {
  constructor(
    readonly start: Position,
    readonly end: Position,
  ) {}
}

export const ProgressLocation = { Notification: 15 };

export const Uri = {
  /** A URI of another scheme. */
  from: ({ scheme, path, query = "" }: { scheme: string; path: string; query?: string }) => ({ scheme, path, query, fsPath: path, toString: () => `${scheme}:${path}?${query}` }),
  parse: (text: string) => Uri.file(fileURLToPath(text)),
  file: (fsPath: string) => ({ scheme: "file", fsPath, path: fsPath, with: () => Uri.file(fsPath), toString: () => pathToFileURL(fsPath).href }),
  joinPath: (base: { fsPath: string }, ...names: string[]) => Uri.file(join(base.fsPath, ...names)),
};

export const ViewColumn = { Active: -1, Beside: -2 };

export const workspace = {
  isTrusted: true,
  fs: { stat: ({ fsPath }: { fsPath: string }) => stat(fsPath), readFile: ({ fsPath }: { fsPath: string }) => readFile(fsPath) },
  getConfiguration: () => ({
    get: (name: string, fallback: unknown) => settings[name] ?? fallback,
    update: (name: string, value: unknown) => Promise.resolve(void updated.push([name, value])),
  }),
  textDocuments: [] as unknown[],
  registerTextDocumentContentProvider: () => new Disposable(() => {}),
  registerFileSystemProvider: () => new Disposable(() => {}),
  openTextDocument: (uri: { path: string }) => Promise.resolve((opened.push(uri), { uri })),
  onDidCloseTextDocument: event("onDidCloseTextDocument"),
  onDidChangeTextDocument: event("onDidChangeTextDocument"),
  getWorkspaceFolder: ({ fsPath }: { fsPath: string }): unknown => openFolders.find((folder) => fsPath.startsWith(`${folder}/`)),
  onDidChangeConfiguration: event("onDidChangeConfiguration"),
  onDidChangeWorkspaceFolders: event("onDidChangeWorkspaceFolders"),
  onDidGrantWorkspaceTrust: event("onDidGrantWorkspaceTrust"),
  get workspaceFolders(): unknown[] {
    return openFolders.map((folder, index) => ({ name: basename(folder), uri: Uri.file(folder), index }));
  },
};

export const tasks = { registerTaskProvider: () => new Disposable(() => {}) };

export const DiagnosticSeverity = { Error: 0, Warning: 1, Information: 2 };
