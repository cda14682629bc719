// The sessions of all projects, with their states, and a search in them.
import { age, describe, groupOf, nameOf, visible } from "../hub/groups";
import type { Session } from "../hub/model";
import type { EventKind, Result } from "../protocol";
import { button, make, setText } from "../webview/dom";
import type { App, Screen } from "./app";
import type { ProjectSessions } from "./protocol";
import { hashOf } from "./routes";

/** How many sessions of a project are shown at first, and with each press of the button more. */
const sessionsOfPress = 15;

/** How long typing has to pause before a search, in milliseconds. */
const searchPause = 250;

/** The most hits of a project. */
const mostHits = 10;

/** The events after which the list may differ. */
const followed: EventKind[] = ["turn.state", "session.changed", "session.deleted", "queue.changed", "approval.opened", "approval.closed"];

type Hit = Result<"session.search">["hits"][number];

/** The list of sessions by project. */
export class SessionsScreen implements Screen {
  private readonly search = make("input", { class: "search", is: { type: "search", placeholder: "Search sessions", "aria-label": "Search sessions", dir: "auto", enterkeyhint: "search" }, on: { input: () => this.typed() } });
  private readonly list = make("div", { class: "projects" });
  private readonly found = make("div", { class: "projects", is: { "aria-live": "polite" } });
  readonly element = make("main", { class: "page" }, make("h1", { text: "Sessions", is: { tabindex: "-1" } }), this.search, this.list, this.found);
  private readonly more = new Map<string, number>();
  private readonly stops: Array<() => void> = [];
  private readonly subscribed = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private searches = 0;
  private shown = "";
  private disposed = false;

  constructor(private readonly app: App) {
    this.update();
    app.refreshSessions();
  }

  update(): void {
    for (const { id, state } of this.app.projects) if (state === "connected") this.follow(id);
    this.draw();
  }

  dispose(): void {
    this.disposed = true;
    clearTimeout(this.timer);
    for (const stop of this.stops) stop();
  }

  /** follow learns of changes in a project while this screen is shown. */
  private follow(project: string): void {
    const hub = this.app.hub(project);
    if (!hub || this.subscribed.has(project)) return;
    this.subscribed.add(project);
    hub.follow({ kinds: followed }, { event: () => this.app.refreshSessions(), lost: () => void this.subscribed.delete(project) }).then((following) => {
      const stop = (): void => void following.stop();
      if (this.disposed) stop();
      else this.stops.push(stop);
    }, () => void this.subscribed.delete(project));
  }

  private get query(): string {
    return this.search.value.trim().toLowerCase();
  }

  private typed(): void {
    this.draw();
    clearTimeout(this.timer);
    this.searches++;
    this.found.replaceChildren();
    if (this.query.length < 2) return;
    const mine = this.searches;
    this.timer = setTimeout(() => void this.searchTexts(mine), searchPause);
  }

  /** searchTexts searches what was said in the sessions of the connected projects. */
  private async searchTexts(mine: number): Promise<void> {
    const query = this.search.value.trim();
    await Promise.all(this.app.projects.filter(({ state }) => state === "connected").map(async ({ id, name }) => {
      const hits = await this.app.hub(id)!.request("session.search", { query, limit: mostHits }).then(({ hits }) => hits, () => []);
      if (mine !== this.searches || this.disposed || hits.length === 0) return;
      this.found.append(make("section", { class: "project", is: { "aria-label": `Found in ${name}` } }, make("h2", { text: `Found in ${name}`, is: { dir: "auto" } }), make("ul", { class: "rows" }, ...hits.map((hit) => this.hitRow(id, hit)))));
    }));
    if (mine === this.searches && !this.disposed && this.found.childElementCount === 0) this.found.append(make("p", { class: "note", text: "No session has these words." }));
  }

  private hitRow(project: string, hit: Hit): HTMLElement {
    return make("li", {}, make(
      "a", { class: "row", is: { href: hashOf({ screen: "session", project, session: hit.session_uuid }) }, on: { click: () => this.app.showNext(hit) } },
      make("span", { class: "row-line" }, make("span", { class: "row-title", text: `${hit.session} ${hit.title}`, is: { dir: "auto" } }), make("span", { class: "row-age", text: age(hit.created_at, Date.now()) })),
      make("span", { class: "row-detail", text: hit.snippet.replace(/\s+/g, " "), is: { dir: "auto" } }),
    ));
  }

  private draw(): void {
    const { projects, sessions } = this.app;
    const now = JSON.stringify([projects, sessions, this.query, [...this.more], this.app.questions.map(({ approval }) => approval.session_uuid), Math.floor(Date.now() / 60_000)]);
    if (now === this.shown) return;
    this.shown = now;
    if (projects.length === 0) return this.list.replaceChildren(make("p", { class: "empty", text: "No project is known yet. Run duet-rpc in a project's directory, and it appears here." }));
    const focused = (document.activeElement as HTMLElement | null)?.getAttribute("href");
    this.list.replaceChildren(...projects.map(({ id, name, state, error, last_seen }) => {
      const of = sessions?.find(({ project }) => project === id);
      const trouble = error ?? of?.error;
      const words = state === "unreachable" ? `cannot be reached${last_seen ? `, last seen ${age(last_seen, Date.now())} ago` : ""}` : state === "asleep" ? "asleep" : "";
      return make(
        "section", { class: "project", is: { "aria-label": name } },
        make("h2", {}, make("span", { text: name, is: { dir: "auto" } }), words !== "" && make("span", { class: "note", text: words })),
        trouble !== undefined && make("p", { class: "failure", text: trouble }),
        this.rowsOf(id, of),
      );
    }));
    if (focused) this.list.querySelector<HTMLElement>(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }

  private rowsOf(project: string, of: ProjectSessions | undefined): HTMLElement {
    if (!of) return make("p", { class: "note", text: this.app.sessions ? "No sessions." : "Loading…" });
    const { query } = this;
    const fitting = of.sessions.filter((session) => query === "" || `${session.session} ${nameOf(session)} ${session.agent} ${session.summary}`.toLowerCase().includes(query));
    if (fitting.length === 0) return make("p", { class: "note", text: of.sessions.length === 0 ? "No sessions yet." : "No title fits." });
    const most = this.more.get(project) ?? sessionsOfPress;
    const rest = fitting.length - most;
    const list = make("ul", { class: "rows" }, ...fitting.slice(0, most).map((session) => this.rowOf(project, session)));
    if (rest > 0) {
      list.append(make("li", {}, button({
        class: "text-button", label: `Show ${Math.min(rest, sessionsOfPress)} more of ${rest}`,
        press: () => {
          this.more.set(project, most + sessionsOfPress);
          this.draw();
        },
      })));
    }
    return list;
  }

  private rowOf(project: string, of: Session): HTMLElement {
    const waits = this.app.questions.some((question) => question.project === project && question.approval.session_uuid === of.session_uuid);
    const session: Session = { ...of, ...(waits && { waits: true }) };
    const row = make(
      "a", { class: "row session-row", is: { href: hashOf({ screen: "session", project, session: session.session_uuid }), "data-state": groupOf(session) } },
      make("span", { class: "row-line" }, make("span", { class: "dot", is: { "aria-hidden": "true" } }), make("span", { class: "row-title", text: nameOf(session), is: { dir: "auto" } })),
      make("span", { class: "row-facts" }),
    );
    setText(row.lastElementChild!, visible(describe(session, Date.now())));
    return make("li", {}, row);
  }
}
