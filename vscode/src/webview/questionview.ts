// The views of a question: at its place in the transcript, and in a bar above the prompt box. Each has a button for each answer.
import { exactly } from "../hub/groups";
import type { Question } from "../hub/model";
import { choicesOf, isComplete, titleOf } from "../hub/questions";
import type { Choice, Decision } from "../hub/questions";
import { answers } from "../protocol";
import { AnswerField } from "./answerfield";
import { AnswerKeys } from "./answerkeys";
import { button, icon, keyHint, make, setText } from "./dom";
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

/** Buttons for the answers. A press sends the answer, or asks for the input that it needs. */
class ChoiceRow {
  readonly element = make("div", { class: "choices", is: { role: "group", "aria-label": "Answers" } });
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private readonly choices = new Map<string, Choice>();
  private busy = false;

  constructor(
    private readonly open: OpenQuestion,
    private readonly actions: Actions,
    private readonly failed: (why: string) => void,
    /** Asks for the input of an answer in its place. Returns false if the answer needs none. */
    private readonly asks: (choice: Choice) => boolean = () => false,
  ) {}

  /** Moves the focus to the button of a choice. */
  focus(id: string): void {
    this.buttons.get(id)?.focus();
  }

  /** Whether a key presses one of the buttons. */
  takes(key: string): boolean {
    return this.of(key) !== undefined;
  }

  /** Presses the button of a key. */
  pressKey(key: string): void {
    const choice = this.of(key);
    if (choice) void this.press(choice.id);
  }

  private of(key: string): Choice | undefined {
    return [...this.choices.values()].find((choice) => choice.key === key);
  }

  /** Shows choices. Existing buttons keep their place, because the pointer may be on its way to one. */
  update(choices: readonly Choice[]): void {
    for (const [id, old] of this.buttons) {
      if (choices.some((choice) => choice.id === id)) continue;
      old.remove();
      this.buttons.delete(id);
      this.choices.delete(id);
    }
    for (const choice of choices) {
      this.choices.set(choice.id, choice);
      if (this.buttons.has(choice.id)) continue;
      const { id, label, key, detail, meaning } = choice;
      const tip = [detail ?? meaning, key === undefined ? undefined : `(${key})`].filter((part) => part !== undefined).join(" ");
      const press = button({
        class: this.buttons.size === 0 ? "primary" : "secondary", label, ...(key !== undefined && { key }), ...(choiceIcons[choice.icon] && { icon: choiceIcons[choice.icon]! }), ...(tip !== "" && { tip }),
        press: () => void this.press(id),
      });
      this.buttons.set(id, press);
      this.element.append(press);
    }
  }

  /** Presses the button of a choice, if it is there. */
  async press(id: string): Promise<void> {
    const choice = this.choices.get(id);
    if (!choice || this.busy || this.asks(choice)) return;
    await this.send(choice.decision, choice, this.failed);
  }

  /** Sends a decision, once at a time. */
  async send(decision: Decision, { needs }: Choice, failed: (why: string) => void): Promise<void> {
    if (this.busy) return;
    // The buttons are not disabled, because a disabled button loses the focus.
    this.setBusy(true);
    const { done, why } = await this.actions.answer(this.open, decision, needs && "open" in needs);
    if (done) return;
    this.setBusy(false);
    if (why !== undefined) failed(why);
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
  private readonly help = make("div", { class: "question-keys", is: { role: "status" } });
  private readonly helpButton: HTMLButtonElement;
  private readonly choices: ChoiceRow;
  private readonly keys: AnswerKeys;
  /** The answers: their buttons, or the input of one of them. */
  private readonly answers: HTMLElement;
  private readonly rest: HTMLElement;
  private readonly fields = new Map<string, AnswerField>();
  private field: AnswerField | undefined;
  private shown = "";

  constructor(
    private open: OpenQuestion,
    private readonly actions: Actions,
  ) {
    this.choices = new ChoiceRow(open, actions, (why) => setText(this.failure, why), (choice) => this.ask(choice));
    this.helpButton = button({ class: "text-button", label: answers.keys.words, key: answers.keys.key, tip: `${answers.keys.meaning} (${answers.keys.key})`, press: () => this.toggleHelp() });
    this.rest = make("div", { class: "answer-rest" }, this.choices.element, this.help, this.notes);
    this.answers = make("div", { class: "answers" }, this.rest);
    this.element = make("section", { class: "question", is: { role: "group", tabindex: "-1", "data-approval": open.id } }, this.head, this.answers, this.failure);
    this.keys = new AnswerKeys(this.element, (key) => this.takes(key), (key) => this.press(key));
    this.update(open);
  }

  update(open: OpenQuestion): void {
    this.open = open;
    const question = questionOf(open);
    const choices = open.partial ? [] : choicesOf(question);
    this.choices.update(choices);
    if (choices.some(({ key }) => key !== undefined) && !this.helpButton.isConnected) {
      this.choices.element.append(this.helpButton);
      this.keys.wait();
    }
    if (this.help.childElementCount > 0) this.showHelp();
    this.notes.replaceChildren(...detailsOf(choices).map((text) => make("p", { class: "note", text })));
    const { title, subject, reopened, stale, input_ambiguity, plan, details, diff, tool_input, url, url_warnings, truncated } = question;
    const now = JSON.stringify([title, subject, reopened, stale, input_ambiguity, plan, details, diff, tool_input, url, url_warnings, truncated, open.tool, open.partial, this.isSaid(title)]);
    if (now === this.shown) return;
    this.shown = now;
    this.element.setAttribute("aria-label", `Question: ${questionTitle(open)}`);
    this.head.replaceChildren(make("div", { class: "question-head" }, icon("question"), make("strong", { text: this.isSaid(question.title ?? "") ? "Allow this?" : questionTitle(open) })), ...this.details(question));
  }

  get question(): OpenQuestion {
    return this.open;
  }

  /** Moves the focus to the first answer. A key that the user has pressed before that does not count. */
  focus(): void {
    this.keys.wait();
    if (this.field) return this.field.focus();
    (this.element.querySelector<HTMLElement>(".choices button") ?? this.element).focus();
  }

  /** Gives an answer, by the id of its choice. "keys" shows what the keys do. */
  give(answer: string): void {
    if (answer === "keys") this.toggleHelp();
    else void this.choices.press(answer);
  }

  private press(key: string): void {
    if (key === answers.keys.key) this.toggleHelp();
    else this.choices.pressKey(key);
  }

  /** ask shows the input of an answer in place of the buttons. It returns false if the answer needs none here. */
  private ask(choice: Choice): boolean {
    const { id, needs } = choice;
    if (!needs || "open" in needs) return false;
    if ("edit" in needs) {
      setText(this.failure, "");
      void this.actions.edit(this.open).then((why) => setText(this.failure, why));
      return true;
    }
    const key = JSON.stringify([id, needs]);
    let field = this.fields.get(key);
    if (!field) {
      const asked: AnswerField = new AnswerField(choice, needs, { send: (decision) => this.choices.send(decision, choice, (why) => asked.fail(why)), back: () => this.back(id) });
      this.fields.set(key, (field = asked));
    }
    setText(this.failure, "");
    this.field = field;
    this.rest.hidden = true;
    this.answers.replaceChildren(this.rest, field.element);
    field.element.scrollIntoView({ block: "nearest" });
    field.focus();
    return true;
  }

  /** back shows the buttons again. */
  private back(id: string): void {
    this.field = undefined;
    this.rest.hidden = false;
    this.answers.replaceChildren(this.rest);
    this.keys.wait();
    this.choices.focus(id);
  }

  private takes(key: string): boolean {
    if (this.field) return false;
    return key === answers.keys.key ? this.helpButton.isConnected : this.choices.takes(key);
  }

  private toggleHelp(): void {
    if (this.help.childElementCount > 0) this.help.replaceChildren();
    else {
      this.showHelp();
      this.help.scrollIntoView({ block: "nearest" });
    }
    this.helpButton.setAttribute("aria-expanded", String(this.help.childElementCount > 0));
  }

  /** showHelp lists what the keys do. */
  private showHelp(): void {
    const rows = choicesOf(questionOf(this.open)).filter(({ key }) => key !== undefined);
    this.help.replaceChildren(
      ...rows.map(({ key, label, meaning }) => make("p", { class: "note" }, keyHint(key!), ` ${label}${meaning === undefined ? "" : `: ${meaning}`}`)),
      make("p", { class: "note" }, "The keys count while the question has the focus."),
    );
  }

  /** isSaid reports whether the title line of the tool call above the question says a text. */
  private isSaid(text: string): boolean {
    const call = this.open.tool === undefined ? undefined : this.actions.contents.entry(this.open.tool)?.tool;
    return text !== "" && text === call?.title && text === questionTitle(this.open);
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
    if (question.url) note(exactly(question.url), "address");
    for (const warning of stringsOf(question.url_warnings)) note(exactly(warning), "warning");
    if (question.truncated) note("Parts of this question are too long to show.", "warning");
    // The change or the command is the last part: it stands directly above the answers.
    const command = stringOf(objectOf(question.tool_input)["command"]);
    if (question.diff) parts.push(...unifiedDiff(question.diff, this.actions));
    else if (command !== undefined) parts.push(...(exactly(command) === questionTitle(this.open) ? [] : [output(exactly(command), { name: "Command", command: true })])); // the title may say it
    else if (question.type === "function_call" && this.open.tool === undefined && Object.keys(objectOf(question.tool_input)).length > 0) parts.push(output(exactly(JSON.stringify(question.tool_input, null, 2)), { name: "Input" }));
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
  private readonly keys: AnswerKeys;
  private first: OpenQuestion | undefined;
  private row: ChoiceRow | undefined;
  private shown = "";

  /** show leads to a question, and gives an answer there. */
  constructor(
    private readonly actions: Actions,
    private readonly show: (id: string, answer?: string) => void,
  ) {
    this.element.hidden = true;
    this.keys = new AnswerKeys(this.element, (key) => this.takes(key), (key) => this.press(key));
  }

  /** Moves the focus to the first answer, if the bar has a question. */
  focus(): void {
    this.keys.wait();
    (this.element.querySelector<HTMLElement>(".choices button") ?? this.element.querySelector<HTMLElement>("button"))?.focus();
  }

  private takes(key: string): boolean {
    const choices = this.first && !this.first.partial ? choicesOf(questionOf(this.first)) : [];
    return choices.some((choice) => choice.key === key) || (key === answers.keys.key && choices.some((choice) => choice.key !== undefined));
  }

  /** press gives an answer that the bar has. The question itself takes the other keys. */
  private press(key: string): void {
    if (this.row?.takes(key)) this.row.pressKey(key);
    else if (this.first) this.show(this.first.id, choicesOf(questionOf(this.first)).find((choice) => choice.key === key)?.id ?? "keys");
  }

  update(sees: (id: string) => boolean): void {
    const open = this.actions.contents.questions;
    const first = open.some(({ id }) => sees(id)) ? undefined : open[0];
    const now = first ? `${first.id} ${first.partial} ${open.length} ${choicesOf(questionOf(first)).length}` : "";
    if (now === this.shown) return;
    this.shown = now;
    this.first = first;
    this.row = undefined;
    this.keys.wait();
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = first === undefined;
    if (!first) {
      this.element.replaceChildren();
      if (hadFocus) this.actions.focusPrompt();
      return;
    }
    const failure = make("p", { class: "failure", is: { role: "alert" } });
    // The bar has only the answers that need no further input. The others are at the question's place.
    const answers = (first.partial ? [] : choicesOf(questionOf(first))).filter(isComplete);
    const choices = [...answers.filter(({ id }) => id !== "deny").slice(0, 4), ...answers.filter(({ id }) => id === "deny")];
    const row = new ChoiceRow(first, this.actions, (why) => (failure.textContent = why));
    row.update(choices);
    this.row = row;
    this.element.replaceChildren(
      make("div", { class: "question-head" }, icon("question"), make("strong", { text: questionTitle(first) }), open.length > 1 && make("span", { class: "note", text: `1 of ${open.length}` }), button({ class: "text-button", label: "Show", name: "Show the question", press: () => this.show(first.id) })),
      row.element,
      failure,
    );
    if (hadFocus) this.element.querySelector<HTMLElement>(".choices button")?.focus();
  }
}
