// Builds and gates as tasks of VS Code.
import * as vscode from "vscode";
import { checkGate, listGates, statusOf } from "./hub/gates";
import type { BuildCommand } from "./problems/command";
import type { Problems } from "./problems/problems";
import type { Project, Projects } from "./projects";

interface Definition extends vscode.TaskDefinition {
  build?: string;
  gate?: string;
}

/** A part of a task's life: it prints, and returns its status. signal ends it. */
type Work = (print: (text: string) => void, signal: AbortSignal) => Promise<number>;

export class Tasks implements vscode.TaskProvider, vscode.Disposable {
  private readonly registration = vscode.tasks.registerTaskProvider("duet", this);

  constructor(
    private readonly projects: Projects,
    private readonly builds: BuildCommand,
    private readonly problems: Problems,
    private readonly onError: (error: unknown) => void,
  ) {}

  async provideTasks(): Promise<vscode.Task[]> {
    this.projects.start();
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
    const task = new vscode.Task(definition, project.folder, name, "duet", new vscode.CustomExecution(() => Promise.resolve(terminalOf(work))));
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
        onWaiting: () => print("another build of it has to end first\n"),
        onStarted: (command) => print(`$ ${command.join(" ")}\n`),
        onOutput: print,
      }, cancel.token);
      return 0;
    };
  }
}

/** For how long VS Code takes a terminal to be launched, in milliseconds, and a little more. */
const launching = 700;

/** terminalOf shows what a work prints, and how it has ended. */
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
    // VS Code says of what ends with an error sooner that it failed to launch.
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
