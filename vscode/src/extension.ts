// What VS Code calls: it puts the parts together, and ends them.
import * as vscode from "vscode";
import { registerCommands } from "./commands";
import { Documents } from "./documents";
import { notifications } from "./notifications";
import { Projects } from "./projects";
import { registerTools } from "./tools";
import { InboxTree } from "./views/inbox";
import { SessionsTree } from "./views/sessions";
import { statusBar } from "./views/status";

let projects: Projects | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Duet", { log: true });
  const program = process.platform === "win32" ? "duet-rpc.exe" : "duet-rpc";
  const all = new Projects(log, vscode.Uri.joinPath(context.extensionUri, "server", program).fsPath);
  projects = all;
  const documents = new Documents(all);
  /** attempt carries an action out, and says what went wrong. */
  const attempt = (action: () => Promise<void>): void => {
    action().catch((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      log.error(message);
      void vscode.window.showErrorMessage(`Duet: ${message}`);
    });
  };
  const follow = (): void => {
    void vscode.commands.executeCommand("setContext", "duet.state", all.state);
    for (const reason of all.reasons) {
      if (!told.has(reason)) attempt(() => tellFailure(reason, log));
      told.add(reason);
    }
    if (all.state === "ready") told.clear();
  };
  const told = new Set<string>();
  const stop = all.onChange(follow);
  follow();
  context.subscriptions.push(
    log, all, documents, new SessionsTree(all), new InboxTree(all), statusBar(all), { dispose: stop },
    notifications(all, { attempt, open: (of) => documents.openConversationOf(of), isShown: (of) => documents.isShown(of) }),
    ...registerCommands({ projects: all, documents, log, attempt }),
    ...registerTools({ projects: all, context, log, attempt }),
  );
}

async function tellFailure(reason: string, log: vscode.LogOutputChannel): Promise<void> {
  const [again, settings, showLog] = ["Try Again", "Open Settings", "Show Log"];
  const pressed = await vscode.window.showErrorMessage(`Duet: ${reason}`, again, settings, showLog);
  if (pressed === again) await projects?.restart();
  else if (pressed === settings) await vscode.commands.executeCommand("workbench.action.openSettings", "duet.executable");
  else if (pressed === showLog) log.show();
}

/** VS Code waits for this, a few seconds at most: no process is left behind. */
export async function deactivate(): Promise<void> {
  await projects?.stop();
}
