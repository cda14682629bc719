// Messages in VS Code's notifications. All of the extension goes through here: a text of an agent or of the daemon is no link there.
import * as vscode from "vscode";
import { short, unlinked, visible } from "./hub/groups";

/** Shows a message. Resolves with the button that the user pressed. */
export function inform(text: string, ...buttons: string[]): Thenable<string | undefined> {
  return vscode.window.showInformationMessage(`Duet: ${unlinked(text)}`, ...buttons);
}

/** Shows a warning. Resolves with the button that the user pressed. */
export function warn(text: string, ...buttons: string[]): Thenable<string | undefined> {
  return vscode.window.showWarningMessage(`Duet: ${unlinked(text)}`, ...buttons);
}

/** Shows an error. Resolves with the button that the user pressed. */
export function fail(text: string, ...buttons: string[]): Thenable<string | undefined> {
  return vscode.window.showErrorMessage(`Duet: ${unlinked(text)}`, ...buttons);
}

/** Asks the user in a dialog, which holds up the window. Resolves with the button that the user pressed. */
export function confirm(text: string, detail: string, ...buttons: string[]): Thenable<string | undefined> {
  return vscode.window.showWarningMessage(`Duet: ${unlinked(text)}`, { modal: true, ...(detail !== "" && { detail }) }, ...buttons);
}

/** Shows a message while a task runs. */
export function during<T>(text: string, task: () => Promise<T>): Thenable<T> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: `Duet: ${unlinked(text)}` }, task);
}

/** The most lines of a list in a dialog. */
const mostLines = 15;

/** Lists lines in a dialog: the first ones, and how many more there are. */
export function listed(lines: readonly string[], more = 0, most = mostLines): string {
  const others = Math.max(0, lines.length - most) + more;
  return [...lines.slice(0, most).map(visible), ...(others > 0 ? [`and ${others} more`] : [])].join("\n");
}

/** A link of a notice: its words, and the command that it runs. */
export interface Link {
  label: string;
  command: string;
  args: readonly string[];
}

/** The longest text before the links of a notice, in characters. VS Code shows one line of it until the user expands it. */
const longestNotice = 36;

/**
 * Shows a notification that ends when its owner disposes it, since a person may answer elsewhere. VS Code closes only the
 * notifications of its progress API for an extension. Those have no buttons of the extension's own, so the answers are links. about stands behind them.
 */
export function notice(text: string, links: readonly Link[], about = ""): vscode.Disposable {
  let end = (): void => {};
  const over = new Promise<void>((resolve) => (end = resolve));
  const shown = links.map(({ label, command, args }) => `[${unlinked(label).replace(/[[\]]/g, "")}](command:${command}?${encodeURIComponent(JSON.stringify(args))} "${command}")`);
  void vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: [unlinked(short(text, longestNotice)), shown.join(" · "), unlinked(about)].filter((part) => part !== "").join(" — ") }, (progress) => {
    progress.report({ increment: 0 }); // else its bar moves
    return over;
  });
  return new vscode.Disposable(end);
}
