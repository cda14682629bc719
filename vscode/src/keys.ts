// Keys of services that agents need: from the secret storage of VS Code, or from the person.
import * as vscode from "vscode";
import { ResponseError } from "vscode-jsonrpc/node";
import { nameOf, visible } from "./hub/groups";
import type { Project, Projects } from "./projects";

const prefix = "duet.key.";
/** The names of the services whose keys are kept; the storage of 1.90 does not list them. */
const index = "duet.keys";

interface Asked {
  project: Project;
  request: string;
  service: string;
  /** The session whose agent needs it, as far as that is told. */
  session: string | undefined;
}

/**
 * Answers whenever duet-rpc asks for a key. One that a person has kept is given without asking, but not in a
 * workspace that is not trusted: there the person is asked each time. A key is in no log and in no setting.
 */
export class Keys implements vscode.Disposable {
  private readonly waiting: Asked[] = [];
  private answering = false;
  private readonly stop: () => void;

  constructor(
    projects: Projects,
    private readonly context: vscode.ExtensionContext,
    private readonly attempt: (action: () => Promise<void>) => void,
  ) {
    this.stop = projects.onEvent(({ project, params: { event } }) => {
      const { request_id: request, service } = event.data;
      if (event.type !== "secret_requested" || typeof request !== "string" || typeof service !== "string") return;
      this.waiting.push({ project, request, service, session: event.data.session_id });
      if (!this.answering) this.attempt(() => this.answerAll());
    });
  }

  dispose(): void {
    this.stop();
  }

  /** Lets the person choose keys that are kept no longer. */
  async forget(): Promise<void> {
    const services = this.kept();
    if (services.length === 0) {
      void vscode.window.showInformationMessage("Duet: no key is kept in VS Code");
      return;
    }
    const chosen = await vscode.window.showQuickPick(services.map((label) => ({ label })), { title: "Which keys are not to be kept any more?", canPickMany: true });
    for (const { label } of chosen ?? []) await this.drop(label);
  }

  /** answerAll takes one request after the other: two questions at once would be taken for one another. */
  private async answerAll(): Promise<void> {
    this.answering = true;
    try {
      for (let asked = this.waiting.shift(); asked; asked = this.waiting.shift()) await this.answer(asked);
    } finally {
      this.answering = false;
    }
  }

  private async answer(asked: Asked): Promise<void> {
    const { service } = asked;
    const kept = vscode.workspace.isTrusted ? await this.context.secrets.get(prefix + service) : undefined;
    if (kept !== undefined) {
      await provide(asked, kept);
      return;
    }
    const session = asked.project.model.sessions.find(({ id }) => id === asked.session);
    const typed = await vscode.window.showInputBox({
      title: `Duet: the key for ${visible(service)}`, password: true, ignoreFocusOut: true,
      prompt: `${session ? `${nameOf(session)}: its agent` : `An agent in ${asked.project.name}`} needs it. Press Escape to give none.`,
    });
    const key = typed?.trim() ?? "";
    const taken = await provide(asked, key);
    if (key === "") return;
    const [keep, once] = ["Keep It", taken ? "Only This Once" : "No"];
    const late = taken ? "" : "The agent has not waited for it. "; // it does for 25 s
    const pressed = await vscode.window.showInformationMessage(`${late}Keep the key for ${visible(service)} in the secret storage of VS Code? Then it is given to agents without asking.`, keep, once);
    if (pressed !== keep) return;
    await this.context.secrets.store(prefix + service, key);
    await this.context.globalState.update(index, [...new Set([...this.kept(), service])].sort());
  }

  private kept(): string[] {
    return this.context.globalState.get<string[]>(index, []);
  }

  private async drop(service: string): Promise<void> {
    await this.context.secrets.delete(prefix + service);
    await this.context.globalState.update(index, this.kept().filter((kept) => kept !== service));
  }
}

/** provide gives a key to the hub, and tells whether that still wanted it: another editor may have answered, or it was too late. */
async function provide({ project, request, service }: Asked, secret: string): Promise<boolean> {
  try {
    return (await project.connection.request("secret.provide", { request_id: request, service, secret })).success;
  } catch (error) {
    if (error instanceof ResponseError) return false;
    throw error;
  }
}
