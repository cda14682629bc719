// The entry point of the extension: creates its parts, and ends them.
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { usableAgents } from "./agents";
import { Comparisons } from "./attempts";
import { fail, inform } from "./messages";
import { BuildCommand, Problems, Tasks } from "./builds";
import { Changes } from "./changes";
import { registerCommands } from "./commands";
import { Documents } from "./documents";
import { Edits } from "./edits";
import { saved } from "./editortools";
import { notifications, statusBar } from "./notifications";
import { Drafts } from "./panel/drafts";
import { ActiveEditor } from "./panel/files";
import { Beginnings } from "./panel/newsession";
import { Panels } from "./panel/panel";
import { handlersOf } from "./panel/requests";
import { Previews } from "./preview/panel";
import { Projects } from "./projects";
import { Keys } from "./secrets";
import { Terminals } from "./terminals";
import { InboxTree, OtherProjectsTree, SessionsTree } from "./views";

let projects: Projects | undefined;
let drafts: Drafts | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Duet", { log: true });
  const program = process.platform === "win32" ? "duet-rpc.exe" : "duet-rpc";
  const editor = new ActiveEditor();
  const all = new Projects(log, vscode.Uri.joinPath(context.extensionUri, "server", program).fsPath, editor);
  projects = all;
  const showError = (error: unknown): void => {
    const message = error instanceof Error ? error.message : String(error);
    log.error(message);
    void fail(message);
  };
  /** attempt runs an action and shows its error. */
  const attempt = (action: () => Promise<void>): void => void action().catch(showError);
  const note = (error: unknown): void => log.warn(error instanceof Error ? error.message : String(error));
  const documents = new Documents(all);
  const changes = new Changes(all, showError);
  const edits = new Edits(showError);
  // vscode.env.sessionId is not enough: a duplicated window has the same one.
  const window = randomUUID();
  const kept = new Drafts(vscode.Uri.joinPath(context.storageUri ?? context.globalStorageUri, "drafts").fsPath, window, note);
  drafts = kept;
  const beginnings = new Beginnings(context.workspaceState);
  const panels: Panels = new Panels(all, {
    window, projects: all, beginnings, editor, extension: context.extensionUri, onError: note,
    handlers: (panel) => handlersOf(panel, { drafts: kept, projects: all, beginnings, move: (of, project) => panels.move(of, project), documents, changes, edits, compare: (of) => comparisons.show(of), onError: note }),
  });
  const comparisons = new Comparisons({ projects: all, panels, changes, documents, extension: context.extensionUri, onError: note });
  const follow = (): void => {
    void vscode.commands.executeCommand("setContext", "duet.state", all.state);
    for (const reason of all.reasons) {
      if (!shown.has(reason)) attempt(() => showFailure(reason, log));
      shown.add(reason);
    }
    if (all.state === "ready") shown.clear();
  };
  const shown = new Set<string>();
  const stops = [all.onChange(follow), followSteps(all, note)];
  follow();
  const [builds, problems, terminals] = [new BuildCommand(), new Problems(all), new Terminals(note)];
  const [keys, previews, others] = [new Keys(all, context, note), new Previews(all, context, note), new OtherProjectsTree(all)];
  context.subscriptions.push(
    vscode.workspace.onDidSaveTextDocument(({ uri }) => uri.scheme === "file" && saved(all.all, uri.fsPath)),
    log, all, documents, changes, edits, panels, editor, new SessionsTree(all), new InboxTree(all, keys), others, statusBar(all), ...stops.map((stop) => ({ dispose: stop })),
    previews, comparisons, problems, builds, keys, terminals, new Tasks(all, builds, problems, note),
    notifications(all, { attempt, open: (of) => attempt(async () => void (await panels.open(of))), isShown: (of) => panels.isShown(of), onShown: panels.onShown }),
    ...registerCommands({ projects: all, documents, panels, changes, builds, problems, terminals, keys, previews, comparisons, others, log, attempt }),
  );
}

/** followSteps sets the contexts that complete the steps of the walkthrough. */
function followSteps(projects: Projects, onError: (error: unknown) => void): () => void {
  const set = (name: string, value: unknown): void => void vscode.commands.executeCommand("setContext", `duet.${name}`, value);
  let [agents, asking]: ["demo" | "ready" | undefined, boolean] = [undefined, false];
  const look = async (): Promise<void> => {
    const project = projects.all.find(({ connection }) => connection.state.is === "ready");
    if (!project || asking || agents === "ready") return;
    asking = true;
    agents = await usableAgents(project).finally(() => (asking = false));
    set("agents", agents);
  };
  const stops = [
    projects.onChange(() => {
      set("hasSessions", projects.sessions.length > 0);
      if (agents === undefined) look().catch(onError);
    }),
    projects.onEvent(({ event }) => event.kind === "approval.closed" && event.data.decided_by === "user" && set("hasAnswered", true)),
  ];
  // A user installs an agent in a terminal, and signs in to it in a browser.
  const subscriptions = [vscode.window.onDidChangeWindowState(({ focused }) => focused && look().catch(onError)), vscode.window.onDidChangeActiveTerminal(() => look().catch(onError))];
  return () => {
    for (const stop of stops) stop();
    for (const subscription of subscriptions) subscription.dispose();
  };
}

async function showFailure(reason: string, log: vscode.LogOutputChannel): Promise<void> {
  const remedy = projects?.remedy(reason) ?? "";
  if (remedy !== "") {
    const begin = "New Session";
    if ((await inform(`${reason}; ${remedy}`, begin)) === begin) await vscode.commands.executeCommand("duet.newSession");
    return;
  }
  const [again, settings, showLog] = ["Try Again", "Open Settings", "Show Log"];
  const pressed = await fail(reason, again, settings, showLog);
  if (pressed === again) await projects?.restart();
  else if (pressed === settings) await vscode.commands.executeCommand("workbench.action.openSettings", projects?.all.some(({ host, connection }) => host !== "" && connection.state.is === "failed") ? "duet.host" : "duet.executable");
  else if (pressed === showLog) log.show();
}

/** Stops the window's processes. VS Code waits for it, at most a few seconds. Sessions in the daemons continue. */
export async function deactivate(): Promise<void> {
  await Promise.all([projects?.stop(), drafts?.written()]);
}
