// Runs duet-rpc for a folder, and exchanges messages with it.
import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { createMessageConnection, ErrorCodes, ResponseError, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";
import type { CancellationToken, MessageConnection } from "vscode-jsonrpc/node";
import type { HubEvent, Method, Params, Result } from "../protocol";
import { ErrorCode } from "../rpc/messages";
import { versionWarning } from "./binary";
import type { Binary } from "./binary";
import { limitLevels } from "./depth";
import { Emitter, followedEvents, Following, terminalUpdate } from "./events";
import type { Followed, FollowListener, HubNotification, Send, TerminalUpdate } from "./events";
import { visible } from "./groups";
import { flagsOf, withoutHost } from "./host";
import type { Place } from "./host";

/**
 * The state of the process. stopped: not started, or stopped. starting: also after a crash. ready: events arrive.
 * failed: only the user can start it again, and reason says why.
 */
export type ConnectionState = { is: "stopped" | "starting" } | { is: "ready"; version: string } | { is: "failed"; reason: string; kind?: string };

/** The log of the connection: vscode.LogOutputChannel, or that of a test. */
export interface Log {
  trace(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** Tools of an editor for agents (docs/protocol.md, "The editor's tools"). */
export interface EditorToolset {
  names: () => string[];
  /** Answers a request for a tool. The agent gets the message of a rejection. */
  answer: (tool: string, params: Record<string, unknown>) => Promise<unknown>;
}

export interface ConnectionOptions {
  /** A folder of the workspace. The connection is to the daemon of its project. */
  folder: string;
  /** Where the project is. Default: this machine. A host is third-party: it gets no tools of the editor. */
  place?: Place;
  /** How long to wait before the next attempt to reach a host, in milliseconds. */
  retryAfter?: number;
  /** Called at each start, so that a changed setting takes effect. */
  findBinary: () => Promise<Binary>;
  /** Whether the user trusts the workspace. */
  trusted: () => boolean;
  /** The tools of the editor that agents may use. undefined: none. */
  tools?: EditorToolset;
  env: NodeJS.ProcessEnv;
  log: Log;
  rule?: RestartRule;
}

/** The time limit of each step that stops the process, in milliseconds. */
const patience = 2_000;

/** The default of ConnectionOptions.retryAfter. */
const usualRetry = 10_000;

/** How long to wait for the remaining output of a process that has ended, in milliseconds. */
const lastWordsTime = 500;

/** A request failed because there is no server, or because it ended meanwhile. */
export class NotConnectedError extends Error {
  override readonly name = "NotConnectedError";
}

/** The server ended before it answered. It may have carried out the request. */
class AnswerLostError extends NotConnectedError {
  readonly code = ErrorCode.HubLost;
  readonly data = { kind: "hub_lost" };

  constructor(method: string) {
    super(`duet-rpc has ended before it answered ${method}`);
  }
}

interface Server {
  process: ChildProcessWithoutNullStreams;
  connection: MessageConnection;
  /** Settled when the process has ended. */
  ended: Promise<void>;
  /** The connection stops the process, so its end is not a crash. */
  stopping: boolean;
  /** The id of the subscription that the lists follow. */
  subscription?: string;
}

/**
 * HubConnection runs one process duet-rpc at a time, and restarts it when it dies. The process relays to the project's
 * daemon, which runs the agents and keeps running without it. After a restart the subscriptions continue after the last
 * received event, so no event is lost.
 */
export class HubConnection {
  private readonly stateEmitter = new Emitter<ConnectionState>();
  private readonly eventEmitter = new Emitter<HubEvent>();
  private readonly terminalEmitter = new Emitter<TerminalUpdate>();
  private readonly notificationEmitter = new Emitter<HubNotification>();
  private readonly warningEmitter = new Emitter<string>();
  private readonly noticeEmitter = new Emitter<string>();
  private readonly troubleEmitter = new Emitter<string | undefined>();
  private currentTrouble: string | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private readonly rule: RestartRule;
  private current: ConnectionState = { is: "stopped" };
  private server: Server | undefined;
  private starting: Promise<void> | undefined;
  private lastSeq: number | undefined;
  private warned: string | undefined;
  private readonly followings = new Set<Following>();
  /** Counts starts and stops. A slow start compares it and gives up if another one began. */
  private generation = 0;

  readonly onState = this.stateEmitter.on;
  readonly onEvent = this.eventEmitter.on;
  /** Output and exits of the terminals that this connection watches. */
  readonly onTerminal = this.terminalEmitter.on;
  /** All other notifications: builds and the preview. */
  readonly onNotification = this.notificationEmitter.on;
  /** A warning for the user, such as an unsupported version of duet-rpc. */
  readonly onWarning = this.warningEmitter.on;
  /** The daemon's notice to the user, sent once: sessions continued while no client was connected. */
  readonly onNotice = this.noticeEmitter.on;
  /** The daemon no longer answers, with its notice, or answers again. Subscriptions continue by themselves. */
  readonly onTrouble = this.troubleEmitter.on;

  constructor(private readonly options: ConnectionOptions) {
    this.rule = options.rule ?? new RestartRule();
  }

  get folder(): string {
    return this.options.folder;
  }

  get state(): ConnectionState {
    return this.current;
  }

  /** The host of the project. Empty: this machine. */
  get host(): string {
    return this.options.place?.host ?? "";
  }

  /** The flags of duet-rpc for commands about this project. */
  get flags(): string[] {
    return this.options.place ? flagsOf(this.options.place) : [];
  }

  /** Why the daemon does not answer, such as a broken line to its host. undefined: it does, or none is connected. */
  get trouble(): string | undefined {
    return this.currentTrouble;
  }

  /** Whether the daemon answers. */
  get answers(): boolean {
    return this.current.is === "ready" && this.currentTrouble === undefined;
  }

  /** The id of the process that relays to the daemon. undefined: it does not run. */
  get pid(): number | undefined {
    return this.server?.process.pid;
  }

  /** The path of the program, for commands beside the server. Rejects with a BinaryError. */
  async program(): Promise<string> {
    return (await this.options.findBinary()).path;
  }

  /** Starts the server unless it runs. Resolves when state is ready or failed. */
  start(): Promise<void> {
    if (this.current.is === "ready") return Promise.resolve();
    return this.startUnlessStarting();
  }

  private startUnlessStarting(quietly = false): Promise<void> {
    clearTimeout(this.retry);
    this.starting ??= this.launchUntilSettled(quietly).finally(() => (this.starting = undefined));
    return this.starting;
  }

  private async launchUntilSettled(quietly: boolean): Promise<void> {
    do await this.launch(quietly);
    while (this.current.is === "starting"); // it crashed meanwhile, and the rule allows another try
  }

  /** tryAgainLater starts the process again after a pause: a host may be reached then. */
  private tryAgainLater(): void {
    clearTimeout(this.retry);
    this.retry = setTimeout(() => {
      if (this.current.is === "failed") void this.startUnlessStarting(true);
    }, this.options.retryAfter ?? usualRetry);
    this.retry.unref();
  }

  /** Stops the process, if it runs, and starts another. Sessions in the daemon continue. */
  async restart(): Promise<void> {
    await this.stop();
    this.rule.forget();
    await this.start();
  }

  /** Stops the process and resolves when it has ended. Sessions in the daemon continue. */
  async stop(): Promise<void> {
    this.generation++;
    clearTimeout(this.retry);
    const server = this.server;
    this.server = undefined;
    this.enter({ is: "stopped" });
    if (server) await this.end(server);
    await this.starting;
  }

  /** Sends the new workspace trust to the server. A host does not get it: the folder here is not the project there. */
  async trustChanged(): Promise<void> {
    if (this.server && this.host === "") await this.server.connection.sendRequest("initialize", this.hello());
  }

  /**
   * Sends a request, after a server that is starting is ready. Rejects with a ResponseError if the daemon
   * answers with an error, and with a NotConnectedError if no server runs. If the daemon ended and did not
   * carry out the request, it is sent again to the next daemon.
   */
  async request<M extends Method>(method: M, params: Params<M>, token?: CancellationToken): Promise<Result<M>> {
    await this.starting;
    refuseOversize(method, params);
    const send = (): Promise<Result<M>> => {
      if (!this.server) throw new NotConnectedError(this.current.is === "failed" ? this.current.reason : "duet-rpc does not run");
      // vscode-jsonrpc would send an undefined token as a second parameter.
      return token ? this.server.connection.sendRequest(method, params, token) : this.server.connection.sendRequest(method, params);
    };
    try {
      return limitLevels(await send());
    } catch (error) {
      if (!mayRetry(method, error)) throw errorOf(method, error);
      return limitLevels(await send().catch((again: unknown) => {
        throw errorOf(method, again);
      }));
    }
  }

  /**
   * Starts a session on the host with the files of this machine. That works also while the host has no such project: the
   * session brings it there, and then the connection is made.
   */
  async sendFiles(params: Params<"session.start">): Promise<Result<"session.start">> {
    await this.starting;
    if (this.current.is !== "failed" || this.host === "") return this.request("session.start", params);
    refuseOversize("session.start", params);
    const server = this.spawn(await this.options.findBinary());
    server.stopping = true; // its end is no crash
    try {
      await server.connection.sendRequest("initialize", this.hello());
      return limitLevels(await server.connection.sendRequest<Result<"session.start">>("session.start", params));
    } catch (error) {
      throw errorOf("session.start", error);
    } finally {
      await this.end(server);
      if (this.current.is === "failed") await this.startUnlessStarting(true);
    }
  }

  /**
   * Follows a session by a subscription of its own. It continues with each new server, before the state is ready.
   * Rejects as request does.
   */
  async follow(followed: Followed, listener: FollowListener): Promise<Following> {
    const following = new Following(followed, listener, (ended) => this.followings.delete(ended));
    this.followings.add(following);
    try {
      await this.starting; // the start subscribes it
      if (!this.server) throw new NotConnectedError(this.current.is === "failed" ? this.current.reason : "duet-rpc does not run");
      if (!following.isSubscribed) await following.subscribe(this.sender(this.server));
    } catch (error) {
      void following.stop(); // a new server may have subscribed it already
      throw isAnswer(error) || error instanceof NotConnectedError ? error : new AnswerLostError("event.subscribe");
    }
    return following;
  }

  private sender({ connection }: Server): Send {
    return (method, params) => connection.sendRequest(method, params);
  }

  /** launch starts the process. Quietly: the state stays failed until the process is ready. */
  private async launch(quietly: boolean): Promise<void> {
    const generation = ++this.generation;
    if (!quietly) this.enter({ is: "starting" });
    let binary: Binary;
    try {
      binary = await this.options.findBinary();
    } catch (error) {
      if (generation === this.generation) this.fail(messageOf(error));
      return;
    }
    if (generation !== this.generation) return;
    const warning = versionWarning(binary);
    if (warning && warning !== this.warned) this.warningEmitter.fire((this.warned = warning));
    this.options.log.info(`${this.folder}: starting ${binary.path} ${binary.version}, found by ${binary.source}`);
    const server = this.spawn(binary);
    this.server = server;
    this.setTrouble(undefined);
    for (const following of this.followings) following.serverGone();
    try {
      const { serverInfo } = await server.connection.sendRequest<Result<"initialize">>("initialize", this.hello());
      await this.offerTools(server);
      const since = this.lastSeq === undefined ? {} : { since: this.lastSeq };
      const subscribed = await server.connection.sendRequest<Result<"event.subscribe">>("event.subscribe", { kinds: followedEvents, notices: true, ...since });
      if (subscribed.notice) this.noticeEmitter.fire(subscribed.notice);
      this.lastSeq ??= subscribed.seq;
      server.subscription = subscribed.subscription_id;
      await Promise.all([...this.followings].map((following) => this.resume(following, server)));
      if (server === this.server) this.enter({ is: "ready", version: serverInfo.version });
    } catch (error) {
      if (server !== this.server) return; // its end was handled, or requested
      if (!isAnswer(error)) {
        // The server is dying, or does not speak JSON-RPC. Its end counts as a crash.
        const killed = setTimeout(() => server.process.kill("SIGKILL"), patience);
        await server.ended;
        clearTimeout(killed);
        return;
      }
      this.server = undefined;
      this.fail(visible(error.message.replace(codeNames, "")), (error.data as { kind?: string } | undefined)?.kind);
      await this.end(server);
      if (this.host !== "" && generation === this.generation) this.tryAgainLater();
    }
  }

  /** Offers the tools of the editor, which may have changed. An older daemon has no such method. */
  private async offerTools({ connection }: Server): Promise<void> {
    const { log } = this.options;
    const { tools } = this;
    if (!tools) return;
    try {
      await connection.sendRequest<Result<"editor.offer">>("editor.offer", { client: "VS Code", tools: tools.names() });
    } catch (error) {
      if (!isAnswer(error)) throw error; // the server is gone
      log.warn(`${this.folder}: agents do not get the tools of the editor: ${error.message}`);
    }
  }

  /** The tools of the editor that agents may use. A host gets none, and what it requests nevertheless is refused. */
  private get tools(): EditorToolset | undefined {
    return this.host === "" ? this.options.tools : undefined;
  }

  /** Sends the tools again, after a setting has changed them. */
  async toolsChanged(): Promise<void> {
    if (this.server && this.current.is === "ready") await this.offerTools(this.server);
  }

  private async resume(following: Following, server: Server): Promise<void> {
    if (following.isSubscribed) return;
    try {
      await following.subscribe(this.sender(server));
    } catch (error) {
      if (!isAnswer(error)) throw error; // the server is gone
      following.lose(error);
    }
  }

  private hello(): Params<"initialize"> {
    return { capabilities: {}, ...(this.host === "" && { workspaceTrusted: this.options.trusted() }) };
  }

  private spawn(binary: Binary): Server {
    const { log, folder } = this.options;
    // The editor sets this variable. Programs made with Electron do not start with it.
    const env = withoutHost(this.options.env);
    delete env["ELECTRON_RUN_AS_NODE"];
    const child = spawn(binary.path, ["--stdio", ...this.flags], { cwd: folder, env, windowsHide: true });
    const writer = new StreamMessageWriter(child.stdin);
    const write = writer.write.bind(writer);
    // If the process no longer reads, its end rejects the pending requests. A rejection here could not be handled:
    // vscode-jsonrpc throws it out of a promise's executor.
    writer.write = (message) => write(message).catch(() => {});
    const connection = createMessageConnection(new StreamMessageReader(child.stdout), writer, {
      error: (message) => log.error(message),
      warn: (message) => log.warn(message),
      info: (message) => log.info(message),
      log: (message) => log.trace(message),
    });
    let ended: () => void = () => {};
    const server: Server = { process: child, connection, ended: new Promise((resolve) => (ended = resolve)), stopping: false };
    let lastWords = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      lastWords = (lastWords + text).slice(-1_000);
      for (const line of text.split("\n")) if (line.trim() !== "") log.info(line);
    });
    // The end of the process reports a failed write.
    child.stdin.on("error", () => {});
    let over = false;
    const end = (how: string): void => {
      if (over) return;
      over = true;
      connection.dispose();
      ended();
      if (!server.stopping) this.crashed(server, lastWords.trim() === "" ? how : `${how}: ${lastWords.trim().split("\n").at(-1) ?? ""}`);
    };
    child.on("error", (error) => end(`duet-rpc could not be started: ${error.message}`));
    child.on("exit", (code, signal) => {
      // Its last output is still unread. But a process that it left behind may keep the pipes open.
      const how = `duet-rpc has ended (${signal ?? `status ${code ?? "unknown"}`})`;
      const waited = setTimeout(() => end(how), lastWordsTime);
      child.on("close", () => {
        clearTimeout(waited);
        end(how);
      });
    });
    connection.onError(([error]) => log.warn(`cannot read the output of duet-rpc: ${error.message}`));
    connection.onNotification("event", (given: HubEvent) => {
      const event = limitLevels(given);
      const ofTerminal = terminalUpdate(event);
      if (ofTerminal) {
        this.terminalEmitter.fire(ofTerminal);
        return;
      }
      // The id of a subscription is known before its first event: vscode-jsonrpc handles messages one by one and runs
      // their continuations in between. Late events of an ended subscription match no id and are dropped.
      const { subscription_id: id, seq = 0 } = event;
      if (id === undefined || id !== server.subscription) {
        for (const following of this.followings) if (following.is(id)) following.take(event);
        return;
      }
      if (seq > (this.lastSeq ?? -1)) this.lastSeq = seq;
      if (event.kind === "daemon.silent") this.setTrouble(visible(event.data.message));
      else if (event.kind === "daemon.answers") this.setTrouble(undefined);
      this.eventEmitter.fire(event);
    });
    connection.onRequest(async (method, params) => {
      const { tools } = this;
      const tool = method.startsWith("editor.") ? method.slice("editor.".length) : "";
      if (!tools?.names().includes(tool)) return new ResponseError(ErrorCodes.MethodNotFound, `Method not found: ${method}`);
      try {
        return await tools.answer(tool, (params ?? {}) as Record<string, unknown>);
      } catch (error) {
        return new ResponseError(ErrorCodes.InternalError, messageOf(error));
      }
    });
    connection.onNotification("heartbeat", () => {});
    connection.onNotification((method, params) => this.notificationEmitter.fire(limitLevels({ method, params })));
    connection.listen();
    return server;
  }

  private crashed(server: Server, how: string): void {
    if (server !== this.server) return;
    this.server = undefined;
    this.setTrouble(undefined);
    this.options.log.error(`${this.folder}: ${how}`);
    if (!this.rule.crashed()) {
      this.fail(`${how}. It has crashed five times in three minutes, and is not started again`);
      return;
    }
    this.enter({ is: "starting" });
    void this.start();
  }

  private async end(server: Server): Promise<void> {
    const { process: child, connection } = server;
    server.stopping = true;
    const killed = setTimeout(() => child.kill("SIGTERM"), patience);
    const forced = setTimeout(() => child.kill("SIGKILL"), 2 * patience);
    try {
      await connection.sendRequest<Result<"shutdown">>("shutdown", { reason: "VS Code closes the window, or restarts duet-rpc" });
    } catch {
      // The process has ended before it could answer.
    }
    child.stdin.end();
    await server.ended;
    clearTimeout(killed);
    clearTimeout(forced);
  }

  private setTrouble(trouble: string | undefined): void {
    if (trouble === this.currentTrouble) return;
    this.currentTrouble = trouble;
    this.troubleEmitter.fire(trouble);
  }

  /** Kind is data.kind of the daemon's error. */
  private fail(reason: string, kind?: string): void {
    this.options.log.error(`${this.folder}: ${reason}`);
    this.enter({ is: "failed", reason, ...(kind !== undefined && { kind }) });
  }

  private enter(state: ConnectionState): void {
    if (state.is === "starting" && this.current.is === "starting") return;
    this.current = state;
    this.stateEmitter.fire(state);
  }
}

/** The longest message that the daemon reads, in bytes, minus the space for the rest of the message. */
const maxParams = 10 * 1024 * 1024 - 1000;

/** refuseOversize throws for params over the daemon's limit. The daemon answers such a request without its id. */
function refuseOversize(method: Method, params: unknown): void {
  const size = Buffer.byteLength(JSON.stringify(params) ?? "");
  if (size <= maxParams) return;
  const mebibytes = (size / (1024 * 1024)).toFixed(1);
  throw new ResponseError(ErrorCodes.InvalidRequest, `cannot send ${method}: it has ${mebibytes} MiB, and the limit is 10 MiB; shorten the text or attach less`);
}

/** isAnswer reports whether an error is the daemon's, and not one that vscode-jsonrpc makes when a connection ends. */
function isAnswer(error: unknown): error is ResponseError<unknown> {
  const own: number[] = [ErrorCodes.MessageWriteError, ErrorCodes.MessageReadError, ErrorCodes.PendingResponseRejected, ErrorCodes.ConnectionInactive];
  return error instanceof ResponseError && !own.includes(error.code);
}

/** The names of codes with which the daemon's messages begin (docs/protocol.md). People need the sentence after them only. */
const codeNames = /^(?:Invalid params|Invalid Request|Internal error|Task not found|Task not cancellable|Queue full|Subsystem unavailable|Overloaded): /;

/** errorOf returns the error of a request, whose message is for people. */
function errorOf(method: Method, error: unknown): unknown {
  if (error instanceof NotConnectedError) return error;
  if (!isAnswer(error)) return new AnswerLostError(method);
  error.message = error.message.replace(codeNames, "");
  return error;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Methods that are safe to repeat: the second time they change nothing. */
const repeatable = /\.(list|get|search|items|export|count|wait|directories)$|^(approval\.decide|turn\.(interrupt|edit|move)|session\.archive|terminal\.attach)$/;

/**
 * mayRetry reports whether to send a request to the next daemon. A request that was pending when its daemon died (-32042) may
 * have been carried out.
 */
function mayRetry(method: Method, error: unknown): boolean {
  if (!isAnswer(error) || (error.data as { retry?: unknown } | undefined)?.retry !== true) return false;
  return error.code !== ErrorCode.HubLost || repeatable.test(method);
}

/** Five crashes within three minutes are too many. */
const tooMany = 5;
const within = 3 * 60_000;

/**
 * RestartRule decides whether to restart a process that has died. An intended stop is not a crash. The times of crashes
 * do not change when the clock is set.
 */
export class RestartRule {
  private crashes: number[] = [];

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Counts a crash. Returns false if there were too many: do not restart. */
  crashed(): boolean {
    const now = this.now();
    this.crashes = [...this.crashes.filter((at) => now - at < within), now];
    return this.crashes.length < tooMany;
  }

  /** Forgets all crashes, because the user starts the process. */
  forget(): void {
    this.crashes = [];
  }
}
