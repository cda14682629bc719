// The sessions and questions of a project, as the hub has them. An event says that one has changed; a request gets its
// current state.
import type { Method, Params, QueuedPrompt, Result, Session as SessionView } from "../protocol";
import type { HubConnection } from "./connection";
import { Emitter, sessionOf } from "./events";
import type { EventParams } from "./events";

/** The last session of a conversation, a result of getSessionLeaves. */
export type Session = SessionView & {
  /** The conversation waits for the user, whatever the last session does. */
  waits?: boolean;
  /** The working session that this one is queued behind. */
  ahead?: Pick<Session, "id" | "status" | "state">;
};

/** An open question, a result of approval.list. */
export type Question = Result<"approval.list">["approvals"][number];

/** Whether a session's agent works, or waits for the user. */
function isWorking({ status, state }: Session): boolean {
  return state !== "queued" && ["starting", "running", "interrupting", "waiting_input"].includes(status);
}

/** The lists of a project. They are empty until its hub is ready, and keep their items while it restarts. */
export class ProjectModel {
  private readonly changeEmitter = new Emitter<undefined>();
  private readonly questionEmitter = new Emitter<Question[]>();
  private readonly byThread = new Map<string, Session>();
  /** The working session of each conversation, by thread. */
  private readonly ahead = new Map<string, Session>();
  private waiting: Question[] = [];
  private readonly changedSessions = new Set<string>();
  private questionsChanged = false;
  private everythingChanged = false;
  private refreshing: Promise<void> | undefined;
  private readonly seen = new Set<string>();
  private readonly stopListening: Array<() => void>;

  /** The lists, or the state of the connection, have changed. */
  readonly onChange = this.changeEmitter.on;
  /** New questions have come. */
  readonly onQuestions = this.questionEmitter.on;

  constructor(
    readonly connection: HubConnection,
    /** The most conversations in the list. */
    private readonly limit = 300,
    private readonly onError: (error: unknown) => void = () => {},
  ) {
    this.stopListening = [
      connection.onState((state) => {
        if (state.is === "ready") {
          this.everythingChanged = true;
          this.refresh();
        }
        this.changeEmitter.fire(undefined);
      }),
      connection.onEvent((params) => this.take(params)),
    ];
  }

  /** The last session of each conversation, the most recently active first. */
  get sessions(): Session[] {
    const asked = new Set(this.waiting.map(({ session_uuid }) => session_uuid));
    const all = [...this.byThread.values()].map((session): Session => {
      const ahead = session.state === "queued" ? this.ahead.get(session.thread_id) : undefined;
      return { ...session, ...(asked.has(session.thread_id) && { waits: true }), ...(ahead && { ahead }) };
    });
    return all.sort((a, b) => (a.last_activity_at < b.last_activity_at ? 1 : -1));
  }

  /** The questions, the oldest first. */
  get questions(): readonly Question[] {
    return this.waiting;
  }

  /** The session with an id, if it is the last one of its conversation. */
  session(id: string): Session | undefined {
    return this.sessions.find((session) => session.id === id);
  }

  /** The conversation of a question, by its last session. The question may belong to an earlier session. */
  conversationOf(question: Pick<Question, "session_uuid">): Session | undefined {
    return this.sessions.find(({ thread_id }) => thread_id === question.session_uuid);
  }

  /** Adds a session to the list, possibly before its event comes. */
  add(session: Session): void {
    const known = this.byThread.get(session.thread_id);
    this.noteAhead(session);
    if (session.status === "discarded" || (known && known.id !== session.id && known.created_at > session.created_at)) return;
    if (known && known.id !== session.id) this.noteAhead(known);
    this.byThread.set(session.thread_id, session);
    this.changeEmitter.fire(undefined);
  }

  /** noteAhead keeps a working session, for one that may be queued behind it. */
  private noteAhead(session: Session): void {
    if (isWorking(session)) this.ahead.set(session.thread_id, session);
    else if (this.ahead.get(session.thread_id)?.id === session.id) this.ahead.delete(session.thread_id);
  }

  dispose(): void {
    for (const stop of this.stopListening) stop();
    this.changeEmitter.clear();
    this.questionEmitter.clear();
  }

  private take({ event }: EventParams): void {
    switch (event.type) {
      case "conversation_updated":
        if (event.data.subtype !== "worktree") return; // others do not change the lists
        this.everythingChanged = true; // forks share the worktree
        break;
      case "new_approval":
      case "approval_resolved":
        this.questionsChanged = true;
        break;
      case "session_deleted":
        this.everythingChanged = true;
        break;
      case "queue_changed":
        if (event.data.content === undefined) this.everythingChanged = true; // another session may be the last one
        break;
      case "session_status_changed":
        // A question is closed without an event of its own when its session ends.
        this.questionsChanged = true;
        break;
    }
    const session = sessionOf(event);
    if (session) this.changedSessions.add(session);
    this.refresh();
  }

  /** refresh requests the changed sessions and questions. Changes meanwhile cause another round. */
  private refresh(): void {
    this.refreshing ??= this.catchUp().finally(() => (this.refreshing = undefined));
  }

  private async catchUp(): Promise<void> {
    while (this.everythingChanged || this.questionsChanged || this.changedSessions.size > 0) {
      if (this.connection.state.is !== "ready") return; // then everything is requested
      const [everything, questions, sessions] = [this.everythingChanged, this.questionsChanged, [...this.changedSessions]];
      this.everythingChanged = this.questionsChanged = false;
      this.changedSessions.clear();
      try {
        if (everything) await this.askForSessions();
        else await Promise.all(sessions.map((id) => this.askForSession(id)));
        if (everything || questions) await this.askForQuestions();
      } catch (error) {
        this.onError(error);
      }
      this.changeEmitter.fire(undefined);
    }
  }

  private async askForSessions(): Promise<void> {
    const { sessions } = await this.connection.request("getSessionLeaves", { limit: this.limit });
    this.byThread.clear();
    this.ahead.clear();
    for (const session of sessions) {
      this.byThread.set(session.thread_id, session);
      this.noteAhead(session);
    }
    await Promise.all(sessions.filter(({ state }) => state === "queued").map((session) => this.askForAhead(session)));
  }

  /** askForAhead finds the working session that others are queued behind. */
  private async askForAhead(session: Session): Promise<void> {
    const { ahead } = await queueOf((method, params) => this.connection.request(method, params), session);
    if (ahead) this.noteAhead(ahead);
  }

  private async askForSession(id: string): Promise<void> {
    let session: Session;
    try {
      ({ session } = await this.connection.request("getSessionState", { session_id: id }));
    } catch (error) {
      // The session may have been deleted. Its event follows.
      this.onError(error);
      return;
    }
    const known = this.byThread.get(session.thread_id);
    this.add(session);
    if (!known || known.id === session.id || session.status === "discarded") return;
    // Queued prompts may have been moved, so the newest is not always the last.
    const { session: last } = await this.connection.request("getSessionState", { session_id: session.thread_id });
    this.byThread.set(last.thread_id, last);
  }

  private async askForQuestions(): Promise<void> {
    const fetched = await this.connection.request("approval.list", {});
    const approvals = await wholeQuestions((method, params) => this.connection.request(method, params), fetched.approvals);
    this.waiting = approvals;
    const fresh = approvals.filter((question) => !this.seen.has(question.approval));
    for (const question of fresh) this.seen.add(question.approval);
    if (fresh.length > 0) this.questionEmitter.fire(fresh);
  }
}

type Request = <M extends Method>(method: M, params: Params<M>) => Promise<Result<M>>;

/**
 * Requests the queue of a conversation, the next prompt first, and the session before it. ahead is undefined if the queue
 * begins the conversation.
 */
export async function queueOf(request: Request, { id, thread_id }: Pick<Session, "id" | "thread_id">): Promise<{ ahead: SessionView | undefined; queued: QueuedPrompt[] }> {
  const { queued } = await request("session.queue", { session_id: id });
  const stateOf = async (session_id: string): Promise<SessionView> => (await request("getSessionState", { session_id })).session;
  const first = queued[0] && (await stateOf(queued[0].session_id));
  if (first && first.state !== "queued") return { ahead: first, queued: queued.slice(1) }; // it has begun meanwhile
  // The session before the first one of a fork is in another conversation, which a panel may not read.
  const before = first?.parent_session_id ? await stateOf(first.parent_session_id).catch(() => undefined) : undefined;
  return { ahead: before?.thread_id === thread_id ? before : undefined, queued };
}

/** Completes questions: approval.list cuts texts that are too long for one message, approval.get returns them whole. */
export async function wholeQuestions(request: Request, questions: readonly Question[]): Promise<Question[]> {
  return Promise.all(questions.map(async (question) => (question.truncated ? (await request("approval.get", { approval: question.approval })).approval : question)));
}
