// A new session: its project, and the panel whose first prompt starts it.
import { make } from "../webview/dom";
import type { App, Screen } from "./app";
import { SessionScreen } from "./session";

const lastKey = "project";

/** The screen of a session that has not started. */
export class NewScreen implements Screen {
  private readonly projects = make("select", { is: { "aria-label": "Project" }, on: { change: () => this.choose(this.projects.value) } });
  private readonly place = make("div", { class: "new-place" });
  readonly element = make("div", { class: "new-page" }, make("section", { is: { "aria-label": "Project" } }, make("label", { class: "new-project" }, make("span", { text: "Project" }), this.projects)), this.place);
  private panel: SessionScreen | undefined;
  private chosen = "";
  private shown = "";

  constructor(
    private readonly app: App,
    project = app.store.get(lastKey),
  ) {
    this.update();
    const ids = app.projects.map(({ id }) => id);
    this.choose(project !== undefined && ids.includes(project) ? project : (app.projects.find(({ state }) => state === "connected")?.id ?? ids[0] ?? ""));
  }

  update(): void {
    const now = JSON.stringify(this.app.projects.map(({ id, name, state }) => [id, name, state]));
    if (now === this.shown) return;
    this.shown = now;
    this.projects.replaceChildren(...this.app.projects.map(({ id, name, state }) => make("option", { text: state === "unreachable" ? `${name} (cannot be reached)` : name, is: { value: id } })));
    if (this.chosen !== "") this.projects.value = this.chosen;
    else if (this.panel === undefined && this.app.projects[0]) this.choose(this.app.projects[0].id);
  }

  /** Shows the draft again, which has changed. */
  reload(): void {
    const { chosen } = this;
    this.chosen = "";
    this.choose(chosen);
  }

  dispose(): void {
    this.panel?.dispose();
  }

  private choose(project: string): void {
    const hub = this.app.hub(project);
    if (!hub) {
      if (this.panel === undefined) this.place.replaceChildren(make("main", { class: "page" }, make("h1", { text: "New session", is: { tabindex: "-1" } }), make("p", { class: "empty", text: "No project is known yet. Run duet-rpc in a project's directory, and it appears here." })));
      return;
    }
    if (project === this.chosen) return;
    this.chosen = this.projects.value = project;
    this.app.store.set(lastKey, project);
    this.panel?.dispose();
    const session = crypto.randomUUID();
    this.panel = new SessionScreen(this.app, {
      hub, session, isNew: true,
      onSent: (started) => {
        if (started) {
          this.app.refreshSessions();
          this.app.replace({ screen: "session", project, session });
        } else this.app.replace({ screen: "sessions" });
      },
    });
    this.place.replaceChildren(this.panel.element);
  }
}
