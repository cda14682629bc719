// The messages of JSON-RPC 2.0 (https://www.jsonrpc.org/specification), their errors, and what carries them.

/** A number or a string that a caller has chosen: the response to a request has the same. */
export type JSONRPCId = number | string;

/** What a method gets: members by name, or values by position. */
export type JSONRPCParams = Record<string, unknown> | unknown[];

export interface JSONRPCRequest {
  jsonrpc: "2.0";
  method: string;
  params?: JSONRPCParams;
  id: JSONRPCId;
}

/** A request without an id: nobody answers it. */
export interface JSONRPCNotification {
  jsonrpc: "2.0";
  method: string;
  params?: JSONRPCParams;
}

export interface JSONRPCSuccessResponse {
  jsonrpc: "2.0";
  result: unknown;
  id: JSONRPCId;
}

export interface JSONRPCErrorObject {
  code: number;
  message: string;
  data?: unknown;
}

export interface JSONRPCErrorResponse {
  jsonrpc: "2.0";
  error: JSONRPCErrorObject;
  /** Null: nobody knows which request it is about. */
  id: JSONRPCId | null;
}

export type JSONRPCResponse = JSONRPCSuccessResponse | JSONRPCErrorResponse;
export type JSONRPCMessage = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse;

/** Carries messages between two contexts. A client and a server can share one. */
export interface RPCTransport {
  /** Throws if the message cannot be sent, as one with a function in it. */
  send(message: JSONRPCMessage): void;
  /**
   * Calls handler with each message from now on. Any number of handlers may
   * listen; the function that is returned takes this one away.
   */
  onMessage(handler: (message: JSONRPCMessage) => void): () => void;
  /** Calls handler once when the other side is known to be gone, where that can be known. */
  onClose?(handler: (reason: Error) => void): () => void;
  /** Stops listening, and closes what is the transport's own. */
  destroy?(): void;
}

/**
 * Tells whether a value is a message of JSON-RPC 2.0. Other messages that go
 * through the same window, worker or port are not ours, and are left alone.
 */
export function isJSONRPC(value: unknown): value is JSONRPCMessage {
  return typeof value === "object" && value !== null && (value as { jsonrpc?: unknown }).jsonrpc === "2.0";
}

/** The codes of JSON-RPC 2.0, and those that Duet's hub and the pages that it serves use. */
export const ErrorCode = {
  ParseError: -32700,
  InvalidRequest: -32600,
  MethodNotFound: -32601,
  InvalidParams: -32602,
  InternalError: -32603,
  BuildFailed: -32001,
  GateFailed: -32002,
  PermissionDenied: -32003,
  TaskCancelled: -32004,
  PreviewLoadFailed: -32005,
  NavigationFailed: -32006,
  MCPServerError: -32007,
  ContextOverflow: -32008,
  /** The hub, or the process that leads to it, has ended before it answered: the request may have been carried out. */
  HubLost: -32042,
  /** The caller has taken the request back. */
  RequestCancelled: -32800,
} as const;

/** An error that a server answers with, or has answered with. */
export class RPCError extends Error {
  override readonly name = "RPCError";

  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** No answer came in time. The request may still be carried out. */
export class RPCTimeoutError extends Error {
  override readonly name = "RPCTimeoutError";

  constructor(
    readonly method: string,
    readonly timeout: number,
  ) {
    super(`JSON-RPC timeout: no answer to ${method} within ${timeout} ms`);
  }
}

/** The client was destroyed, or its other side has gone, before the answer came. */
export class RPCClosedError extends Error {
  override readonly name = "RPCClosedError";
}

/** errorObject is what a response tells of something that was thrown. */
export function errorObject(thrown: unknown): JSONRPCErrorObject {
  const { code, message, data } = typeof thrown === "object" && thrown !== null ? (thrown as Record<string, unknown>) : {};
  const error: JSONRPCErrorObject = {
    // Other errors have codes, too, such as "ENOENT".
    code: Number.isInteger(code) ? (code as number) : ErrorCode.InternalError,
    message: typeof message === "string" && message !== "" ? message : "Internal error",
  };
  if (data !== undefined) error.data = data;
  return error;
}
