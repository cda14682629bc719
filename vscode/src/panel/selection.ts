// What is selected in an editor, for the prompt of a panel.
import { relative, sep } from "node:path";
import * as vscode from "vscode";
import { isInside } from "./files";
import type { PromptContent } from "./protocol";

/** The selected lines, named in the text and with the text itself, which need not be saved. Without a selection it is the whole file that is named. */
export function selected({ document, selection }: vscode.TextEditor, folder: string): { text: string; content: PromptContent[] } {
  const { uri } = document;
  const isFile = uri.scheme === "file";
  const name = isFile && isInside(folder, uri.fsPath) ? relative(folder, uri.fsPath).split(sep).join("/") : isFile ? uri.fsPath : uri.path.slice(uri.path.lastIndexOf("/") + 1);
  if (selection.isEmpty && isFile) return { text: `@${name} `, content: [{ type: "resource_link", uri: uri.toString(), name }] };
  // A selection that ends before the first character of a line does not have that line.
  const last = selection.end.character === 0 && selection.end.line > selection.start.line ? selection.end.line - 1 : selection.end.line;
  const lines = selection.isEmpty ? "" : `#L${selection.start.line + 1}${last > selection.start.line ? `-${last + 1}` : ""}`;
  const text = document.getText(selection.isEmpty ? undefined : selection);
  return { text: `@${name}${lines} `, content: [{ type: "resource", resource: { uri: `${uri.toString()}${lines}`, mimeType: "text/plain", text } }] };
}
