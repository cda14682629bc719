// Finds the files that a prompt can name, and reads the selection of an editor for a prompt.
import { execFile } from "node:child_process";
import { relative, sep } from "node:path";
import * as vscode from "vscode";
import { rank } from "./content";
import type { FileMatch, PromptContent } from "./protocol";

/** The most files of a list. */
const most = 50_000;

/** How long a list is reused, in milliseconds: about as long as the user types a name. */
const fresh = 10_000;

/** The time limit for git, in milliseconds. */
const patience = 5_000;

const lists = new Map<string, { at: number; paths: Promise<string[]> }>();

/** The files of a folder whose paths match a query, the best match first. Open editors rank higher. */
export async function findFiles(folder: string, query: string): Promise<FileMatch[]> {
  const open = openPaths(folder);
  const paths = new Set([...open, ...(await pathsOf(folder))]);
  return rank(query, paths, new Set(open)).map((path) => ({ path, uri: vscode.Uri.joinPath(vscode.Uri.file(folder), path).toString() }));
}

/** Whether a path is in a folder. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && way !== path;
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

/** The selection as text for the prompt, such as "@a.ts#L3-5", and as content with the selected lines, saved or not. Without a selection: the whole file. */
export function selected({ document, selection }: vscode.TextEditor, folder: string): { text: string; content: PromptContent[] } {
  const { uri } = document;
  const isFile = uri.scheme === "file";
  const name = isFile && isInside(folder, uri.fsPath) ? relative(folder, uri.fsPath).split(sep).join("/") : isFile ? uri.fsPath : uri.path.slice(uri.path.lastIndexOf("/") + 1);
  if (selection.isEmpty && isFile) return { text: `@${name} `, content: [{ type: "resource_link", uri: uri.toString(), name }] };
  // A selection that ends before the first character of a line does not include that line.
  const last = selection.end.character === 0 && selection.end.line > selection.start.line ? selection.end.line - 1 : selection.end.line;
  const lines = selection.isEmpty ? "" : `#L${selection.start.line + 1}${last > selection.start.line ? `-${last + 1}` : ""}`;
  const text = document.getText(selection.isEmpty ? undefined : selection);
  return { text: `@${name}${lines} `, content: [{ type: "resource", resource: { uri: `${uri.toString()}${lines}`, mimeType: "text/plain", text } }] };
}
