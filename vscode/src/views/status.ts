import * as vscode from "vscode";
import { isAlive } from "../hub/groups";
import type { Projects } from "../projects";

/** What the status bar says: whether anybody waits for a person, and how many agents work. */
export function statusBar(projects: Projects): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("duet.status", vscode.StatusBarAlignment.Left, 0);
  item.name = "Duet";
  const show = (): void => {
    if (projects.all.length === 0) {
      item.hide();
      return;
    }
    const [questions, working] = [projects.questions.length, projects.sessions.filter(({ session }) => isAlive(session)).length];
    const { state } = projects;
    item.backgroundColor = undefined;
    item.command = "duet.sessions.focus";
    if (state === "failed") {
      item.text = "$(error) Duet";
      item.tooltip = projects.reasons.join("\n");
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.errorBackground");
    } else if (state === "starting") {
      item.text = "$(loading~spin) Duet";
      item.tooltip = "Duet: starting duet-rpc";
    } else if (questions > 0) {
      item.text = `$(question) Duet: ${questions}`;
      item.tooltip = questions === 1 ? "1 question waits for you" : `${questions} questions wait for you`;
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
      item.command = "duet.answer";
    } else if (working > 0) {
      item.text = `$(sync~spin) Duet: ${working}`;
      item.tooltip = working === 1 ? "1 session works" : `${working} sessions work`;
    } else {
      item.text = "$(comment-discussion) Duet";
      item.tooltip = state === "stopped" ? "Duet: duet-rpc was stopped" : "Duet: nobody works, nobody waits for you";
    }
    item.accessibilityInformation = { label: typeof item.tooltip === "string" ? item.tooltip : "Duet", role: "button" };
    item.show();
  };
  const stop = projects.onChange(show);
  show();
  return new vscode.Disposable(() => {
    stop();
    item.dispose();
  });
}
