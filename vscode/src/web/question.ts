// One question, with the panel's view of it. Its answers stay within reach of the thumb.
import { approvalStatusWords } from "../protocol";
import { Contents } from "../webview/contents";
import { button, icon, make, setText } from "../webview/dom";
import type { OpenQuestion } from "../webview/questions";
import { QuestionView } from "../webview/questionview";
import type { Actions, Answered } from "../webview/view";
import type { Decision } from "../hub/questions";
import type { App, Screen } from "./app";
import { openAddress } from "./dialogs";
import { kindOf } from "./hub";
import { keepReasons } from "./kept";
import type { Approval } from "./protocol";
import { plainDenial } from "../hub/questions";

/** How long a question that changes before the eyes of the user takes no answer, in milliseconds. */
const changedPause = 1_000;

/** The screen of one question. */
export class QuestionScreen implements Screen, Actions {
  readonly contents = new Contents();
  private readonly title = make("a", { class: "question-session" });
  private readonly note = make("p", { class: "question-note", is: { role: "status" } });
  private readonly status = make("p", { class: "unseen", is: { role: "status" } });
  private readonly place = make("div", { class: "question-place" });
  readonly element = make("main", { class: "page question-page" }, make("h1", { class: "unseen", text: "Question", is: { tabindex: "-1" } }), this.title, this.note, this.place, this.status);
  private view: QuestionView | undefined;
  private answered = false;
  /** The fingerprint of the shown question, and when it can be answered: the user has to see it first. */
  private shown: string | undefined;
  private readyAt = 0;
  private looking = false;

  constructor(
    private readonly app: App,
    private readonly project: string,
    private readonly id: string,
  ) {
    keepReasons(this.element, app.store, () => project);
    this.update();
  }

  update(): void {
    const open = this.app.questions.find(({ project, approval }) => project === this.project && approval.approval === this.id)?.approval;
    if (open?.truncated && !this.view) void this.look();
    else if (open) this.draw(open);
    else void this.look();
  }

  /** look asks for the question, which is not in the inbox, or not whole. */
  private async look(): Promise<void> {
    const hub = this.app.hub(this.project);
    if (!hub) return this.close("This project is not there any more.");
    if (this.looking || this.answered || !this.app.line.ready) return;
    this.looking = true;
    try {
      const { approval } = await hub.request("approval.get", { approval: this.id });
      if (approval.status === "pending") this.draw(approval);
      else this.close(this.endOf(this.id, { title: "", decision: approval.status, by: approval.decided_by ?? "" }));
    } catch (error) {
      if (kindOf(error) === "not_found") this.close("This question is not there any more.");
      else setText(this.note, `The question could not be loaded: ${(error as Error).message}`);
    } finally {
      this.looking = false;
    }
  }

  private draw(approval: Approval): void {
    this.app.hub(this.project)?.note(approval);
    const title = this.app.session(this.project, approval.session_uuid) ? this.app.titleOf(this.project, approval.session_uuid) : `Session ${approval.session}`;
    this.title.replaceChildren(make("span", { text: title, is: { dir: "auto" } }), icon("chevron"));
    this.title.href = `#/session/${encodeURIComponent(this.project)}/${encodeURIComponent(approval.session_uuid)}/${encodeURIComponent(this.id)}`;
    const question: OpenQuestion = { id: this.id, turn: approval.turn_uuid, tool: undefined, partial: false, data: { ...approval, input_editable: false } };
    const isChanged = this.view !== undefined && approval.fingerprint !== this.shown;
    if (this.view && !isChanged) return this.view.update(question);
    this.shown = approval.fingerprint;
    setText(this.note, isChanged ? "The question has changed. This is how it is now:" : "");
    if (isChanged) this.readyAt = performance.now() + changedPause;
    this.view = new QuestionView(question, this);
    this.place.replaceChildren(this.view.element);
    // Its keys count while it has the focus, as in each client.
    if (matchMedia("(hover: hover)").matches) queueMicrotask(() => this.view?.focus());
  }

  /** close shows why the question cannot be answered. */
  private close(why: string): void {
    this.view = undefined;
    this.place.replaceChildren();
    if (!this.answered) setText(this.note, why);
    this.place.append(button({ class: "secondary", label: "To the inbox", press: () => this.app.back({ screen: "inbox" }) }));
  }

  async answer({ id }: OpenQuestion, decision: Decision, opens = false): Promise<Answered> {
    const hub = this.app.hub(this.project)!;
    if (performance.now() < this.readyAt) return { done: false, why: "The question has just changed: look at it again." };
    try {
      if (opens) {
        const { url, url_warnings } = (await hub.request("approval.get", { approval: id })).approval;
        if (url === undefined || !(await openAddress(url, url_warnings))) return { done: false };
      }
      this.answered = true;
      const client = this.app.device.name;
      const { success, error } = await hub.request("approval.decide", { approval: id, ...decision, client, ...(decision.comment === plainDenial() && { comment: plainDenial(client) }) });
      if (!success) {
        this.answered = false;
        this.update();
        return { done: false, why: `It was answered already: ${error ?? "another client was quicker"}` };
      }
      if (this.element.isConnected) {
        this.app.say(decision.decision === "approve" ? "Allowed." : decision.decision === "deny" ? "Denied." : "Answered.");
        this.app.back({ screen: "inbox" });
      }
      return { done: true };
    } catch (error) {
      this.answered = false;
      if (kindOf(error) === "changed") await this.look();
      return { done: false, why: `The answer did not count: ${(error as Error).message}` };
    }
  }

  endOf(_id: string, outcome: { title: string; decision: string; by: string } | undefined): string {
    const what = approvalStatusWords[outcome?.decision ?? ""] ?? outcome?.decision ?? "closed";
    const isAnswer = ["approved", "denied", "responded"].includes(outcome?.decision ?? "");
    return outcome?.by === "changed" ? "The agent has changed this tool call, and asks again." : `${isAnswer ? `Answered elsewhere: ${what}` : `The question is ${what}`}${outcome?.by && outcome.by !== "user" ? ` (${outcome.by})` : ""}`;
  }

  announce(text: string): void {
    setText(this.status, text);
  }

  /** The page has no editor. */
  edit(): Promise<string> {
    return Promise.resolve("This page has no editor: answer in an editor or in the shell.");
  }

  openFile(): void {
    this.app.say("Files open in an editor, where the project is: this page has none.");
  }

  openLink(url: string): void {
    this.app.attempt(openAddress(url));
  }

  openDiff(): void {}
  openPatch(): void {}
  openChanges(): void {}
  command(): void {}
  useCode(): void {}
  focusPrompt(): void {}

  whole(): Promise<void> {
    return Promise.resolve();
  }

  picture(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
}
