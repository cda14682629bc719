// The inbox: the open questions of all projects.
import { age, visible } from "../hub/groups";
import { titleOf } from "../hub/questions";
import { stringOf, objectOf } from "../webview/json";
import { make } from "../webview/dom";
import type { App, Screen } from "./app";
import type { Approval, Question } from "./protocol";
import { hashOf } from "./routes";

/** How often the ages in a list are drawn again, in milliseconds. */
const clockTime = 30_000;

/** The open questions, the oldest first. */
export class InboxScreen implements Screen {
  private readonly list = make("ul", { class: "rows", is: { "aria-label": "Open questions" } });
  private readonly empty = make("p", { class: "empty", text: "No question is open." });
  readonly element = make("main", { class: "page" }, make("h1", { text: "Inbox", is: { tabindex: "-1" } }), this.empty, this.list);
  private readonly clock = setInterval(() => this.update(), clockTime);
  private shown = "";

  constructor(private readonly app: App) {
    this.update();
  }

  update(): void {
    const rows = this.app.questions.map((question) => this.rowOf(question));
    const now = rows.map(({ textContent }) => textContent).join("\n");
    this.empty.hidden = rows.length > 0;
    if (now === this.shown) return;
    this.shown = now;
    const focused = (document.activeElement as HTMLElement | null)?.getAttribute("href");
    this.list.replaceChildren(...rows);
    if (focused && rows.length > 0) this.list.querySelector<HTMLElement>(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }

  dispose(): void {
    clearInterval(this.clock);
  }

  private rowOf({ project, approval }: Question): HTMLElement {
    const of = this.app.project(project);
    const session = this.app.session(project, approval.session_uuid);
    const waits = age(approval.created_at, Date.now());
    const line = firstLine(approval);
    return make("li", {}, make(
      "a", { class: "row", is: { href: hashOf({ screen: "question", project, approval: approval.approval }) } },
      make("span", { class: "row-line" },
        make("span", { class: "row-place", text: of?.name ?? "" }), make("span", { class: "row-title", text: session ? this.app.titleOf(project, approval.session_uuid) : `Session ${approval.session}`, is: { dir: "auto" } }),
        make("time", { class: "row-age", text: waits === "now" ? "now" : `waits ${waits}`, is: { datetime: approval.created_at } })),
      make("span", { class: "row-question", is: { dir: "auto" } }, make("span", { class: "tag", text: approval.tool_name || "Question" }), " ", titleOf(approval)),
      line !== "" && make("code", { class: "row-detail", text: line, is: { dir: "auto" } }),
    ));
  }
}

/** The first line of what a question is about, unless its title says that. */
export function firstLine(approval: Approval): string {
  const text = stringOf(objectOf(approval.tool_input)["command"]) ?? approval.plan ?? approval.subject ?? approval.paths?.[0] ?? approval.details ?? "";
  const line = visible(text.slice(0, 400).trim().split("\n", 1)[0] ?? "");
  return titleOf(approval).includes(line) ? "" : line;
}
