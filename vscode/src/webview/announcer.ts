// Tells a screen reader what a person has to know: that a question waits, that the agent goes on by itself, and
// how a run ended. It does not read what streams; the transcript is there for who wants to.
import type { EventParams } from "../hub/events";
import { make } from "./dom";
import { stringOf } from "./json";
import type { OpenQuestion } from "./questions";
import { questionTitle } from "./questionview";

export class Announcer {
  readonly element = make("div", { class: "unseen", is: { "aria-live": "polite", role: "status" } });
  private last: string | undefined;
  private readonly told = new Set<string>();

  say(text: string): void {
    this.element.append(make("p", { text }));
    while (this.element.childElementCount > 3) this.element.firstElementChild!.remove();
  }

  /** Says that the agent goes on without a prompt, if an event tells so. */
  event({ event: { type, data } }: EventParams): void {
    const text = stringOf(data["content"]);
    if (type === "conversation_updated" && data["subtype"] === "went_on" && text !== undefined) this.say(text);
  }

  /** Says what is new of a state, and of the questions. */
  state(state: { id: string; text: string }, questions: readonly OpenQuestion[]): void {
    for (const question of questions) {
      if (this.told.has(question.id)) continue;
      this.told.add(question.id);
      this.say(`Question: ${questionTitle(question)}`);
    }
    const before = this.last;
    this.last = state.id;
    if (before === undefined || before === state.id) return;
    if (state.id === "done" || state.id === "failed") this.say(`The agent's work ${state.id === "done" ? "is " : ""}${state.text}`);
  }
}
