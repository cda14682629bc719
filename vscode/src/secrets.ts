// Keys that agents request: from VS Code's secret storage, else from the user.
import * as vscode from "vscode";
import { KeyRequests } from "./hub/keys";
import type { KeyRequest, KeyUser } from "./hub/keys";
import { nameOf, visible } from "./hub/groups";
import type { Project, Projects } from "./projects";

/** The services with a stored key, in the global state. The secret storage cannot list them. */
const knownKey = "duet.services";

/** Answers the key requests of all projects, and manages the stored keys. */
export class Keys implements vscode.Disposable {
  private readonly requests = new Map<Project, KeyRequests>();
  private readonly stop: () => void;

  constructor(
    private readonly projects: Projects,
    private readonly context: vscode.ExtensionContext,
    private readonly onError: (error: unknown) => void,
  ) {
    this.stop = projects.onEvent(({ project, params }) => {
      if (params.event.type === "secret_requested") void this.of(project).take(params.event.data).catch(this.onError);
    });
  }

  /** Deletes the keys that the user picks. */
  async forget(): Promise<void> {
    const services = this.services();
    if (services.length === 0) {
      void vscode.window.showInformationMessage("Duet: no key is kept");
      return;
    }
    const chosen = await vscode.window.showQuickPick(services.map((service) => ({ label: visible(service), service })), { title: "Which keys are to be forgotten?", canPickMany: true });
    if (!chosen || chosen.length === 0) return;
    for (const { service } of chosen) await this.context.secrets.delete(storedAs(service));
    await this.setServices(services.filter((service) => !chosen.some((one) => one.service === service)));
    void vscode.window.showInformationMessage(`Duet: the ${chosen.length === 1 ? "key" : "keys"} of ${chosen.map(({ label }) => label).join(", ")} ${chosen.length === 1 ? "is" : "are"} forgotten`);
  }

  dispose(): void {
    this.stop();
  }

  private of(project: Project): KeyRequests {
    let requests = this.requests.get(project);
    if (!requests) this.requests.set(project, (requests = new KeyRequests(project.connection, this.user(project))));
    return requests;
  }

  private user(project: Project): KeyUser {
    return {
      trusted: () => vscode.workspace.isTrusted,
      stored: async (service) => this.context.secrets.get(storedAs(service)),
      store: async (service, key) => {
        await this.context.secrets.store(storedAs(service), key);
        await this.setServices([...new Set([...this.services(), service])].sort());
      },
      ask: (request, known, signal) => this.ask(project, request, known, signal),
      warn: (message) => void vscode.window.showWarningMessage(`Duet: ${message}`),
    };
  }

  private async ask(project: Project, request: KeyRequest, known: boolean, signal: AbortSignal): ReturnType<KeyUser["ask"]> {
    const { service, agent, session_id } = request;
    const session = project.model.session(session_id);
    const about = `${visible(agent)} needs a key for ${visible(service)}${session ? `, in “${nameOf(session)}”` : ""}${this.projects.all.length > 1 ? ` (${project.name})` : ""}`;
    // A notification asks first. An input box that opened by itself could catch what the user is typing elsewhere.
    const [once, remember, kept, no] = ["Give It Once", "Give and Remember", "Use the Kept Key", "No"];
    const pressed = await until(signal, vscode.window.showWarningMessage(`Duet: ${about}`, ...(known ? [kept] : []), remember, once, no));
    if (pressed === kept) return { use: "stored" };
    if (pressed === no) return { use: "none" };
    if (pressed === undefined) return undefined;
    const cancel = new vscode.CancellationTokenSource();
    signal.addEventListener("abort", () => cancel.cancel());
    const key = await vscode.window.showInputBox({
      title: about, password: true, ignoreFocusOut: true,
      prompt: pressed === remember ? "It is given to this agent, and kept in VS Code's store of secrets." : "It is given to this agent, and not kept.",
      validateInput: (text) => (text.trim() === "" ? "Type or paste the key, or press Escape" : undefined),
    }, cancel.token);
    if (key === undefined || signal.aborted) return { use: "none" };
    return { use: "given", key: key.trim(), remember: pressed === remember };
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

/** until resolves as a promise does, or with undefined when signal aborts first. */
function until<T>(signal: AbortSignal, promise: PromiseLike<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => resolve(undefined));
    promise.then(resolve, reject);
  });
}
