import { ErrorCode, errorObject, RPCError } from "./messages.js";
import type { JSONRPCId, JSONRPCMessage, JSONRPCParams, JSONRPCRequest, RPCTransport } from "./messages.js";

/** What a handler may want to know of the request beside its params. */
export interface RequestContext {
  /** Aborted when the caller takes the request back, and when the server is destroyed. */
  signal: AbortSignal;
}

/**
 * Carries a request out. What it throws becomes the error of the response: with
 * its code, if that is an integer, else as -32603; with its message and its data.
 */
export type MethodHandler = (params: JSONRPCParams | undefined, context: RequestContext) => unknown;

export type NotificationHandler = (params: JSONRPCParams | undefined) => unknown;

export interface JSONRPCServerOptions {
  /** Hears of what nobody else does: an error in a notification's handler, a response that could not be sent. */
  onError?: (error: unknown, method: string) => void;
}

/** Answers requests, and hands notifications on. Requests run beside each other. */
export class JSONRPCServer {
  private readonly methods = new Map<string, MethodHandler>();
  private readonly notifications = new Map<string, NotificationHandler>();
  private readonly running = new Map<JSONRPCId, AbortController>();
  private readonly stopListening: () => void;
  private readonly onError: (error: unknown, method: string) => void;
  private destroyed = false;

  constructor(
    private readonly transport: RPCTransport,
    options: JSONRPCServerOptions = {},
  ) {
    this.onError = options.onError ?? ((error, method) => console.error(`JSON-RPC ${method}:`, error));
    this.stopListening = transport.onMessage((message) => this.receive(message));
  }

  /** Says how a method is carried out; a handler that it had before is replaced. */
  method(name: string, handler: MethodHandler): void {
    this.methods.set(name, handler);
  }

  /** Says what a notification does; a handler that it had before is replaced. */
  onNotify(name: string, handler: NotificationHandler): void {
    this.notifications.set(name, handler);
  }

  /** Answers nothing any more, aborts what runs, and destroys the transport. */
  destroy(): void {
    this.destroyed = true;
    this.stopListening();
    this.methods.clear();
    this.notifications.clear();
    for (const controller of this.running.values()) controller.abort();
    this.running.clear();
    this.transport.destroy?.();
  }

  private receive(message: JSONRPCMessage): void {
    if (!("method" in message)) return; // a response is a client's
    if (!("id" in message)) {
      void this.notified(message.method, message.params);
      return;
    }
    if (typeof message.id !== "string" && typeof message.id !== "number") {
      this.reply({ jsonrpc: "2.0", error: { code: ErrorCode.InvalidRequest, message: "Invalid request: id is neither a string nor a number" }, id: null }, "");
    } else if (typeof message.method !== "string") {
      this.reply({ jsonrpc: "2.0", error: { code: ErrorCode.InvalidRequest, message: "Invalid request: method is no string" }, id: message.id }, "");
    } else {
      void this.answer(message);
    }
  }

  private async notified(method: string, params: JSONRPCParams | undefined): Promise<void> {
    const handler = this.notifications.get(method);
    if (handler) {
      try {
        await handler(params);
      } catch (error) {
        this.onError(error, method);
      }
    } else if (method === "$/cancelRequest") {
      const id = (params as { id?: JSONRPCId } | undefined)?.id;
      if (id !== undefined) this.running.get(id)?.abort();
    }
  }

  private async answer(request: JSONRPCRequest): Promise<void> {
    const { id, method } = request;
    const handler = this.methods.get(method);
    if (!handler) {
      const error = { code: ErrorCode.MethodNotFound, message: `Method not found: ${method}`, data: { method } };
      this.reply({ jsonrpc: "2.0", error, id }, method);
      return;
    }
    const controller = new AbortController();
    this.running.set(id, controller);
    try {
      const result = await handler(request.params, { signal: controller.signal });
      // A response has a result, also where there is nothing to tell.
      this.reply({ jsonrpc: "2.0", result: result === undefined ? null : result, id }, method);
    } catch (thrown) {
      const error = controller.signal.aborted && !(thrown instanceof RPCError)
        ? { code: ErrorCode.RequestCancelled, message: `Request cancelled: ${method}` }
        : errorObject(thrown);
      this.reply({ jsonrpc: "2.0", error, id }, method);
    } finally {
      if (this.running.get(id) === controller) this.running.delete(id);
    }
  }

  /** reply sends a response; one that cannot be sent, as with a function in it, becomes an error that can. */
  private reply(message: JSONRPCMessage, method: string): void {
    if (this.destroyed) return;
    try {
      this.transport.send(message);
    } catch (error) {
      this.onError(error, method);
      const id = (message as { id: JSONRPCId | null }).id;
      try {
        this.transport.send({ jsonrpc: "2.0", error: { code: ErrorCode.InternalError, message: "The response cannot be sent" }, id });
      } catch {
        // The other side is gone: nobody waits.
      }
    }
  }
}
