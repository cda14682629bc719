// Context for a prompt that is no file: the problems, the terminal's output, and the changes that git sees.
import { execFile } from "node:child_process";
import { basename, relative, sep } from "node:path";
import * as vscode from "vscode";
import { readUris } from "./content";
import { isInside } from "./files";
import type { ContextSource, PromptContent } from "./protocol";

type Read = { content: PromptContent[]; refused: string[] };

/** The most problems of a prompt. */
const mostProblems = 200;

/** The longest text of a source, in characters. Of a terminal, these are the last ones. */
const longest = 100_000;

/** The time limit for git, in milliseconds. */
const patience = 10_000;

/** Reads a source for the agent that works in a folder of this machine, or in that of a host. refused says why there is nothing. */
export async function readSource(source: ContextSource, folder: string): Promise<Read> {
  switch (source) {
    case "problems":
      return asContent(source, problemsIn(folder), `VS Code lists no problem in ${basename(folder)}`);
    case "terminal":
      return asContent(source, (await terminalText()).slice(-longest), vscode.window.activeTerminal ? "the terminal shows nothing" : "no terminal is open");
    case "changes":
      return asContent(source, await changesIn(folder), `git sees no change in ${basename(folder)}`);
  }
}

/** Lets the user choose context for a prompt. Resolves with nothing if they choose none. */
export async function pickContext(folder: string, host = ""): Promise<Read> {
  const chosen = await vscode.window.showQuickPick([
    { label: "$(file) Files…", add: () => openedUris(folder, { canSelectMany: true }, host), ...(host && { detail: `Their texts are sent to ${host}` }) },
    ...(host ? [] : [{ label: "$(folder) Folder…", add: () => openedUris(folder, { canSelectFolders: true, canSelectFiles: false }) }]),
    { label: "$(warning) Problems", detail: "The errors and warnings of the session's folder", add: () => readSource("problems", folder) },
    { label: "$(terminal) Terminal output", detail: "The text of the active terminal", add: () => readSource("terminal", folder) },
    { label: "$(git-commit) Git changes", detail: "What differs from the last commit", add: () => readSource("changes", folder) },
  ], { title: "Add to the prompt" });
  return chosen ? chosen.add() : { content: [], refused: [] };
}

async function openedUris(folder: string, options: vscode.OpenDialogOptions, host = ""): Promise<Read> {
  const uris = await vscode.window.showOpenDialog({ ...options, defaultUri: vscode.Uri.file(folder), openLabel: "Add to the prompt" });
  return readUris((uris ?? []).map(String), (uri) => vscode.Uri.parse(uri, true).fsPath, host);
}

function asContent(source: ContextSource, text: string, none: string): Read {
  if (text.trim() === "") return { content: [], refused: [none] };
  return { content: [{ type: "resource", resource: { uri: `duet:/${source}`, mimeType: "text/plain", text } }], refused: [] };
}

const severities = ["error", "warning", "information", "hint"] as const;

/** problemsIn lists the errors and warnings of a folder's files, one a line. */
function problemsIn(folder: string): string {
  const lines = vscode.languages.getDiagnostics().flatMap(([uri, list]) => {
    if (uri.scheme !== "file" || !isInside(folder, uri.fsPath)) return [];
    const path = relative(folder, uri.fsPath).split(sep).join("/");
    return list.filter(({ severity }) => severity <= vscode.DiagnosticSeverity.Warning).map(({ range: { start }, severity, message, source }) =>
      `${path}:${start.line + 1}:${start.character + 1}: ${severities[severity]}: ${message.replace(/\s+/g, " ")}${source ? ` (${source})` : ""}`);
  });
  const more = lines.length - mostProblems;
  return more > 0 ? [...lines.slice(0, mostProblems), `and ${more} more`].join("\n") : lines.join("\n");
}

/** terminalText returns the text of the active terminal. VS Code offers it by the clipboard alone, which gets its text back. */
async function terminalText(): Promise<string> {
  if (!vscode.window.activeTerminal) return "";
  const before = await vscode.env.clipboard.readText();
  try {
    await vscode.env.clipboard.writeText("");
    for (const command of ["selectAll", "copySelection", "clearSelection"]) await vscode.commands.executeCommand(`workbench.action.terminal.${command}`);
    return (await vscode.env.clipboard.readText()).trimEnd();
  } finally {
    await vscode.env.clipboard.writeText(before);
  }
}

/** changesIn returns what differs from the last commit, and the names of new files. No program that the repository's configuration names runs. */
async function changesIn(folder: string): Promise<string> {
  const plain = ["--no-ext-diff", "--no-textconv", "--no-color"];
  const diff = await git(folder, ["diff", ...plain, "HEAD", "--", "."]).catch(() => git(folder, ["diff", ...plain, "--cached", "--", "."])); // before the first commit
  const added = (await git(folder, ["ls-files", "--others", "--exclude-standard", "--", "."])).split("\n").filter((name) => name !== "");
  const shown = diff.length > longest ? `${diff.slice(0, longest)}\n(the rest is left out)\n` : diff;
  return `${shown}${added.map((name) => `New file, which git does not track: ${name}\n`).join("")}`;
}

function git(folder: string, args: string[]): Promise<string> {
  const options = { cwd: folder, maxBuffer: 64 << 20, timeout: patience, windowsHide: true, env: { ...process.env, GIT_OPTIONAL_LOCKS: "0" } };
  return new Promise((resolve, reject) => execFile("git", ["-c", "core.fsmonitor=false", "-c", "core.quotePath=false", ...args], options, (error, stdout, stderr) => (error ? reject(new Error(stderr.trim() || error.message)) : resolve(stdout))));
}
