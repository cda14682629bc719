// Builds and gates as tasks of VS Code.
import * as vscode from "vscode";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { listGates } from "./hub/gates";
import type { Gate } from "./hub/gates";
import { projectRoot } from "./hub/root";
import type { BuildCommand } from "./problems/command";
import type { Project, Projects } from "./projects";

interface Definition extends vscode.TaskDefinition {
  build?: string;
  gate?: string;
}

/** How long a gate that is ended has before it is killed, in milliseconds. */
const patience = 2_000;

/** A part of a task's life: it prints, and returns its status. signal ends it. */
type Work = (print: (text: string) => void, signal: AbortSignal) => Promise<number>;

export class Tasks implements vscode.TaskProvider, vscode.Disposable {
  private readonly registration = vscode.tasks.registerTaskProvider("duet", this);

  constructor(private readonly projects: Projects, private readonly builds: BuildCommand, private readonly onError: (error: unknown) => void) {}

  async provideTasks(): Promise<vscode.Task[]> {
    const found = await Promise.all(this.projects.all.map(async (project) => {
      const [builds, gates] = await Promise.all([
        this.builds.of(project).list().catch((error: unknown) => (this.onError(error), [])),
        gatesIn(project).catch((error: unknown) => (this.onError(error), [])),
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
    const project = this.projects.all.find((one) => one.folder.uri.toString() === folder?.uri.toString()) ?? this.projects.all[0];
    if (!project || (definition.build ?? definition.gate) === undefined) return undefined;
    return this.task(definition, project);
  }

  dispose(): void {
    this.registration.dispose();
  }

  private task(definition: Definition, project: Project): vscode.Task {
    const { build, gate } = definition;
    const name = build === undefined ? `gate ${gate ?? ""}` : `build ${build}`;
    const work: Work = build === undefined ? checkGate(project, gate ?? "") : this.buildWork(project, build);
    const task = new vscode.Task(definition, project.folder, name, "duet", new vscode.CustomExecution(() => Promise.resolve(terminalOf(work))));
    task.group = build === undefined ? vscode.TaskGroup.Test : vscode.TaskGroup.Build;
    return task;
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

/** gatesIn are the gates of a project. */
export async function gatesIn(project: Project): Promise<Gate[]> {
  return listGates(await project.connection.program(), project.folder.uri.fsPath, process.env);
}

function checkGate(project: Project, name: string): Work {
  return async (print, signal) => {
    const gate = (await gatesIn(project)).find((one) => one.name === name);
    if (!gate) throw new Error(`there is no gate ${name}: write [[gates]] with this name and a command into .duet.toml`);
    if (!vscode.workspace.isTrusted) throw new Error("a gate runs programs of the project, and the workspace is not trusted: trust it with the command Workspaces: Manage Workspace Trust");
    const [program, ...args] = gate.command;
    if (program === undefined) throw new Error(`the command of gate ${name} cannot be read: ${gate.text}`);
    if (gate.hasVariables) throw new Error(`gate ${name} has variables of its own (env), which duet-rpc alone knows: begin a session with it instead (Duet: New Session with Gates…)`);
    print(`$ ${gate.command.join(" ")}\n`);
    const child = spawn(program, args, { cwd: join(projectRoot(project.folder.uri.fsPath), gate.directory), stdio: ["ignore", "pipe", "pipe"], detached: process.platform !== "win32", windowsHide: true });
    return new Promise((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", print);
      signal.addEventListener("abort", () => {
        kill(child, "SIGINT");
        setTimeout(() => kill(child, "SIGKILL"), patience).unref();
      });
      child.on("error", reject);
      child.on("close", (code) => resolve(code ?? 1));
    });
  };
}

/** kill ends a process with what it has started. */
function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // It has ended.
  }
}

/** terminalOf shows what a work prints, and how it has ended. */
function terminalOf(work: Work): vscode.Pseudoterminal {
  const written = new vscode.EventEmitter<string>();
  const closed = new vscode.EventEmitter<number>();
  const ended = new AbortController();
  const print = (text: string): void => written.fire(text.replace(/\r?\n/g, "\r\n"));
  const run = async (): Promise<void> => {
    let status: number;
    try {
      status = await work(print, ended.signal);
      print(status === 0 ? "\u001b[32msucceeded\u001b[0m\n" : `\u001b[31mfailed: exit status ${status}\u001b[0m\n`);
    } catch (error) {
      status = 1;
      print(`\u001b[31m${error instanceof Error ? error.message : String(error)}\u001b[0m\n`);
    }
    closed.fire(status);
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
