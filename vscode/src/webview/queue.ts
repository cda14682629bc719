// The prompts that wait for their turn, each with a button that takes it back.
import { button, make } from "./dom";
import type { Entry } from "./entry";

export class Queue {
  readonly element = make("ul", { class: "queue", is: { "aria-label": "Queued prompts" } });
  private shown = "";

  constructor(private readonly takeBack: (entry: Entry) => void) {}

  update(waiting: readonly Entry[]): void {
    const now = waiting.map(({ key, text }) => `${key} ${text}`).join("\n");
    if (now === this.shown) return;
    this.shown = now;
    this.element.replaceChildren(
      ...waiting.map((entry) => {
        const back = button({
          class: "text-button", label: "Take back", name: `Take back: ${entry.text.slice(0, 80)}`,
          press: () => {
            back.disabled = true;
            this.takeBack(entry);
          },
        });
        return make("li", {}, make("span", { class: "tag", text: "queued" }), make("span", { class: "queued-text", text: entry.text, tip: entry.text.slice(0, 2_000) }), back);
      }),
    );
  }
}
