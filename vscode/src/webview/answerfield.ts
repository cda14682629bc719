// The place in a question where the user types what an answer needs: a reason, a rule's pattern, or the fields of a form.
import { exactly } from "../hub/groups";
import { valueOf } from "../hub/questions";
import type { Choice, Decision, FormField, Needs } from "../hub/questions";
import { pause } from "./answerkeys";
import { button, keyHint, make, setText } from "./dom";

/** What an answer needs in the page. The extension opens addresses and editors. */
export type Typed = Exclude<Needs, { open: string } | { edit: true }>;

/** What the buttons do that send an answer. */
const verbs: Record<Decision["decision"], string> = { approve: "Allow", deny: "Deny", respond: "Answer", cancel: "Withdraw" };

interface FieldActions {
  send: (decision: Decision) => Promise<void>;
  back: () => void;
}

/** The form of one answer. Enter sends it, Escape goes back. It keeps its text when the user goes back. */
export class AnswerField {
  readonly element: HTMLFormElement;
  private readonly failure = make("p", { class: "failure", is: { role: "alert" } });
  /** Reads the input. Throws if it is not an answer. */
  private readonly read: () => Partial<Decision>;
  private readonly first: HTMLElement;
  /** When the form has opened. Once the user has typed, Enter is meant at any time. */
  private openedAt = 0;
  /** The key that has opened the form is still pressed. */
  private isHeld = false;

  constructor(
    private readonly choice: Choice,
    needs: Typed,
    private readonly actions: FieldActions,
  ) {
    const { element, read } = "words" in needs ? wordsInput(needs.words) : "rule" in needs ? ruleInput(needs.rule) : formInput(needs.form);
    this.read = read;
    const send = make("button", { class: "primary", is: { type: "submit", "aria-keyshortcuts": "Enter" }, tip: "Send (Enter)" }, keyHint("Enter"), make("span", { text: "rule" in needs ? choice.label : verbs[choice.decision.decision] }));
    const back = button({ class: "secondary", label: "Back", tip: "Back to the answers (Escape)", key: "Escape", press: () => actions.back() });
    this.element = make("form", { class: "answer-field", is: { "aria-label": choice.label, novalidate: "" }, on: { submit: (event) => this.submit(event), keydown: (event) => this.key(event), keyup: () => (this.isHeld = false), input: () => (this.openedAt = -pause) } }, element, make("div", { class: "choices" }, send, back), this.failure);
    this.first = element.querySelector<HTMLElement>("input, textarea, select") ?? send;
  }

  /** Moves the focus to the first input. */
  focus(): void {
    this.isHeld = true;
    this.openedAt = performance.now();
    this.first.focus();
    if (this.first instanceof HTMLInputElement) this.first.setSelectionRange(this.first.value.length, this.first.value.length);
  }

  fail(why: string): void {
    setText(this.failure, why);
  }

  private key(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing || event.key === "Process") return;
    // The press that has opened the form must not send it.
    const isEarly = (event.key === "Enter" || event.key === " ") && event.timeStamp - this.openedAt < pause;
    if ((event.repeat && this.isHeld) || (isEarly && (event.key === "Enter" || event.target instanceof HTMLButtonElement))) return event.preventDefault();
    this.isHeld = false;
    if (event.key === "Escape") {
      event.preventDefault();
      this.actions.back();
    } else if (event.key === "Enter" && !(event.target instanceof HTMLButtonElement) && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.element.requestSubmit();
    }
  }

  private submit(event: Event): void {
    event.preventDefault();
    this.fail("");
    try {
      void this.actions.send({ ...this.choice.decision, ...this.read() });
    } catch (error) {
      this.fail((error as Error).message);
      if (error instanceof WrongInput) error.input.focus();
    }
  }
}

/** What the user has typed is no answer. */
class WrongInput extends Error {
  constructor(
    message: string,
    readonly input: HTMLElement,
  ) {
    super(message);
  }
}

interface Input {
  element: HTMLElement;
  read: () => Partial<Decision>;
}

function wordsInput(words: string): Input {
  const text = make("textarea", { is: { rows: "2", spellcheck: "true" } });
  return {
    element: make("label", {}, make("span", { text: words }), text),
    read: () => {
      const comment = text.value.trim();
      if (comment === "") throw new WrongInput("Type something, or press Escape to go back", text);
      return { comment };
    },
  };
}

function ruleInput({ text, pattern }: { text: string; pattern?: string }): Input {
  const says = make("p", { text: `Allowed without a question: ${exactly(text)}` });
  if (pattern === undefined) return { element: says, read: () => ({}) };
  const input = make("input", { is: { type: "text", spellcheck: "false", autocapitalize: "off" } });
  input.value = pattern;
  return {
    element: make("div", { class: "answer-rule" }, says, make("label", {}, make("span", { text: "Pattern" }), input)),
    read: () => {
      const typed = input.value.trim();
      if (typed === "") throw new WrongInput("The rule needs a pattern", input);
      return typed === pattern ? {} : { pattern: typed };
    },
  };
}

function formInput(fields: readonly FormField[]): Input {
  const inputs = fields.map((field) => ({ field, ...inputOf(field) }));
  return {
    element: make("div", { class: "answer-form" }, ...inputs.map(({ element }) => element)),
    read: () => {
      const content: Record<string, unknown> = {};
      for (const { field, value, focus } of inputs) {
        try {
          const is = value();
          if (is !== undefined) content[field.name] = is;
        } catch (error) {
          throw new WrongInput((error as Error).message, focus);
        }
      }
      return { content };
    },
  };
}

/** inputOf creates the input of a form's field. value throws if the input is invalid; undefined leaves the field out. */
function inputOf(field: FormField): { element: HTMLElement; focus: HTMLElement; value: () => unknown } {
  const label = make("span", { text: `${field.label}${field.required ? "" : " (optional)"}` });
  const note = field.description !== "" && make("span", { class: "note", text: field.description });
  if (field.kind === "choices") {
    const chosen = Array.isArray(field.default) ? (field.default as unknown[]) : [];
    const boxes = field.choices.map(({ value, label }) => {
      const box = make("input", { is: { type: "checkbox" } });
      box.checked = chosen.includes(value);
      return { value, box, element: make("label", { class: "answer-box" }, box, make("span", { text: label })) };
    });
    return {
      element: make("fieldset", {}, make("legend", {}, label), note, ...boxes.map(({ element }) => element)), focus: boxes[0]?.box ?? label,
      value: () => {
        const values = boxes.filter(({ box }) => box.checked).map(({ value }) => value);
        return values.length === 0 && !field.required ? undefined : values;
      },
    };
  }
  if (field.kind === "boolean" || field.kind === "choice") {
    const choices: ReadonlyArray<{ value: unknown; label: string }> = field.kind === "boolean" ? [{ value: true, label: "Yes" }, { value: false, label: "No" }] : field.choices;
    const select = make("select", {}, make("option", { is: { value: "" }, text: field.required ? "Choose…" : "Leave out" }), ...choices.map(({ label }, i) => make("option", { is: { value: String(i) }, text: label })));
    const first = choices.findIndex(({ value }) => value === field.default);
    select.value = first === -1 ? "" : String(first);
    return {
      element: make("label", {}, label, note, select), focus: select,
      value: () => {
        if (select.value === "" && field.required) throw new Error(`${field.label} is needed`);
        return select.value === "" ? undefined : choices[Number(select.value)]!.value;
      },
    };
  }
  const input = field.kind === "json" ? make("textarea", { is: { rows: "2", spellcheck: "false" } }) : make("input", { is: { type: "text", ...(field.kind !== "text" && { inputmode: "decimal" }) } });
  input.value = field.default === undefined ? "" : typeof field.default === "string" ? field.default : JSON.stringify(field.default);
  return { element: make("label", {}, label, note, input), focus: input, value: () => valueOf(field, input.value) };
}
