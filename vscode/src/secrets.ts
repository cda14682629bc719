// Keys that agents request: from VS Code's secret storage, else from the user.
import * as vscode from "vscode";
import { KeyRequests } from "./hub/keys";
import type { KeyRequest, KeyUser } from "./hub/keys";
import { labelOf, visible } from "./hub/groups";
import { onHost } from "./hub/host";
import { Emitter } from "./hub/events";
import { inform, notice, warn } from "./messages";
import type { Project, Projects } from "./projects";

/** The services with a stored key, in the global state. The secret storage cannot list them. */
const knownKey = "duet.services";

/** What a user can do about a key request. */
export type KeyChoice = "kept" | "remember" | "once" | "none";

/** The words and the icon of each. */
export const keyChoices: Record<KeyChoice, { label: string; icon: string }> = {
  kept: { label: "Use the Stored Key", icon: "key" },
  remember: { label: "Give and Remember", icon: "save" },
  once: { label: "Give It Once", icon: "check" },
  none: { label: "No", icon: "close" },
};

/** A key request that waits for the user. */
export interface OpenKeyRequest {
  id: string;
  /** Which agent needs which key. */
  what: string;
  /** The session and, if there are several, the project. */
  about: string;
  choices: KeyChoice[];
}

/** Answers the key requests of all projects, and manages the stored keys. */
export class Keys implements vscode.Disposable {
  private readonly requests = new Map<Project, KeyRequests>();
  private readonly stop: () => void;
  private readonly waiting = new Map<string, { request: OpenKeyRequest; answer: (choice: KeyChoice) => void }>();
  private readonly changed = new Emitter<undefined>();

  /** Other requests wait. */
  readonly onChange = this.changed.on;

  constructor(
    private readonly projects: Projects,
    private readonly context: vscode.ExtensionContext,
    private readonly onError: (error: unknown) => void,
  ) {
    this.stop = projects.onEvent(({ project, event }) => {
      if (event.kind === "secret.requested") void this.of(project).take({ ...event.data, turn_uuid: event.turn_uuid }).catch(this.onError);
    });
  }

  /** The requests that wait, the oldest first. */
  get open(): OpenKeyRequest[] {
    return [...this.waiting.values()].map(({ request }) => request);
  }

  /** Answers a request with a choice. Without one, the user picks it. */
  async answer(id: string, choice?: KeyChoice): Promise<void> {
    const asked = this.waiting.get(id)?.request;
    const items = (asked?.choices ?? []).map((id) => ({ label: `$(${keyChoices[id].icon}) ${keyChoices[id].label}`, id }));
    const chosen = choice ?? (asked && (await vscode.window.showQuickPick(items, { title: asked.what }))?.id);
    const waiting = this.waiting.get(id);
    if (!waiting) void inform("the agent no longer waits for this key");
    else if (chosen) waiting.answer(chosen);
  }

  /** Deletes the keys that the user picks. */
  async forget(): Promise<void> {
    const services = this.services();
    if (services.length === 0) {
      void inform("no key is stored");
      return;
    }
    const chosen = await vscode.window.showQuickPick(services.map((service) => ({ label: visible(service), service })), { title: "Forget which keys?", canPickMany: true });
    if (!chosen || chosen.length === 0) return;
    for (const { service } of chosen) await this.context.secrets.delete(storedAs(service));
    await this.setServices(services.filter((service) => !chosen.some((one) => one.service === service)));
    void inform(`the ${chosen.length === 1 ? "key" : "keys"} of ${chosen.map(({ label }) => label).join(", ")} ${chosen.length === 1 ? "is" : "are"} forgotten`);
  }

  dispose(): void {
    this.stop();
    this.changed.clear();
  }

  private of(project: Project): KeyRequests {
    let requests = this.requests.get(project);
    if (!requests) this.requests.set(project, (requests = new KeyRequests(project.connection, this.user(project))));
    return requests;
  }

  private user(project: Project): KeyUser {
    return {
      // A host is third-party: it gets no key before the user has seen whose request it is.
      trusted: () => vscode.workspace.isTrusted && !project.host,
      stored: async (service) => this.context.secrets.get(storedAs(service)),
      store: async (service, key) => {
        await this.context.secrets.store(storedAs(service), key);
        await this.setServices([...new Set([...this.services(), service])].sort());
      },
      ask: (request, known, signal) => this.ask(project, request, known, signal),
      warn: (message) => void warn(message),
    };
  }

  private async ask(project: Project, request: KeyRequest, known: boolean, signal: AbortSignal): ReturnType<KeyUser["ask"]> {
    const { service, agent, turn_uuid } = request;
    const session = turn_uuid === undefined ? undefined : project.model.ofTurn(turn_uuid);
    const what = `${visible(agent)}${onHost(project.host)} needs a key for ${visible(service)}`;
    const about = [...(session ? [labelOf(session, session.turn)] : []), ...this.projects.labels(project)].join(" · ");
    // An input box that opened by itself could catch what the user is typing elsewhere.
    const pressed = await this.choose({ id: request.request_id, what, about, choices: known ? ["kept", "remember", "once", "none"] : ["remember", "once", "none"] }, signal);
    if (pressed === "kept") return { use: "stored" };
    if (pressed === "none") return { use: "none" };
    if (pressed === undefined) return undefined;
    const cancel = new vscode.CancellationTokenSource();
    signal.addEventListener("abort", () => cancel.cancel());
    const key = await vscode.window.showInputBox({
      title: what, password: true, ignoreFocusOut: true,
      prompt: project.host ? `The agent${onHost(project.host)} gets it${pressed === "remember" ? ", and VS Code stores it" : ""}.` : pressed === "remember" ? "This agent gets it, and VS Code stores it." : "This agent gets it. It is not stored.",
      validateInput: (text) => (text.trim() === "" ? "Type or paste the key, or press Escape" : undefined),
    }, cancel.token);
    if (key === undefined || signal.aborted) return { use: "none" };
    return { use: "given", key: key.trim(), remember: pressed === "remember" };
  }

  /** choose shows a request in the inbox and in a notification, until it has an answer or that would come too late. */
  private async choose(request: OpenKeyRequest, signal: AbortSignal): Promise<KeyChoice | undefined> {
    const shown = notice(request.what, [{ label: "Answer…", command: "duet.answerKey", args: [request.id] }, { label: keyChoices.none.label, command: "duet.answerKey", args: [request.id, "none"] }], request.about);
    try {
      return await new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve(undefined));
        this.waiting.set(request.id, { request, answer: resolve });
        this.changed.fire(undefined);
      });
    } finally {
      shown.dispose();
      this.waiting.delete(request.id);
      this.changed.fire(undefined);
    }
  }

  private services(): string[] {
    return this.context.globalState.get<string[]>(knownKey, []);
  }

  private async setServices(services: string[]): Promise<void> {
    await this.context.globalState.update(knownKey, services);
  }
}

function storedAs(service: string): string {
  return `duet.key.${service}`;
}
