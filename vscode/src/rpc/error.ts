import type { JSONRPCErrorObject } from "./types.js";

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
