// Builds and gates as tasks of VS Code: Run Task lists them, tasks.json may name them, and what they find are problems.
import * as vscode from "vscode";
import { listChecks, runCheck } from "./hub/checks";
import type { Check } from "./hub/checks";
import type { Problems } from "./problems";
import type { Project, Projects } from "./projects";

const type = "duet";

/** What stands in tasks.json: one of the two. */
interface Definition extends vscode.TaskDefinition {
  build?: string;
  gate?: string;
}

export function tasks(projects: Projects, problems: Problems, onError: (error: unknown) => void): vscode.Disposable {
  const taskOf = (project: Project, definition: Definition, check: Pick<Check, "kind" | "name">, detail?: string): vscode.Task => {
    const task = new vscode.Task(definition, project.folder, check.name, check.kind === "build" ? "duet build" : "duet gate", new vscode.CustomExecution(() => Promise.resolve(new CheckTerminal(project, check, problems))));
    if (check.kind === "build") task.group = vscode.TaskGroup.Build;
    else task.group = vscode.TaskGroup.Test;
    if (detail !== undefined) task.detail = detail;
    task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, clear: true };
    return task;
  };
  const tasksOf = async (project: Project): Promise<vscode.Task[]> => {
    if (project.connection.state.is !== "ready") return [];
    const { checks } = await listChecks(project.connection);
    return checks.map((check) => taskOf(project, { type, [check.kind]: check.name }, check, check.command.join(" ")));
  };
  return vscode.tasks.registerTaskProvider(type, {
    provideTasks: async () => {
      const lists = projects.all.map((project) =>
        tasksOf(project).catch((error: unknown) => {
          onError(error); // a project that is not trusted has no tasks
          return [];
        }),
      );
      return (await Promise.all(lists)).flat();
    },
    resolveTask: (task) => {
      const definition = task.definition as Definition;
      const project = projects.all.find(({ folder }) => folder === task.scope) ?? projects.all[0];
      const [kind, name] = definition.build !== undefined ? (["build", definition.build] as const) : (["gate", definition.gate] as const);
      return project && name !== undefined ? taskOf(project, definition, { kind, name }) : undefined;
    },
  });
}

/** Lets a person choose a build or a gate, and runs it. */
export async function chooseTask(): Promise<void> {
  const found = await vscode.tasks.fetchTasks({ type });
  const items = found.map((task) => ({ label: task.name, description: task.source, ...(task.detail ? { detail: task.detail } : {}), task }));
  if (items.length === 0) {
    const open = "Run Doctor";
    const pressed = await vscode.window.showInformationMessage("Duet: nothing says how this project is built or checked, or its configuration waits for your trust. [[builds]] and [[gates]] in .duet.toml name commands.", open);
    if (pressed === open) await vscode.commands.executeCommand("duet.showLog");
    return;
  }
  const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title: "What is to be run?", matchOnDetail: true });
  if (chosen) await vscode.tasks.executeTask(chosen.task);
}

/** The terminal in which a task shows what it prints. Closing it, or Terminate Task, ends the command. */
class CheckTerminal implements vscode.Pseudoterminal {
  private readonly writes = new vscode.EventEmitter<string>();
  private readonly closes = new vscode.EventEmitter<number>();
  private readonly cancelling = new vscode.CancellationTokenSource();
  readonly onDidWrite = this.writes.event;
  readonly onDidClose = this.closes.event;

  constructor(
    private readonly project: Project,
    private readonly check: Pick<Check, "kind" | "name">,
    private readonly problems: Problems,
  ) {}

  open(): void {
    void this.run();
  }

  close(): void {
    this.cancelling.cancel();
  }

  /** C-c ends it, as in any terminal. */
  handleInput(typed: string): void {
    if (typed.includes("\u0003")) this.cancelling.cancel();
  }

  private async run(): Promise<void> {
    const { project, check, problems } = this;
    const print = (text: string): void => this.writes.fire(text.replace(/\r?\n/g, "\r\n"));
    let status = 1;
    try {
      const result = await runCheck(project.connection, check.kind, check.name, print, this.cancelling.token);
      problems.take(project, check.kind, check.name, result.findings);
      status = result.passed ? 0 : 1;
      print(result.passed ? "\n\u001b[32m✓ passed\u001b[0m\n" : `\n\u001b[31m✗ ${result.reason}\u001b[0m\n`);
    } catch (error) {
      print(this.cancelling.token.isCancellationRequested ? "\nended\n" : `\n\u001b[31m${error instanceof Error ? error.message : String(error)}\u001b[0m\n`);
    }
    this.closes.fire(status);
    this.cancelling.dispose();
  }
}
