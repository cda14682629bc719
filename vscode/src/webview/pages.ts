// Loads a conversation: its newest page first, older ones when they are wanted, and what else is to be known of it.
import type { PanelResult } from "../panel/protocol";
import type { Conversation } from "./conversation";
import { button, make } from "./dom";
import type { Entry } from "./entry";
import type { Host } from "./host";
import type { SessionState } from "./session";
import type { Transcript } from "./transcript";

type Events = PanelResult<"getConversation">["events"];

/** Items of a page. */
const pageSize = 150;

/** Items that are asked for twice, since one may have got another place meanwhile. */
const overlap = 10;

/** Items that are asked for at once when one is looked for: each may be long. */
const searched = 10;

/** The longest picture that is shown, in bytes. */
const longestPicture = 20 << 20;

export class Pages {
  private thread = "";
  /** How many items are older than those that are there; undefined: none is there yet. */
  private before: number | undefined;
  private loading: Promise<void> | undefined;
  private readonly pictures = new Map<string, Promise<string | undefined>>();

  constructor(
    private readonly host: Host,
    private readonly conversation: Conversation,
    private readonly transcript: Transcript,
    private readonly changed: () => void,
  ) {}

  /** Loads the newest page, unless it is there, and what a reconnection may have changed. */
  async load(thread: string): Promise<SessionState> {
    this.thread = thread;
    if (this.before === undefined) {
      const from = Math.max(0, (await this.total()) - pageSize);
      this.conversation.load(await this.items(from, Number.POSITIVE_INFINITY));
      this.before = from;
      this.drawTop();
    }
    return this.refresh(thread);
  }

  /** The newest items, as the hub has them; nothing is shown of them. */
  async newest(count: number): Promise<Events> {
    return this.items(Math.max(0, (await this.total()) - count), Number.POSITIVE_INFINITY);
  }

  get loaded(): boolean {
    return this.before !== undefined;
  }

  /** Asks for the state of the sessions, and for the questions. */
  async refresh(thread: string): Promise<SessionState> {
    const known = this.conversation.questions;
    const [session, { approvals }] = await Promise.all([this.states(thread), this.host.request("fetchApprovals", {})]);
    this.conversation.loadQuestions(approvals, known);
    await this.queue(thread);
    this.changed();
    return session;
  }

  /** Loads the page before those that are there, if there is one. */
  older(): Promise<void> {
    if (this.before === undefined || this.before === 0) return Promise.resolve();
    return (this.loading ??= this.loadOlder().finally(() => (this.loading = undefined)));
  }

  /** Loads all of an entry of which an event told a part. It is looked for from the end: what events tell is new. */
  async whole({ key, run, tool }: Entry): Promise<void> {
    const isOf = (item: Events[number]): boolean => (tool ? item.session_id === run && (item.tool_id === tool.id || item.tool_result_for_id === tool.id) : item.key === key);
    for (let to = await this.total(); to > 0; to -= searched) {
      const items = await this.items(Math.max(0, to - searched), to + (tool ? 1 : 0)); // its result is behind a call
      const found = items.filter(isOf);
      if (found.length === 0) continue;
      this.conversation.load(found);
      // A call may be the last item of the pages before.
      if (!tool || found.some(({ tool_id }) => tool_id === tool.id)) return;
    }
    throw new Error("duet-rpc does not have it any more");
  }

  /** The address of a picture's bytes; undefined: they are too many, or not there. */
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
    return (await this.host.request("getConversation", { session_id: this.thread, limit: 1 })).total;
  }

  /** items has those from one number on and before another: as many answers as it takes. */
  private async items(from: number, to: number): Promise<Events> {
    const items: Events = [];
    for (let offset: number | undefined = from; offset !== undefined && offset < to; ) {
      const page: PanelResult<"getConversation"> = await this.host.request("getConversation", { session_id: this.thread, offset, limit: Math.min(pageSize + overlap, to - offset) });
      items.push(...page.events);
      offset = page.events.length === 0 ? undefined : page.next_offset;
    }
    return items;
  }

  /** states asks for the last session, and, while those are queued, for the ones before. */
  private async states(thread: string): Promise<SessionState> {
    const { session: last } = await this.host.request("getSessionState", { session_id: thread });
    const all = [last];
    for (let session = last; session.state === "queued" && session.parent_session_id && all.length < 50; ) {
      ({ session } = await this.host.request("getSessionState", { session_id: session.parent_session_id }));
      all.push(session);
    }
    for (const session of all.reverse()) this.conversation.loadSession(session);
    return last;
  }

  /** queue asks which queued prompts can be edited, unless that is known of all. */
  private async queue(thread: string): Promise<void> {
    const { runs } = this.conversation;
    if (runs.queued.every((run) => runs.isEditable(run) !== undefined)) return;
    try {
      const { queued } = await this.host.request("session.queue", { session_id: thread });
      runs.setEditable(queued);
    } catch {
      // The prompts can still be taken back, and the next refresh asks again.
    }
  }

  private async bytes(id: string, type: string): Promise<string | undefined> {
    const parts: string[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const part: PanelResult<"getAttachment"> = await this.host.request("getAttachment", { id, offset });
      if (part.size > longestPicture) return undefined;
      parts.push(part.data);
      offset = part.next_offset;
    }
    // Each part is base64 of its own, and may end in the middle of three bytes.
    const whole = parts.length === 1 ? parts[0]! : btoa(parts.map((part) => atob(part)).join(""));
    return `data:${type};base64,${whole}`;
  }
}
