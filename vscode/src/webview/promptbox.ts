// The box in which a prompt is written.
import type { Draft, PromptContent } from "../panel/protocol";
import { button, make, setText } from "./dom";

/** The tallest that it grows by itself, as a share of the page. */
const tallest = 0.4;

/** Nobody can tell whether a prompt was sent. Its message is what a person is told. */
export class UnknownOutcome extends Error {}

export class PromptBox {
  readonly element: HTMLElement;
  readonly text: HTMLTextAreaElement;
  /** Where what belongs to the box is put: chips above it, and settings below. */
  readonly above = make("div", { class: "prompt-above" });
  readonly tools = make("div", { class: "prompt-tools" });
  private readonly failure = make("p", { class: "failure", is: { role: "alert" } });
  private readonly outcome = make("p", { class: "note outcome", is: { role: "status" } });
  private readonly sendButton: HTMLButtonElement;
  private readonly nowButton: HTMLButtonElement;
  private queues = false;
  private content: PromptContent[] = [];
  private sending = false;
  private unsent = false;

  /** Called when what is written is otherwise. */
  onChange: (draft: Draft) => void = () => {};
  /** Called before the box takes a key; true: it was for somebody else. */
  onKey: (event: KeyboardEvent) => boolean = () => false;

  /** send resolves with what a person is told of it. With now an agent that works gets it in the middle of its turn. */
  constructor(private readonly send: (draft: Draft, now: boolean) => Promise<string>) {
    this.text = make("textarea", {
      is: { rows: "1", "aria-label": "Prompt", placeholder: "Say what is to be done", spellcheck: "true" },
      on: { input: () => this.typed(), keydown: (event) => this.key(event) },
    });
    this.sendButton = button({ icon: "send", name: "Send", class: "send", tip: "Send (Enter)", press: () => void this.submit() });
    this.nowButton = button({ label: "Send now", class: "text-button now", tip: `Send now: the agent gets it while it works (${navigator.userAgent.includes("Mac") ? "Cmd" : "Ctrl"}+Enter)`, press: () => void this.submit(true) });
    this.nowButton.hidden = true;
    this.element = make("form", { class: "prompt-box", on: { submit: (event) => event.preventDefault() } }, this.failure, this.above, this.text, make("div", { class: "prompt-bar" }, this.tools, this.nowButton, this.sendButton), this.outcome);
  }

  get draft(): Draft {
    return { text: this.text.value, content: this.content };
  }

  setDraft(draft: Draft): void {
    this.content = [...draft.content];
    this.text.value = draft.text;
    this.changed(false);
  }

  /** Puts text at the cursor. */
  insert(text: string, content: readonly PromptContent[] = []): void {
    this.content = [...this.content, ...content];
    this.text.setRangeText(text, this.text.selectionStart, this.text.selectionEnd, "end");
    this.changed();
  }

  /** Puts text behind what is written, as a paragraph of its own. The cursor goes behind it, unless the box has the focus. */
  append(text: string): void {
    const { value } = this.text;
    const added = value.trim() === "" ? text : `${value.trimEnd()}\n\n${text}`;
    this.text.setRangeText(added, 0, value.length, document.activeElement === this.text ? "preserve" : "end");
    this.changed();
  }

  /** Shows a note below the box, until something is typed. */
  say(words: string): void {
    setText(this.outcome, words);
  }

  /** Replaces what is written, and puts the cursor behind it. */
  replaceText(text: string): void {
    this.text.value = text;
    this.text.setSelectionRange(text.length, text.length);
    this.changed();
  }

  setContent(content: readonly PromptContent[]): void {
    this.content = [...content];
    this.changed();
  }

  /** Says what sending does now. */
  setQueues(queues: boolean): void {
    if (this.queues && !queues) setText(this.outcome, "");
    this.queues = queues;
    this.nowButton.hidden = !queues;
    this.text.placeholder = queues ? "Add to the queue: it is sent when the agent is done" : "Say what is to be done";
    this.sendButton.title = queues ? "Add to the queue (Enter)" : "Send (Enter)";
    this.sendButton.setAttribute("aria-label", queues ? "Add to the queue" : "Send");
  }

  fail(why: string): void {
    this.unsent = false;
    setText(this.failure, why);
  }

  /** Why something has failed is over, unless a prompt waits here because of it. */
  recovered(): void {
    if (!this.unsent) this.fail("");
  }

  focus(): void {
    this.text.focus();
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing || event.key === "Process") return; // an input method has it
    if (this.onKey(event)) return event.preventDefault();
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    event.preventDefault();
    void this.submit(event.ctrlKey || event.metaKey);
  }

  private async submit(now = false): Promise<void> {
    const { draft } = this;
    if (this.sending || (draft.text.trim() === "" && draft.content.length === 0)) return;
    this.sending = true;
    this.sendButton.disabled = this.nowButton.disabled = true;
    this.fail("");
    setText(this.outcome, "");
    try {
      const outcome = await this.send(draft, now);
      // What was typed while it was sent stays.
      const rest = this.text.value.startsWith(draft.text) ? this.text.value.slice(draft.text.length) : this.text.value;
      this.setDraft({ text: rest, content: this.content.filter((block) => !draft.content.includes(block)) });
      this.onChange(this.draft);
      setText(this.outcome, outcome);
    } catch (error) {
      this.fail(error instanceof UnknownOutcome ? error.message : `It was not sent: ${(error as Error).message}`);
      this.unsent = true;
    } finally {
      this.sending = false;
      this.sendButton.disabled = this.nowButton.disabled = false;
    }
  }

  private typed(): void {
    setText(this.outcome, "");
    this.changed();
  }

  private changed(tell = true): void {
    this.grow();
    if (tell) this.onChange(this.draft);
  }

  private grow(): void {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight + 2, Math.round(window.innerHeight * tallest))}px`;
  }
}
