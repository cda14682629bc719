// The page's requests to the extension (src/panel/protocol.ts): loads the pages of a session, and sends prompts.
import { limitLevels } from "../hub/depth";
import { sessionWithQueue } from "../hub/model";
import type { Draft, PanelMethod, PanelNotifications, PanelParams, PanelResult, PassedMethod } from "../panel/protocol";
import { ErrorCode, JSONRPCClient, JSONRPCServer, RPCError } from "../rpc/index";
import type { RPCTransport } from "../rpc/index";
import { keyOf } from "./conversation";
import type { Conversation } from "./conversation";
import { button, make } from "./dom";
import type { Entry } from "./entries";
import { stringOf } from "./json";
import { UnknownOutcome } from "./promptbox";
import type { SessionState } from "./session";
import type { Transcript } from "./transcript";

/** The time limits of requests, in milliseconds. 0: no limit, because a user or an agent answers. */
const timeouts: Partial<Record<PanelMethod | PassedMethod, number>> = {
  "panel.answer": 0,
  "panel.openLink": 0,
  "panel.command": 0,
  "panel.choose": 0,
  "session.set": 0,
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

type Events = PanelResult<"getConversation">["events"];

/** Items of a page. */
const pageSize = 150;

/** Items that two pages share, because an item may have moved meanwhile. */
const overlap = 10;

/** Items of one request in a search. Each may be long. */
const searched = 10;

/** The largest picture that is shown, in bytes. */
const longestPicture = 20 << 20;

/** Loads a session: the newest page first, older ones on request, and the states of its turns. */
export class Pages {
  private session = "";
  /** The number of older items that are not loaded. undefined: nothing is loaded yet. */
  private before: number | undefined;
  private loading: Promise<void> | undefined;
  private readonly pictures = new Map<string, Promise<string | undefined>>();

  constructor(
    private readonly host: Host,
    private readonly conversation: Conversation,
    private readonly transcript: Transcript,
    private readonly changed: () => void,
  ) {}

  /** Loads the newest page once, and refreshes the states after each reconnection. */
  async load(session: string): Promise<SessionState> {
    this.session = session;
    if (this.before === undefined) {
      // Queued prompts are the newest items, and are shown elsewhere.
      const [total, { queued }] = await Promise.all([this.total(), this.host.request("session.get", { session })]);
      const from = Math.max(0, total - pageSize - queued.length);
      this.conversation.load(await this.items(from, Number.POSITIVE_INFINITY));
      this.before = from;
      this.drawTop();
    }
    return this.refresh(session);
  }

  /** Requests the newest items, without showing them. */
  async newest(count: number): Promise<Events> {
    return this.items(Math.max(0, (await this.total()) - count), Number.POSITIVE_INFINITY);
  }

  get loaded(): boolean {
    return this.before !== undefined;
  }

  /** Requests the states of the turns, the questions and the queue. */
  async refresh(uuid: string): Promise<SessionState> {
    const known = this.conversation.questions;
    const [session, { approvals }] = await Promise.all([this.states(uuid), this.host.request("approval.list", {})]);
    this.conversation.loadQuestions(approvals, known);
    this.changed();
    return session;
  }

  /** Loads the next older page, if there is one. */
  older(): Promise<void> {
    if (this.before === undefined || this.before === 0) return Promise.resolve();
    return (this.loading ??= this.loadOlder().finally(() => (this.loading = undefined)));
  }

  /** Loads older pages until they have an item, by its id. Resolves with the key of its entry; undefined: it is not there, or cannot be loaded. */
  async find(id: number): Promise<string | undefined> {
    for (let to = await this.total(); to > 0; to -= pageSize) {
      const item = (await this.items(Math.max(0, to - pageSize), to)).find((one) => one.id === id);
      if (!item) continue;
      const key = keyOf(item);
      for (let before: number | undefined; !this.conversation.entry(key) && before !== this.before; ) {
        before = this.before;
        await this.older();
      }
      return this.conversation.entry(key) && key;
    }
    return undefined;
  }

  /** Loads all of an entry that an event cut. It searches from the end, because such an entry is new. */
  async whole({ key, turn, tool }: Entry): Promise<void> {
    const isOf = (item: Events[number]): boolean => (tool ? item.session_id === turn && (item.tool_id === tool.id || item.tool_result_for_id === tool.id) : item.key === key);
    for (let to = await this.total(); to > 0; to -= searched) {
      const items = await this.items(Math.max(0, to - searched), to + (tool ? 1 : 0)); // the result follows the call
      const found = items.filter(isOf);
      if (found.length === 0) continue;
      this.conversation.load(found);
      // The call itself may be the last item of the page before.
      if (!tool || found.some(({ tool_id }) => tool_id === tool.id)) return;
    }
    throw new Error("duet-rpc no longer has it");
  }

  /** The data URL of a picture. undefined: it is too large, or cannot be loaded. */
  picture(id: string, type: string): Promise<string | undefined> {
    let picture = this.pictures.get(id);
    if (!picture) this.pictures.set(id, (picture = this.bytes(id, type).catch(() => undefined)));
    return picture;
  }

  private async loadOlder(): Promise<void> {
    const to = this.before!;
    const from = Math.max(0, to - pageSize);
    this.transcript.setOlder(make("p", { class: "note", text: "Loading…" }));
    try {
      this.conversation.load(await this.items(from, to + overlap), true);
      this.before = from;
      this.drawTop();
      this.changed();
    } catch (error) {
      this.transcript.setOlder(make("p", { class: "failure", text: `Older messages could not be loaded: ${(error as Error).message}` }), button({ class: "text-button", label: "Try again", press: () => void this.older() }));
    }
  }

  private drawTop(): void {
    this.transcript.setOlder(...(this.before === 0 ? [] : [button({ class: "text-button", label: `Show older messages (${this.before})`, press: () => void this.older() })]));
  }

  private async total(): Promise<number> {
    return (await this.host.request("getConversation", { session_id: this.session, limit: 1 })).total;
  }

  /** items requests the items from one offset to another, in as many requests as it takes. */
  private async items(from: number, to: number): Promise<Events> {
    const items: Events = [];
    for (let offset: number | undefined = from; offset !== undefined && offset < to; ) {
      const page: PanelResult<"getConversation"> = await this.host.request("getConversation", { session_id: this.session, offset, limit: Math.min(pageSize + overlap, to - offset) });
      items.push(...page.events);
      offset = page.events.length === 0 ? undefined : page.next_offset;
    }
    return items;
  }

  /** states requests the last turn and, if it is queued, the other queued ones and the turn before them. */
  private async states(uuid: string): Promise<SessionState> {
    const { session, queued, ahead } = await sessionWithQueue((method, params) => this.host.request(method as PassedMethod, params as never), uuid);
    if (ahead) this.conversation.loadTurn(ahead);
    for (const { turn_uuid } of queued) this.conversation.loadTurn({ turn_uuid, state: "queued" });
    this.conversation.turns.setEditable(queued);
    this.conversation.loadTurn(session);
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

/** The delivery of a prompt: into the current turn, into the queue, or as a new turn. */
export type Delivered = "injected" | "queued" | "started";

/**
 * Sends a prompt, and resolves with its delivery when the hub has it. With now, a working agent gets it
 * in the middle of its turn, if the agent supports that. Rejects if the hub does not have the prompt, and
 * with an UnknownOutcome if that cannot be determined.
 */
export async function sendPrompt(host: Host, conversation: Conversation, pages: Pages, session: string, { text, content }: Draft, now = false): Promise<{ delivered?: Delivered; beside?: string[] }> {
  const turns = new Set(conversation.turns.ids);
  const messages = new Set(conversation.entries.map(({ key }) => key));
  try {
    const { turn_uuid, delivered, beside } = await host.request("session.prompt", { session, prompt: text, ...(content.length > 0 ? { content } : {}), ...(now ? { deliver: "steer" } : {}) });
    if (delivered !== "injected") conversation.loadTurn({ turn_uuid, state: conversation.turns.state(turn_uuid) ?? "queued" });
    return { delivered: delivered as Delivered, ...(beside && { beside }) };
  } catch (error) {
    // A hub stores a prompt before it runs it, so the next hub knows it.
    if (!(error instanceof RPCError && error.code === ErrorCode.HubLost && pages.loaded)) throw error;
    // A prompt that was injected into a turn is a new message in a known turn.
    if (!(await arrived(pages, looked + conversation.turns.queued.length, text, (turn, key) => turns.has(turn) && (!now || messages.has(key))))) throw error;
    return {};
  }
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
    return items.some((item) => item.event_type === "message" && item.role === "user" && item.content?.trim() === text.trim() && !known(stringOf(item.session_id) ?? "", item.key ?? ""));
  } catch (error) {
    throw new UnknownOutcome(`It is not known whether it was sent: ${(error as Error).message}. Look for it in the session before you send it again.`);
  }
}
