// A bar above the prompt box that has the first question whose own place is not seen.
import { choicesOf } from "../hub/questions";
import type { Actions } from "./actions";
import { button, icon, make } from "./dom";
import { ChoiceRow, questionOf, questionTitle } from "./questionview";

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
    const open = this.actions.conversation.questions;
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
    // Here stands what needs nothing but a look at the title; the rest is at its place.
    const choices = (first.partial ? [] : choicesOf(questionOf(first))).filter(({ needs }) => needs === undefined).slice(0, 4);
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
