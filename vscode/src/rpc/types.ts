// The messages of JSON-RPC 2.0 (https://www.jsonrpc.org/specification), and
// what carries them.

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
