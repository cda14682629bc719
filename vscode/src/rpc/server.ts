import { ErrorCode, errorObject, RPCError } from "./messages.js";
import type { JSONRPCId, JSONRPCMessage, JSONRPCParams, JSONRPCRequest, RPCTransport } from "./messages.js";

/** The context of a request. */
export interface RequestContext {
  /** Aborts when the caller cancels the request, and when the server is destroyed. */
  signal: AbortSignal;
}

/**
 * Carries out a request. A thrown error becomes the error of the response, with
 * its message, its data and its code. The code is -32603 unless it is an integer.
 */
export type MethodHandler = (params: JSONRPCParams | undefined, context: RequestContext) => unknown;

export type NotificationHandler = (params: JSONRPCParams | undefined) => unknown;

export interface JSONRPCServerOptions {
  /** Gets errors that reach no caller: of a notification's handler, or a response that could not be sent. */
  onError?: (error: unknown, method: string) => void;
}

/** Answers requests and dispatches notifications. Requests run concurrently. */
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

  /** Sets the handler of a method. It replaces the one before. */
  method(name: string, handler: MethodHandler): void {
    this.methods.set(name, handler);
  }

  /** Sets the handler of a notification. It replaces the one before. */
  onNotify(name: string, handler: NotificationHandler): void {
    this.notifications.set(name, handler);
  }

  /** Stops answering, aborts running requests and destroys the transport. */
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
    if (!("method" in message)) return; // a response is for a client
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
      // A response needs a result, even without a value.
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

  /** reply sends a response. If it cannot be sent, such as one with a function in it, it sends an error instead. */
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
        // The peer is gone.
      }
    }
  }
}
