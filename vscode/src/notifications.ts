// Notifications of questions and of ended sessions, and the status bar.
import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { hasFailed, isAlive, isInterruptible, labelOf, short } from "./hub/groups";
import { choicesOf, titleOf } from "./hub/questions";
import { inform, notice, warn } from "./messages";
import type { Link } from "./messages";
import { turnStateWords } from "./protocol";
import type { ProjectQuestion, Projects, ProjectSession } from "./projects";

/** The actions that notifications need. */
export interface NotificationActions {
  attempt: (action: () => Promise<void>) => void;
  open: (session: ProjectSession) => void;
  /** Whether the user sees the session. */
  isShown: (session: ProjectSession) => boolean;
  /** Adds a listener for when the user sees another session. The returned function removes it. */
  onShown: (listener: () => void) => () => void;
}

/** If more questions come at once, one notification is for all of them. */
const atOnce = 3;

/**
 * Shows a notification for each new question and for each session that ends, as the setting duet.notifications says. That
 * of a question ends with its answer, or when the user sees the session: its panel shows the question itself.
 */
export function notifications(projects: Projects, { attempt, open, isShown, onShown }: NotificationActions): vscode.Disposable {
  const alive = new Set<string>();
  /** The notifications of questions, and the ids of the questions. */
  const shown = new Map<vscode.Disposable, string[]>();
  const wanted = (which: "questions" | "ends"): boolean => {
    const setting = vscode.workspace.getConfiguration("duet").get("notifications", "all");
    return setting === "all" || (setting === "questions" && which === "questions");
  };
  const isUnseen = ({ project, question }: ProjectQuestion): boolean => {
    const session = project.model.sessionOf(question);
    return !session || !isShown({ project, session });
  };
  /** Ends the notifications whose questions are all answered or seen. VS Code restores panels after questions have come. */
  const endSeen = (): void => {
    const waiting = new Set(projects.questions.filter(isUnseen).map(({ question }) => question.approval));
    for (const [notification, ids] of shown) {
      if (ids.some((id) => waiting.has(id))) continue;
      notification.dispose();
      shown.delete(notification);
    }
  };
  const stops = [
    onShown(endSeen),
    projects.onQuestions((questions) => {
      if (!wanted("questions")) return;
      const unseen = questions.filter(isUnseen);
      if (unseen.length > atOnce) notify(unseen, `${unseen.length} questions wait for you`, [{ label: "Show", command: "duet.inbox.focus", args: [] }]);
      else for (const of of unseen) notifyOne(of);
    }),
    projects.onChange(() => {
      endSeen();
      for (const { project, session } of projects.sessions) {
        if (isAlive(session)) {
          alive.add(session.turn_uuid);
        } else if (alive.delete(session.turn_uuid) && wanted("ends")) {
          attempt(() => notifyEnd({ project, session }));
        }
      }
    }),
  ];

  function notify(of: ProjectQuestion[], text: string, links: Link[], about = ""): void {
    shown.set(notice(text, links, about), of.map(({ question }) => question.approval));
    notifyDesktop(about === "" ? text : `${about}: ${text}`);
  }

  function notifyOne(of: ProjectQuestion): void {
    const { approval } = of.question;
    // The first answers. The last link leads to the question with all of them.
    const direct = choicesOf(of.question).filter(({ needs, decision }) => !needs && !decision.scope).slice(0, 2);
    const session = of.project.model.sessionOf(of.question);
    notify([of], titleOf(of.question), [
      ...direct.map(({ id: choice, label }) => ({ label, command: "duet.answer", args: [approval, choice] })), { label: "Show", command: "duet.showQuestion", args: [approval] },
    ], [...(session ? [labelOf(session, of.question.turn)] : []), ...(of.project.host ? [of.project.name] : [])].join(" · "));
  }

  async function notifyEnd(of: ProjectSession): Promise<void> {
    const { session } = of;
    const show = "Open Session";
    const failed = hasFailed(session);
    if (["interrupted", "cancelled"].includes(session.state) || isShown(of)) return; // the user did that, or sees it
    const label = `${labelOf(session, session.turn)}${of.project.host ? ` (${of.project.name})` : ""}`;
    const message = failed ? `${label} has failed${session.error ? `: ${session.error}` : ""}` : `${label} is ${turnStateWords.completed}`;
    notifyDesktop(message);
    const pressed = failed ? await warn(message, show) : await inform(message, show);
    if (pressed === show) open(of);
  }

  return new vscode.Disposable(() => {
    for (const stop of stops) stop();
    for (const notification of shown.keys()) notification.dispose();
  });
}

/**
 * Shows a notification of the desktop while the window has no focus. VS Code's API has none, so the system's own program
 * shows it. That exists on Linux (notify-send) and macOS, and only where VS Code runs on the user's machine.
 */
function notifyDesktop(text: string): void {
  const wanted = vscode.workspace.getConfiguration("duet").get("desktopNotifications", true);
  if (!wanted || vscode.window.state.focused || vscode.env.remoteName !== undefined || vscode.env.uiKind !== vscode.UIKind.Desktop) return;
  const [program, args] = desktopNotification(process.platform, text);
  if (program !== undefined) execFile(program, args, { timeout: 10_000 }, () => {}); // a desktop without such a program shows none
}

/** The program that shows a notification of the desktop, and its arguments. undefined: the system has none. */
export function desktopNotification(platform: NodeJS.Platform, text: string): [program: string | undefined, args: string[]] {
  const line = short(text, 200);
  switch (platform) {
    case "linux":
      // The body may be read as markup.
      return ["notify-send", ["--app-name=Duet", "--", "Duet", line.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`)]];
    case "darwin":
      return ["osascript", ["-e", "on run argv", "-e", 'display notification (item 1 of argv) with title "Duet"', "-e", "end run", line]];
    default:
      return [undefined, []];
  }
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
    const [questions, working] = [projects.questions.length, projects.sessions.filter(({ session }) => isInterruptible(session)).length];
    const { state } = projects;
    item.backgroundColor = undefined;
    item.command = "duet.sessions.focus";
    const hosts = [...new Set(projects.all.map(({ host }) => host))];
    const duet = hosts.length === 1 && hosts[0] ? `Duet@${hosts[0]}` : "Duet";
    const trouble = projects.troubles[0];
    if (state === "failed") {
      item.text = `$(error) ${duet}`;
      item.tooltip = projects.reasons.join("\n");
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.errorBackground");
    } else if (state === "starting") {
      item.text = `$(loading~spin) ${duet}`;
      item.tooltip = "Duet: starting duet-rpc";
    } else if (questions > 0) {
      item.text = `$(question) ${duet}: ${questions}`;
      item.tooltip = questions === 1 ? "1 question waits for you" : `${questions} questions wait for you`;
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
      item.command = "duet.answer";
    } else if (working > 0) {
      item.text = `$(sync~spin) ${duet}: ${working}`;
      item.tooltip = working === 1 ? "1 session works" : `${working} sessions work`;
    } else {
      item.text = `$(comment-discussion) ${duet}`;
      item.tooltip = state === "stopped" ? "Duet: duet-rpc was stopped" : "Duet: no session works or waits for you";
    }
    if (trouble !== undefined && state === "ready") {
      item.text = item.text.replace(/^\$\([^)]*\)/, "$(warning)");
      item.tooltip = [trouble, ...(typeof item.tooltip === "string" ? [item.tooltip] : [])].join("\n");
    }
    const named = projects.all.filter(({ host }) => host !== "").map(({ name }) => name);
    if (named.length > 0 && typeof item.tooltip === "string") item.tooltip = `${item.tooltip}\n${named.join("\n")}`;
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
