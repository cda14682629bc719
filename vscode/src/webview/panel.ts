// The panel: connects the extension's messages with the model of the session and its views, which it draws once per frame.
import type { Decision } from "../hub/questions";
import type { Draft, ItemKey, PanelCommand, PanelConnection, PanelMethod, PanelParams, PanelStart, Totals } from "../panel/protocol";
import { approvalStatusWords } from "../protocol";
import type { EventKind, HubEvent, SessionItem } from "../protocol";
import { RPCError } from "../rpc/index";
import { catchChords } from "./chord";
import { Composer } from "./composer";
import { Contents } from "./contents";
import { button, make, setText } from "./dom";
import type { Entry } from "./entries";
import { besideWords, contentAgain, deliveredWords, Pages, sendPrompt } from "./host";
import type { Host } from "./host";
import { InterruptionRow } from "./interruption";
import type { Interruption } from "./interruption";
import { objectOf } from "./json";
import { UnknownOutcome } from "./promptbox";
import { useCode } from "./output";
import type { OpenQuestion, Outcome } from "./questions";
import { QuestionBar, questionTitle } from "./questionview";
import { Queue } from "./queue";
import type { Saved } from "./queue";
import { openLinks } from "./references";
import { Head, interruptionOf, sessionOf, stateWords } from "./session";
import type { SessionState } from "./session";
import { newSettingsOf, SettingsBar, settingsOf } from "./settings";
import type { Setting } from "./settings";
import { Transcript } from "./transcript";
import type { ReadingPlace } from "./transcript";
import type { Actions, Answered, CodeUse } from "./view";

/** Keeps what is written in the prompt box and what the user reads, while the page is hidden and over a reload. */
export interface Kept {
  /** The draft from before; undefined: this window has none. */
  readonly draft: Draft | undefined;
  keep(draft: Draft): void;
  /** The place in the transcript from before. undefined: its end. */
  readonly place: ReadingPlace | undefined;
  keepPlace(place: ReadingPlace | undefined): void;
  /** The turns whose queued prompts the user took back. */
  readonly takenBack: readonly string[];
  keepTakenBack(turn: string): void;
}

/** Events after which turn.get or approval.list has more data than the event. */
const refreshing = new Set<EventKind>(["turn.state", "session.changed", "agent.session", "approval.opened"]);

/** The longest pause between two drawings, in milliseconds. */
const longestRest = 200;

/** How long to collect these events before a refresh, in milliseconds. */
const collect = 150;

/** How long after a press in the page the panel becomes active by that press, in milliseconds. */
const clicking = 500;

/** Whether the daemon refused to change a queued prompt because it has begun. */
function isBegun(error: unknown): boolean {
  return error instanceof RPCError && objectOf(error.data)["kind"] === "bad_state";
}

/** sentence begins a notice of the daemon with a capital letter, unless that is of a host's name, and ends it with a period. */
function sentence(notice: string, host = ""): string {
  const begin = host !== "" && notice.startsWith(host) ? notice.charAt(0) : notice.charAt(0).toUpperCase();
  return `${begin}${notice.slice(1)}${/[.!?]$/.test(notice) ? "" : "."}`;
}

/** The panel of one session. */
export class Panel implements Actions {
  readonly contents = new Contents();
  private readonly transcript: Transcript;
  private readonly head: Head;
  private readonly bar: QuestionBar;
  private readonly composer: Composer;
  private readonly queue: Queue;
  private readonly settings: SettingsBar;
  private readonly interruption = new InterruptionRow((interruption) => this.continue(interruption));
  private readonly announcer = new Announcer();
  private readonly about = make("p", { class: "note" });
  private readonly onlyDemo = make(
    "p", { class: "note", text: "Only the demo agent is ready, which asks no model. " }, button({ class: "text-button", label: "Set Up an Agent…", command: "duet.setUpAgent", press: () => this.command("duet.setUpAgent") }),
  );
  private readonly banner = make("div", { class: "banner", is: { role: "status" } });
  private readonly pages: Pages;
  private readonly own = new Set<string>();
  /** Aborts when the panel is disposed. */
  private readonly ending = new AbortController();
  private start: PanelStart | undefined;
  private opening: Promise<void> = Promise.resolve();
  private session: SessionState | undefined;
  private totals: Totals | undefined;
  private connection: PanelConnection = { is: "starting" };
  /** The item to show once the session is loaded. */
  private wanted: ItemKey | undefined;
  private frame = 0;
  private resting: ReturnType<typeof setTimeout> | undefined;
  private restUntil = 0;
  private refreshing: ReturnType<typeof setTimeout> | undefined;
  private scrolling: ReturnType<typeof setTimeout> | undefined;
  /** The place from before is shown, or there is none. */
  private returned = false;
  /** The session is loaded, at its place. */
  private placed = false;
  /** The text of the prompt box when the user came to the panel, until it is known whether a question gets the focus. */
  private entered: string | undefined;
  /** The time of the last press in the page. */
  private pressedAt = Number.NEGATIVE_INFINITY;

  constructor(
    root: HTMLElement,
    private readonly host: Host,
    private readonly kept: Kept,
  ) {
    for (const turn of kept.takenBack) this.contents.takeBack(turn);
    this.transcript = new Transcript(this, this.ending.signal, (entry) => (entry.kind === "prompt" && this.contents.turns.waits(entry.turn)) || this.contents.isTakenBack(entry) || this.contents.saidBy(entry) !== undefined);
    this.head = new Head(this, () => void this.interrupt());
    this.bar = new QuestionBar(this, (id, answer) => this.transcript.showQuestion(id, answer));
    this.composer = new Composer(host, {
      commands: () => this.contents.agent.commands ?? (this.session ?? this.start?.newSession?.description)?.agent_session?.commands ?? [],
      send: (draft, now) => this.send(draft, now),
      keep: (draft) => kept.keep(draft),
    });
    this.queue = new Queue({
      takeBack: (entry) => this.takeBack(entry),
      whole: (entry) => this.wholeQueued(entry),
      save: (entry, text) => this.saveQueued(entry, text),
      move: (entry, before) => this.moveQueued(entry, before),
      keepEdited: (entry, text, focus) => this.composer.keepEdited(text, this.endOfEditing(entry), focus),
      focusPrompt: () => this.focusPrompt(),
    });
    const note = make("p", { class: "note settings-note", is: { role: "status" } });
    this.settings = new SettingsBar(note, (setting, value) => this.set(setting, value));
    this.composer.box.tools.append(this.settings.element);
    this.pages = new Pages(host, this.contents, this.transcript, () => this.changed());
    root.replaceChildren(
      this.head.element,
      this.transcript.element,
      make("footer", { class: "foot" }, this.transcript.jumpButton, this.banner, this.bar.element, this.queue.element, this.interruption.element, this.composer.box.element, note),
      this.announcer.element,
    );
    openLinks(this.transcript.element, this);
    useCode(this.transcript.element, this);
    const { signal } = this.ending;
    catchChords(signal);
    document.addEventListener("keydown", (event) => this.key(event), { signal });
    this.transcript.onTop = () => {
      if (!this.transcript.unfinished) void this.pages.older();
    };
    this.transcript.onScroll = () => {
      this.bar.update((id) => this.transcript.sees(id));
      this.keepPlace();
    };
    host.on("event", (event) => {
      this.contents.apply(event);
      this.announcer.event(event);
      if (refreshing.has(event.kind) || (event.kind === "item.added" && event.data.subtype === "worktree")) this.refresh();
      this.changed();
    });
    // The agents of a new session are known once duet-rpc is ready.
    host.on("panel.connection", (connection) => void (this.start?.newSession && connection.is === "ready" && connection.trouble === undefined ? this.open() : this.connected(connection)));
    host.on("panel.insert", ({ text, content }) => {
      this.composer.box.insert(text, content);
      this.composer.box.focus();
    });
    host.on("panel.contextChanged", ({ context }) => this.composer.setContext(context));
    host.on("panel.showQuestion", ({ id, choice }) => this.transcript.showQuestion(id, choice));
    host.on("panel.showItem", (item) => {
      this.wanted = item;
      if (this.pages.loaded) void this.showWanted();
    });
    host.on("panel.focus", () => this.composer.box.focus());
    host.on("panel.entered", () => this.enter());
    document.addEventListener("pointerdown", () => (this.pressedAt = performance.now()), { capture: true, signal });
    const clock = setInterval(() => this.drawHead(), 1_000);
    signal.addEventListener("abort", () => clearInterval(clock));
  }

  /** Stops listening to the document, which may show another panel next. VS Code ends the page instead. */
  dispose(): void {
    this.ending.abort();
    for (const timer of [this.scrolling, this.refreshing, this.resting]) clearTimeout(timer);
    cancelAnimationFrame(this.frame);
  }

  /** Loads and shows the session, or what starts one. */
  open(): Promise<void> {
    return (this.opening = this.load());
  }

  private async load(): Promise<void> {
    const isFirst = this.start === undefined;
    try {
      this.start = await this.host.request("panel.start", {});
    } catch (error) {
      this.banner.replaceChildren(make("p", { text: `The panel could not be opened: ${(error as Error).message}` }), button({ class: "text-button", label: "Try again", press: () => void this.open() }));
      return;
    }
    if (isFirst) this.composer.setDraft(this.kept.draft ?? this.start.draft);
    this.composer.setHistory(this.start.history);
    this.head.setWhere(this.start.where ?? "");
    this.host.request("panel.context", {}).then((context) => this.composer.setContext(context), () => undefined); // prompts need no editor
    if (this.start.newSession) this.drawBefore(this.start.newSession.before);
    await this.connected(this.start.connection);
    this.changed();
  }

  /** drawBefore shows what the first prompt starts: below the turns that it continues, or alone. */
  private drawBefore(items: readonly SessionItem[] = []): void {
    if (items.length > 0) this.contents.load(items);
    if (items.length > 0) this.transcript.setEnd(this.about);
    else this.transcript.setOlder(this.about, this.onlyDemo);
  }

  announce(text: string): void {
    this.announcer.say(text);
  }

  openFile(path: string, line?: number, column?: number): void {
    this.call("panel.openFile", { path, ...(line === undefined ? {} : { line }), ...(column === undefined ? {} : { column }) });
  }

  openDiff({ path, before, after }: { path: string; before: string | undefined; after: string }): void {
    this.call("panel.openDiff", { path, before: before ?? null, after });
  }

  openPatch(path: string, patch: string): void {
    this.call("panel.openPatch", { path, patch });
  }

  openChanges(path?: string): void {
    this.call("panel.openChanges", path === undefined ? {} : { path });
  }

  openLink(url: string): void {
    this.call("panel.openLink", { url });
  }

  command(command: PanelCommand, turn?: string): void {
    this.call("panel.command", { command, ...(turn !== undefined && { turn }) });
  }

  useCode(use: CodeUse, code: string): void {
    this.call(use === "insert" ? "panel.insertCode" : "panel.runCode", { code });
  }

  focusPrompt(): void {
    this.composer.box.focus();
  }

  /** enter moves the focus to the prompt box, and to an open question once the session is loaded. A click in the page keeps the focus that it gave. */
  private enter(): void {
    // A list of VS Code that the user has opened meanwhile would close if the page took the focus from it.
    if (!document.hasFocus()) return window.addEventListener("focus", () => this.enter(), { once: true, signal: this.ending.signal });
    if (performance.now() - this.pressedAt < clicking || !this.isFocusFree) return;
    this.composer.box.focus();
    if (this.start?.newSession) return;
    this.entered = this.composer.box.draft.text;
    this.changed();
  }

  /** focusQuestion moves the focus to an open question, unless the user has done something since enter. The view stays where the user reads. */
  private focusQuestion(): void {
    const isUntouched = document.hasFocus() && this.isFocusFree && this.entered === this.composer.box.draft.text;
    this.entered = undefined;
    if (!isUntouched || this.transcript.focusQuestion()) return;
    this.bar.update((id) => this.transcript.sees(id));
    this.bar.focus();
  }

  /** Whether nothing has the focus that the user has chosen. */
  private get isFocusFree(): boolean {
    const { activeElement } = document;
    return activeElement === null || [document.body, this.transcript.element, this.composer.box.text].includes(activeElement as HTMLElement);
  }

  async answer(question: OpenQuestion, decision: Decision, opens = false): Promise<Answered> {
    this.own.add(question.id);
    try {
      if (opens && !(await this.host.request("panel.openAddress", { approval: question.id })).opened) {
        this.own.delete(question.id);
        return { done: false };
      }
      const { success, error } = await this.host.request("approval.decide", { approval: question.id, ...decision });
      if (success) return { done: true };
      this.own.delete(question.id);
      return { done: false, why: `It was answered already: ${error ?? "another client was quicker"}` };
    } catch (error) {
      this.own.delete(question.id);
      return { done: false, why: `The answer was not sent: ${(error as Error).message}` };
    }
  }

  async edit({ id }: OpenQuestion): Promise<string> {
    try {
      await this.host.request("panel.editInput", { approval: id });
      return "";
    } catch (error) {
      return `The editor was not opened: ${(error as Error).message}`;
    }
  }

  endOf(id: string, outcome: Outcome | undefined): string | undefined {
    if (this.own.has(id)) return undefined;
    if (!outcome) return "The question was closed: its turn has ended.";
    if (outcome.by === "changed") {
      const words = "Replaced: the agent changed the tool call.";
      this.announce(words);
      return words;
    }
    const what = approvalStatusWords[outcome.decision] ?? outcome.decision;
    const isAnswer = ["approved", "denied", "responded"].includes(outcome.decision);
    const words = `${isAnswer ? `Answered elsewhere: ${what}` : `The question is ${what}`}${outcome.by === "" || outcome.by === "user" ? "" : ` (${outcome.by})`}`;
    this.announce(words);
    return words;
  }

  async whole(entry: Entry): Promise<void> {
    await this.pages.whole(entry);
    this.changed();
  }

  async picture(id: string, type: string): Promise<string | undefined> {
    return this.pages.picture(id, type);
  }

  private async connected(connection: PanelConnection): Promise<void> {
    this.connection = connection;
    this.drawBanner();
    if (connection.is !== "ready" || connection.trouble !== undefined || !this.start) return;
    this.composer.box.recovered();
    if (this.start.newSession) return this.drawHead();
    try {
      this.session = await this.pages.load(this.start.session);
    } catch (error) {
      this.banner.replaceChildren(make("p", { text: `The session could not be loaded: ${(error as Error).message}` }), button({ class: "text-button", label: "Try again", press: () => void this.connected(this.connection) }));
    }
    this.changed();
    void this.loadTotals();
    await this.showPlace();
    await this.showWanted();
    this.placed = true;
    this.changed();
  }

  /** keepPlace stores the place in the transcript when the view rests. Until the place from before is shown, that one counts. */
  private keepPlace(): void {
    clearTimeout(this.scrolling);
    if (this.returned) this.scrolling = setTimeout(() => this.kept.keepPlace(this.transcript.place), collect);
  }

  /** showPlace returns to the place from before, once, and loads older pages for it. */
  private async showPlace(): Promise<void> {
    const { place } = this.kept;
    if (this.returned || !this.pages.loaded) return;
    this.returned = true;
    if (place === undefined || this.wanted !== undefined) return;
    const key = await this.pages.reach(place.key).catch(() => undefined);
    if (key !== undefined) this.transcript.showPlace(place);
    this.changed();
  }

  /** showWanted shows the wanted item, and loads older pages for it. */
  private async showWanted(): Promise<void> {
    const { wanted } = this;
    if (wanted === undefined || !this.pages.loaded) return;
    this.wanted = undefined;
    const key = await this.pages.find(wanted).catch(() => undefined);
    const entry = key === undefined ? undefined : this.contents.entry(key);
    const outer = entry && this.contents.outermost((this.contents.saidBy(entry) ?? entry).key);
    if (outer === undefined) return this.composer.box.say("The match could not be found in the session.");
    this.transcript.showEntry(outer);
    this.changed();
  }

  /** refresh soon requests the data that events lack: modes, sums, and the rules that an answer could make. */
  private refresh(): void {
    this.refreshing ??= setTimeout(() => {
      this.refreshing = undefined;
      if (!this.start || this.connection.is !== "ready" || !this.pages.loaded) return;
      this.pages.refresh(this.start.session).then(
        (session) => {
          this.session = session;
          this.changed();
          void this.loadTotals();
        },
        () => undefined, // keep the current data; the next event tries again
      );
    }, collect);
  }

  /** loadTotals requests the sums over all turns, when another turn has ended. */
  private async loadTotals(): Promise<void> {
    const { session, totals } = this;
    if (!session?.ended_at || totals?.last === session.turn_uuid) return;
    this.totals = await this.host.request("panel.totals", {}).catch(() => totals); // the next end tries again
    this.changed();
    this.drawHead();
  }

  private drawBanner(): void {
    const { is, reason, trouble, host } = this.connection;
    this.banner.dataset["is"] = trouble === undefined ? is : "trouble";
    const restart = button({ class: "text-button", label: is === "stopped" ? "Start" : "Try again", command: "duet.restart", press: () => this.command("duet.restart") });
    const log = button({ class: "text-button", label: "Show log", command: "duet.showLog", press: () => this.command("duet.showLog") });
    switch (is) {
      case "ready":
        return this.banner.replaceChildren(...(trouble === undefined ? [] : [make("p", { text: sentence(trouble, host) })]));
      case "starting":
        return this.banner.replaceChildren(make("p", { text: host === undefined ? "duet-rpc is starting…" : `Connecting to ${host}…` }));
      case "stopped":
        return this.banner.replaceChildren(make("p", { text: "duet-rpc was stopped." }), restart);
      case "failed":
        return this.banner.replaceChildren(make("p", { text: host !== undefined && reason !== undefined ? `${sentence(reason, host)} The next attempt follows.` : `duet-rpc does not run${reason === undefined ? "." : `: ${reason}`}` }), restart, log);
    }
  }

  /** send sends a prompt, and resolves with a note for the user. */
  private async send(draft: Draft, now: boolean): Promise<string> {
    if (!this.start) await this.opening;
    if (!this.start) throw new Error("the panel could not be opened; try again above");
    // While duet-rpc starts, the extension holds requests until it is ready.
    // A host may lack the project until the first session brings it there.
    const begins = this.connection.is === "failed" && this.start.newSession?.sends !== undefined;
    if (!begins && (this.connection.is === "stopped" || this.connection.is === "failed")) throw new Error(this.connection.host === undefined ? "duet-rpc does not run" : (this.connection.reason ?? `${this.connection.host} is not connected`));
    if (this.start.newSession) {
      const { text: prompt, content } = draft;
      const { beside } = await this.host.request("panel.launch", { prompt, ...(content.length > 0 && { content }) });
      this.transcript.setEnd();
      await this.open();
      return besideWords(beside);
    }
    const { active } = this.contents.turns;
    const { delivered, beside } = await sendPrompt(this.host, this.contents, this.pages, this.start.session, draft, now);
    this.transcript.toEnd();
    this.changed();
    return besideWords(beside) || deliveredWords(delivered, { now, working: active !== undefined && this.contents.turns.active === active, content: draft.content.length > 0 });
  }

  /** Continues an interrupted turn, or sends the prompt of a failed one again. */
  private async continue({ failed, prompt, attached }: Interruption): Promise<void> {
    try {
      await this.send({ text: prompt, content: await contentAgain(attached, this.pages) }, false);
      this.focusPrompt();
    } catch (error) {
      this.composer.box.fail(error instanceof UnknownOutcome ? error.message : `It was not ${failed ? "sent" : "continued"}: ${(error as Error).message}`);
    }
  }

  /** Escape interrupts the active turn and stops the queue, unless a list, a select box or an edited prompt has used the key. */
  private key(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || event.repeat) return;
    if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLSelectElement) return;
    const { active } = this.contents.turns;
    const isWorking = active !== undefined && this.contents.turns.state(active) !== "interrupting";
    if (!isWorking && this.contents.queued.length === 0) return;
    event.preventDefault();
    void this.interrupt(isWorking ? active : undefined);
  }

  /**
   * Stops the queue, and interrupts the active turn, or background work after the last one. The prompts of the queue go
   * first: otherwise the next one would begin.
   */
  private async interrupt(turn = this.contents.turns.active): Promise<void> {
    const queued = this.contents.queued;
    const stopped = await this.stopQueue(queued);
    const interrupted = turn ?? (queued.length === 0 ? (this.session?.turn_uuid ?? this.contents.turns.last) : undefined);
    try {
      if (interrupted !== undefined) await this.host.request("turn.interrupt", { turn: interrupted });
    } catch (error) {
      return this.composer.box.fail(`It was not interrupted: ${(error as Error).message}`);
    }
    if (stopped > 0) this.composer.box.say(`${turn === undefined ? "" : "Interrupted. "}The queue is stopped: ${stopped === 1 ? "its prompt is" : `its ${stopped} prompts are`} in the prompt box.`);
  }

  /** stopQueue moves the prompts of the queue into the prompt box, and returns their number. One that has begun meanwhile is interrupted. */
  private async stopQueue(queued: readonly Entry[]): Promise<number> {
    const taken: string[] = [];
    try {
      // The last one goes first, so that none begins before its turn to go.
      for (const entry of [...queued].reverse()) {
        if (entry.truncated) await this.whole(entry);
        const { state } = await this.host.request("turn.interrupt", { turn: entry.turn, reason: "taken back" });
        if (state !== "cancelled") continue;
        taken.unshift(entry.text);
        this.hideTakenBack(entry);
      }
    } catch (error) {
      this.composer.box.fail(`The queue was not stopped: ${(error as Error).message}`);
    }
    for (const text of taken) this.composer.append(text);
    return taken.length;
  }

  private async takeBack(entry: Entry): Promise<void> {
    try {
      if (entry.truncated) await this.whole(entry);
      const { state } = await this.host.request("turn.interrupt", { turn: entry.turn, reason: "taken back" });
      if (state === "cancelled") this.hideTakenBack(entry);
      this.composer.append(entry.text);
      this.composer.box.focus();
    } catch (error) {
      this.composer.box.fail(`It was not taken back: ${(error as Error).message}`);
    }
  }

  /** hideTakenBack removes a prompt from the transcript, because it is in the prompt box again. */
  private hideTakenBack({ turn }: Entry): void {
    this.contents.takeBack(turn);
    this.kept.keepTakenBack(turn);
    this.changed();
  }

  /** wholeQueued loads all of a queued prompt's text. Returns false if that fails. */
  private async wholeQueued(entry: Entry): Promise<boolean> {
    try {
      if (entry.truncated) await this.whole(entry);
      return true;
    } catch (error) {
      this.composer.box.fail(`The prompt cannot be edited, since its text could not be loaded: ${(error as Error).message}`);
      return false;
    }
  }

  private async saveQueued({ turn }: Entry, prompt: string): Promise<Saved> {
    try {
      await this.host.request("turn.edit", { turn, prompt });
      return "saved";
    } catch (error) {
      if (isBegun(error)) return "begun";
      this.composer.box.fail(`The edited prompt was not saved: ${(error as Error).message}`);
      return "failed";
    }
  }

  /** endOfEditing says why an edited text is in the prompt box. */
  private endOfEditing({ turn }: Entry): string {
    const taken = this.contents.turns.state(turn) === "cancelled";
    return `${taken ? "The prompt was taken back elsewhere" : "The prompt has begun already"}: your edited text is in the prompt box.`;
  }

  private async moveQueued({ turn }: Entry, before: string | undefined): Promise<void> {
    try {
      const { queued } = await this.host.request("turn.move", { turn, ...(before === undefined ? {} : { before }) });
      this.announce(`Moved to place ${queued.findIndex(({ turn_uuid }) => turn_uuid === turn) + 1} of ${queued.length}`);
    } catch (error) {
      this.composer.box.fail(isBegun(error) ? "It was not moved: one of the prompts has begun already." : `It was not moved: ${(error as Error).message}`);
    }
  }

  /** set changes a setting of the agent, and resolves with a note for the user. */
  private async set(setting: Setting, value: string): Promise<string> {
    if (!this.start) return "";
    if (this.start.newSession) {
      this.start.newSession = await this.host.request("panel.choose", setting.change(value));
      this.drawHead();
      setTimeout(() => this.drawHead(), 0); // with this setting, whose box is no longer busy
      return "";
    }
    const { live, turn } = await this.host.request("session.set", { session: this.start.session, ...setting.change(value) });
    this.session = turn;
    this.refresh();
    return live || !this.contents.turns.active ? "" : `${setting.name}: it counts from the next prompt on.`;
  }

  private call<M extends PanelMethod>(method: M, params: PanelParams<M>): void {
    this.host.request(method, params).catch((error: unknown) => this.composer.box.fail((error as Error).message));
  }

  /** changed draws the page in the next frame, or after a pause that lets keys and clicks through. */
  private changed(): void {
    if (this.frame !== 0 || this.resting !== undefined) return;
    const rest = this.restUntil - performance.now();
    if (rest > 0) {
      this.resting = setTimeout(() => {
        this.resting = undefined;
        this.changed();
      }, rest);
      return;
    }
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const began = performance.now();
      this.draw();
      const took = performance.now() - began;
      this.restUntil = began + Math.min(longestRest, 3 * took);
    });
  }

  private draw(): void {
    const changes = this.contents.takeChanges();
    const more = this.transcript.draw(changes);
    if (changes.questions || changes.order || changes.keys.size > 0) this.bar.update((id) => this.transcript.sees(id));
    if (changes.session || changes.questions || changes.order) this.drawHead();
    if (more) this.changed();
    else if (this.entered !== undefined && this.placed) this.focusQuestion();
  }

  private drawHead(): void {
    if (!this.start) return;
    if (this.start.newSession) {
      this.head.updateNew(this.start.title);
      setText(this.about, this.start.newSession.about);
      this.onlyDemo.hidden = this.start.newSession.onlyDemo !== true;
      return this.settings.update(newSettingsOf(this.start.newSession));
    }
    const now = Date.now();
    const session = sessionOf(this.session, this.contents, this.totals);
    this.head.update(this.session?.title || this.session?.session_title || this.start.title, session, now);
    this.composer.box.setQueues(session.working);
    this.interruption.update(interruptionOf(this.session, this.contents));
    this.queue.update(this.contents.queued, ({ turn }) => this.contents.turns.isEditable(turn) === true);
    if (this.session) this.settings.update(settingsOf(this.session, this.contents.agent));
    this.announcer.state(stateWords(session, now), this.contents.questions);
  }
}

/** Announces to a screen reader what the user has to know: open questions, work without a prompt, the end of a turn. Streaming text is not announced. */
class Announcer {
  readonly element = make("div", { class: "unseen", is: { "aria-live": "polite", role: "status" } });
  private last: string | undefined;
  private readonly announced = new Set<string>();

  say(text: string): void {
    this.element.append(make("p", { text }));
    while (this.element.childElementCount > 3) this.element.firstElementChild!.remove();
  }

  /** Announces that the agent continues without a prompt, if the event says so. */
  event({ kind, data }: HubEvent): void {
    if (kind === "item.added" && data.subtype === "went_on" && data.text) this.say(data.text);
  }

  /** Announces new questions, and the end of a turn. */
  state(state: { id: string; text: string }, questions: readonly OpenQuestion[]): void {
    for (const question of questions) {
      if (this.announced.has(question.id)) continue;
      this.announced.add(question.id);
      this.say(`Question: ${questionTitle(question)}`);
    }
    const before = this.last;
    this.last = state.id;
    if (before === undefined || before === state.id) return;
    if (state.id === "done" || state.id === "failed") this.say(`The turn is over: ${state.text}`);
  }
}
