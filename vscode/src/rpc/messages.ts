// The messages and errors of JSON-RPC 2.0 (https://www.jsonrpc.org/specification), and the transport that carries them.

/** The id of a request, chosen by the caller. The response has the same id. */
export type JSONRPCId = number | string;

/** The parameters of a method: members by name, or values by position. */
export type JSONRPCParams = Record<string, unknown> | unknown[];

export interface JSONRPCRequest {
  jsonrpc: "2.0";
  method: string;
  params?: JSONRPCParams;
  id: JSONRPCId;
}

/** A request without an id. It gets no response. */
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
  /** Null: the server could not read the id of the request. */
  id: JSONRPCId | null;
}

export type JSONRPCResponse = JSONRPCSuccessResponse | JSONRPCErrorResponse;
export type JSONRPCMessage = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse;

/** Carries messages between two contexts. A client and a server can share one. */
export interface RPCTransport {
  /** Throws if the message cannot be sent, such as one that contains a function. */
  send(message: JSONRPCMessage): void;
  /**
   * Calls handler with each further message. Any number of handlers may
   * listen. The returned function removes this one.
   */
  onMessage(handler: (message: JSONRPCMessage) => void): () => void;
  /** Calls handler once when the peer is gone. Absent if the transport cannot detect that. */
  onClose?(handler: (reason: Error) => void): () => void;
  /** Stops listening and closes the resources of the transport. */
  destroy?(): void;
}

/**
 * Reports whether a value is a message of JSON-RPC 2.0. Transports ignore all other
 * messages of the same window, worker or port.
 */
export function isJSONRPC(value: unknown): value is JSONRPCMessage {
  return typeof value === "object" && value !== null && (value as { jsonrpc?: unknown }).jsonrpc === "2.0";
}

/** The error codes of JSON-RPC 2.0, of Duet's daemon and of the pages that it serves. */
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
  /** The daemon, or the relay to it, ended before it answered. It may have carried out the request. */
  HubLost: -32042,
  /** The caller has cancelled the request. */
  RequestCancelled: -32800,
} as const;

/** The error of a response. A handler may throw it. */
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

/** No response came in time. The server may still carry out the request. */
export class RPCTimeoutError extends Error {
  override readonly name = "RPCTimeoutError";

  constructor(
    readonly method: string,
    readonly timeout: number,
  ) {
    super(`JSON-RPC timeout: no answer to ${method} within ${timeout} ms`);
  }
}

/** The client was destroyed, or the peer ended, before the response came. */
export class RPCClosedError extends Error {
  override readonly name = "RPCClosedError";
}

/** errorObject makes the error of a response from a thrown value. */
export function errorObject(thrown: unknown): JSONRPCErrorObject {
  const { code, message, data } = typeof thrown === "object" && thrown !== null ? (thrown as Record<string, unknown>) : {};
  const error: JSONRPCErrorObject = {
    // Other errors also have codes, such as "ENOENT".
    code: Number.isInteger(code) ? (code as number) : ErrorCode.InternalError,
    message: typeof message === "string" && message !== "" ? message : "Internal error",
  };
  if (data !== undefined) error.data = data;
  return error;
}
