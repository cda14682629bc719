// Notifications of questions and of ended sessions, and the status bar.
import * as vscode from "vscode";
import { answer } from "./answer";
import { isAlive, nameOf } from "./hub/groups";
import { choicesOf, titleOf } from "./hub/questions";
import type { ProjectQuestion, Projects, ProjectSession } from "./projects";

/** The actions that notifications need. */
export interface NotificationActions {
  attempt: (action: () => Promise<void>) => void;
  open: (session: ProjectSession) => void;
  /** Whether the user sees the conversation. */
  isShown: (session: ProjectSession) => boolean;
}

/** If more questions come at once, one notification is for all of them. */
const atOnce = 3;

/** Shows a notification for each new question and for each session that ends, as the setting duet.notifications says. */
export function notifications(projects: Projects, { attempt, open, isShown }: NotificationActions): vscode.Disposable {
  const alive = new Set<string>();
  const wanted = (which: "questions" | "ends"): boolean => {
    const setting = vscode.workspace.getConfiguration("duet").get("notifications", "all");
    return setting === "all" || (setting === "questions" && which === "questions");
  };
  const stops = [
    projects.onQuestions((questions) => {
      if (!wanted("questions")) return;
      // The panel of a visible conversation shows the question itself.
      const unseen = questions.filter(({ project, question }) => {
        const session = project.model.conversationOf(question);
        return !session || !isShown({ project, session });
      });
      if (unseen.length > atOnce) attempt(() => notifyMany(unseen.length));
      else for (const question of unseen) attempt(() => notify(question));
    }),
    projects.onChange(() => {
      for (const { project, session } of projects.sessions) {
        if (isAlive(session)) {
          alive.add(session.id);
        } else if (alive.delete(session.id) && wanted("ends")) {
          attempt(() => notifyEnd({ project, session }));
        }
      }
    }),
  ];

  async function notify(of: ProjectQuestion): Promise<void> {
    // The notification has the first answers. Its last button leads to all of them.
    const direct = choicesOf(of.question).filter(({ needs, decision }) => !needs && !decision.scope).slice(0, 2);
    const more = "More…";
    const session = of.project.model.conversationOf(of.question);
    const message = `${session ? `${nameOf(session)}: ` : ""}${titleOf(of.question)}`;
    const pressed = await vscode.window.showInformationMessage(message, ...direct.map(({ label }) => label), more);
    if (pressed === more) await answer(of);
    else if (pressed !== undefined) await answer(of, direct.find(({ label }) => label === pressed)?.id);
  }

  async function notifyMany(count: number): Promise<void> {
    const show = "Show";
    if ((await vscode.window.showInformationMessage(`${count} questions wait for you`, show)) === show) await vscode.commands.executeCommand("duet.inbox.focus");
  }

  async function notifyEnd(of: ProjectSession): Promise<void> {
    const { session } = of;
    const show = "Open Conversation";
    const failed = session.status === "failed";
    if (session.status === "interrupted" || isShown(of)) return; // the user did that, or sees it
    const message = failed ? `${nameOf(session)} has failed${session.error_message ? `: ${session.error_message}` : ""}` : `${nameOf(session)} is done`;
    const pressed = failed ? await vscode.window.showWarningMessage(message, show) : await vscode.window.showInformationMessage(message, show);
    if (pressed === show) open(of);
  }

  return new vscode.Disposable(() => stops.forEach((stop) => stop()));
}

/** The item in the status bar: the number of open questions, else of working sessions. */
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
      item.tooltip = state === "stopped" ? "Duet: duet-rpc was stopped" : "Duet: no session works or waits for you";
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
