// The WebSocket to duet-rpc web. It reconnects by itself.
import { JSONRPCClient, JSONRPCServer, RPCError } from "../rpc/index";
import type { JSONRPCMessage, JSONRPCParams, RPCTransport } from "../rpc/index";
import { ErrorCode, isJSONRPC } from "../rpc/messages";
import { Emitter } from "../hub/events";
import { closeCodes } from "./protocol";
import type { Hello, WebMethods, WebNotifications } from "./protocol";

/** The part of a WebSocket that the line uses. */
export interface Socket {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
}

/** There is no connection, or it broke before the answer came. The request may have been carried out. */
export class OfflineError extends Error {
  override readonly name = "OfflineError";

  /** unsent: the request was not sent. */
  constructor(readonly unsent = false) {
    super("there is no connection to duet-rpc");
  }
}

/** Why a device has to be paired again. */
export type Refusal = "not_paired" | "removed";

export interface LineOptions {
  /** The key of this device. */
  key: string;
  open: () => Socket;
  /** Calls back after a number of milliseconds. The returned function cancels that. */
  later?: (milliseconds: number, then: () => void) => () => void;
}

/** The pauses between attempts to connect, in milliseconds. They double. */
const firstPause = 300;
const longestPause = 10_000;

/** How long a connection that may be dead has to show a sign of life, in milliseconds. */
const patience = 5_000;

interface Open {
  socket: Socket;
  client: JSONRPCClient;
  /** web.hello was answered. */
  ready: boolean;
}

/** The connection to duet-rpc web. Its owner closes it. */
export class Line {
  private readonly readyEmitter = new Emitter<Hello>();
  private readonly brokenEmitter = new Emitter<undefined>();
  private readonly refusedEmitter = new Emitter<Refusal>();
  private readonly handlers = new Map<string, (params: never) => void>();
  private current: Open | undefined;
  private pause = firstPause;
  private cancelRetry: (() => void) | undefined;
  private cancelProbe: (() => void) | undefined;
  private received = 0;
  private closed = false;

  /** A connection is ready. The listeners subscribe again and send what waited. */
  readonly onReady = this.readyEmitter.on;
  /** The connection has broken. */
  readonly onBroken = this.brokenEmitter.on;
  /** This device has to be paired again. The line is closed. */
  readonly onRefused = this.refusedEmitter.on;

  constructor(private readonly options: LineOptions) {}

  get ready(): boolean {
    return this.current?.ready === true;
  }

  /** Connects, now and after each break. */
  open(): void {
    if (this.closed || this.current) return;
    this.cancelRetry?.();
    this.cancelRetry = undefined;
    const socket = this.options.open();
    const transport = lineTransport(socket, () => this.received++);
    const opened: Open = { socket, client: new JSONRPCClient(transport, { timeout: 0 }), ready: false };
    const server = new JSONRPCServer(transport);
    for (const [method, handler] of this.handlers) server.onNotify(method, (params) => handler(params as never));
    this.current = opened;
    this.probe(opened, false); // without an answer, the attempt ends
    socket.onopen = () => void this.greet(opened);
    socket.onclose = ({ code }) => this.broken(opened, code);
  }

  /** Connects at once, because the device is online or the page visible again. A connection that may be dead has to answer. */
  wake(): void {
    if (this.closed) return;
    if (this.current?.ready) {
      if (!this.cancelProbe) this.probe(this.current);
      return;
    }
    if (this.current) this.broken(this.current, 0); // an attempt from before may hang
    this.pause = firstPause;
    this.open();
  }

  close(): void {
    this.closed = true;
    this.cancelRetry?.();
    if (this.current) this.broken(this.current, 0);
  }

  /** Sets the handler of a notification. To be called before open. */
  on<M extends keyof WebNotifications>(method: M, handler: (params: WebNotifications[M]) => void): void {
    this.handlers.set(method, handler);
  }

  /** Sets the handler of the events of all projects. To be called before open. */
  onEvent<E>(handler: (event: E) => void): void {
    this.handlers.set("event", handler);
  }

  /** Sends a request of the page itself. Rejects with an RPCError, or an OfflineError. */
  request<M extends keyof WebMethods>(method: M, params: WebMethods[M]["params"]): Promise<WebMethods[M]["result"]> {
    return this.send(method, params);
  }

  /** Sends a request. Rejects with an RPCError, or an OfflineError. */
  async send<T>(method: string, params: JSONRPCParams): Promise<T> {
    const { current } = this;
    refuseOversize(method, params); // the server would end the connection, again after each reconnection
    if (!current?.ready) throw new OfflineError(true);
    return this.call<T>(current, method, params);
  }

  private async call<T>({ client }: Open, method: string, params: JSONRPCParams): Promise<T> {
    try {
      return await client.request<T>(method, params);
    } catch (error) {
      throw error instanceof RPCError ? error : new OfflineError();
    }
  }

  private async greet(opened: Open): Promise<void> {
    this.probe(opened, false);
    try {
      const hello = await this.call<Hello>(opened, "web.hello", { key: this.options.key });
      if (opened !== this.current) return;
      opened.ready = true;
      this.pause = firstPause;
      this.readyEmitter.fire(hello);
    } catch (error) {
      if (opened !== this.current) return;
      const { kind } = ((error as RPCError).data ?? {}) as { kind?: unknown };
      if (kind === "not_paired") return this.refuse("not_paired");
      this.broken(opened, 0);
    }
  }

  /** probe breaks a connection from which nothing comes, although there is a request to answer. */
  private probe(opened: Open, ask = true): void {
    const { received } = this;
    if (ask && opened.ready) this.call(opened, "web.sessions", {}).catch(() => undefined);
    this.cancelProbe?.();
    this.cancelProbe = this.later(patience, () => {
      this.cancelProbe = undefined;
      if (opened === this.current && this.received === received) this.broken(opened, 0);
    });
  }

  private broken(opened: Open, code: number): void {
    if (opened !== this.current) return;
    this.current = undefined;
    this.cancelProbe?.();
    this.cancelProbe = undefined;
    opened.socket.onclose = opened.socket.onmessage = opened.socket.onopen = null;
    opened.socket.close();
    opened.client.destroy();
    if (code === closeCodes.notPaired) return this.refuse("not_paired");
    if (code === closeCodes.removed) return this.refuse("removed");
    if (opened.ready) this.brokenEmitter.fire(undefined);
    if (this.closed) return;
    this.cancelRetry = this.later(this.pause, () => this.open());
    this.pause = Math.min(longestPause, 2 * this.pause);
  }

  private refuse(why: Refusal): void {
    this.close();
    this.refusedEmitter.fire(why);
  }

  private later(milliseconds: number, then: () => void): () => void {
    if (this.options.later) return this.options.later(milliseconds, then);
    const timer = setTimeout(then, milliseconds);
    return () => clearTimeout(timer);
  }
}

/** The longest message that the server reads, in bytes, minus the space for the rest of the message. */
const mostParams = 10 * 1024 * 1024 - 1000;

function refuseOversize(method: string, params: JSONRPCParams): void {
  const size = new TextEncoder().encode(JSON.stringify(params)).length;
  if (size <= mostParams) return;
  throw new RPCError(ErrorCode.InvalidRequest, `${method} has ${(size / (1024 * 1024)).toFixed(1)} MiB, and the limit is 10 MiB: shorten the text or attach less`);
}

/** lineTransport carries messages as lines of text. received is called for each text. */
function lineTransport(socket: Socket, received: () => void): RPCTransport {
  const handlers = new Set<(message: JSONRPCMessage) => void>();
  const lines: string[] = [];
  let waits = false;
  const drain = (): void => {
    waits = false;
    for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
      if (line.trim() === "") continue;
      let message: unknown;
      try {
        message = JSON.parse(line);
      } catch {
        continue; // it cannot be answered, either
      }
      if (!isJSONRPC(message)) continue;
      for (const handler of [...handlers]) handler(message);
      // The response to event.subscribe names the subscription of the events in the next lines, so its caller goes on first.
      if (!("method" in message) && lines.length > 0) {
        waits = true;
        setTimeout(drain, 0);
        return;
      }
    }
  };
  socket.onmessage = ({ data }) => {
    received();
    if (typeof data !== "string") return;
    for (const line of data.split("\n")) lines.push(line);
    if (!waits) drain();
  };
  return {
    send: (message) => socket.send(`${JSON.stringify(message)}\n`),
    onMessage: (handler) => {
      handlers.add(handler);
      return () => void handlers.delete(handler);
    },
    destroy: () => {
      handlers.clear();
      lines.length = 0;
    },
  };
}
