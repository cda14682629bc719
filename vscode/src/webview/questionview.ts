// The views of a question: at its place in the transcript, and in a bar above the prompt box. Each has a button for each answer.
import { exactly } from "../hub/groups";
import type { Question } from "../hub/model";
import { choicesOf, titleOf } from "../hub/questions";
import type { Choice } from "../hub/questions";
import { button, icon, make, setText } from "./dom";
import type { IconName } from "./dom";
import { objectOf, stringOf, stringsOf } from "./json";
import { renderMarkdown } from "./markdown";
import { output, unifiedDiff } from "./output";
import type { OpenQuestion } from "./questions";
import type { Actions } from "./view";

/** The longest plan that is shown as Markdown, in characters. It is parsed at once. */
const longestPlan = 50_000;

const choiceIcons: Record<string, IconName> = { check: "check", "check-all": "check", close: "close", comment: "edit", edit: "edit", "link-external": "link" };

function questionOf(open: OpenQuestion): Question {
  return open.data as unknown as Question;
}

/** The title of a question, in one line. */
export function questionTitle(open: OpenQuestion): string {
  return titleOf({ title: "", tool_name: "", ...open.data } as unknown as Question);
}

/** Buttons for the answers. A press sends the answer. */
class ChoiceRow {
  readonly element = make("div", { class: "choices", is: { role: "group", "aria-label": "Answers" } });
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private readonly choices = new Map<string, Choice>();
  private busy = false;

  constructor(
    private readonly open: OpenQuestion,
    private readonly actions: Actions,
    private readonly failed: (why: string) => void,
  ) {}

  /** Shows choices. Existing buttons keep their place, because the pointer may be on its way to one. */
  update(choices: readonly Choice[]): void {
    for (const [id, old] of this.buttons) {
      if (choices.some((choice) => choice.id === id)) continue;
      old.remove();
      this.buttons.delete(id);
    }
    for (const choice of choices) {
      this.choices.set(choice.id, choice);
      if (this.buttons.has(choice.id)) continue;
      const { id, label, detail } = choice;
      const press = button({
        class: this.buttons.size === 0 ? "primary" : "secondary", label, ...(choiceIcons[choice.icon] ? { icon: choiceIcons[choice.icon]! } : {}), ...(detail === undefined ? {} : { tip: detail }),
        press: () => void this.press(id),
      });
      this.buttons.set(id, press);
      this.element.append(press);
    }
  }

  private async press(id: string): Promise<void> {
    if (this.busy) return;
    // The buttons are not disabled, because a disabled button loses the focus.
    this.setBusy(true);
    const { done, why } = await this.actions.answer(this.open, this.choices.get(id)!);
    if (done) return;
    this.setBusy(false);
    if (why !== undefined) this.failed(why);
  }

  private setBusy(busy: boolean): void {
    this.busy = busy;
    for (const press of this.buttons.values()) press.setAttribute("aria-disabled", String(busy));
  }
}

/** A question in the transcript. */
export class QuestionView {
  readonly element: HTMLElement;
  private readonly failure = make("p", { class: "failure", is: { role: "alert" } });
  private readonly head = make("div", { class: "question-about" });
  private readonly notes = make("div", { class: "question-notes" });
  private readonly choices: ChoiceRow;
  private shown = "";

  constructor(
    private open: OpenQuestion,
    private readonly actions: Actions,
  ) {
    this.choices = new ChoiceRow(open, actions, (why) => setText(this.failure, why));
    this.element = make("section", { class: "question", is: { role: "group", tabindex: "-1" } }, this.head, this.choices.element, this.notes, this.failure);
    this.update(open);
  }

  update(open: OpenQuestion): void {
    this.open = open;
    const question = questionOf(open);
    const choices = open.partial ? [] : choicesOf(question);
    this.choices.update(choices);
    this.notes.replaceChildren(...detailsOf(choices).map((text) => make("p", { class: "note", text })));
    const { title, subject, reopened, stale, input_ambiguity, plan, details, diff, tool_input, url, url_warnings, truncated } = question;
    const now = JSON.stringify([title, subject, reopened, stale, input_ambiguity, plan, details, diff, tool_input, url, url_warnings, truncated, open.tool, open.partial]);
    if (now === this.shown) return;
    this.shown = now;
    this.element.setAttribute("aria-label", `Question: ${questionTitle(open)}`);
    this.head.replaceChildren(make("div", { class: "question-head" }, icon("question"), make("strong", { text: questionTitle(open) })), ...this.details(question));
  }

  get question(): OpenQuestion {
    return this.open;
  }

  /** Moves the focus to the first answer. */
  focus(): void {
    (this.element.querySelector<HTMLElement>(".choices button") ?? this.element).focus();
  }

  private details(question: Question): HTMLElement[] {
    if (this.open.partial) return [make("p", { class: "note", text: "The question is long. Loading all of it…" })];
    const parts: HTMLElement[] = [];
    const note = (text: string, kind = "note"): void => void parts.push(make("p", { class: kind, text }));
    const whole = stringOf(question.title) ?? "";
    if (whole !== questionTitle(this.open)) parts.push(output(exactly(whole), { name: "Question" }));
    if (question.subject) note(exactly(question.subject));
    if (question.reopened) note(question.reopened, "warning");
    else if (question.stale) note("Its agent has ended: an answer continues it.");
    if (question.input_ambiguity) note(question.input_ambiguity, "warning");
    if (question.plan) parts.push(question.plan.length > longestPlan ? output(question.plan, { name: "Plan" }) : make("div", { class: "markdown question-plan" }, renderMarkdown(question.plan)));
    if (question.details) parts.push(output(exactly(question.details), { name: "Details" }));
    const command = stringOf(objectOf(question.tool_input)["command"]);
    if (question.diff) parts.push(...unifiedDiff(question.diff, this.actions));
    else if (command !== undefined) parts.push(output(exactly(command), { name: "Command" }));
    else if (question.type === "function_call" && this.open.tool === undefined && Object.keys(objectOf(question.tool_input)).length > 0) parts.push(output(exactly(JSON.stringify(question.tool_input, null, 2)), { name: "Input" }));
    if (question.url) note(exactly(question.url), "address");
    for (const warning of stringsOf(question.url_warnings)) note(exactly(warning), "warning");
    if (question.truncated) note("Parts of this question are too long to show.", "warning");
    return parts;
  }
}

/** detailsOf returns the scopes of choices. A scope of several choices is named once. */
function detailsOf(choices: readonly Choice[]): string[] {
  const labels = new Map<string, string[]>();
  for (const { label, detail } of choices) if (detail !== undefined) labels.set(detail, [...(labels.get(detail) ?? []), label]);
  return [...labels].map(([detail, of]) => `${of.join(", ")}: ${detail}`);
}

/** A bar with the first open question, while no open question is in view. */
export class QuestionBar {
  readonly element = make("div", { class: "question-bar", is: { role: "region", "aria-label": "Open questions" } });
  private shown = "";

  constructor(
    private readonly actions: Actions,
    private readonly show: (id: string) => void,
  ) {
    this.element.hidden = true;
  }

  update(sees: (id: string) => boolean): void {
    const open = this.actions.contents.questions;
    const first = open.some(({ id }) => sees(id)) ? undefined : open[0];
    const now = first ? `${first.id} ${first.partial} ${open.length} ${choicesOf(questionOf(first)).length}` : "";
    if (now === this.shown) return;
    this.shown = now;
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = first === undefined;
    if (!first) {
      this.element.replaceChildren();
      if (hadFocus) this.actions.focusPrompt();
      return;
    }
    const failure = make("p", { class: "failure", is: { role: "alert" } });
    // The bar has only the answers that need no further input. The others are at the question's place.
    const answers = (first.partial ? [] : choicesOf(questionOf(first))).filter(({ needs }) => needs === undefined);
    const choices = [...answers.filter(({ id }) => id !== "deny").slice(0, 4), ...answers.filter(({ id }) => id === "deny")];
    const row = new ChoiceRow(first, this.actions, (why) => (failure.textContent = why));
    row.update(choices);
    this.element.replaceChildren(
      make("div", { class: "question-head" }, icon("question"), make("strong", { text: questionTitle(first) }), open.length > 1 && make("span", { class: "note", text: `1 of ${open.length}` }), button({ class: "text-button", label: "Show", name: "Show the question", press: () => this.show(first.id) })),
      row.element,
      failure,
    );
    if (hadFocus) this.element.querySelector<HTMLElement>(".choices button")?.focus();
  }
}
