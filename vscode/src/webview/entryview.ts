// The views of the entries of a session.
import { clipped } from "../hub/groups";
import type { PanelCommand } from "../panel/protocol";
import { approvalStatusWords } from "../protocol";
import { attachments } from "./attachments";
import { button, icon, loadButton, make, setLongText, setText } from "./dom";
import type { IconName } from "./dom";
import type { Entry } from "./entries";
import { objectsOf, stringOf } from "./json";
import { promptInto } from "./markdown";
import { nameOf } from "./output";
import { MarkdownStream } from "./stream";
import { ToolView } from "./toolview";
import type { Actions, EntryViews, View } from "./view";

/** Creates and finds the views of entries, also of those that are part of others. */
export class Views implements EntryViews {
  private readonly byKey = new Map<string, View>();

  constructor(readonly actions: Actions) {}

  /** The view of an entry. A new one still needs a call of update. */
  of(entry: Entry): View {
    let view = this.byKey.get(entry.key);
    if (!view) {
      view = this.create(entry);
      view.element.dataset["key"] = entry.key;
      this.byKey.set(entry.key, view);
    }
    return view;
  }

  known(key: string): View | undefined {
    return this.byKey.get(key);
  }

  private create(entry: Entry): View {
    switch (entry.kind) {
      case "prompt":
        return new PromptView(entry, this.actions);
      case "text":
      case "content":
        return new TextView(entry, this.actions);
      case "thinking":
      case "sketch":
        return new ThinkingView(entry, this.actions);
      case "tool":
        return new ToolView(entry, this);
      case "plan":
        return new PlanView(entry);
      case "diff":
        return new ChangedFileView(entry, this.actions);
      case "answer":
        return new AnswerView(entry);
      case "error":
        return new ErrorView(entry, this.actions);
      case "system":
        return new NoteView(entry);
    }
  }
}

class PromptView implements View {
  readonly element: HTMLElement;
  private readonly text = make("div", { class: "prompt-text" });
  private shown: string | undefined;
  private readonly cut = make("div", { class: "cut-text" });
  private readonly pictures = make("div", { class: "attachments" });
  private readonly note = make("p", { class: "note" });
  /** Shown while the pointer is over the prompt, or the focus in it. */
  private readonly tools: HTMLElement;

  constructor(
    private readonly entry: Entry,
    private readonly actions: Actions,
  ) {
    const tool = (icon: IconName, name: string, command: PanelCommand): HTMLElement => button({ icon, name, command, press: () => actions.command(command, entry.turn) });
    this.tools = make(
      "div", { class: "prompt-actions", is: { role: "group", "aria-label": "Of this prompt" } },
      tool("rewind", "Rewind to before this prompt", "duet.rewind"),
      tool("edit", "Edit this prompt and send it again", "duet.editPrompt"),
      tool("fork", "Fork after this prompt", "duet.fork"),
    );
    this.element = make("article", { class: "entry prompt", is: { "aria-label": "You" } }, this.text, this.cut, this.pictures, this.note, this.tools);
  }

  update(): undefined {
    this.tools.hidden = this.entry.withdrawn || this.entry.parent !== undefined || this.actions.contents.promptOf(this.entry.turn) !== this.entry;
    const { text } = this.entry;
    if (clipped(text) !== text || !/[@:#]/.test(text)) setLongText(this.text, text);
    else if (this.shown !== text) promptInto(this.text, (this.shown = text));
    showCut(this.cut, this.entry, this.actions);
    this.pictures.replaceChildren(...attachments(this.entry.attachments, this.actions));
    setText(this.note, this.entry.withdrawn ? "The agent did not get this." : "");
  }
}

/** showCut shows a note if the text of an entry is cut. */
function showCut(into: HTMLElement, entry: Entry, actions: Actions): void {
  if ((into.childElementCount > 0) === entry.truncated) return;
  into.replaceChildren(...(entry.truncated ? [loadButton("Only the beginning of this text is here.", () => actions.whole(entry))] : []));
}

class TextView implements View {
  readonly element: HTMLElement;
  private readonly stream = new MarkdownStream();
  private readonly cut = make("div", { class: "cut-text" });
  private readonly pictures = make("div", { class: "attachments" });
  private shown = "";

  constructor(
    private readonly entry: Entry,
    private readonly actions: Actions,
  ) {
    this.element = make("article", { class: `entry said ${entry.kind}`, is: { "aria-label": "Agent" } }, this.stream.element, this.cut, this.pictures);
  }

  update(until?: number): boolean {
    const { entry } = this;
    // The text of an attachment only says that there is one.
    const more = this.stream.show(entry.attachments.length > 0 && /^\[[^\n]*\]$/.test(entry.text.trim()) ? "" : entry.text, !entry.open, until);
    this.element.classList.toggle("open", entry.open);
    showCut(this.cut, entry, this.actions);
    const ids = entry.attachments.map((attachment) => String(attachment["attachment_id"])).join(" ");
    if (ids !== this.shown) {
      this.shown = ids;
      this.pictures.replaceChildren(...attachments(entry.attachments, this.actions));
    }
    return more;
  }
}

class ThinkingView implements View {
  readonly element: HTMLElement;
  private readonly details: HTMLDetailsElement;
  private readonly title = make("span", { class: "thinking-title" });
  private readonly said: TextView;

  constructor(
    private readonly entry: Entry,
    actions: Actions,
  ) {
    this.said = new TextView(entry, actions);
    this.said.element.classList.remove("entry");
    this.said.element.removeAttribute("aria-label");
    this.details = make("details", { on: { toggle: () => void this.update() } }, make("summary", {}, icon("chevron"), icon("think"), this.title), this.said.element);
    this.element = make("article", { class: "entry thinking", is: { "aria-label": "Agent's thoughts" } }, this.details);
  }

  update(until?: number): boolean {
    setText(this.title, this.entry.open ? "Thinking…" : "Thought");
    this.element.classList.toggle("open", this.entry.open);
    return this.details.open && this.said.update(until);
  }
}

const planMarks: Record<string, string> = { pending: "To do", in_progress: "In progress", completed: "Done" };

class PlanView implements View {
  readonly element: HTMLElement;
  private readonly steps = make("ul", { class: "plan-steps" });
  private readonly count = make("span", { class: "plan-count" });

  constructor(private readonly entry: Entry) {
    this.element = make("article", { class: "entry plan", is: { "aria-label": "Plan" } }, make("div", { class: "plan-head" }, icon("list"), make("span", { text: "Plan" }), this.count), this.steps);
  }

  update(): undefined {
    const { plan } = this.entry;
    setText(this.count, `${plan.filter(({ status }) => status === "completed").length} of ${plan.length}`);
    this.steps.replaceChildren(
      ...plan.map(({ content, status = "pending" }) =>
        make("li", { class: `step ${status.replace("_", "-")}` }, make("span", { class: "step-mark", is: { role: "img", "aria-label": planMarks[status] ?? status } }, status === "completed" && icon("check")), make("span", { text: content })),
      ),
    );
  }
}

class ChangedFileView implements View {
  readonly element: HTMLElement;
  private readonly added = make("span", { class: "added" });
  private readonly removed = make("span", { class: "removed" });

  constructor(
    private readonly entry: Entry,
    actions: Actions,
  ) {
    const path = stringOf(entry.data["path"]) ?? "";
    this.element = make(
      "article",
      { class: "entry changed-file", is: { "aria-label": `Changed ${nameOf(path)}` } },
      icon("diff"),
      button({ class: "text-button", label: nameOf(path), tip: `Show what changed in ${path}`, press: () => actions.openChanges(path) }),
      this.added,
      this.removed,
      button({ class: "text-button quiet", label: "Open file", press: () => actions.openFile(path) }),
    );
  }

  update(): undefined {
    const { data } = this.entry;
    setText(this.added, typeof data["added"] === "number" ? `+${data["added"]}` : "");
    setText(this.removed, typeof data["removed"] === "number" ? `−${data["removed"]}` : "");
  }
}

class AnswerView implements View {
  readonly element = make("p", { class: "entry answer note" });

  constructor(private readonly entry: Entry) {}

  update(): undefined {
    const { data } = this.entry;
    const title = stringOf(data["title"]) ?? stringOf(data["tool_name"]) ?? "";
    const said = stringOf(data["response"]) ?? stringOf(data["comment"]) ?? stringOf(data["option"]);
    const by = stringOf(data["decided_by"]) ?? "";
    const who = by === "user" ? "You" : by;
    const where = stringOf(data["decided_in"]);
    const status = stringOf(data["status"]) ?? "";
    const what = `${who} ${data["input_was_edited"] === true ? "edited and " : ""}${approvalStatusWords[status] ?? status}`;
    setLongText(this.element, [`${what}${where === undefined ? "" : ` in ${where}`}: ${title}`, said === `Denied in ${where}` ? undefined : said].filter((part) => part !== undefined).join(" — "));
  }
}

class ErrorView implements View {
  readonly element: HTMLElement;
  private readonly text = make("p");
  private readonly remedy = make("p", { class: "remedy" });

  constructor(
    private readonly entry: Entry,
    actions: Actions,
  ) {
    this.element = make(
      "article",
      { class: "entry error", is: { role: "group", "aria-label": "Error" } },
      make("div", { class: "error-text" }, icon("warning"), this.text),
      this.remedy,
      make("div", { class: "buttons" }, button({ class: "text-button", label: "Show log", command: "duet.showLog", press: () => actions.command("duet.showLog") })),
    );
  }

  update(): undefined {
    setLongText(this.text, this.entry.text);
    setText(this.remedy, remedyOf(stringOf(this.entry.data["error_code"]), this.entry.data["auth_methods"]));
  }
}

class NoteView implements View {
  readonly element = make("p", { class: "entry note" });

  constructor(private readonly entry: Entry) {}

  update(): undefined {
    setLongText(this.element, this.entry.text);
  }
}

function remedyOf(code: string | undefined, methods: unknown): string {
  switch (code) {
    case "AGENT_AUTH_REQUIRED": {
      const names = objectsOf(methods).map((method) => stringOf(method["name"]) ?? stringOf(method["id"]) ?? "");
      return `Sign in to the agent in a terminal (duet-rpc agents login)${names.length > 0 ? `; it offers: ${names.join(", ")}` : ""}. Then send the prompt again.`;
    }
    case "AGENT_NOT_FOUND":
      return "Install the agent's program, or name another one in the configuration; duet-rpc doctor lists the programs that it looks for.";
    case "AGENT_CONTEXT_OVERFLOW":
      return "The session no longer fits into the model's context: fork it from an earlier prompt, or begin a new session.";
    case "STORE_FULL":
      return "The disk is full: make room, then send the prompt again.";
    case "TIMEOUT":
      return "It took longer than it may. Send a prompt to go on from here.";
    case "SETTING_REFUSED":
      return "Choose another mode or model below, then send the prompt again.";
    default:
      return "Send a prompt to go on from here. The log says more.";
  }
}
