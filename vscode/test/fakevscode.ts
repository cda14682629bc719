// Stands for the module vscode in unit tests: a test gives the user's answers, and reads what was shown.
type Item = { label: string };

/** The user's next answers. An input box takes a text, a message the label of a button, a list the labels of its items. */
export const answers: Array<string | string[] | undefined> = [];

/** What was shown: the title or text, and the labels. */
export const shown: Array<{ text: string; labels: string[] }> = [];

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
