// The library of src/rpc in Chromium: with an iframe of another origin, a
// MessageChannel and a Worker.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type * as rpc from "../../src/rpc/index.js";
import { startChromium } from "./chromium.js";

declare const JSONRPCClient: typeof rpc.JSONRPCClient;
declare const JSONRPCServer: typeof rpc.JSONRPCServer;
declare const portTransport: typeof rpc.portTransport;
declare const webviewPageTransport: typeof rpc.webviewPageTransport;
declare const windowTransport: typeof rpc.windowTransport;
declare const workerTransport: typeof rpc.workerTransport;

let browser: Browser;
let origins: [string, string];
const servers: Array<ReturnType<typeof createServer>> = [];

/** serve serves the pages at a new port, and so at a new origin. */
async function serve(): Promise<string> {
  const server = createServer((request, response) => {
    const name = new URL(request.url ?? "/", "http://localhost").pathname.slice(1);
    if (name.endsWith(".js")) {
      readFile(new URL(`./pages/${name}`, import.meta.url)).then(
        (script) => response.setHeader("content-type", "text/javascript").end(script),
        () => response.writeHead(404).end(),
      );
    } else {
      response.setHeader("content-type", "text/html").end(`<!doctype html><title>${name}</title><script src="/${name}.js"></script>`);
    }
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

before(async () => {
  origins = [await serve(), await serve()];
  browser = await startChromium();
});

after(async () => {
  await browser?.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

async function parentPage(t: { after: (f: () => Promise<void>) => void }): Promise<Page> {
  const page = await browser.newPage();
  t.after(() => page.close());
  page.setDefaultTimeout(120_000);
  await page.goto(`${origins[0]}/parent`);
  return page;
}

test("a page and an iframe of another origin ask each other", async (t) => {
  const page = await parentPage(t);
  const got = await page.evaluate(async ([own, other]) => {
    const frame = document.createElement("iframe");
    document.body.append(frame);
    const transport = windowTransport(frame.contentWindow!, window, other);
    const [client, server] = [new JSONRPCClient(transport, { timeout: 60_000 }), new JSONRPCServer(transport)];
    server.method("whoAreYou", () => "the page");
    const described = ({ code, message, data }: rpc.RPCError): unknown => ({ code, message, data });
    const greeting = new Promise((resolve) => server.onNotify("console", resolve));
    frame.src = `${other}/frame?origin=${encodeURIComponent(own)}`;
    const said = await greeting;
    const failed = await client.request("navigate").catch((error: unknown) => described(error as rpc.RPCError));
    client.notify("updateNavigationState", { url: "/" });
    return {
      said,
      failed,
      fetched: await client.request("fetch", { url: "/dist/app.js" }),
      back: await client.request("askBack"),
      navigated: await client.request("navigated"),
    };
  }, origins);
  assert.deepEqual(got, {
    said: { level: "log", message: "frame is here" },
    failed: { code: -32006, message: "Navigation failed", data: { reason: "cross-origin" } },
    fetched: { status: 200, body: "of /dist/app.js" },
    back: "the page",
    navigated: 1,
  });
});

test("what another origin, or another window, says is not heard", async (t) => {
  const page = await parentPage(t);
  const heard = await page.evaluate(async ([own, other]) => {
    const open = (origin: string): HTMLIFrameElement => {
      const frame = document.createElement("iframe");
      frame.src = `${origin}/frame?origin=*`;
      document.body.append(frame);
      return frame;
    };
    const loaded = (frame: HTMLIFrameElement): Promise<unknown> => new Promise((resolve) => frame.addEventListener("load", resolve));
    const [friend, stranger] = [open(other), open(other)];
    await Promise.all([loaded(friend), loaded(stranger)]);
    const heard: unknown[] = [];
    // This is for the right window, but only if it shows our own origin, which it does not.
    windowTransport(friend.contentWindow!, window, own).onMessage((message) => heard.push(["wrong origin", message]));
    const transport = windowTransport(friend.contentWindow!, window, other);
    // A message of the frame while it loads may arrive before.
    transport.onMessage((message) => "method" in message || heard.push(["friend", message]));
    // The stranger and this window send first, and the friend last, so no other message is missing.
    const answered = (frame: HTMLIFrameElement, id: number): Promise<void> =>
      new Promise((resolve) => {
        window.addEventListener("message", (event: MessageEvent<{ id?: number }>) => {
          if (event.source === frame.contentWindow && event.data.id === id) resolve();
        });
        frame.contentWindow!.postMessage({ jsonrpc: "2.0", id, method: "navigated" }, "*");
      });
    window.postMessage({ jsonrpc: "2.0", id: 0, result: "of this window" }, "*");
    await answered(stranger, 1);
    await answered(friend, 2);
    return heard;
  }, origins);
  assert.deepEqual(heard, [["friend", { jsonrpc: "2.0", result: 0, id: 2 }]]);
});

test("a page of another origin gets none of our messages", async (t) => {
  const page = await parentPage(t);
  const outcome = await page.evaluate(async ([own, other]) => {
    const frame = document.createElement("iframe");
    frame.src = `${other}/frame?origin=*`;
    document.body.append(frame);
    await new Promise((resolve) => frame.addEventListener("load", resolve));
    const meantForUs = new JSONRPCClient(windowTransport(frame.contentWindow!, window, own), { timeout: 0 });
    meantForUs.notify("updateNavigationState");
    const client = new JSONRPCClient(windowTransport(frame.contentWindow!, window, other), { timeout: 60_000 });
    return client.request("navigated");
  }, origins);
  assert.equal(outcome, 0);
});

test("a sandboxed iframe has the origin null", async (t) => {
  const page = await parentPage(t);
  const fetched = await page.evaluate(async ([, other]) => {
    const frame = document.createElement("iframe");
    frame.sandbox.add("allow-scripts");
    document.body.append(frame);
    const transport = windowTransport(frame.contentWindow!, window, "null");
    const greeting = new Promise((resolve) => new JSONRPCServer(transport).onNotify("console", resolve));
    frame.src = `${other}/frame?origin=*`;
    await greeting;
    return new JSONRPCClient(transport, { timeout: 60_000 }).request("fetch", { url: "/" });
  }, origins);
  assert.deepEqual(fetched, { status: 200, body: "of /" });
});

test("a port that was handed to an iframe answers", async (t) => {
  const page = await parentPage(t);
  const answer = await page.evaluate(async ([, other]) => {
    const frame = document.createElement("iframe");
    frame.src = `${other}/frame`;
    document.body.append(frame);
    await new Promise((resolve) => frame.addEventListener("load", resolve));
    const { port1, port2 } = new MessageChannel();
    const client = new JSONRPCClient(portTransport(port1), { timeout: 60_000 });
    const answer = client.request("ping"); // before there is a listener
    frame.contentWindow!.postMessage("port", other, [port2]);
    return answer;
  }, origins);
  assert.equal(answer, "pong through the port");
});

test("a Worker builds", async (t) => {
  const page = await parentPage(t);
  const got = await page.evaluate(async () => {
    const worker = new Worker("/worker.js");
    const client = new JSONRPCClient(workerTransport(worker), { timeout: 60_000 });
    const built = await client.request("build", { entry: "src/App.tsx" });
    const failed = await client.request("buildBackend").catch((error: unknown) => [(error as rpc.RPCError).code, (error as rpc.RPCError).data]);
    client.destroy();
    return { built, failed };
  });
  assert.deepEqual(got, { built: { built: "src/App.tsx" }, failed: [-32001, { diagnostics: [{ line: 1 }] }] });
});

test("inside of a webview the extension is heard, and frames of the page are not", async (t) => {
  const page = await parentPage(t);
  const heard = await page.evaluate(async ([, other]) => {
    const sent: unknown[] = [];
    const heard: unknown[] = [];
    const transport = webviewPageTransport({ postMessage: (message) => void sent.push(message) });
    transport.onMessage((message) => heard.push(message));
    const frame = document.createElement("iframe");
    const greeted = new Promise((resolve) => window.addEventListener("message", resolve, { once: true }));
    frame.src = `${other}/frame?origin=*`;
    document.body.append(frame);
    await greeted; // the frame's notification arrived
    const last = new Promise((resolve) => window.addEventListener("message", resolve, { once: true }));
    window.postMessage({ jsonrpc: "2.0", id: 1, result: "of the extension" }, "*");
    await last;
    transport.send({ jsonrpc: "2.0", id: 1, method: "ping" });
    return { heard, sent };
  }, origins);
  assert.deepEqual(got(heard), { heard: ["of the extension"], sent: ["ping"] });
});

function got({ heard, sent }: { heard: unknown[]; sent: unknown[] }): unknown {
  return { heard: heard.map((message) => (message as { result?: unknown }).result), sent: sent.map((message) => (message as { method?: unknown }).method) };
}
