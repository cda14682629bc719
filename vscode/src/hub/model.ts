// The sessions and questions of a project, as the daemon has them. An event says that one has changed; a request gets its
// current state.
import type { HubEvent, Method, Params, Result, Turn, WaitingPrompt } from "../protocol";
import type { HubConnection } from "./connection";
import { Emitter } from "./events";

/** A session by its last turn, a result of session.list. */
export type Session = Turn & {
  /** The session waits for the user, whatever its last turn does. */
  waits?: boolean;
  /** The working turn that the last one is queued behind. */
  ahead?: Pick<Turn, "turn_uuid" | "state">;
};

/** An open question, a result of approval.list. */
export type Question = Result<"approval.list">["approvals"][number];

/** Whether the agent works on a turn, or waits for the user. */
function isWorking({ state }: Turn): boolean {
  return ["starting", "running", "interrupting", "waiting_input"].includes(state);
}

/** The lists of a project. They are empty until its daemon is ready, and keep their items while it restarts. */
export class ProjectModel {
  private readonly changeEmitter = new Emitter<undefined>();
  private readonly questionEmitter = new Emitter<Question[]>();
  /** The sessions, by uuid. */
  private readonly known = new Map<string, Session>();
  /** The working turn of each session, by the session's uuid. */
  private readonly ahead = new Map<string, Turn>();
  private waiting: Question[] = [];
  private readonly changedTurns = new Set<string>();
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
    /** The most sessions in the list. */
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
      connection.onTrouble((trouble) => {
        if (trouble === undefined && connection.answers) {
          this.everythingChanged = true; // requests have failed meanwhile
          this.refresh();
        }
        this.changeEmitter.fire(undefined);
      }),
      connection.onEvent((event) => this.take(event)),
    ];
  }

  /** The sessions, the most recently active first. */
  get sessions(): Session[] {
    const asked = new Set(this.waiting.map(({ session_uuid }) => session_uuid));
    const all = [...this.known.values()].map((session): Session => {
      const ahead = session.state === "queued" ? this.ahead.get(session.session_uuid) : undefined;
      return { ...session, ...(asked.has(session.session_uuid) && { waits: true }), ...(ahead && { ahead }) };
    });
    return all.sort((a, b) => (a.active_at < b.active_at ? 1 : -1));
  }

  /** The questions, the oldest first. */
  get questions(): readonly Question[] {
    return this.waiting;
  }

  /** The session whose last turn has a uuid. */
  ofTurn(uuid: string): Session | undefined {
    return this.sessions.find(({ turn_uuid }) => turn_uuid === uuid);
  }

  /** The session of a question or a turn, which may be an earlier one than the last. */
  sessionOf(of: Pick<Turn, "session_uuid">): Session | undefined {
    return this.sessions.find(({ session_uuid }) => session_uuid === of.session_uuid);
  }

  /** Adds a session by a turn to the list, possibly before the turn's event comes. */
  add(turn: Turn): void {
    const known = this.known.get(turn.session_uuid);
    this.noteAhead(turn);
    if (turn.state === "discarded" || (known && known.turn_uuid !== turn.turn_uuid && known.created_at > turn.created_at)) return;
    if (known && known.turn_uuid !== turn.turn_uuid) this.noteAhead(known);
    this.known.set(turn.session_uuid, turn);
    this.changeEmitter.fire(undefined);
  }

  /** noteAhead keeps a working turn, for one that may be queued behind it. */
  private noteAhead(turn: Turn): void {
    if (isWorking(turn)) this.ahead.set(turn.session_uuid, turn);
    else if (this.ahead.get(turn.session_uuid)?.turn_uuid === turn.turn_uuid) this.ahead.delete(turn.session_uuid);
  }

  dispose(): void {
    for (const stop of this.stopListening) stop();
    this.changeEmitter.clear();
    this.questionEmitter.clear();
  }

  private take(event: HubEvent): void {
    switch (event.kind) {
      case "item.changed":
        return; // tool calls do not change the lists
      case "item.added":
        if (event.data.subtype !== "worktree") return; // others do not change the lists
        this.everythingChanged = true; // forks share the worktree
        break;
      case "approval.opened":
      case "approval.closed":
        this.questionsChanged = true;
        break;
      case "session.deleted":
        this.everythingChanged = true;
        break;
      case "queue.changed":
        if (event.data.prompt === undefined) this.everythingChanged = true; // another turn may be the last one
        break;
      case "turn.state":
        // A question is closed without an event of its own when its turn ends.
        this.questionsChanged = true;
        break;
    }
    if (event.turn_uuid) this.changedTurns.add(event.turn_uuid);
    this.refresh();
  }

  /** refresh requests the changed turns and questions. Changes meanwhile cause another round. */
  private refresh(): void {
    this.refreshing ??= this.catchUp().finally(() => (this.refreshing = undefined));
  }

  private async catchUp(): Promise<void> {
    while (this.everythingChanged || this.questionsChanged || this.changedTurns.size > 0) {
      if (this.connection.state.is !== "ready") return; // then everything is requested
      const [everything, questions, turns] = [this.everythingChanged, this.questionsChanged, [...this.changedTurns]];
      this.everythingChanged = this.questionsChanged = false;
      this.changedTurns.clear();
      try {
        if (everything) await this.askForSessions();
        else await Promise.all(turns.map((uuid) => this.askForTurn(uuid)));
        if (everything || questions) await this.askForQuestions();
      } catch (error) {
        this.onError(error);
      }
      this.changeEmitter.fire(undefined);
    }
  }

  private async askForSessions(): Promise<void> {
    const { sessions } = await this.connection.request("session.list", { limit: this.limit });
    this.known.clear();
    this.ahead.clear();
    for (const session of sessions) {
      this.known.set(session.session_uuid, session);
      this.noteAhead(session);
    }
    await Promise.all(sessions.filter(({ state }) => state === "queued").map((session) => this.askForAhead(session)));
  }

  /** askForAhead finds the working turn that others are queued behind. */
  private async askForAhead({ session_uuid }: Session): Promise<void> {
    const { ahead } = await sessionWithQueue((method, params) => this.connection.request(method, params), session_uuid);
    if (ahead) this.noteAhead(ahead);
  }

  private async askForTurn(uuid: string): Promise<void> {
    let turn: Turn;
    try {
      ({ turn } = await this.connection.request("turn.get", { turn: uuid }));
    } catch (error) {
      // The session may have been deleted. Its event follows.
      this.onError(error);
      return;
    }
    const known = this.known.get(turn.session_uuid);
    this.add(turn);
    if (!known || known.turn_uuid === turn.turn_uuid || turn.state === "discarded") return;
    // Queued prompts may have been moved, so the newest is not always the last.
    const { turn: last } = await this.connection.request("turn.get", { turn: turn.session_uuid });
    this.known.set(last.session_uuid, last);
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

export type Request = <M extends Method>(method: M, params: Params<M>) => Promise<Result<M>>;

/** A session by its last turn, with its queue. */
export interface QueuedSession {
  session: Turn;
  /** The queued prompts, the next one first. */
  queued: WaitingPrompt[];
  /** The turn before the queued prompts. undefined: nothing is queued, or the queue begins the session. */
  ahead: Turn | undefined;
}

/** Requests a session with its queue. */
export async function sessionWithQueue(request: Request, uuid: string): Promise<QueuedSession> {
  const { session, queued } = await request("session.get", { session: uuid });
  if (queued.length === 0) return { session, queued, ahead: undefined };
  const get = async (turn: string): Promise<Turn> => (await request("turn.get", { turn })).turn;
  const first = await get(queued[0]!.turn_uuid);
  if (first.state !== "queued") return { session, queued: queued.slice(1), ahead: first }; // it has begun meanwhile
  // The turn before the first one of a fork is in another session, which a panel may not read.
  const before = first.parent ? await get(first.parent).catch(() => undefined) : undefined;
  return { session, queued, ahead: before?.session_uuid === session.session_uuid ? before : undefined };
}

/** Completes questions: approval.list cuts texts that are too long for one message, approval.get returns them whole. */
export async function wholeQuestions(request: Request, questions: readonly Question[]): Promise<Question[]> {
  return Promise.all(questions.map(async (question) => (question.truncated ? (await request("approval.get", { approval: question.approval })).approval : question)));
}
