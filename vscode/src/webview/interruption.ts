// The row of an interrupted or failed turn: why it ended, and a button that continues it or sends its prompt again.
import { button, make, setText } from "./dom";
import type { Data } from "./json";

/** An interrupted or failed turn, the last one of its session. */
export interface Interruption {
  /** Whether the turn failed. Then its prompt is sent again. */
  failed: boolean;
  /** Why it ended, for the user. */
  reason: string;
  /** The prompt that asks the agent to continue, or that of the failed turn. */
  prompt: string;
  /** The attachments of that prompt. */
  attached: readonly Data[];
}

const begin = "Continue where you left off. ";
const request = "\n\nThe request was:\n\n";

/**
 * The prompt that asks an agent to continue an interrupted request. It has the form of the daemon's own such prompts
 * (GoOnPrompt in internal/domain/run.go), and repeats the request because the agent's session may have lost the turn.
 */
export function continuePrompt(reason: string, query: string): string {
  const at = query.lastIndexOf(request);
  const asked = at >= 0 && query.startsWith(begin) ? query.slice(at + request.length) : query;
  return `${begin}You were interrupted: ${reason}.${asked.trim() === "" ? "" : request + asked}`;
}

/** Why a turn was interrupted: the daemon's message, else what the reason in the event says. */
export function interruptionReason(message: string | undefined, reason: string | undefined): string {
  if (message) return message.replace(/\.$/, "");
  if (reason === "alone") return "no client was connected";
  return reason === undefined ? "the turn was stopped" : "on request";
}

/** The row above the prompt box. */
export class InterruptionRow {
  readonly element = make("div", { class: "interruption", is: { role: "group", "aria-label": "Interrupted" } });
  private readonly text = make("p", { class: "interruption-text" });
  private readonly press: HTMLButtonElement;
  private shown: Interruption | undefined;
  private busy = false;

  /** send sends the prompt that continues or repeats the turn. */
  constructor(private readonly send: (interruption: Interruption) => Promise<void>) {
    this.press = button({ class: "secondary", label: "Continue", press: () => void this.go() });
    this.element.append(this.text, this.press);
    this.element.hidden = true;
  }

  /** Shows the interrupted turn. undefined: hides the row. */
  update(interruption: Interruption | undefined): void {
    this.shown = interruption;
    this.element.hidden = interruption === undefined;
    if (!interruption) return;
    const { failed, reason } = interruption;
    const name = failed ? "Failed" : "Interrupted";
    this.element.setAttribute("aria-label", name);
    setText(this.text, failed ? "The turn failed" : `${name}: ${reason}`); // the error above says why
    setText(this.press.querySelector("span")!, failed ? "Try Again" : "Continue");
    this.press.title = failed ? "Send the prompt again" : "Ask the agent to continue where it left off";
  }

  private async go(): Promise<void> {
    if (this.busy || !this.shown) return;
    // The button is not disabled, because a disabled button loses the focus.
    this.setBusy(true);
    await this.send(this.shown).finally(() => this.setBusy(false));
  }

  private setBusy(busy: boolean): void {
    this.busy = busy;
    this.press.setAttribute("aria-disabled", String(busy));
  }
}
