// Shows in the list of problems what builds and gates have found.
import * as vscode from "vscode";
import { visible } from "../hub/groups";
import { projectRoot } from "../hub/root";
import type { Project, Projects } from "../projects";
import type { Result } from "../protocol";
import { Findings, pathOf } from "./diagnostics";
import type { Finding, Report } from "./diagnostics";

const severities: Record<string, vscode.DiagnosticSeverity> = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  note: vscode.DiagnosticSeverity.Information,
};

export class Problems implements vscode.Disposable {
  private readonly findings = new Map<Project, Findings>();
  private readonly collections = new Map<Project, Map<string, vscode.DiagnosticCollection>>();
  private readonly stops: Array<() => void>;

  constructor(projects: Projects) {
    this.stops = [
      projects.onEvent(({ project, params }) => this.show(project, this.of(project).takeEvent(params.event))),
      projects.onNotification(({ project, notification }) => this.show(project, this.of(project).takeNotification(notification))),
      projects.onChange(() => {
        for (const project of this.collections.keys()) if (!projects.all.includes(project)) this.forget(project);
      }),
    ];
  }

  /** Takes what a gate has found that was run here: no event tells of it. */
  takeCheck(project: Project, { gate, findings }: Result<"checkGate">): void {
    this.show(project, { source: `gate ${gate}`, findings });
  }

  /** Takes all problems off the list. */
  clear(): void {
    for (const project of [...this.collections.keys()]) this.forget(project);
  }

  dispose(): void {
    for (const stop of this.stops) stop();
    this.clear();
  }

  private of(project: Project): Findings {
    let findings = this.findings.get(project);
    if (!findings) this.findings.set(project, (findings = new Findings()));
    return findings;
  }

  private show(project: Project, report: Report | undefined): void {
    if (!report) return;
    let collections = this.collections.get(project);
    if (!collections) this.collections.set(project, (collections = new Map<string, vscode.DiagnosticCollection>()));
    let collection = collections.get(report.source);
    if (!collection) collections.set(report.source, (collection = vscode.languages.createDiagnosticCollection(`duet ${report.source}`)));
    const root = projectRoot(project.folder.uri.fsPath);
    const byFile = new Map<string, vscode.Diagnostic[]>();
    for (const finding of report.findings) {
      const path = pathOf(finding, root);
      byFile.set(path, [...(byFile.get(path) ?? []), diagnosticOf(finding, report.source)]);
    }
    collection.clear();
    collection.set([...byFile].map(([path, diagnostics]) => [vscode.Uri.file(path), diagnostics]));
  }

  private forget(project: Project): void {
    for (const collection of this.collections.get(project)?.values() ?? []) collection.dispose();
    this.collections.delete(project);
    this.findings.delete(project);
  }
}

function diagnosticOf(finding: Finding, source: string): vscode.Diagnostic {
  // Without a column it is the whole line; with one, VS Code takes the word that is there.
  const line = Math.max(0, (finding.line ?? 1) - 1);
  const range = finding.column ? new vscode.Range(line, finding.column - 1, line, finding.column - 1) : new vscode.Range(line, 0, line, Number.MAX_SAFE_INTEGER);
  const diagnostic = new vscode.Diagnostic(range, visible(finding.message), severities[finding.severity] ?? vscode.DiagnosticSeverity.Error);
  diagnostic.source = finding.source ? `${finding.source}, ${source}` : source;
  return diagnostic;
}
