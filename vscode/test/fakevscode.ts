// Stands for the module vscode in unit tests: a test gives the user's answers, and reads what was shown.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

type Item = { label: string };

/** The user's next answers. An input box takes a text, a message the label of a button, a list the labels of its items. */
export const answers: Array<string | string[] | undefined> = [];

/** What was shown: the title or text, and the labels. */
export const shown: Array<{ text: string; labels: string[] }> = [];

/** The settings, by their names without a section. */
export const settings: Record<string, unknown> = {};

function next(text: string, labels: string[]): string | string[] | undefined {
  shown.push({ text, labels });
  return answers.shift();
}

export const window = {
  showInputBox: ({ title, value }: { title?: string; value?: string }): Promise<unknown> => Promise.resolve(next(title ?? "", [value ?? ""])),
  showQuickPick: (items: Item[], { title, canPickMany }: { title?: string; canPickMany?: boolean }): Promise<unknown> => {
    const chosen = next(title ?? "", items.map(({ label }) => label));
    if (chosen === undefined) return Promise.resolve(undefined);
    const fits = items.filter(({ label }) => [chosen].flat().includes(label));
    return Promise.resolve(canPickMany ? fits : fits[0]);
  },
  showWarningMessage: (text: string, _options: unknown, ...labels: string[]): Promise<unknown> => Promise.resolve(next(text, labels)),
  showInformationMessage: (text: string): Promise<unknown> => {
    shown.push({ text, labels: [] });
    return Promise.resolve(undefined);
  },
};

export class Disposable {
  constructor(readonly dispose: () => void) {}
}

export const Uri = {
  file: (fsPath: string) => ({ scheme: "file", fsPath, toString: () => pathToFileURL(fsPath).href }),
  joinPath: (base: { fsPath: string }, ...names: string[]) => Uri.file(join(base.fsPath, ...names)),
};

export const ViewColumn = { Active: -1, Beside: -2 };

export const workspace = {
  isTrusted: true,
  getConfiguration: () => ({ get: (name: string, fallback: unknown) => settings[name] ?? fallback }),
  getWorkspaceFolder: (): unknown => undefined,
};
