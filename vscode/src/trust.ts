// What the hub refuses since it is not trusted, and how it can be.
import * as vscode from "vscode";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ResponseError } from "vscode-jsonrpc/node";
import { projectRoot } from "./hub/root";
import type { Project } from "./projects";

/** The kind of an error of the hub; undefined: it has none, or is no answer of the hub. */
export function kindOf(error: unknown): string | undefined {
  return error instanceof ResponseError ? (error.data as { kind?: string } | undefined)?.kind : undefined;
}

/** Tells of an error that says that something is not trusted, with the way to trust it. False: it is another one. */
export async function tellUntrusted(project: Project, error: unknown): Promise<boolean> {
  if (kindOf(error) !== "not_trusted" || !(error instanceof Error)) return false;
  if (!vscode.workspace.isTrusted) {
    const manage = "Manage Workspace Trust";
    if ((await vscode.window.showErrorMessage(`Duet: ${error.message}`, manage)) === manage) await vscode.commands.executeCommand("workbench.trust.manage");
    return true;
  }
  // The project's file has changed since VS Code has said that it is trusted.
  const file = [".duet.toml"].map((name) => join(projectRoot(project.folder.uri.fsPath), name)).find((path) => existsSync(path));
  const [look, trust] = ["Look at It", "Trust It as It Is Now"];
  const pressed = await vscode.window.showErrorMessage(`Duet: ${error.message}`, ...(file ? [look] : []), trust);
  if (pressed === look && file) await vscode.window.showTextDocument(vscode.Uri.file(file));
  else if (pressed === trust) await project.connection.trustChanged();
  return true;
}
