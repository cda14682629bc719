// Asks the user for the input that an answer needs, and sends the decision to the daemon.
import * as vscode from "vscode";
import { unlinked, visible } from "./hub/groups";
import { choicesOf, titleOf, valueOf } from "./hub/questions";
import type { Choice, FormField } from "./hub/questions";
import { inform } from "./messages";
import type { ProjectQuestion } from "./projects";

/** Answers a question with one of its choices. Without a choice, the user picks one. Returns false if this sent no answer. */
export async function answer(of: ProjectQuestion, choiceId?: string): Promise<boolean> {
  const choices = choicesOf(of.question);
  const choice = choiceId === undefined ? await pick(of, choices) : choices.find(({ id }) => id === choiceId);
  const decision = choice && (await completed(of, choice));
  if (!decision) return false;
  const { success, error } = await of.project.connection.request("approval.decide", { approval: of.question.approval, client: "VS Code", ...decision });
  if (!success) void inform(error ?? "the question has been answered");
  return success;
}

async function pick(of: ProjectQuestion, choices: Choice[]): Promise<Choice | undefined> {
  const items = choices.map((choice) => ({ label: `$(${choice.icon}) ${choice.label}`, ...(choice.detail ? { detail: choice.detail } : {}), choice }));
  return (await vscode.window.showQuickPick(items, { title: titleOf(of.question), placeHolder: "Your answer" }))?.choice;
}

/** completed returns a choice's decision with the input that it needs. undefined: the user cancelled. */
async function completed({ question }: ProjectQuestion, { decision, needs }: Choice): Promise<Choice["decision"] | undefined> {
  if (!needs) return decision;
  if ("words" in needs) {
    const comment = await vscode.window.showInputBox({ title: titleOf(question), prompt: unlinked(needs.words), ignoreFocusOut: true, validateInput: (text) => (text.trim() === "" ? "Type something, or press Escape" : undefined) });
    return comment === undefined ? undefined : { ...decision, comment };
  }
  if ("form" in needs) {
    const content = await fill(titleOf(question), needs.form);
    return content && { ...decision, content };
  }
  const opened = await vscode.env.openExternal(vscode.Uri.parse(needs.open, true));
  return opened ? decision : undefined;
}

/** fill asks for the fields of a form, one after the other. */
async function fill(title: string, fields: FormField[]): Promise<Record<string, unknown> | undefined> {
  const content: Record<string, unknown> = {};
  for (const [i, field] of fields.entries()) {
    const step = { title: `${title} (${i + 1} of ${fields.length})`, ignoreFocusOut: true };
    const value = await ask(field, step);
    if (value === undefined) return undefined;
    if (value.is !== undefined) content[field.name] = value.is;
  }
  return content;
}

/** ask gets the value of a field. A field that is left out has the value undefined. Returns undefined if the user pressed Escape. */
async function ask(field: FormField, step: { title: string; ignoreFocusOut: boolean }): Promise<{ is: unknown } | undefined> {
  const prompt = [unlinked(field.label), unlinked(field.description), field.required ? "" : "(optional)"].filter((part) => part !== "").join(" — ");
  const leaveOut = { label: "$(dash) Leave out", value: undefined as unknown };
  switch (field.kind) {
    case "boolean":
    case "choice": {
      const choices = field.kind === "boolean" ? [{ label: "Yes", value: true as unknown }, { label: "No", value: false as unknown }] : field.choices.map(({ value, label }) => ({ label: visible(label), value: value }));
      // The default comes first, so that Enter takes it.
      const first = choices.filter(({ value }) => value === field.default).map((item) => ({ ...item, description: "the default" }));
      const items = [...first, ...choices.filter(({ value }) => value !== field.default)];
      const picked = await vscode.window.showQuickPick(field.required ? items : [...items, leaveOut], { ...step, placeHolder: prompt });
      return picked && { is: picked.value };
    }
    case "choices": {
      const chosen = Array.isArray(field.default) ? (field.default as unknown[]) : [];
      const picked = await vscode.window.showQuickPick(field.choices.map(({ value, label }) => ({ label: visible(label), value, picked: chosen.includes(value) })), { ...step, placeHolder: prompt, canPickMany: true });
      return picked && { is: picked.length === 0 && !field.required ? undefined : picked.map(({ value }) => value) };
    }
    default: {
      const byDefault = field.default === undefined ? "" : typeof field.default === "string" ? field.default : JSON.stringify(field.default);
      const typed = await vscode.window.showInputBox({
        ...step, prompt, value: byDefault,
        validateInput: (text) => {
          try {
            valueOf(field, text);
            return undefined;
          } catch (error) {
            return unlinked((error as Error).message);
          }
        },
      });
      return typed === undefined ? undefined : { is: valueOf(field, typed) };
    }
  }
}
