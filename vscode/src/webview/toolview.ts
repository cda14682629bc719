// The view of a tool call: its title, state, input and output, and the entries that are part of it.
import { clipped } from "../hub/groups";
import { attachments } from "./attachments";
import { icon, loadButton, make, setText } from "./dom";
import type { IconName } from "./dom";
import type { Denial } from "./contents";
import type { Entry, ToolCall } from "./entries";
import { objectOf, stringOf } from "./json";
import { fileDiff, nameOf, output } from "./output";
import type { EntryViews, View } from "./view";

/** The longest title, in characters. The input is shown in full. */
const longestTitle = 500;

/** The longest command that stands in the title line alone, in characters. */
const longestSaid = 200;

const kindIcons: Record<string, IconName> = { read: "file", edit: "edit", delete: "trash", move: "move", search: "search", execute: "terminal", think: "think", fetch: "globe" };

const statusNames: Record<string, string> = { pending: "waiting", in_progress: "running", completed: "done", failed: "failed" };

/** The view of a tool call. */
export class ToolView implements View {
  readonly element: HTMLElement;
  /** The place of a question that this call waits for. */
  readonly questions = make("div", { class: "questions" });
  private readonly details: HTMLDetailsElement;
  private readonly mark = make("span", { class: "tool-mark" });
  private readonly title = make("span", { class: "tool-title" });
  private readonly subject = make("span", { class: "tool-subject" });
  private readonly status = make("span", { class: "tool-status" });
  private readonly body = make("div", { class: "tool-body" });
  private readonly parts = make("div", { class: "parts" });
  private drawn = "";
  /** The user has opened or closed the call, so update no longer does. */
  private chosen = false;
  private kind = "";
  /** The user has requested all of a text that was cut. */
  private showsAll = false;

  constructor(
    private readonly entry: Entry,
    private readonly views: EntryViews,
  ) {
    const summary = make("summary", { on: { click: () => (this.chosen = true) } }, icon("chevron"), this.mark, this.title, this.subject, this.status);
    this.details = make("details", { on: { toggle: () => this.drawBody() } }, summary, this.body, this.parts);
    this.element = make("article", { class: "entry tool" }, this.details, this.questions);
  }

  update(until?: number): boolean {
    const tool = this.entry.tool!;
    const { contents } = this.views.actions;
    const denial = contents.denialOf(this.entry);
    const state = stateOf(this.entry, denial);
    if (this.kind !== tool.kind) {
      this.kind = tool.kind;
      const isAgent = contents.partsOf(this.entry.key).length > 0 || /^(?:task|agent)$/i.test(tool.name);
      this.mark.replaceChildren(icon(isAgent ? "agent" : (kindIcons[tool.kind] ?? "tool")));
    }
    setText(this.title, titleOf(tool));
    setText(this.subject, this.isAsked() ? "" : subjectOf(tool)); // the question says it
    setText(this.status, state.text);
    this.element.dataset["state"] = state.id;
    this.element.setAttribute("aria-label", `${titleOf(tool)}, ${state.text || "done"}`);
    if (!this.chosen) this.details.open = this.wantsOpen(tool, state.id, denial);
    if (this.details.open) this.drawBody();
    return this.drawParts(until);
  }

  /** Whether an open question is about the call. The question shows the input itself. */
  private isAsked(): boolean {
    return this.views.actions.contents.questions.some(({ tool, partial }) => tool === this.entry.key && !partial);
  }

  private wantsOpen(tool: ToolCall, state: string, denial: Denial | undefined): boolean {
    if (this.views.actions.contents.partsOf(this.entry.key).length > 0) return this.entry.open;
    return tool.diffs.length > 0 || tool.kind === "execute" || state === "failed" || reasonOf(denial) !== undefined || this.entry.attachments.length > 0;
  }

  private drawBody(): void {
    if (!this.details.open) return;
    const tool = this.entry.tool!;
    const { actions } = this.views;
    const asked = this.isAsked();
    const denial = actions.contents.denialOf(this.entry);
    // The user may have scrolled or selected the text, so it is drawn again only if it has changed.
    const now = JSON.stringify([tool.input, tool.result.length, tool.result.slice(-64), tool.diffs.map(({ path, after }) => [path, after.length]), denial, asked, this.entry.attachments.length, this.entry.truncated]);
    if (now === this.drawn) return;
    this.drawn = now;
    const parts: HTMLElement[] = [];
    const command = stringOf(objectOf(tool.input)["command"]);
    const load = async (): Promise<void> => {
      this.showsAll = true;
      await actions.whole(this.entry);
    };
    const cut = this.entry.truncated;
    // The question shows the input, or the title line shows all of the command.
    const isShown = asked || (command !== undefined && isSaid(command, tool));
    const reason = reasonOf(denial);
    if (reason !== undefined) parts.push(make("p", { class: "refusal", text: `Why not: ${reason}` }));
    if (tool.diffs.length > 0 && !asked) parts.push(...tool.diffs.map((diff) => fileDiff(diff, actions)));
    else if (command !== undefined && !isShown) parts.push(labelled("Command", output(command, { name: "Command", command: true })));
    else if (tool.input !== undefined && !isEmpty(tool.input) && !isShown) parts.push(labelled("Input", output(typeof tool.input === "string" ? tool.input : JSON.stringify(tool.input, null, 2), { name: "Input" })));
    // A denied call did not run: its output could only repeat the denial.
    if (!denial && tool.result !== "" && !(this.entry.attachments.length > 0 && /^\[[^\n]*\]$/.test(tool.result.trim()))) parts.push(labelled("Output", output(tool.result, { name: "Output", colours: true, all: this.showsAll, ...(cut && { load }) })));
    else if (cut) parts.push(loadButton("Parts of this call are too long to come by themselves.", load));
    if (this.entry.attachments.length > 0) parts.push(make("div", { class: "attachments" }, ...attachments(this.entry.attachments, actions)));
    if (parts.length === 0 && !isShown && !denial) parts.push(make("p", { class: "note", text: this.entry.open ? "No output yet." : "No output." }));
    this.body.replaceChildren(...parts);
  }

  private drawParts(until = Number.POSITIVE_INFINITY): boolean {
    const parts = this.views.actions.contents.partsOf(this.entry.key);
    for (const [i, part] of parts.entries()) {
      const fresh = this.views.known(part.key) === undefined;
      if (fresh && i > 0 && performance.now() > until) return true;
      const view = this.views.of(part);
      const more = view.update(until);
      if (this.parts.children[i] !== view.element) this.parts.insertBefore(view.element, this.parts.children[i] ?? null);
      if (more) return true;
    }
    return false;
  }
}

function labelled(label: string, element: HTMLElement): HTMLElement {
  return make("div", { class: "labelled" }, make("span", { class: "label", text: label }), element);
}

function isEmpty(input: unknown): boolean {
  return input === null || input === "" || (typeof input === "object" && Object.keys(input).length === 0);
}

function titleOf(tool: ToolCall): string {
  return clipped((tool.title || tool.name || "Tool").split("\n", 1)[0]!, longestTitle);
}

/** subjectOf returns the file or command of a call. Empty: the title names it. */
function subjectOf(tool: ToolCall): string {
  const path = tool.paths[0] ?? tool.diffs[0]?.path;
  if (path !== undefined) return titleOf(tool).includes(nameOf(path)) ? "" : nameOf(path);
  const command = stringOf(objectOf(tool.input)["command"]);
  return command !== undefined && command !== tool.title ? clipped(command.split("\n", 1)[0]!, longestTitle) : "";
}

/** isSaid reports whether the title line of a call shows all of its command. */
function isSaid(command: string, tool: ToolCall): boolean {
  return command.length <= longestSaid && (command === titleOf(tool) || command === subjectOf(tool));
}

/** The user's reason for a denial. A client sends one in place of the user, which says no more than that it denied. */
function reasonOf(denial: Denial | undefined): string | undefined {
  return denial?.reason === undefined || /^denied( in [^\n]{1,100})?$/i.test(denial.reason) ? undefined : denial.reason;
}

function stateOf({ open, tool }: Entry, denial: Denial | undefined): { id: string; text: string } {
  const { status } = tool!;
  if (denial) return { id: "refused", text: `${denial.by === "user" ? "you denied this" : denial.by === "" ? "denied" : `denied by ${denial.by}`}${denial.where === undefined || denial.where === "VS Code" ? "" : ` in ${denial.where}`}` };
  if (!open && (status === "pending" || status === "in_progress")) return { id: "cut", text: "was not finished" };
  return { id: status.replace("_", "-"), text: status === "completed" ? "" : (statusNames[status] ?? status) };
}
