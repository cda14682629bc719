// Builds and gates in VS Code: the build command, tasks and the Problems list.
import * as vscode from "vscode";
import { stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { Builds, checkGate, Findings, listGates, locations, pathOf, statusOf } from "./hub/builds";
import type { Buildable, Finding, Report } from "./hub/builds";
import { visible } from "./hub/groups";
import { onHost } from "./hub/host";
import { projectRoot } from "./hub/root";
import { fail } from "./messages";
import { kindOf, showUntrusted } from "./projects";
import type { Project, Projects } from "./projects";
import type { GateResult } from "./protocol";

const language = "duet-build";

/** Runs a build that the user picks, and shows its output. */
export class BuildCommand implements vscode.Disposable {
  private readonly output = vscode.window.createOutputChannel("Duet Build", language);
  private readonly links = vscode.languages.registerDocumentLinkProvider({ language }, { provideDocumentLinks: (document) => linksOf(document, this.directories) });
  /** The directory of the last build; undefined: it ran on a host. Paths in its output are relative to it. */
  private directories: string[] | undefined = [];
  private readonly builds = new Map<Project, Builds>();

  of(project: Project): Builds {
    let builds = this.builds.get(project);
    if (!builds) this.builds.set(project, (builds = new Builds(project.connection)));
    return builds;
  }

  async run(project: Project): Promise<void> {
    try {
      const list = await this.of(project).list();
      const chosen = await chooseBuild(list);
      if (chosen) await this.build(project, chosen);
    } catch (error) {
      if (!(await showUntrusted(project, error))) throw error;
    }
  }

  dispose(): void {
    this.links.dispose();
    this.output.dispose();
  }

  private async build(project: Project, { name }: Buildable): Promise<void> {
    this.output.clear();
    this.output.show(true);
    const root = projectRoot(project.folder.uri.fsPath);
    // The output of a build on a host names files there.
    this.directories = project.host ? undefined : [root];
    await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: `Duet: building ${name}${onHost(project.host)}`, cancellable: true }, async (progress, token) => {
      const say = (line: string): void => this.output.appendLine(line);
      try {
        const { duration_ms } = await this.of(project).run(name, {
          onWaiting: () => progress.report({ message: "waiting for another build of it to end" }),
          onStarted: (command, directory) => {
            progress.report({ message: "" });
            if (directory && !project.host) this.directories = [isAbsolute(directory) ? directory : join(root, directory), root];
            say(`$ ${command.join(" ")}`);
          },
          onOutput: (text) => this.output.append(text),
        }, token);
        say(`${name} succeeded in ${(duration_ms / 1000).toFixed(1)} s`);
        vscode.window.setStatusBarMessage(`Duet: ${name} was built`, 5_000);
      } catch (error) {
        if (token.isCancellationRequested) {
          say(`${name} was cancelled`);
          return;
        }
        if (kindOf(error) !== "build_failed" || !(error instanceof Error)) throw error;
        say(error.message);
        const problems = "Show Problems"; // those of a host are in the output alone
        void fail(`${error.message}${onHost(project.host)}`, ...(project.host ? [] : [problems])).then((pressed) => {
          if (pressed === problems) void vscode.commands.executeCommand("workbench.actions.view.problems");
        });
      }
    });
  }
}

async function chooseBuild(list: Buildable[]): Promise<Buildable | undefined> {
  if (list.length === 0) throw new Error("this project has no builds: add [[builds]] with a name and a command to its .duet.toml");
  if (list.length === 1) return list[0];
  const items = list.map((build) => ({
    label: build.name,
    description: [build.backend ? "backend" : "", build.detected ? "found by the project's files" : ""].filter((part) => part !== "").join(" · "),
    detail: build.command.join(" "),
    build,
  }));
  return (await vscode.window.showQuickPick(items, { title: "Which build?", matchOnDetail: true }))?.build;
}

/** linksOf returns a link for each location in a build's output whose file exists. */
async function linksOf(document: vscode.TextDocument, directories: string[] | undefined): Promise<vscode.DocumentLink[]> {
  if (!directories) return [];
  const found = locations(document.getText());
  const files = new Map<string, string | undefined>();
  for (const { path } of found) if (!files.has(path)) files.set(path, await fileAt(path, directories));
  return found.flatMap(({ path, start, end, line, column }) => {
    const file = files.get(path);
    if (!file) return [];
    const target = vscode.Uri.file(file).with({ fragment: `L${line},${column ?? 1}` });
    return [new vscode.DocumentLink(new vscode.Range(document.positionAt(start), document.positionAt(end)), target)];
  });
}

async function fileAt(path: string, directories: string[]): Promise<string | undefined> {
  for (const candidate of isAbsolute(path) ? [path] : directories.map((directory) => join(directory, path))) {
    if (await stat(candidate).then((found) => found.isFile(), () => false)) return candidate;
  }
  return undefined;
}

interface Definition extends vscode.TaskDefinition {
  build?: string;
  gate?: string;
}

/** The work of a task: prints, and resolves with an exit status. signal cancels it. */
type Work = (print: (text: string) => void, signal: AbortSignal) => Promise<number>;

/** The builds and gates of all projects as tasks of VS Code. */
export class Tasks implements vscode.TaskProvider, vscode.Disposable {
  private readonly registration = vscode.tasks.registerTaskProvider("duet", this);

  constructor(
    private readonly projects: Projects,
    private readonly builds: BuildCommand,
    private readonly problems: Problems,
    private readonly onError: (error: unknown) => void,
  ) {}

  /** The tasks of the connected projects. VS Code asks for them when it opens a folder, so this must not connect one. */
  async provideTasks(): Promise<vscode.Task[]> {
    const found = await Promise.all(this.projects.all.map(async (project) => {
      const [builds, gates] = await Promise.all([
        this.builds.of(project).list().catch((error: unknown) => (this.onError(error), [])),
        listGates(project.connection).catch((error: unknown) => (this.onError(error), [])),
      ]);
      return [
        ...builds.map(({ name }) => this.task({ type: "duet", build: name }, project)),
        ...gates.map(({ name }) => this.task({ type: "duet", gate: name }, project)),
      ];
    }));
    return found.flat();
  }

  resolveTask(task: vscode.Task): vscode.Task | undefined {
    const definition = task.definition as Definition;
    const folder = typeof task.scope === "object" ? task.scope : undefined;
    this.projects.start();
    const project = (folder && this.projects.at(folder.uri.fsPath)) ?? this.projects.all[0];
    if (!project || (definition.build ?? definition.gate) === undefined) return undefined;
    return this.task(definition, project);
  }

  dispose(): void {
    this.registration.dispose();
  }

  private task(definition: Definition, project: Project): vscode.Task {
    const { build, gate } = definition;
    const name = build === undefined ? `gate ${gate ?? ""}` : `build ${build}`;
    const work: Work = build === undefined ? this.gateWork(project, gate ?? "") : this.buildWork(project, build);
    const announced: Work = (print, signal) => {
      if (project.host) print(`runs${onHost(project.host)}\n`);
      return work(print, signal);
    };
    const task = new vscode.Task(definition, project.folder, name, "duet", new vscode.CustomExecution(() => Promise.resolve(terminalOf(announced))));
    task.group = build === undefined ? vscode.TaskGroup.Test : vscode.TaskGroup.Build;
    return task;
  }

  private gateWork(project: Project, name: string): Work {
    return async (print, signal) => {
      const cancel = new vscode.CancellationTokenSource();
      signal.addEventListener("abort", () => cancel.cancel());
      const result = await checkGate(project.connection, name, print, cancel.token);
      this.problems.takeCheck(project, result);
      const status = statusOf(result);
      if (status === 1 && result.reason !== "exit status 1") throw new Error(`failed: ${result.reason ?? "it did not pass"}`);
      return status;
    };
  }

  private buildWork(project: Project, name: string): Work {
    return async (print, signal) => {
      const cancel = new vscode.CancellationTokenSource();
      signal.addEventListener("abort", () => cancel.cancel());
      await this.builds.of(project).run(name, {
        onWaiting: () => print("waiting for another build of it to end\n"),
        onStarted: (command) => print(`$ ${command.join(" ")}\n`),
        onOutput: print,
      }, cancel.token);
      return 0;
    };
  }
}

/** The time after which VS Code counts a terminal as launched, in milliseconds, plus a margin. */
const launching = 700;

/** terminalOf shows the output of a task's work, and how it ended. */
function terminalOf(work: Work): vscode.Pseudoterminal {
  const written = new vscode.EventEmitter<string>();
  const closed = new vscode.EventEmitter<number>();
  const ended = new AbortController();
  const print = (text: string): void => written.fire(text.replace(/\r?\n/g, "\r\n"));
  const run = async (): Promise<void> => {
    const began = performance.now();
    let status: number;
    try {
      status = await work(print, ended.signal);
      print(status === 0 ? "\u001b[32msucceeded\u001b[0m\n" : `\u001b[31mfailed: exit status ${status}\u001b[0m\n`);
    } catch (error) {
      status = 1;
      print(`\u001b[31m${error instanceof Error ? error.message : String(error)}\u001b[0m\n`);
    }
    // If a task fails sooner, VS Code reports that it failed to launch.
    const wait = status === 0 ? 0 : Math.max(0, launching - (performance.now() - began));
    setTimeout(() => closed.fire(status), wait);
  };
  return {
    onDidWrite: written.event,
    onDidClose: closed.event,
    open: () => void run(),
    close: () => ended.abort(),
    handleInput: (data) => {
      if (data === "\u0003") ended.abort();
    },
  };
}

const severities: Record<string, vscode.DiagnosticSeverity> = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  note: vscode.DiagnosticSeverity.Information,
};

/** Shows the findings of builds and gates in the Problems list. */
export class Problems implements vscode.Disposable {
  private readonly findings = new Map<Project, Findings>();
  private readonly collections = new Map<Project, Map<string, vscode.DiagnosticCollection>>();
  private readonly stops: Array<() => void>;

  constructor(projects: Projects) {
    this.stops = [
      projects.onEvent(({ project, event }) => this.show(project, this.of(project).takeEvent(event))),
      projects.onNotification(({ project, notification }) => this.show(project, this.of(project).takeNotification(notification))),
      projects.onChange(() => {
        for (const project of this.collections.keys()) if (!projects.all.includes(project)) this.forget(project);
      }),
    ];
  }

  /** Takes the findings of a gate that this window has run. They come in no event. */
  takeCheck(project: Project, { gate, findings }: GateResult): void {
    this.show(project, { source: `gate ${gate}`, findings });
  }

  /** Removes all problems from the list. */
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
    // Its files are on the host. VS Code would show the findings in files of this machine.
    if (!report || project.host) return;
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
  // Without a column, mark the whole line. With one, VS Code marks the word there.
  const line = Math.max(0, (finding.line ?? 1) - 1);
  const range = finding.column ? new vscode.Range(line, finding.column - 1, line, finding.column - 1) : new vscode.Range(line, 0, line, Number.MAX_SAFE_INTEGER);
  const diagnostic = new vscode.Diagnostic(range, visible(finding.message), severities[finding.severity] ?? vscode.DiagnosticSeverity.Error);
  diagnostic.source = finding.source ? `${finding.source}, ${source}` : source;
  return diagnostic;
}
