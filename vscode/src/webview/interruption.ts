// The row of an interrupted turn: why it was interrupted, and a button that continues it.
import { button, make, setText } from "./dom";

/** An interrupted turn, the last one of its session. */
export interface Interruption {
  /** Why it was interrupted, for the user. */
  reason: string;
  /** The prompt that asks the agent to continue. */
  prompt: string;
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

  /** send sends the prompt that continues the turn. */
  constructor(private readonly send: (prompt: string) => Promise<void>) {
    this.press = button({ class: "secondary", label: "Continue", tip: "Ask the agent to continue where it left off", press: () => void this.go() });
    this.element.append(this.text, this.press);
    this.element.hidden = true;
  }

  /** Shows the interrupted turn. undefined: hides the row. */
  update(interruption: Interruption | undefined): void {
    this.shown = interruption;
    this.element.hidden = interruption === undefined;
    if (interruption) setText(this.text, `Interrupted: ${interruption.reason}`);
  }

  private async go(): Promise<void> {
    if (this.busy || !this.shown) return;
    // The button is not disabled, because a disabled button loses the focus.
    this.setBusy(true);
    await this.send(this.shown.prompt).finally(() => this.setBusy(false));
  }

  private setBusy(busy: boolean): void {
    this.busy = busy;
    this.press.setAttribute("aria-disabled", String(busy));
  }
}
