// The tools of VS Code for agents: what its language servers know, open files, and the selection. docs/protocol.md
// ("The editor's tools") describes the requests. They change nothing and do not ask the user.
import { join, relative } from "node:path";
import * as vscode from "vscode";
import type { EditorToolset } from "./hub/connection";
import { realPath } from "./hub/root";
import { isInside } from "./panel/files";
import type { ActiveEditor } from "./panel/files";
import type { Project } from "./projects";

/** How many places, symbols, and characters of unsaved text a tool returns. */
const [mostPlaces, mostSymbols, mostText] = [200, 500, 60_000];

/** How long to wait for the diagnostics of a file that was not open, in milliseconds. */
const patience = 3_000;

type Params = Record<string, unknown>;

const tools: Record<string, (place: Place, params: Params) => Promise<unknown>> = {
  diagnostics, definition: ({ folders }, params) => locations(folders, "vscode.executeDefinitionProvider", params),
  references: ({ folders }, params) => locations(folders, "vscode.executeReferenceProvider", params), symbols, buffers, selection, open,
};

/** editorTools returns the tools for the agents of a project, which has these folders. */
export function editorTools(folders: () => string[], editor: ActiveEditor): EditorToolset {
  return {
    names: () => (vscode.workspace.getConfiguration("duet").get("editorTools", true) ? Object.keys(tools) : []),
    answer: (tool, params) => tools[tool]!({ folders: folders(), editor: editor.current }, params),
  };
}

/** A project's folders, and the text editor of the window that was active last. */
interface Place {
  folders: string[];
  editor: ActiveEditor["current"];
}

/** selected returns the editor that the user was in last, else one that is visible, if it shows a file of the project. */
function selected({ folders, editor }: Place): ActiveEditor["current"] {
  return [...(editor ? [editor] : []), ...vscode.window.visibleTextEditors].find(({ document }) => has(folders, document.uri));
}

function has(folders: string[], { scheme, fsPath }: vscode.Uri): boolean {
  return scheme === "file" && folders.some((folder) => isInside(folder, fsPath));
}

/** uriOf returns the file that the daemon names. A folder may have been opened by the name of a symbolic link. */
function uriOf(folders: string[], path: string): vscode.Uri {
  const folder = folders.find((one) => isInside(realPath(one), path));
  return vscode.Uri.file(folder === undefined ? path : join(folder, relative(realPath(folder), path)));
}

function cut<T>(name: string, items: T[], most: number): Record<string, unknown> {
  return { [name]: items.slice(0, most), total: items.length };
}

function text(params: Params, name: string): string | undefined {
  const value = params[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function number(params: Params, name: string): number | undefined {
  const value = params[name];
  return typeof value === "number" && value >= 1 ? Math.floor(value) : undefined;
}

function requirePath(folders: string[], params: Params): vscode.Uri {
  const path = text(params, "path");
  if (path === undefined) throw new Error("the path is missing");
  return uriOf(folders, path);
}

/** columnOf returns the column of a position, in characters from 1. VS Code counts UTF-16 units. */
function columnOf(line: string, character: number): number {
  return Array.from(line.slice(0, character)).length + 1;
}

function placeOf(document: vscode.TextDocument | undefined, { start, end }: vscode.Range): Record<string, number> {
  const column = ({ line, character }: vscode.Position): number =>
    document && line < document.lineCount ? columnOf(document.lineAt(line).text, character) : character + 1;
  return { line: start.line + 1, column: column(start), end_line: end.line + 1, end_column: column(end) };
}

/** find returns the position that the parameters line, symbol and column name. */
function find(document: vscode.TextDocument, params: Params): vscode.Position {
  const line = number(params, "line");
  if (line === undefined) throw new Error("the line is missing");
  if (line > document.lineCount) throw new Error(`${document.fileName} has ${document.lineCount} lines`);
  const content = document.lineAt(line - 1).text;
  const symbol = text(params, "symbol");
  if (symbol !== undefined) {
    const escaped = symbol.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const whole = new RegExp(`(?<![\\p{L}\\p{N}_$])${escaped}(?![\\p{L}\\p{N}_$])`, "u").exec(content);
    const at = whole?.index ?? content.indexOf(symbol);
    if (at < 0) throw new Error(`"${symbol}" is not in line ${line}, which is: ${content.trim()}`);
    return new vscode.Position(line - 1, at);
  }
  const column = number(params, "column");
  const units = column === undefined ? content.search(/\S|$/) : Array.from(content).slice(0, column - 1).join("").length;
  return new vscode.Position(line - 1, units);
}

const severities = ["error", "warning", "info", "info"];

async function diagnostics({ folders }: Place, params: Params): Promise<unknown> {
  const path = text(params, "path");
  const uri = path === undefined ? undefined : uriOf(folders, path);
  if (uri && !documentOf(uri)) await opened(uri);
  const found = uri ? [[uri, vscode.languages.getDiagnostics(uri)] as const] : vscode.languages.getDiagnostics().filter(([of]) => has(folders, of));
  const list = found.flatMap(([of, all]) =>
    all.map(({ range, severity, message, source, code }) => ({
      path: of.fsPath, ...placeOf(documentOf(of), range), severity: severities[severity] ?? "info", message,
      ...(source === undefined ? {} : { source }), ...(code === undefined ? {} : { code: String(typeof code === "object" ? code.value : code) }),
    })),
  );
  return cut("diagnostics", list.sort((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity)), mostPlaces);
}

function documentOf(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
}

/** opened opens a file, without showing it, and resolves when a language server has looked at it, or after a while. */
async function opened(uri: vscode.Uri): Promise<void> {
  let stop: vscode.Disposable | undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    const looked = new Promise<void>((resolve) => {
      stop = vscode.languages.onDidChangeDiagnostics(({ uris }) => uris.some((one) => one.toString() === uri.toString()) && resolve());
      timer = setTimeout(resolve, patience);
    });
    await vscode.workspace.openTextDocument(uri);
    await looked;
  } finally {
    stop?.dispose();
    clearTimeout(timer);
  }
}

async function locations(folders: string[], command: string, params: Params): Promise<unknown> {
  const uri = requirePath(folders, params);
  const position = find(await vscode.workspace.openTextDocument(uri), params);
  const found = (await vscode.commands.executeCommand<Array<vscode.Location | vscode.LocationLink> | undefined>(command, uri, position)) ?? [];
  const places = await Promise.all(
    found.slice(0, mostPlaces).map(async (one) => {
      const [of, range] = "targetUri" in one ? [one.targetUri, one.targetSelectionRange ?? one.targetRange] : [one.uri, one.range];
      return { path: of.fsPath, line: range.start.line + 1, text: await lineOf(of, range.start.line) };
    }),
  );
  return { locations: places, total: found.length };
}

async function lineOf(uri: vscode.Uri, line: number): Promise<string> {
  try {
    return (await vscode.workspace.openTextDocument(uri)).lineAt(line).text.trim();
  } catch {
    return ""; // it is no text, or has changed
  }
}

function kindOf(kind: vscode.SymbolKind): string {
  return vscode.SymbolKind[kind].toLowerCase();
}

async function symbols({ folders }: Place, params: Params): Promise<unknown> {
  const [path, query] = [text(params, "path"), text(params, "query")];
  if (path !== undefined) {
    const uri = uriOf(folders, path);
    await vscode.workspace.openTextDocument(uri);
    const found = (await vscode.commands.executeCommand<Array<vscode.DocumentSymbol | vscode.SymbolInformation> | undefined>("vscode.executeDocumentSymbolProvider", uri)) ?? [];
    const list = flat(found, uri.fsPath).filter(({ name }) => query === undefined || name.toLowerCase().includes(query.toLowerCase()));
    return cut("symbols", list, mostSymbols);
  }
  if (query === undefined) throw new Error("a path or a query is missing");
  const found = (await vscode.commands.executeCommand<vscode.SymbolInformation[] | undefined>("vscode.executeWorkspaceSymbolProvider", query)) ?? [];
  return cut("symbols", flat(found.filter(({ location }) => has(folders, location.uri)), ""), mostSymbols);
}

interface FoundSymbol {
  name: string;
  kind: string;
  path: string;
  line: number;
  container?: string;
}

function flat(all: Array<vscode.DocumentSymbol | vscode.SymbolInformation>, path: string, container?: string): FoundSymbol[] {
  return all.flatMap((one) => {
    const outer = "location" in one ? one.containerName || undefined : container;
    const range = "location" in one ? one.location.range : one.selectionRange;
    const found = { name: one.name, kind: kindOf(one.kind), path: "location" in one ? one.location.uri.fsPath : path, line: range.start.line + 1, ...(outer === undefined ? {} : { container: outer }) };
    return [found, ...("children" in one ? flat(one.children, path, one.name) : [])];
  });
}

function buffers(place: Place): Promise<unknown> {
  // Documents are more than the user has open: language servers open files, too.
  const tabs = vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).flatMap(({ input }) => (input instanceof vscode.TabInputText ? [input.uri] : input instanceof vscode.TabInputTextDiff ? [input.modified] : []));
  const uris = new Map(tabs.filter((uri) => has(place.folders, uri)).map((uri) => [uri.toString(), uri]));
  const active = selected(place)?.document;
  let left = mostText;
  const list = [...uris.values()].map((uri) => {
    const document = documentOf(uri);
    const whole = document?.isDirty ? document.getText() : undefined;
    const shown = whole?.slice(0, left);
    left -= shown?.length ?? 0;
    return {
      path: uri.fsPath, visible: vscode.window.visibleTextEditors.some((editor) => editor.document === document), active: document !== undefined && document === active, modified: document?.isDirty ?? false,
      ...(shown === undefined ? {} : { text: shown }), ...(shown !== whole ? { truncated: true } : {}),
    };
  });
  return Promise.resolve(cut("buffers", list, mostPlaces));
}

function selection(place: Place): Promise<unknown> {
  const editor = selected(place);
  if (!editor) return Promise.reject(new Error("no file of the project is visible in VS Code"));
  const { document, selection } = editor;
  return Promise.resolve({ path: document.uri.fsPath, ...placeOf(document, selection), text: document.getText(selection).slice(0, mostText) });
}

async function open({ folders, editor }: Place, params: Params): Promise<unknown> {
  const uri = requirePath(folders, params);
  const document = await vscode.workspace.openTextDocument(uri);
  const line = Math.min(number(params, "line") ?? 1, document.lineCount);
  // Where it is visible already, else where the user's files are: never in place of a panel.
  const visible = vscode.window.visibleTextEditors;
  const there = visible.find((one) => one.document === document) ?? visible.find((one) => one.document === editor?.document);
  const viewColumn = there?.viewColumn ?? vscode.ViewColumn.Beside;
  const shown = await vscode.window.showTextDocument(document, { viewColumn, preserveFocus: true, preview: true });
  shown.revealRange(document.lineAt(line - 1).range, vscode.TextEditorRevealType.InCenter);
  return { path: uri.fsPath, line };
}

/** Tells the daemons of this machine that the user has saved a file: it is then not a change of a command that an agent runs. */
export function saved(projects: readonly Project[], path: string): void {
  for (const { connection } of projects) {
    if (connection.state.is === "ready" && connection.host === "") void connection.request("editor.saved", { paths: [path] }).catch(() => undefined);
  }
}
