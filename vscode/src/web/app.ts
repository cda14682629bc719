// The page around the panel: the connection, the lists, the screens and their addresses.
import { nameOf } from "../hub/groups";
import type { Session } from "../hub/model";
import type { Result } from "../protocol";
import { button, icon, make, setText } from "../webview/dom";
import type { IconName } from "../webview/dom";
import { ChangesScreen } from "./changes";
import { ProjectHub } from "./hub";
import type { ProjectEvent } from "./hub";
import { InboxScreen } from "./inbox";
import { KeptInBrowser, reasonKey } from "./kept";
import type { Line } from "./line";
import { NewScreen } from "./newsession";
import { Outbox } from "./outbox";
import type { Outcome, Waiting } from "./outbox";
import type { Device, Hello, Project, ProjectSessions, PushSettings, Question } from "./protocol";
import { QuestionScreen } from "./question";
import { hashOf, routeOf } from "./routes";
import type { Route } from "./routes";
import { SessionScreen } from "./session";
import { SessionsScreen } from "./sessions";
import { SettingsScreen } from "./settings";
import type { Store } from "./store";

/** A screen of the page. */
export interface Screen {
  readonly element: HTMLElement;
  /** The lists or the connection have changed. */
  update?(): void;
  dispose?(): void;
}

/** An item of a session that a search has found. */
type FoundItem = Pick<Result<"session.search">["hits"][number], "session_uuid" | "turn_uuid" | "type" | "key">;

/** The tabs at the bottom. */
const tabs: ReadonlyArray<{ screen: "inbox" | "sessions" | "new" | "settings"; label: string; icon: IconName }> = [
  { screen: "inbox", label: "Inbox", icon: "question" },
  { screen: "sessions", label: "Sessions", icon: "list" },
  { screen: "new", label: "New", icon: "add" },
  { screen: "settings", label: "Settings", icon: "tool" },
];

const titles: Record<Route["screen"], string> = { inbox: "Inbox", sessions: "Sessions", new: "New session", settings: "Settings", question: "Question", session: "Session", changes: "Changes" };

/** How long the page waits for further events before it asks for the sessions again, in milliseconds. */
const collect = 300;

/** How long the first connection may take before the page says so, in milliseconds. */
const connectTime = 700;

/** How long a notice of success stays, in milliseconds. */
const noticeTime = 6_000;

/** The page of a paired device. */
export class App {
  device: Device = { id: "", name: "" };
  version = "";
  projects: Project[] = [];
  /** The open questions of all projects, the oldest first. */
  questions: Question[] = [];
  /** The sessions of all projects. undefined: not known yet. */
  sessions: ProjectSessions[] | undefined;
  /** The push messages of this device. undefined: the server sends none. */
  push: PushSettings | undefined;
  readonly outbox: Outbox;
  private readonly hubs = new Map<string, ProjectHub>();
  private readonly offline = make("div", { class: "offline", is: { role: "status" } });
  private readonly top = make("nav", { class: "top", is: { "aria-label": "Back" } });
  private readonly place = make("div", { class: "screen" });
  private readonly tabs = make("nav", { class: "tabs", is: { "aria-label": "Screens" } });
  private readonly notices = make("div", { class: "notices", is: { role: "status", "aria-live": "polite" } });
  private readonly links = new Map<string, { link: HTMLAnchorElement; count: HTMLElement }>();
  private screen: Screen | undefined;
  private shown = "";
  private isReady = false;
  private refreshing: ReturnType<typeof setTimeout> | undefined;
  /** The first connection takes long. */
  private isLate = false;
  private readonly connecting = setTimeout(() => {
    this.isLate = true;
    this.drawLine();
  }, connectTime);
  private readonly ending = new AbortController();

  constructor(
    private readonly root: HTMLElement,
    readonly line: Line,
    readonly store: Store,
    /** Signs this device out. */
    readonly leave: () => Promise<void>,
  ) {
    this.outbox = new Outbox(store, (method, params) => line.send(method, params));
    for (const { screen, label, icon: name } of tabs) {
      const count = make("span", { class: "count" });
      const link = make("a", { class: "tab", is: { href: `#/${screen}` } }, icon(name), make("span", { text: label }), count);
      this.links.set(screen, { link, count });
      this.tabs.append(link);
    }
    root.classList.add("web");
    root.replaceChildren(this.offline, this.top, this.place, this.tabs, this.notices);
    line.on("web.projects", ({ projects }) => this.setProjects(projects));
    line.on("web.inbox", ({ questions }) => this.setQuestions(questions));
    line.on("web.trouble", ({ project, reason }) => this.hubs.get(project)?.setTrouble(reason));
    line.onEvent<ProjectEvent>((event) => this.hubs.get(event.project)?.take(event));
    line.onReady((hello) => this.ready(hello));
    line.onBroken(() => this.broken());
    this.outbox.onChange(() => this.drawLine());
    this.outbox.onOutcome((outcome) => this.ended(outcome));
    const { signal } = this.ending;
    window.addEventListener("hashchange", () => this.show(), { signal });
    window.addEventListener("online", () => line.wake(), { signal });
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") line.wake();
    }, { signal });
    this.drawLine();
  }

  dispose(): void {
    this.ending.abort();
    clearTimeout(this.refreshing);
    clearTimeout(this.connecting);
    this.screen?.dispose?.();
    this.root.replaceChildren();
  }

  /** Shows a screen. The user comes back from it by the Back key. */
  go(route: Route): void {
    location.hash = hashOf(route);
  }

  /** Shows a screen in place of this one. */
  replace(route: Route): void {
    history.replaceState(history.state, "", hashOf(route));
    this.show();
  }

  /** Goes back, or to another screen if this one is the first of the page. */
  back(otherwise: Route): void {
    if ((history.state as { depth?: number } | null)?.depth) history.back();
    else this.replace(otherwise);
  }

  project(id: string): Project | undefined {
    return this.projects.find((project) => project.id === id);
  }

  hub(id: string): ProjectHub | undefined {
    return this.hubs.get(id);
  }

  session(project: string, uuid: string): Session | undefined {
    return this.sessions?.find((of) => of.project === project)?.sessions.find(({ session_uuid }) => session_uuid === uuid);
  }

  titleOf(project: string, uuid: string): string {
    const session = this.session(project, uuid);
    return session ? nameOf(session) : "Session";
  }

  /** Shows an item of a session when its screen opens. */
  showNext(item: FoundItem): void {
    this.wanted = item;
  }
  private wanted: FoundItem | undefined;

  /** Shows a notice that ends by itself. */
  say(text: string): void {
    if (text === "") return;
    const notice = make("p", { class: "notice", text });
    this.notices.append(notice);
    setTimeout(() => notice.remove(), noticeTime);
  }

  /** Shows a notice until the user closes it. */
  warn(text: string): void {
    const notice = make("div", { class: "notice failure", is: { role: "alert" } }, make("p", { text }));
    notice.append(button({ icon: "close", name: "Close this notice", press: () => notice.remove() }));
    this.notices.append(notice);
  }

  /** Shows the error of what the user has asked for. */
  attempt(done: Promise<unknown>): void {
    done.catch((error: unknown) => this.warn((error as Error).message));
  }

  /** Asks for the sessions of all projects, soon. */
  refreshSessions(): void {
    this.refreshing ??= setTimeout(() => {
      this.refreshing = undefined;
      this.line.request("web.sessions", {}).then(({ projects }) => {
        this.sessions = projects.map((of) => ({ ...of, sessions: of.sessions ?? [] })); // of a project that was never reached, there are none
        this.update();
      }, () => undefined); // after the next connection
    }, collect);
  }

  private ready(hello: Hello): void {
    this.device = hello.device;
    this.version = hello.version;
    this.push = hello.push;
    this.isReady = true;
    this.setProjects(hello.projects);
    this.setQuestions(hello.inbox);
    for (const hub of this.hubs.values()) void hub.resume();
    this.outbox.flush();
    this.refreshSessions();
    this.drawLine();
    this.show();
  }

  private broken(): void {
    for (const hub of this.hubs.values()) hub.broken();
    this.drawLine();
    this.update();
  }

  private setProjects(projects: Project[]): void {
    this.projects = projects;
    for (const project of projects) {
      const hub = this.hubs.get(project.id);
      if (hub) hub.project = project;
      else this.hubs.set(project.id, new ProjectHub(project, this.line, this.outbox));
    }
    this.refreshSessions();
    this.update();
  }

  private setQuestions(questions: Question[]): void {
    this.questions = [...questions].sort((a, b) => (a.approval.created_at < b.approval.created_at ? -1 : 1));
    if (questions.some(({ project, approval }) => this.session(project, approval.session_uuid) === undefined)) this.refreshSessions();
    this.forgetReasons();
    const { count } = this.links.get("inbox")!;
    setText(count, questions.length === 0 ? "" : String(questions.length));
    document.title = questions.length === 0 ? "Duet" : `(${questions.length}) Duet`;
    this.update();
  }

  /** forgetReasons removes half-typed reasons of questions that are closed. */
  private forgetReasons(): void {
    const open = new Set(this.questions.map(({ project, approval }) => reasonKey(project, approval.approval)));
    const known = this.projects.filter(({ state }) => state === "connected").map(({ id }) => reasonKey(id, ""));
    for (const key of this.store.keys("reason ")) if (!open.has(key) && known.some((begin) => key.startsWith(begin))) this.store.set(key, undefined);
  }

  /** show creates the screen of the address. */
  private show(): void {
    if (!this.isReady) return;
    this.countDepth();
    const route = routeOf(location.hash);
    const address = hashOf(route);
    if (address === this.shown) return;
    this.shown = address;
    this.screen?.dispose?.();
    this.screen = this.screenOf(route);
    this.root.dataset["screen"] = route.screen;
    this.place.replaceChildren(this.screen.element);
    this.drawTop(route);
    for (const [screen, { link }] of this.links) {
      if (screen === route.screen) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    // The focus was in the screen before. A screen reader begins with the title of this one.
    if (document.activeElement === document.body || document.activeElement === null) this.place.querySelector<HTMLElement>("h1")?.focus();
  }

  /** countDepth notes how many screens of this page are behind the Back key. */
  private countDepth(): void {
    const state = history.state as { depth?: number } | null;
    if (state?.depth !== undefined) {
      this.depth = state.depth;
      return;
    }
    this.depth = this.shown === "" ? 0 : this.depth + 1;
    history.replaceState({ depth: this.depth }, "");
  }
  private depth = 0;

  private screenOf(route: Route): Screen {
    switch (route.screen) {
      case "inbox":
        return new InboxScreen(this);
      case "sessions":
        return new SessionsScreen(this);
      case "new":
        return new NewScreen(this, route.project);
      case "settings":
        return new SettingsScreen(this);
      case "question":
        return new QuestionScreen(this, route.project, route.approval);
      default: {
        const hub = this.hubs.get(route.project);
        if (!hub) return { element: make("main", { class: "page" }, make("h1", { text: titles[route.screen] }), make("p", { text: "This project is not there any more." })) };
        if (route.screen === "changes") return new ChangesScreen(this, hub, route.session);
        const screen = new SessionScreen(this, { hub, session: route.session, ...(route.approval !== undefined && { approval: route.approval }) });
        const { wanted } = this;
        this.wanted = undefined;
        if (wanted?.session_uuid === route.session) screen.showItem(wanted);
        return screen;
      }
    }
  }

  /** drawTop shows the way back, and the project. */
  private drawTop(route: Route): void {
    if (!("project" in route) || route.screen === "new") return this.top.replaceChildren();
    const parent: Route = route.screen === "question" ? { screen: "inbox" } : route.screen === "changes" ? { screen: "session", project: route.project, session: route.session } : { screen: "sessions" };
    this.top.replaceChildren(
      button({ icon: "back", name: "Back", class: "icon-button back", press: () => this.back(parent) }),
      make("span", { class: "top-project", text: this.project(route.project)?.name ?? "", is: { dir: "auto" } }),
      this.inboxLink(),
    );
  }

  /** inboxLink leads from a conversation to the questions of others. */
  private inboxLink(): HTMLElement {
    const route = routeOf(location.hash);
    const own = (question: Question): boolean => "project" in route && question.project === route.project && ("approval" in route ? question.approval.approval === route.approval : "session" in route && question.approval.session_uuid === route.session);
    const count = this.questions.filter((question) => !own(question)).length;
    const link = make("a", { class: "top-inbox", is: { href: "#/inbox" }, text: count === 1 ? "1 more question" : `${count} more questions` });
    link.hidden = count === 0;
    return link;
  }

  private update(): void {
    this.top.querySelector(".top-inbox")?.replaceWith(this.inboxLink());
    this.screen?.update?.();
  }

  /** drawLine shows that there is no connection, and what waits for one. */
  private drawLine(): void {
    const { waiting } = this.outbox;
    this.root.dataset["line"] = this.line.ready ? "ready" : "offline";
    if (waiting.length === 0 && (this.line.ready || (!this.isReady && !this.isLate))) return this.offline.replaceChildren();
    this.offline.replaceChildren(
      make("p", { text: this.line.ready ? "Sending…" : this.isReady ? "Offline: reconnecting…" : "Connecting…" }),
      ...waiting.map((one) => make("p", { class: "waiting" }, make("span", { text: `${wordsOf(one)}: ${one.title}`, is: { dir: "auto" } }), one.tried !== true && button({ class: "text-button", label: "Take back", name: `Take back: ${one.title}`, press: () => this.takeBack(one) }))),
    );
  }

  /** takeBack gives the user a prompt back to write on, or ends an answer. */
  private takeBack({ id }: Waiting): void {
    const waiting = this.outbox.takeBack(id);
    if (waiting) this.giveBack(waiting);
  }

  private giveBack({ method, project, params }: Waiting): void {
    const prompt = typeof params["prompt"] === "string" ? params["prompt"] : "";
    if (method === "session.prompt") {
      const session = String(params["session"]);
      if (this.screen instanceof SessionScreen && this.screen.session === session) return this.screen.insert(prompt);
      this.keepDraft(project, session, prompt);
    } else if (method === "session.start") {
      this.keepDraft("", "new", prompt);
      if (this.screen instanceof NewScreen) this.screen.reload();
    }
  }

  private keepDraft(project: string, session: string, text: string): void {
    const kept = new KeptInBrowser(this.store, project, session);
    const { draft } = kept;
    kept.keep({ text: draft && draft.text !== "" ? `${draft.text}\n\n${text}` : text, content: draft?.content ?? [] });
  }

  /** ended tells what became of a request that has waited. */
  private ended({ waiting, why }: Outcome): void {
    const { method, title } = waiting;
    if (why !== undefined) {
      this.warn(`${method === "approval.decide" ? "Your answer did not count" : "Your prompt was not sent"}: ${why} (${title})`);
      this.giveBack(waiting);
    } else {
      this.say(method === "approval.decide" ? `Your answer counted: ${title}` : method === "session.start" ? `The session has started: ${title}` : `Your prompt was sent: ${title}`);
      if (method === "session.start") this.refreshSessions();
    }
  }
}

/** wordsOf says what waits. */
function wordsOf({ method, params }: Waiting): string {
  if (method !== "approval.decide") return method === "session.start" ? "New session" : "Prompt";
  const words: Record<string, string> = { approve: "Allow", deny: "Deny", respond: "Answer", cancel: "Withdraw" };
  return words[String(params["decision"])] ?? "Answer";
}
