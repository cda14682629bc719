// The settings of this device: its name, its notifications, and the end of its pairing.
import { button, make, setText } from "../webview/dom";
import type { App, Screen } from "./app";
import { confirmed } from "./dialogs";
import type { PushContent } from "./protocol";

const contents: ReadonlyArray<[PushContent, string, string]> = [
  ["none", "Nothing", "A notification says that a session needs you, and nothing else leaves your machine."],
  ["title", "The title", "The title of the question and the project, encrypted for this device."],
  ["all", "All", "The title and what the tool would do, encrypted for this device."],
];

/** The settings of this device. */
export class SettingsScreen implements Screen {
  private readonly name = make("input", { is: { type: "text", dir: "auto", maxlength: "60", id: "device-name" } });
  private readonly push = make("input", { is: { type: "checkbox", role: "switch", id: "push" }, on: { change: () => this.app.attempt(this.switchPush()) } });
  private readonly answers = make("input", { is: { type: "checkbox", role: "switch", id: "answers" }, on: { change: () => this.app.attempt(this.store()) } });
  private readonly content = make("fieldset", { class: "setting-group" }, make("legend", { text: "What leaves your machine" }));
  private readonly test = button({ class: "secondary", label: "Send a test", press: () => this.app.attempt(this.app.line.request("web.push.test", {}).then(() => this.app.say("A notification is on its way."))) });
  private readonly note = make("p", { class: "note", is: { role: "status" } });
  private readonly details = make("div", { class: "push-details" });
  readonly element: HTMLElement;

  constructor(private readonly app: App) {
    this.name.value = app.device.name;
    for (const [value, label, about] of contents) {
      const radio = make("input", { is: { type: "radio", name: "content", value }, on: { change: () => this.app.attempt(this.store()) } });
      radio.checked = (app.push?.content ?? "none") === value;
      this.content.append(make("label", { class: "choice" }, radio, make("span", {}, make("span", { text: label }), make("span", { class: "note", text: about }))));
    }
    this.details.append(
      this.content,
      make("label", { class: "choice", is: { for: "answers" } }, this.answers, make("span", {}, make("span", { text: "Answer in the notification" }), make("span", { class: "note", text: "It gets the buttons Allow and Deny. They count for what the notification says, so it has to say all." }))),
      this.test,
    );
    const form = make("form", { class: "setting-group", on: { submit: (event) => {
      event.preventDefault();
      this.app.attempt(this.rename());
    } } }, make("label", { text: "Name of this device", is: { for: "device-name" } }), make("div", { class: "field" }, this.name, make("button", { class: "secondary", is: { type: "submit" }, text: "Rename" })));
    this.element = make("main", { class: "page settings-page" },
      make("h1", { text: "Settings", is: { tabindex: "-1" } }),
      make("section", { is: { "aria-label": "Notifications" } }, make("h2", { text: "Notifications" }), make("label", { class: "choice", is: { for: "push" } }, this.push, make("span", { text: "Notify this device" })), this.note, this.details),
      make("section", { is: { "aria-label": "This device" } }, make("h2", { text: "This device" }), form, button({ class: "secondary leave", label: "Sign out", press: () => this.app.attempt(this.leave()) })),
      make("p", { class: "note", text: `duet-rpc ${app.version}` }),
    );
    void this.show();
  }

  /** show reads whether this device has notifications. */
  private async show(): Promise<void> {
    const why = this.impossible;
    this.push.disabled = why !== undefined;
    setText(this.note, why ?? "");
    this.details.hidden = true;
    if (why !== undefined) return;
    const subscription = await (await navigator.serviceWorker.ready).pushManager.getSubscription();
    this.push.checked = subscription !== null;
    this.details.hidden = !this.push.checked;
    this.showAnswers();
  }

  /** showAnswers allows answers only in a notification that says all. */
  private showAnswers(): void {
    const { content, answers } = this.app.push ?? {};
    this.answers.disabled = content !== "all";
    this.answers.checked = answers === true && content === "all";
  }

  /** Why this device can have no notifications. undefined: it can. */
  private get impossible(): string | undefined {
    if (!this.app.push) return "duet-rpc web sends no notifications here.";
    if (!("serviceWorker" in navigator) || !("PushManager" in window)) return "This browser has no notifications for pages. On an iPhone or iPad, add this page to the home screen, and open it there.";
    if (Notification.permission === "denied") return "The browser blocks notifications of this page: allow them in the settings of the browser.";
    return undefined;
  }

  private async switchPush(): Promise<void> {
    try {
      if (this.push.checked) await this.subscribe();
      else await this.unsubscribe();
    } finally {
      await this.show();
    }
  }

  private async subscribe(): Promise<void> {
    if ((await Notification.requestPermission()) !== "granted") return;
    const { pushManager } = await navigator.serviceWorker.ready;
    // A subscription for another key cannot be used.
    await (await pushManager.getSubscription())?.unsubscribe();
    const subscription = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: this.app.push!.public_key });
    try {
      await this.set(subscription.toJSON());
    } catch (error) {
      await subscription.unsubscribe();
      throw error;
    }
  }

  private async unsubscribe(): Promise<void> {
    await this.set(null);
    await (await (await navigator.serviceWorker.ready).pushManager.getSubscription())?.unsubscribe();
  }

  /** store sends the choices. What the server refuses stays as it was. */
  private async store(): Promise<void> {
    const subscription = await (await navigator.serviceWorker.ready).pushManager.getSubscription();
    try {
      if (subscription) await this.set(subscription.toJSON());
    } finally {
      this.showAnswers();
    }
  }

  private async set(subscription: PushSubscriptionJSON | null): Promise<void> {
    const content = contents.find(([value]) => value === this.content.querySelector<HTMLInputElement>("input:checked")?.value)?.[0] ?? "none";
    const answers = this.answers.checked && content === "all";
    // The server knows no other members, such as the time at which a subscription ends.
    const address = subscription && { ...(subscription.endpoint !== undefined && { endpoint: subscription.endpoint }), ...(subscription.keys && { keys: subscription.keys }) };
    await this.app.line.request("web.push.set", { subscription: address, content, answers });
    this.app.push = { ...this.app.push!, content, answers };
  }

  private async rename(): Promise<void> {
    const name = this.name.value.trim();
    if (name === "") return;
    await this.app.line.request("web.rename", { name });
    this.app.device = { ...this.app.device, name };
    this.app.say("The device has its new name.");
  }

  private async leave(): Promise<void> {
    if (!(await confirmed("Sign out?", "This device forgets its key, and what you have written here. To come back, pair it again.", "Sign out"))) return;
    await this.app.leave();
  }
}
