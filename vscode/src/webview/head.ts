// The head of a panel: what the conversation is called, who works on it, how it is and what it has cost.
import type { Actions } from "./actions";
import { visible } from "../hub/groups";
import { button, make, setText } from "./dom";
import { duration, money, thousands } from "./figures";
import type { Session } from "./session";
import { stateWords } from "./session";

export class Head {
  readonly element: HTMLElement;
  private readonly title = make("h1", {});
  private readonly agent = make("span", { class: "agent" });
  private readonly dot = make("span", { class: "dot", is: { "aria-hidden": "true" } });
  private readonly state = make("span", { class: "state" });
  private readonly elapsed = make("span", { class: "elapsed" });
  private readonly gates = make("span", { class: "gates" });
  private readonly usage = make("span", { class: "usage" });
  private readonly context = make("progress", { class: "context", is: { "aria-label": "Context used", max: "100" } });
  private readonly interrupt: HTMLButtonElement;

  constructor(actions: Actions, interrupt: () => void) {
    this.interrupt = button({ icon: "stop", label: "Interrupt", class: "text-button interrupt", tip: "Interrupt the agent", press: interrupt });
    this.element = make(
      "header",
      { class: "head" },
      make("div", { class: "head-line" }, this.title, this.interrupt,
        button({ icon: "diff", name: "Show changes", press: () => actions.openChanges() }),
        button({ icon: "fork", name: "Fork the conversation", press: () => actions.command("duet.fork") })),
      make("div", { class: "head-line facts" }, this.dot, this.agent, this.state, this.elapsed, this.gates, this.usage, this.context),
    );
  }

  update(title: string, session: Session, now: number): void {
    setText(this.title, title);
    this.title.title = title;
    const state = stateWords(session, now);
    setText(this.agent, session.agent);
    setText(this.state, state.text);
    this.element.dataset["state"] = state.id;
    const background = session.background.join("\n");
    this.state.title = visible(background);
    this.interrupt.hidden = !session.working && background === "";
    this.interrupt.title = background === "" ? "Interrupt the agent" : visible(`End what the agent does in the background:\n${background}`);
    setText(this.elapsed, session.working && session.since !== undefined ? duration(now - session.since) : session.took !== undefined ? `took ${duration(session.took)}` : "");
    setText(this.gates, session.gates);
    const { tokens, contextUsed, contextSize, cost } = session;
    setText(this.usage, [tokens > 0 ? `${thousands(tokens)} tokens` : "", cost > 0 ? money(cost) : ""].filter((part) => part !== "").join(" · "));
    const share = contextSize > 0 ? Math.min(100, Math.round((100 * contextUsed) / contextSize)) : 0;
    this.context.hidden = share === 0;
    if (this.context.value !== share) this.context.value = share;
    this.context.title = contextSize > 0 ? `Context: ${thousands(contextUsed)} of ${thousands(contextSize)} tokens (${share} %)` : "";
  }
}
