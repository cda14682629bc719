import { isJSONRPC } from "./messages.js";
import type { JSONRPCMessage, RPCTransport } from "./messages.js";

// What a listener gets depends on the type of the event, and on who tells of it.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Listener = (event: any) => void;

/** What has postMessage and tells of messages: a Worker, a MessagePort, the scope of a worker; also those of Node. */
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

/** A webview as the extension host has it: vscode.Webview. */
export interface WebviewTarget {
  postMessage(message: unknown): PromiseLike<boolean>;
  onDidReceiveMessage(listener: (message: unknown) => void): { dispose(): unknown };
}

/** What acquireVsCodeApi() returns inside of a webview. */
export interface WebviewApi {
  postMessage(message: unknown): void;
}

/**
 * A transport between two windows, such as a page and an iframe in it.
 *
 * Messages are taken of the target window alone, and, unless origin is "*", only
 * while that shows a page of this origin; only such a page gets ours. Name the origin
 * wherever it is known: with "*" whatever page the target was led to can read along and
 * answer. The origin of a sandboxed iframe is "null": to such a one messages
 * go as with "*", since nothing can name it, and only what comes from one is taken.
 */
export function windowTransport(target: Window, source: Window = window, origin = "*"): RPCTransport {
  const anybody = origin === "*";
  const sendTo = origin === "null" ? "*" : origin;
  return eventTransport(
    (message) => target.postMessage(message, sendTo),
    (receive) => {
      const listener = (event: MessageEvent): void => {
        if (event.source !== target) return;
        if (!anybody && event.origin !== origin) return;
        receive(event.data);
      };
      source.addEventListener("message", listener);
      return () => source.removeEventListener("message", listener);
    },
  );
}

/** A transport over a MessagePort, which destroy closes. What came before the first handler listens is not lost. */
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

/** A transport to a worker, for who started it. destroy leaves the worker running: end it by its terminate. */
export function workerTransport(worker: MessageTarget): RPCTransport {
  const transport = eventTransport(
    (message) => worker.postMessage(message),
    (receive) => listen(worker, "message", receive),
  );
  // Node tells of the end of a worker; a browser does not.
  transport.onClose = (handler) => listen(worker, "exit", () => handler(new Error("the worker has ended")));
  return transport;
}

/** A transport inside of a worker, to who started it. In Node the scope is parentPort. */
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

/** A transport inside of a webview of VS Code, to its extension; api is what acquireVsCodeApi() has returned. */
export function webviewPageTransport(api: WebviewApi, page: Window = window): RPCTransport {
  return eventTransport(
    (message) => api.postMessage(message),
    (receive) => {
      const listener = (event: MessageEvent): void => {
        // The extension's messages come by the frame around this page, which VS Code hides from it (it has no
        // window.parent). Frames inside of the page are somebody else's.
        if (isInside(event.source as Window | null, page)) return;
        receive(event.data);
      };
      page.addEventListener("message", listener);
      return () => page.removeEventListener("message", listener);
    },
  );
}

/** isInside tells whether a window is that of a frame in a page, or of a frame in such a one. */
function isInside(source: Window | null, page: Window): boolean {
  let at: Window | null | undefined = source;
  while (at && at !== page) {
    const around: Window | undefined = at.parent;
    if (around === page) return true;
    if (around === at) return false; // the outermost one
    at = around;
  }
  return false;
}

/** eventTransport hands what is received, and is JSON-RPC, to whoever listens; it listens itself while anybody does. */
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

/** listen calls handler with what events of a type carry, of an EventTarget or of an EventEmitter of Node. */
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
