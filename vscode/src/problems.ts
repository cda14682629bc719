// What builds and gates have found, in the list of problems: of those that were run here, and of all others of the project.
import * as vscode from "vscode";
import type { Check, Finding } from "./hub/checks";
import { visible } from "./hub/groups";
import type { Project, Projects } from "./projects";

/** Fills the list of problems. What a check has found last takes the place of what it had found before. */
export class Problems implements vscode.Disposable {
  private readonly collection = vscode.languages.createDiagnosticCollection("duet");
  /** What is wrong by the check that has found it. */
  private readonly found = new Map<string, Array<[vscode.Uri, vscode.Diagnostic]>>();
  private readonly stop: () => void;

  constructor(projects: Projects) {
    this.stop = projects.onEvent(({ project, params: { event } }) => {
      const data = event.data;
      if (event.type === "gate_result") this.take(project, "gate", String(data["gate"]), (data["findings"] ?? []) as Finding[]);
      else if (event.type === "build_progress" && Array.isArray(data["diagnostics"])) this.take(project, "build", String(data["name"]), data["diagnostics"] as Finding[]);
      else if (event.type === "build_progress" && data["stage"] === "succeeded") this.take(project, "build", String(data["name"]), []);
    });
  }

  /** Takes what a check has found: all of it. */
  take(project: Project, kind: Check["kind"], name: string, findings: readonly Finding[]): void {
    const key = JSON.stringify([project.folder.uri.fsPath, kind, name]);
    this.found.set(key, findings.map((finding) => [fileOf(project, finding), diagnosticOf(name, finding)]));
    // Several checks may have found something in one file, and the same thing.
    const byFile = new Map<string, { uri: vscode.Uri; diagnostics: Map<string, vscode.Diagnostic> }>();
    for (const [uri, diagnostic] of [...this.found.values()].flat()) {
      const of = byFile.get(uri.toString()) ?? { uri, diagnostics: new Map<string, vscode.Diagnostic>() };
      byFile.set(uri.toString(), of);
      of.diagnostics.set(JSON.stringify([diagnostic.range, diagnostic.message, diagnostic.severity]), diagnostic);
    }
    this.collection.clear();
    this.collection.set([...byFile.values()].map(({ uri, diagnostics }) => [uri, [...diagnostics.values()]]));
  }

  dispose(): void {
    this.stop();
    this.collection.dispose();
  }
}

function fileOf({ folder }: Project, { file }: Finding): vscode.Uri {
  return file.startsWith("/") || /^[A-Za-z]:[\\/]/.test(file) ? vscode.Uri.file(file) : vscode.Uri.joinPath(folder.uri, file);
}

function diagnosticOf(check: string, { line = 1, column, severity, message, source }: Finding): vscode.Diagnostic {
  const at = Math.max(0, line - 1);
  // Where no column is told, all of the line is meant.
  const range = column === undefined ? new vscode.Range(at, 0, at, Number.MAX_SAFE_INTEGER) : new vscode.Range(at, Math.max(0, column - 1), at, Math.max(0, column - 1));
  const levels: Record<string, vscode.DiagnosticSeverity> = { error: vscode.DiagnosticSeverity.Error, warning: vscode.DiagnosticSeverity.Warning };
  const diagnostic = new vscode.Diagnostic(range, visible(message), levels[severity] ?? vscode.DiagnosticSeverity.Information);
  diagnostic.source = source ?? check;
  return diagnostic;
}
