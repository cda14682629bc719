// The panel of a session in a browser: its connection to the project, and what the panel asks of its home.
import { Bridge } from "../panel/bridge";
import type { PanelHandlers } from "../panel/bridge";
import type { Choices, ItemKey, NewSession, PanelCommand, PromptContent } from "../panel/protocol";
import type { Turn } from "../protocol";
import { portTransport } from "../rpc/index";
import { ErrorCode, RPCError } from "../rpc/messages";
import { contentOf } from "../webview/attachments";
import { make } from "../webview/dom";
import { besideWords, Host } from "../webview/host";
import { Panel } from "../webview/panel";
import type { App, Screen } from "./app";
import { askText, openAddress } from "./dialogs";
import type { ProjectHub } from "./hub";
import { KeptInBrowser, keepReasons } from "./kept";

/** The most turns of one request of turn.list. Older ones do not count in the totals. */
const mostTurns = 1_000;

export interface SessionOptions {
  hub: ProjectHub;
  /** The uuid of the session, also of one that the first prompt starts. */
  session: string;
  /** The first prompt starts the session. */
  isNew?: boolean;
  /** The question to show first. */
  approval?: string;
  /** Called when the first prompt has started the session, or waits for a connection. */
  onSent?: (started: boolean) => void;
}

/** The conversation of a session, or the prompt that begins one. */
export class SessionScreen implements Screen {
  readonly element = make("div", { class: "panel" });
  private panel: Panel | undefined;
  private bridge: Bridge | undefined;
  private kept: KeptInBrowser | undefined;
  private chosen: Choices = { folder: "" };
  /** The id of the start of this session: a resend starts nothing twice. */
  private startId = crypto.randomUUID();

  constructor(
    private readonly app: App,
    private readonly options: SessionOptions,
  ) {
    this.chosen.agent = app.store.get(this.agentKey) ?? "";
    keepReasons(this.element, app.store, () => options.hub.project.id);
    this.load();
  }

  get session(): string {
    return this.options.session;
  }

  /** Inserts a prompt that the user took back. */
  insert(text: string): void {
    this.bridge?.post("panel.insert", { text });
  }

  showQuestion(id: string): void {
    this.bridge?.post("panel.showQuestion", { id });
  }

  showItem(item: ItemKey): void {
    this.bridge?.post("panel.showItem", item);
  }

  dispose(): void {
    this.panel?.dispose();
    this.bridge?.dispose();
    this.panel = this.bridge = undefined;
  }

  private get agentKey(): string {
    return `agent ${this.options.hub.project.id}`;
  }

  private load(): void {
    this.dispose();
    const { hub, session, approval, isNew } = this.options;
    const { port1, port2 } = new MessageChannel();
    this.bridge = new Bridge({
      webview: {
        postMessage: (message) => (port2.postMessage(message), Promise.resolve(true)),
        onDidReceiveMessage: (listener) => {
          port2.onmessage = ({ data }) => listener(data);
          return { dispose: () => port2.close() };
        },
      },
      hub, session, client: this.app.device.name, handlers: this.handlers(), isNew: () => Promise.resolve(isNew === true),
      onLost: () => this.load(), onError: (error) => console.error(error),
    });
    // The draft of a new session stays when the user chooses another project for it.
    this.kept = isNew ? new KeptInBrowser(this.app.store, "", "new") : new KeptInBrowser(this.app.store, hub.project.id, session);
    this.panel = new Panel(this.element, new Host(portTransport(port1)), this.kept);
    this.element.querySelector(".prompt-box textarea")?.setAttribute("enterkeyhint", "enter");
    if (approval !== undefined) this.showQuestion(approval);
    void this.panel.open();
  }

  private handlers(): PanelHandlers {
    const { app } = this;
    const { hub, session } = this.options;
    const here = (what: string): never => {
      throw new RPCError(ErrorCode.InvalidParams, what);
    };
    const noFiles = (): never => here("files open in an editor, where the project is: this page has none");
    return {
      "panel.start": async () => ({
        title: this.options.isNew ? "New session" : app.titleOf(hub.project.id, session), draft: { text: "", content: [] }, history: [],
        ...(hub.host !== "" && { where: hub.project.name }), ...(this.options.isNew && { newSession: await this.newSession() }),
      }),
      "panel.choose": async (choices) => {
        if (choices.agent !== undefined) {
          this.chosen = { folder: "", ...(this.chosen.worktree && { worktree: this.chosen.worktree }) };
          app.store.set(this.agentKey, choices.agent || undefined);
        }
        this.chosen = { ...this.chosen, ...choices, options: { ...this.chosen.options, ...choices.options } };
        return this.newSession();
      },
      "panel.launch": ({ prompt, content }) => this.launch(prompt, content),
      "panel.keepDraft": () => null, // KeptInBrowser has it
      "panel.findFiles": () => ({ files: [] }),
      "panel.readFiles": noFiles,
      "panel.readSource": () => here("this page has no editor and no terminal to read from"),
      "panel.pickContext": () => pickImages(),
      "panel.context": () => null,
      "panel.readContext": () => ({ content: [] }),
      "panel.openFile": noFiles,
      "panel.openLink": async ({ url }) => {
        await openAddress(url);
        return null;
      },
      "panel.openDiff": noFiles,
      "panel.openPatch": noFiles,
      "panel.openChanges": () => {
        app.go({ screen: "changes", project: hub.project.id, session });
        return null;
      },
      "panel.openAddress": async ({ approval }) => {
        const { url, url_warnings } = (await hub.request("approval.get", { approval: await this.bridge!.scope.checkApproval(approval) })).approval;
        return { opened: url !== undefined && (await openAddress(url, url_warnings)) };
      },
      "panel.editInput": noFiles,
      "panel.command": async ({ command }) => {
        await this.run(command);
        return null;
      },
      "panel.totals": async () => {
        const { turns } = await hub.request("turn.list", { session, limit: mostTurns });
        const ended = turns.filter(({ ended_at }) => ended_at);
        const sum = (of: (turn: Turn) => number | undefined): number => ended.reduce((total, turn) => total + (of(turn) ?? 0), 0);
        return {
          turns: ended.length, last: ended[0]?.turn_uuid ?? "", cost: sum(({ cost_usd }) => cost_usd), time: sum(({ duration_ms }) => duration_ms),
          tokens: sum(({ input_tokens, output_tokens }) => (input_tokens ?? 0) + (output_tokens ?? 0)),
        };
      },
      "panel.insertCode": noFiles,
      "panel.runCode": () => here("this page has no terminal: copy the code"),
    };
  }

  private async run(command: PanelCommand): Promise<void> {
    const { hub, session } = this.options;
    switch (command) {
      case "duet.rename": {
        const title = await askText("Title of the session", this.app.titleOf(hub.project.id, session), "Rename");
        if (title !== undefined) await hub.request("session.rename", { session, title });
        return this.app.refreshSessions();
      }
      case "duet.archive":
        await hub.request("session.archive", { sessions: [session] });
        return this.app.refreshSessions();
      case "duet.showChanges":
        return this.app.go({ screen: "changes", project: hub.project.id, session });
      default:
        throw new RPCError(ErrorCode.InvalidParams, "this page cannot do that: use an editor or the shell, where the project is");
    }
  }

  /** newSession returns the choices for a new session. Without a connection, the prompt can be written nevertheless. */
  private async newSession(): Promise<NewSession> {
    const { hub } = this.options;
    const about = `Your first prompt starts a session in ${hub.project.name}${this.chosen.worktree === "yes" ? ", in its own git worktree" : ""}.`;
    const none: NewSession = { about, folders: [], agents: [], oneAgent: true, worktrees: true, chosen: this.chosen };
    if (!hub.answers) return none;
    const available = (await hub.request("agent.list", {})).agents.filter((agent) => agent.available);
    const agents = available.map(({ name, title, version }) => ({ name, title: title || name, description: version ?? "" }));
    const agent = agents.some(({ name }) => name === this.chosen.agent) ? this.chosen.agent! : (agents[0]?.name ?? "");
    const description = agent === "" ? undefined : await hub.request("agent.describe", { agent }).catch(() => undefined);
    return { ...none, agents, onlyDemo: available.every(({ name }) => name === "demo"), ...(description && { description: { agent: description.agent, modes: description.modes, ...(description.agent_session && { agent_session: description.agent_session }) } }), chosen: { ...this.chosen, agent } };
  }

  private async launch(prompt: string, content?: PromptContent[]): Promise<{ beside: string[] }> {
    const { hub, session, onSent } = this.options;
    const { agent, mode, model, options, worktree } = (await this.newSession()).chosen;
    const set = Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== ""));
    let started;
    try {
      started = await this.app.outbox.start(hub.project.id, {
        prompt, session_uuid: session, ...(content && { content }), ...(agent && { agent }), ...(mode && { mode }), ...(model && { model }),
        ...(Object.keys(set).length > 0 && { options: set }), ...(worktree && { worktree: worktree === "yes" }),
      }, this.startId);
    } catch (error) {
      this.startId = crypto.randomUUID(); // the user may change the prompt
      throw error;
    }
    this.kept?.keep({ text: "", content: [] });
    if (started.delivered !== "kept") this.app.say(besideWords(started.beside));
    onSent?.(started.delivered !== "kept");
    return { beside: [] };
  }
}

/** pickImages lets the user choose or take pictures. */
function pickImages(): Promise<{ content: PromptContent[]; refused: string[] }> {
  return new Promise((resolve, reject) => {
    const input = make("input", { is: { type: "file", accept: "image/png,image/jpeg,image/gif,image/webp", multiple: "" } });
    input.addEventListener("change", () => void contentOf([...(input.files ?? [])], []).then(resolve, reject));
    input.addEventListener("cancel", () => resolve({ content: [], refused: [] }));
    input.click();
  });
}

