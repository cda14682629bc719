// The command that builds: its choice, its progress, its output with links.
import * as vscode from "vscode";
import { stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { projectRoot } from "../hub/root";
import type { Project } from "../projects";
import { kindOf, tellUntrusted } from "../trust";
import { Builds } from "./build";
import type { Buildable } from "./build";
import { locations } from "./locations";

const language = "duet-build";

/** Builds what a person chooses, and shows its output. */
export class BuildCommand implements vscode.Disposable {
  private readonly output = vscode.window.createOutputChannel("Duet Build", language);
  private readonly links = vscode.languages.registerDocumentLinkProvider({ language }, { provideDocumentLinks: (document) => linksOf(document, this.directories) });
  /** Where what was built lately ran: what it prints names files from there. */
  private directories: string[] = [];
  private readonly builds = new Map<Project, Builds>();

  of(project: Project): Builds {
    let builds = this.builds.get(project);
    if (!builds) this.builds.set(project, (builds = new Builds(project.connection)));
    return builds;
  }

  async run(project: Project): Promise<void> {
    try {
      const list = await this.of(project).list();
      const chosen = await choose(list);
      if (chosen) await this.build(project, chosen);
    } catch (error) {
      if (!(await tellUntrusted(project, error))) throw error;
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
    this.directories = [root];
    await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: `Duet: building ${name}`, cancellable: true }, async (progress, token) => {
      const say = (line: string): void => this.output.appendLine(line);
      try {
        const { duration_ms } = await this.of(project).run(name, {
          onWaiting: () => progress.report({ message: "another build of it has to end first" }),
          onStarted: (command, directory) => {
            progress.report({ message: "" });
            if (directory) this.directories = [isAbsolute(directory) ? directory : join(root, directory), root];
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
        const problems = "Show Problems";
        void vscode.window.showErrorMessage(`Duet: ${error.message}`, problems).then((pressed) => {
          if (pressed === problems) void vscode.commands.executeCommand("workbench.actions.view.problems");
        });
      }
    });
  }
}

async function choose(list: Buildable[]): Promise<Buildable | undefined> {
  if (list.length === 0) throw new Error("nothing says how this project is built: write [[builds]] with a name and a command into its .duet.toml");
  if (list.length === 1) return list[0];
  const items = list.map((build) => ({
    label: build.name,
    description: [build.backend ? "backend" : "", build.detected ? "found by the project's files" : ""].filter((part) => part !== "").join(" · "),
    detail: build.command.join(" "),
    build,
  }));
  return (await vscode.window.showQuickPick(items, { title: "What is to be built?", matchOnDetail: true }))?.build;
}

/** linksOf are the places that what was printed names, as far as their files are there. */
async function linksOf(document: vscode.TextDocument, directories: string[]): Promise<vscode.DocumentLink[]> {
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
