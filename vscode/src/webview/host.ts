// The page's requests to the extension (src/panel/protocol.ts): loads the pages of a session, and sends prompts.
import { limitLevels } from "../hub/depth";
import { sessionWithQueue } from "../hub/model";
import type { Draft, ItemKey, KeptPrompt, PanelMethod, PanelNotifications, PanelParams, PanelResult, PassedMethod, PromptContent } from "../panel/protocol";
import type { Delivery, SessionItem } from "../protocol";
import { ErrorCode, JSONRPCClient, JSONRPCServer, RPCError } from "../rpc/index";
import type { RPCTransport } from "../rpc/index";
import { keyOf } from "./contents";
import type { Contents } from "./contents";
import { button, make } from "./dom";
import type { Entry } from "./entries";
import { stringOf } from "./json";
import type { Data } from "./json";
import { UnknownOutcome } from "./promptbox";
import type { SessionState } from "./session";
import type { Transcript } from "./transcript";

/** The time limits of requests, in milliseconds. 0: no limit, because a user or an agent answers. */
const timeouts: Partial<Record<PanelMethod | PassedMethod, number>> = {
  "panel.openAddress": 0,
  "panel.openLink": 0,
  "panel.command": 0,
  "panel.runCode": 0,
  "panel.choose": 0,
  "session.set": 0,
  "approval.decide": 0, // a browser sends it once it has a connection
};
const timeout = 60_000;

/** The connection to the extension. */
export class Host {
  private readonly client: JSONRPCClient;
  private readonly server: JSONRPCServer;

  constructor(transport: RPCTransport) {
    this.client = new JSONRPCClient(transport, { timeout });
    this.server = new JSONRPCServer(transport);
  }

  /** Rejects with an RPCError, or an RPCTimeoutError. */
  request<M extends PanelMethod | PassedMethod>(method: M, params: PanelParams<M>): Promise<PanelResult<M>> {
    return this.client.request<PanelResult<M>>(method, params as unknown as Record<string, unknown>, { timeout: timeouts[method] ?? timeout }).then(limitLevels);
  }

  on<N extends keyof PanelNotifications>(name: N, handler: (params: PanelNotifications[N]) => void): void {
    this.server.onNotify(name, (params) => handler(limitLevels(params) as unknown as PanelNotifications[N]));
  }
}

/** Items of a page. */
const pageSize = 150;

/** The most items of one request. */
const mostItems = 1_000;

/** The largest picture that is shown, in bytes. */
const longestPicture = 20 << 20;

/** Loads a session: the newest page first, older ones on request, and the states of its turns. */
export class Pages {
  private session = "";
  private hasLoaded = false;
  /** The id of the item before which others are not loaded. undefined: there are none. */
  private before: number | undefined;
  private loading: Promise<void> | undefined;
  private readonly pictures = new Map<string, Promise<string | undefined>>();

  constructor(
    private readonly host: Host,
    private readonly contents: Contents,
    private readonly transcript: Transcript,
    private readonly changed: () => void,
  ) {}

  /** Loads the newest page once, and refreshes the states after each reconnection. */
  async load(session: string): Promise<SessionState> {
    this.session = session;
    if (!this.hasLoaded) {
      // Queued prompts are the newest items, and are shown elsewhere.
      const { queued } = await this.host.request("session.get", { session });
      const { items, before } = await this.items(pageSize + queued.length);
      this.contents.load(items);
      this.hasLoaded = true;
      this.before = before;
      this.drawTop();
    }
    const state = await this.refresh(session);
    void this.explainEnds();
    return state;
  }

  /** Requests the newest items, without showing them. */
  async newest(count: number): Promise<SessionItem[]> {
    return (await this.items(count)).items;
  }

  get loaded(): boolean {
    return this.hasLoaded;
  }

  /** Requests the states of the turns, the questions and the queue. */
  async refresh(uuid: string): Promise<SessionState> {
    const known = this.contents.questions;
    const [session, { approvals }] = await Promise.all([this.states(uuid), this.host.request("approval.list", {})]);
    this.contents.loadQuestions(approvals, known);
    this.contents.explainEnd(session);
    this.changed();
    return session;
  }

  /** Loads the next older page, if there is one. */
  older(): Promise<void> {
    if (this.before === undefined) return Promise.resolve();
    return (this.loading ??= this.loadOlder().finally(() => (this.loading = undefined)));
  }

  /** Loads older pages until they have an item. Resolves with the key of its entry; undefined: it is not there, or cannot be loaded. */
  find(item: ItemKey): Promise<string | undefined> {
    return this.reach(keyOf(item));
  }

  /** Loads older pages until they have an entry. Resolves with its key; undefined: it is not there, or cannot be loaded. */
  async reach(key: string): Promise<string | undefined> {
    for (let before: number | undefined; !this.contents.entry(key) && before !== this.before; ) {
      before = this.before;
      await this.older();
    }
    return this.contents.entry(key) && key;
  }

  /** Loads all of an entry that an event cut. */
  async whole({ key, turn, tool }: Entry): Promise<void> {
    const { items } = await this.host.request("session.items", { turn, key: tool?.id ?? key });
    if (items.length === 0) throw new Error("duet-rpc no longer has it");
    this.contents.load(items);
  }

  /** The data URL of a picture. undefined: it is too large, or cannot be loaded. */
  picture(id: string, type: string): Promise<string | undefined> {
    let picture = this.pictures.get(id);
    if (!picture) this.pictures.set(id, (picture = this.bytes(id, type).catch(() => undefined)));
    return picture;
  }

  private async loadOlder(): Promise<void> {
    this.transcript.setOlder(make("p", { class: "note", text: "Loading…" }));
    try {
      const { items, before } = await this.items(pageSize, this.before);
      this.contents.load(items, true);
      this.before = before;
      this.drawTop();
      this.changed();
      void this.explainEnds();
    } catch (error) {
      this.transcript.setOlder(make("p", { class: "failure", text: `Older messages could not be loaded: ${(error as Error).message}` }), button({ class: "text-button", label: "Try again", press: () => void this.older() }));
    }
  }

  /** explainEnds requests why turns ended badly, one after the other. */
  private async explainEnds(): Promise<void> {
    for (const turn of this.contents.takeUnexplained()) {
      // A fork also shows turns of another session, which its panel may not request.
      const end = await this.host.request("turn.get", { turn }).catch(() => undefined);
      if (!end) continue;
      this.contents.explainEnd(end.turn);
      this.changed();
    }
  }

  private drawTop(): void {
    this.transcript.setOlder(...(this.before === undefined ? [] : [button({ class: "text-button", label: "Show older messages", press: () => void this.older() })]));
  }

  /** items requests a number of items before the one with an id, or the newest ones, in as many requests as it takes. */
  private async items(count: number, before?: number): Promise<{ items: SessionItem[]; before: number | undefined }> {
    let items: SessionItem[] = [];
    do {
      const page: PanelResult<"session.items"> = await this.host.request("session.items", { session: this.session, limit: Math.min(mostItems, count - items.length), ...(before !== undefined && { before }) });
      items = [...page.items, ...items];
      before = page.next_before;
    } while (before !== undefined && items.length < count);
    return { items, before };
  }

  /** states requests the last turn and, if it is queued, the other queued ones and the turn before them. */
  private async states(uuid: string): Promise<SessionState> {
    const { session, queued, ahead } = await sessionWithQueue((method, params) => this.host.request(method as PassedMethod, params as never), uuid);
    if (ahead) this.contents.loadTurn(ahead);
    for (const { turn_uuid } of queued) this.contents.loadTurn({ turn_uuid, state: "queued" });
    this.contents.turns.setEditable(queued);
    this.contents.loadTurn(session);
    return session;
  }

  private async bytes(id: string, type: string): Promise<string | undefined> {
    const parts: string[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const part: PanelResult<"attachment.get"> = await this.host.request("attachment.get", { id, offset });
      if (part.size > longestPicture) return undefined;
      parts.push(part.data);
      offset = part.next_offset;
    }
    // Each part is base64 on its own, so parts cannot be joined as text.
    const whole = parts.length === 1 ? parts[0]! : btoa(parts.map((part) => atob(part)).join(""));
    return `data:${type};base64,${whole}`;
  }
}

/** How many of the newest items, apart from the queue, are searched for a sent prompt. The agent may have begun to answer it. */
const looked = 50;

/** What became of a prompt. */
type Delivered = Delivery | KeptPrompt["delivered"];

/**
 * Sends a prompt, and resolves with its delivery when the daemon has it. With now, a working agent gets it
 * in the middle of its turn, if the agent supports that. Rejects if the daemon does not have the prompt, and
 * with an UnknownOutcome if that cannot be determined.
 */
export async function sendPrompt(host: Host, contents: Contents, pages: Pages, session: string, { text, content }: Draft, now = false): Promise<{ delivered?: Delivered; beside?: string[] }> {
  const turns = new Set(contents.turns.ids);
  const messages = new Set(contents.entries.map(({ key }) => key));
  try {
    const sent = await host.request("session.prompt", { session, prompt: text, ...(content.length > 0 ? { content } : {}), ...(now ? { deliver: "steer" } : {}) });
    if (sent.delivered === "kept") return { delivered: sent.delivered };
    const { turn_uuid, delivered, beside } = sent;
    if (delivered !== "injected") contents.loadTurn({ turn_uuid, state: contents.turns.state(turn_uuid) ?? "queued" });
    return { delivered, ...(beside && { beside }) };
  } catch (error) {
    // A daemon stores a prompt before it runs it, so the next daemon knows it.
    if (!(error instanceof RPCError && error.code === ErrorCode.HubLost && pages.loaded)) throw error;
    // A prompt that was injected into a turn is a new message in a known turn.
    if (!(await arrived(pages, looked + contents.turns.queued.length, text, (turn, key) => turns.has(turn) && (!now || messages.has(key))))) throw error;
    return {};
  }
}

/** The content of a sent prompt, to send it again. Rejects if the daemon does not have all of it. */
export async function contentAgain(attached: readonly Data[], pages: Pages): Promise<PromptContent[]> {
  return Promise.all(attached.map(async (attachment): Promise<PromptContent> => {
    const [type, id, uri, mimeType] = ["type", "attachment_id", "uri", "mime_type"].map((name) => stringOf(attachment[name]));
    const name = stringOf(attachment["name"]);
    if (type === "resource_link" && uri !== undefined) return { type, uri, name: name ?? uri, ...(mimeType !== undefined && { mimeType }) };
    const data = id === undefined ? undefined : (await pages.picture(id, mimeType ?? ""))?.replace(/^[^,]*,/, "");
    if (data === undefined) throw new Error(`its attachment ${name ?? uri ?? type ?? ""} is not there any more`);
    if (type === "image" || type === "audio") return { type, data, mimeType: mimeType ?? "" };
    const text = new TextDecoder().decode(Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0)));
    return { type: "resource", resource: { uri: uri ?? "", text, ...(mimeType !== undefined && { mimeType }) } };
  }));
}

/** A note about turns of other sessions that work in the same directory, from their numbers. Empty: none. */
export function besideWords(turns: readonly string[] = []): string {
  return turns.length === 0 ? "" : `${turns.join(", ")} ${turns.length === 1 ? "works" : "work"} in this directory, too, and may change the same files.`;
}

/** The note for the user after a prompt was sent. Empty: none. */
export function deliveredWords(delivered: Delivered | undefined, { now, working, content }: { now: boolean; working: boolean; content: boolean }): string {
  switch (delivered) {
    case "injected":
      return "Sent: the agent has it.";
    case "kept":
      return "Kept: it is sent once there is a connection.";
    case "queued":
      if (!working) return "";
      return `Queued: it runs when this turn has ended${!now ? "" : content ? " (files wait for that)" : " (the agent cannot take it now)"}.`;
    default:
      return now ? "Sent." : "";
  }
}

/** arrived reports whether a message that was not known before has this text. It reads the newest items only. */
async function arrived(pages: Pages, looked: number, text: string, known: (turn: string, key: string) => boolean): Promise<boolean> {
  try {
    const items = await pages.newest(looked);
    return items.some((item) => item.type === "message" && item.role === "user" && item.text?.trim() === text.trim() && !known(item.turn_uuid, item.key));
  } catch (error) {
    throw new UnknownOutcome(`It is not known whether it was sent: ${(error as Error).message}. Look for it in the session before you send it again.`);
  }
}
