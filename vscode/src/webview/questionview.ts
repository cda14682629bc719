// A question, where it was asked: what it is about, and a button for each answer.
import { choicesOf, titleOf } from "../hub/questions";
import type { Choice } from "../hub/questions";
import type { Question } from "../hub/model";
import type { Actions } from "./actions";
import { button, icon, make, setText } from "./dom";
import type { IconName } from "./dom";
import { unifiedDiff } from "./filediff";
import { objectOf, stringOf, stringsOf } from "./json";
import { renderMarkdown } from "./markdown";
import { output } from "./output";
import type { OpenQuestion } from "./questions";

const choiceIcons: Record<string, IconName> = { check: "check", "check-all": "check", close: "close", comment: "edit", edit: "edit", "link-external": "link" };

export function questionOf(open: OpenQuestion): Question {
  return open.data as unknown as Question;
}

/** What a question asks, in one line. */
export function questionTitle(open: OpenQuestion): string {
  return titleOf({ title: "", tool_name: "", ...open.data } as unknown as Question);
}

/** Buttons for the answers; the one that is pressed sends it. */
export function choiceButtons(open: OpenQuestion, choices: readonly Choice[], actions: Actions, failed: (why: string) => void): HTMLElement {
  const row = make("div", { class: "choices", is: { role: "group", "aria-label": "Answers" } });
  for (const [i, choice] of choices.entries()) {
    const press = button({
      class: i === 0 ? "primary" : "secondary", label: choice.label, ...(choiceIcons[choice.icon] ? { icon: choiceIcons[choice.icon]! } : {}), ...(choice.detail === undefined ? {} : { tip: choice.detail }),
      press: () => {
        for (const other of row.querySelectorAll("button")) other.disabled = true;
        void actions.answer(open, choice).then(({ done, why }) => {
          if (done) return;
          for (const other of row.querySelectorAll("button")) other.disabled = false;
          press.focus();
          if (why !== undefined) failed(why);
        });
      },
    });
    row.append(press);
  }
  return row;
}

export class QuestionView {
  readonly element: HTMLElement;
  private readonly failure = make("p", { class: "failure", is: { role: "alert" } });
  private shown = "";

  constructor(
    private open: OpenQuestion,
    private readonly actions: Actions,
  ) {
    this.element = make("section", { class: "question", is: { role: "group", tabindex: "-1" } });
    this.update(open);
  }

  update(open: OpenQuestion): void {
    this.open = open;
    const now = JSON.stringify(open.data);
    if (now === this.shown) return;
    this.shown = now;
    const hadFocus = this.element.contains(document.activeElement);
    const question = questionOf(open);
    this.element.setAttribute("aria-label", `Question: ${questionTitle(open)}`);
    const choices = choicesOf(question);
    this.element.replaceChildren(
      make("div", { class: "question-head" }, icon("question"), make("strong", { text: questionTitle(open) })),
      ...this.details(question),
      choiceButtons(open, choices, this.actions, (why) => setText(this.failure, why)),
      ...detailsOf(choices).map((text) => make("p", { class: "note", text })),
      this.failure,
    );
    if (hadFocus) this.element.querySelector<HTMLElement>("button")?.focus();
  }

  /** Moves the keyboard to the first answer. */
  focus(): void {
    this.element.querySelector<HTMLElement>(".choices button")?.focus();
  }

  private details(question: Question): HTMLElement[] {
    const parts: HTMLElement[] = [];
    const note = (text: string, kind = "note"): void => void parts.push(make("p", { class: kind, text }));
    const whole = stringOf(question.title) ?? "";
    if (whole !== questionTitle(this.open)) parts.push(output(whole, { name: "Question" }));
    if (question.subject) note(question.subject);
    if (question.reopened) note(question.reopened, "warning");
    else if (question.stale) note("Its agent has ended: an answer continues it.");
    if (question.input_ambiguity) note(question.input_ambiguity, "warning");
    if (question.plan) parts.push(make("div", { class: "markdown question-plan" }, renderMarkdown(question.plan)));
    const command = stringOf(objectOf(question.tool_input)["command"]);
    if (question.diff) parts.push(unifiedDiff(question.diff));
    else if (command !== undefined) parts.push(output(command, { name: "Command" }));
    else if (question.type === "function_call" && this.open.tool === undefined && Object.keys(objectOf(question.tool_input)).length > 0) parts.push(output(JSON.stringify(question.tool_input, null, 2), { name: "Input" }));
    if (question.url) note(question.url, "address");
    for (const warning of stringsOf(question.url_warnings)) note(warning, "warning");
    if (question.truncated) note("Parts of it were left out here: look at the whole of it before you allow it.", "warning");
    return parts;
  }
}

/** detailsOf says what choices hold for; what several hold for is said once. */
function detailsOf(choices: readonly Choice[]): string[] {
  const labels = new Map<string, string[]>();
  for (const { label, detail } of choices) if (detail !== undefined) labels.set(detail, [...(labels.get(detail) ?? []), label]);
  return [...labels].map(([detail, of]) => `${of.join(", ")}: ${detail}`);
}
