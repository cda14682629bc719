// The sessions and the questions of a project, as the hub has them. What has changed
// is told by events; what it is now is asked for.
import type { Result } from "../protocol";
import type { HubConnection } from "./connection";
import { Emitter } from "./emitter";
import type { EventParams } from "./events";
import { wholeQuestions } from "./questions";

/** The last session of a conversation, as getSessionLeaves has it. */
export type Session = Result<"getSessionLeaves">["sessions"][number];

/** A question that waits for an answer, as fetchApprovals has it. */
export type Question = Result<"fetchApprovals">["approvals"][number];

/** The lists of a project. They are empty until its hub is ready, and stay while it is started again. */
export class ProjectModel {
  private readonly changeEmitter = new Emitter<undefined>();
  private readonly questionEmitter = new Emitter<Question[]>();
  private readonly byThread = new Map<string, Session>();
  private waiting: Question[] = [];
  private readonly changedSessions = new Set<string>();
  private questionsChanged = false;
  private everythingChanged = false;
  private refreshing: Promise<void> | undefined;
  private readonly seen = new Set<string>();
  private readonly stopListening: Array<() => void>;

  /** Something in the lists is otherwise than before. */
  readonly onChange = this.changeEmitter.on;
  /** Questions have come that were not there before. */
  readonly onQuestions = this.questionEmitter.on;

  constructor(
    readonly connection: HubConnection,
    /** How many conversations are asked for. */
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

  /** The conversations, each by its last session, those first in which something happened last. */
  get sessions(): Session[] {
    return [...this.byThread.values()].sort((a, b) => (a.last_activity_at < b.last_activity_at ? 1 : -1));
  }

  /** The questions, the oldest first. */
  get questions(): readonly Question[] {
    return this.waiting;
  }

  /** The session of an id, if it is the last one of its conversation. */
  session(id: string): Session | undefined {
    return [...this.byThread.values()].find((session) => session.id === id);
  }

  /** Puts a session into the list that its event has not brought yet. */
  add(session: Session): void {
    const known = this.byThread.get(session.thread_id);
    if (session.status === "discarded" || (known && known.id !== session.id && known.created_at > session.created_at)) return;
    this.byThread.set(session.thread_id, session);
    this.changeEmitter.fire(undefined);
  }

  dispose(): void {
    for (const stop of this.stopListening) stop();
    this.changeEmitter.clear();
    this.questionEmitter.clear();
  }

  private take({ event }: EventParams): void {
    const { type, data } = event;
    switch (type) {
      case "conversation_updated":
        return; // the lists are as they were
      case "new_approval":
      case "approval_resolved":
        this.questionsChanged = true;
        break;
      case "session_deleted":
        this.everythingChanged = true;
        break;
      case "session_status_changed":
        // A question is closed without an event of its own when its session ends.
        this.questionsChanged = true;
        break;
    }
    if (data.session_id) this.changedSessions.add(data.session_id);
    this.refresh();
  }

  /** refresh asks for what has changed; what changes meanwhile is asked for after that. */
  private refresh(): void {
    this.refreshing ??= this.catchUp().finally(() => (this.refreshing = undefined));
  }

  private async catchUp(): Promise<void> {
    while (this.everythingChanged || this.questionsChanged || this.changedSessions.size > 0) {
      if (this.connection.state.is !== "ready") return; // all is asked for when it is
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
    for (const session of sessions) this.byThread.set(session.thread_id, session);
  }

  private async askForSession(id: string): Promise<void> {
    let session: Session;
    try {
      ({ session } = await this.connection.request("getSessionState", { session_id: id }));
    } catch (error) {
      // It may have been deleted since; the event that says so comes, too.
      this.onError(error);
      return;
    }
    this.add(session);
  }

  private async askForQuestions(): Promise<void> {
    const { approvals: told } = await this.connection.request("fetchApprovals", {});
    const approvals = await wholeQuestions((method, params) => this.connection.request(method, params), told);
    this.waiting = approvals;
    const fresh = approvals.filter((question) => !this.seen.has(question.id));
    for (const question of fresh) this.seen.add(question.id);
    if (fresh.length > 0) this.questionEmitter.fire(fresh);
  }
}
