// The box for a prompt.
import type { Draft, PromptContent } from "../panel/protocol";
import { button, make, setText } from "./dom";

/** The greatest height that the box grows to, as a share of the page. */
const tallest = 0.4;

/** On a touch screen, the keyboard has no other key for a new line, and the button sends. */
const touchScreen = "(hover: none) and (pointer: coarse)";

/** It is not known whether a prompt was sent. The message is for the user. */
export class UnknownOutcome extends Error {}

/** The text area of a prompt, with its buttons and notes. */
export class PromptBox {
  readonly element: HTMLElement;
  readonly text: HTMLTextAreaElement;
  /** Containers for chips above the box, and for settings below it. */
  readonly above = make("div", { class: "prompt-above" });
  readonly tools = make("div", { class: "prompt-tools" });
  private readonly failure = make("p", { class: "failure", is: { role: "alert" } });
  private readonly outcome = make("p", { class: "note outcome", is: { role: "status" } });
  private readonly sendButton: HTMLButtonElement;
  private readonly nowButton: HTMLButtonElement;
  /** Whether a prompt goes into the queue. */
  queues = false;
  private content: PromptContent[] = [];
  private sending = false;
  private unsent = false;

  /** Called when the draft changes. */
  onChange: (draft: Draft) => void = () => {};
  /** Called before the box handles a key. true: the callback has handled it. */
  onKey: (event: KeyboardEvent) => boolean = () => false;

  /** send sends a prompt, and resolves with a note for the user. With now, a working agent gets it in the middle of its turn. */
  constructor(private readonly send: (draft: Draft, now: boolean) => Promise<string>) {
    this.text = make("textarea", {
      is: { rows: "1", "aria-label": "Prompt", placeholder: "Write a prompt", spellcheck: "true" },
      on: { input: () => this.typed(), keydown: (event) => this.key(event) },
    });
    this.sendButton = button({ icon: "send", name: "Send", class: "send", tip: "Send (Enter)", press: () => void this.submit() });
    this.nowButton = button({ label: "Send now", class: "text-button now", tip: `Send now: the agent gets it while it works (${navigator.userAgent.includes("Mac") ? "Cmd" : "Ctrl"}+Enter)`, press: () => void this.submit(true) });
    this.nowButton.hidden = true;
    this.element = make("form", { class: "prompt-box", on: { submit: (event) => event.preventDefault() } }, this.failure, this.above, this.text, make("div", { class: "prompt-bar" }, this.tools, this.nowButton, this.sendButton), this.outcome);
    // In a box of another width, the text has other rows.
    let width = 0;
    new ResizeObserver(() => {
      if (this.text.clientWidth === width) return;
      width = this.text.clientWidth;
      this.grow();
    }).observe(this.text);
  }

  get draft(): Draft {
    return { text: this.text.value, content: this.content };
  }

  setDraft(draft: Draft): void {
    this.content = [...draft.content];
    this.text.value = draft.text;
    this.changed(false);
  }

  /** Inserts text at the cursor. */
  insert(text: string, content: readonly PromptContent[] = []): void {
    this.content = [...this.content, ...content];
    this.text.setRangeText(text, this.text.selectionStart, this.text.selectionEnd, "end");
    this.changed();
  }

  /** Appends text as a paragraph. The cursor moves to its end, unless the box has the focus. */
  append(text: string): void {
    const { value } = this.text;
    const added = value.trim() === "" ? text : `${value.trimEnd()}\n\n${text}`;
    this.text.setRangeText(added, 0, value.length, document.activeElement === this.text ? "preserve" : "end");
    this.changed();
  }

  /** Shows a note below the box, until the user types. */
  say(words: string): void {
    setText(this.outcome, words);
  }

  /** Replaces the text, and moves the cursor to its end. */
  replaceText(text: string): void {
    this.text.value = text;
    this.text.setSelectionRange(text.length, text.length);
    this.changed();
  }

  setContent(content: readonly PromptContent[]): void {
    this.content = [...content];
    this.changed();
  }

  /** Updates the labels: whether a prompt goes into the queue. */
  setQueues(queues: boolean): void {
    const changed = this.queues !== queues;
    if (this.queues && !queues) setText(this.outcome, "");
    this.queues = queues;
    this.nowButton.hidden = !queues;
    this.text.placeholder = queues ? "Add to the queue: it is sent when the agent is done" : "Write a prompt";
    this.sendButton.title = queues ? "Add to the queue (Enter)" : "Send (Enter)";
    this.sendButton.setAttribute("aria-label", queues ? "Add to the queue" : "Send");
    if (changed) this.grow();
  }

  fail(why: string): void {
    this.unsent = false;
    setText(this.failure, why);
  }

  /** Clears the failure, unless a prompt in the box could not be sent. */
  recovered(): void {
    if (!this.unsent) this.fail("");
  }

  focus(): void {
    this.text.focus();
  }

  private key(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing || event.key === "Process") return; // a command or an input method handles it
    if (this.onKey(event)) return event.preventDefault();
    if (event.key !== "Enter" || event.shiftKey || event.altKey || (!event.ctrlKey && !event.metaKey && matchMedia(touchScreen).matches)) return;
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
      // Keep the text that was typed during the request.
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

  private changed(notify = true): void {
    this.grow();
    if (notify) this.onChange(this.draft);
  }

  private grow(): void {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight + 2, Math.round(window.innerHeight * tallest))}px`;
  }
}
