import { ErrorCode, RPCClosedError, RPCError, RPCTimeoutError } from "./messages.js";
import type { JSONRPCErrorObject, JSONRPCId, JSONRPCMessage, JSONRPCNotification, JSONRPCParams, JSONRPCRequest, RPCTransport } from "./messages.js";

export interface JSONRPCClientOptions {
  /** The time limit of a request, in milliseconds. The default is 10,000; 0 means no limit. */
  timeout?: number;
}

export interface RequestOptions {
  /** The time limit of this request, in place of the client's. */
  timeout?: number;
  /** Cancels the request: sends $/cancelRequest and rejects the promise with the code -32800. */
  signal?: AbortSignal;
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

const defaultTimeout = 10_000;

/** Sends requests and notifications, and matches responses to requests. */
export class JSONRPCClient {
  private lastId = 0;
  private readonly pending = new Map<JSONRPCId, Pending>();
  private readonly timeout: number;
  private readonly stopListening: Array<() => void> = [];
  private closed: Error | undefined;

  constructor(
    private readonly transport: RPCTransport,
    options: JSONRPCClientOptions = {},
  ) {
    this.timeout = options.timeout ?? defaultTimeout;
    this.stopListening.push(transport.onMessage((message) => this.receive(message)));
    const stop = transport.onClose?.((reason) => this.close(new RPCClosedError(reason.message)));
    if (stop) this.stopListening.push(stop);
  }

  /**
   * Sends a request and waits for its result. Rejects with an RPCError if the
   * server answers with an error, with an RPCTimeoutError, an RPCClosedError, or
   * the error of the transport.
   */
  request<T = unknown>(method: string, params?: JSONRPCParams, options: RequestOptions = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.closed) {
        reject(this.closed);
        return;
      }
      const { signal } = options;
      if (signal?.aborted) {
        reject(cancelled(method));
        return;
      }
      const id = ++this.lastId;
      const timeout = options.timeout ?? this.timeout;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const settled = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        this.pending.delete(id);
      };
      const giveUp = (error: Error): void => {
        settled();
        reject(error);
        try {
          this.notify("$/cancelRequest", { id });
        } catch {
          // The peer is gone: there is nothing to cancel.
        }
      };
      const abort = (): void => giveUp(cancelled(method));
      this.pending.set(id, {
        resolve: (result) => {
          settled();
          resolve(result as T);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
      if (timeout > 0 && Number.isFinite(timeout)) {
        timer = setTimeout(() => giveUp(new RPCTimeoutError(method, timeout)), timeout);
      }
      signal?.addEventListener("abort", abort, { once: true });
      const request: JSONRPCRequest = { jsonrpc: "2.0", method, id };
      if (params !== undefined) request.params = params;
      try {
        this.transport.send(request);
      } catch (error) {
        settled();
        reject(error);
      }
    });
  }

  /** Sends a notification. It gets no response. After destroy it does nothing. */
  notify(method: string, params?: JSONRPCParams): void {
    if (this.closed) return;
    const notification: JSONRPCNotification = { jsonrpc: "2.0", method };
    if (params !== undefined) notification.params = params;
    this.transport.send(notification);
  }

  /** Rejects all pending and later requests, and destroys the transport. */
  destroy(): void {
    this.close(new RPCClosedError("JSON-RPC client destroyed"));
    this.transport.destroy?.();
  }

  private close(reason: Error): void {
    if (this.closed) return;
    this.closed = reason;
    for (const stop of this.stopListening) stop();
    for (const request of [...this.pending.values()]) request.reject(reason);
  }

  private receive(message: JSONRPCMessage): void {
    if ("method" in message || !("id" in message) || message.id === null) return;
    const request = this.pending.get(message.id);
    if (!request) return; // a late response, or one for another client of the transport
    if ("error" in message) {
      request.reject(received(message.error));
    } else if ("result" in message) {
      request.resolve(message.result);
    }
  }
}

function cancelled(method: string): RPCError {
  return new RPCError(ErrorCode.RequestCancelled, `Request cancelled: ${method}`);
}

/** received makes an RPCError from an error of the peer, which may break the specification. */
function received(error: JSONRPCErrorObject | null | undefined): RPCError {
  const code = Number.isInteger(error?.code) ? error!.code : ErrorCode.InternalError;
  const message = typeof error?.message === "string" ? error.message : "Error without a message";
  return new RPCError(code, message, error?.data);
}
