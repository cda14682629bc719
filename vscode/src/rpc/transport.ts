import { isJSONRPC } from "./messages.js";
import type { JSONRPCMessage, RPCTransport } from "./messages.js";

// The argument of a listener depends on the type of the event and on its source.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Listener = (event: any) => void;

/** A sender and receiver of messages: a Worker, a MessagePort or the scope of a worker, also those of Node. */
export interface MessageTarget {
  postMessage(message: unknown): void;
  addEventListener?(type: string, listener: Listener): void;
  removeEventListener?(type: string, listener: Listener): void;
  on?(type: string, listener: Listener): unknown;
  off?(type: string, listener: Listener): unknown;
}

/** A port of a MessageChannel, in a page or in Node. */
export interface PortTarget extends MessageTarget {
  start?(): void;
  close(): void;
}

/** A webview in the extension host: vscode.Webview. */
export interface WebviewTarget {
  postMessage(message: unknown): PromiseLike<boolean>;
  onDidReceiveMessage(listener: (message: unknown) => void): { dispose(): unknown };
}

/** The result of acquireVsCodeApi() inside a webview. */
export interface WebviewApi {
  postMessage(message: unknown): void;
}

/**
 * A transport between two windows, such as a page and an iframe in it.
 *
 * It accepts messages only from the target window. Unless origin is "*", it sends to and
 * accepts messages only from a page of that origin. Give the origin whenever it is known:
 * with "*" any page that the target navigates to can read and answer messages. The origin
 * of a sandboxed iframe is "null". No address can name it, so messages go there as with "*",
 * and only messages from the origin "null" are accepted.
 */
export function windowTransport(target: Window, source: Window = window, origin = "*"): RPCTransport {
  const anyOrigin = origin === "*";
  const sendTo = origin === "null" ? "*" : origin;
  return eventTransport(
    (message) => target.postMessage(message, sendTo),
    (receive) => {
      const listener = (event: MessageEvent): void => {
        if (event.source !== target) return;
        if (!anyOrigin && event.origin !== origin) return;
        receive(event.data);
      };
      source.addEventListener("message", listener);
      return () => source.removeEventListener("message", listener);
    },
  );
}

/** A transport over a MessagePort, which destroy closes. The first handler also gets earlier messages. */
export function portTransport(port: PortTarget): RPCTransport {
  const transport = eventTransport(
    (message) => port.postMessage(message),
    (receive) => {
      const stop = listen(port, "message", receive);
      port.start?.();
      return stop;
    },
    () => port.close(),
  );
  transport.onClose = (handler) => listen(port, "close", () => handler(new Error("the port was closed")));
  return transport;
}

/** A transport to a worker, for its parent. destroy leaves the worker running: call its terminate. */
export function workerTransport(worker: MessageTarget): RPCTransport {
  const transport = eventTransport(
    (message) => worker.postMessage(message),
    (receive) => listen(worker, "message", receive),
  );
  // Node reports the end of a worker; a browser does not.
  transport.onClose = (handler) => listen(worker, "exit", () => handler(new Error("the worker has ended")));
  return transport;
}

/** A transport inside a worker, to its parent. In Node the scope is parentPort. */
export function selfTransport(scope: MessageTarget = globalThis): RPCTransport {
  return eventTransport(
    (message) => scope.postMessage(message),
    (receive) => listen(scope, "message", receive),
  );
}

/** A transport to a webview of VS Code, for the extension. */
export function webviewTransport(webview: WebviewTarget): RPCTransport {
  return eventTransport(
    (message) => void webview.postMessage(message),
    (receive) => {
      const subscription = webview.onDidReceiveMessage(receive);
      return () => void subscription.dispose();
    },
  );
}

/** A transport inside a webview of VS Code, to its extension. api is the result of acquireVsCodeApi(). */
export function webviewPageTransport(api: WebviewApi, page: Window = window): RPCTransport {
  return eventTransport(
    (message) => api.postMessage(message),
    (receive) => {
      const listener = (event: MessageEvent): void => {
        // The extension's messages come from the frame around this page, which VS Code hides from it (it has no
        // window.parent). Frames inside the page are not the extension.
        if (isInside(event.source as Window | null, page)) return;
        receive(event.data);
      };
      page.addEventListener("message", listener);
      return () => page.removeEventListener("message", listener);
    },
  );
}

/** isInside reports whether a window belongs to a frame inside a page, at any depth. */
function isInside(source: Window | null, page: Window): boolean {
  let at: Window | null | undefined = source;
  while (at && at !== page) {
    const around: Window | undefined = at.parent;
    if (around === page) return true;
    if (around === at) return false; // the outermost window
    at = around;
  }
  return false;
}

/** eventTransport passes received JSON-RPC messages to its handlers. It starts to listen with the first handler. */
function eventTransport(
  send: (message: JSONRPCMessage) => void,
  start: (receive: (data: unknown) => void) => () => void,
  close: () => void = () => {},
): RPCTransport {
  const handlers = new Set<(message: JSONRPCMessage) => void>();
  let stop: (() => void) | undefined;
  let destroyed = false;
  const receive = (data: unknown): void => {
    if (!isJSONRPC(data)) return;
    for (const handler of [...handlers]) handler(data);
  };
  return {
    send: (message) => {
      if (destroyed) throw new Error("the transport was destroyed");
      send(message);
    },
    onMessage: (handler) => {
      const own = (message: JSONRPCMessage): void => handler(message);
      handlers.add(own);
      if (!destroyed) stop ??= start(receive);
      return () => void handlers.delete(own);
    },
    destroy: () => {
      if (destroyed) return;
      destroyed = true;
      handlers.clear();
      stop?.();
      close();
    },
  };
}

/** listen calls handler with the data of events of a type, from an EventTarget or a Node EventEmitter. */
function listen(target: MessageTarget, type: string, handler: (data: unknown) => void): () => void {
  if (target.on && target.off) {
    const listener = (value: unknown): void => handler(value);
    target.on(type, listener);
    return () => void target.off?.(type, listener);
  }
  const listener = (event: unknown): void => handler((event as MessageEvent).data);
  target.addEventListener?.(type, listener);
  return () => target.removeEventListener?.(type, listener);
}
