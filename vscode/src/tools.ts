// Builds, gates, terminals, keys and the preview: what stands beside sessions and questions.
import * as vscode from "vscode";
import { Previews, showPreview } from "./preview/panel";
import { BuildCommand } from "./problems/command";
import { Problems } from "./problems/problems";
import { pickProject } from "./projects";
import type { Project, Projects, ProjectSession } from "./projects";
import { Keys } from "./secrets";
import { OtherProjectsTree, openProject } from "./views/others";
import { Tasks } from "./tasks";
import { Terminals } from "./terminals";

export interface ToolsContext {
  projects: Projects;
  context: vscode.ExtensionContext;
  log: vscode.LogOutputChannel;
  attempt: (action: () => Promise<void>) => void;
}

export function registerTools({ projects, context, log, attempt }: ToolsContext): Array<{ dispose(): unknown }> {
  const command = <A extends unknown[]>(name: string, action: (...args: A) => Promise<void> | void): vscode.Disposable =>
    vscode.commands.registerCommand(`duet.${name}`, (...args: A) => {
      projects.start();
      attempt(async () => action(...args));
    });
  const inProject = (name: string, action: (project: Project) => Promise<void>): vscode.Disposable =>
    command(name, async () => {
      const project = await pickProject(projects);
      if (project) await action(project);
    });
  const problems = new Problems(projects);
  const build = new BuildCommand();
  const note = (error: unknown): void => log.warn(error instanceof Error ? error.message : String(error));
  const keys = new Keys(projects, context, note);
  const terminals = new Terminals(note);
  const previews = new Previews(projects, context, note);
  const others = new OtherProjectsTree(projects);
  return [
    others,
    command("refreshProjects", () => others.refresh()),
    command("openProject", (of: { root: string }) => openProject(of)),
    previews,
    command("preview", () => showPreview(projects, previews)),
    problems, build, keys, terminals, new Tasks(projects, build, problems, note),
    inProject("newTerminal", (project) => Promise.resolve(terminals.create(project))),
    command("watchTerminal", async (of?: ProjectSession) => {
      const project = of?.project ?? (await pickProject(projects));
      if (project) await terminals.watch(project, of?.session);
    }),
    command("forgetKeys", () => keys.forget()),
    inProject("build", (project) => build.run(project)),
    command("clearProblems", () => problems.clear()),
  ];
}
