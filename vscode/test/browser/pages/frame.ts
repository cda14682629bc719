// The iframe of rpc.test.ts. ?origin= is the origin that it talks to.
import { JSONRPCClient, JSONRPCServer, RPCError, portTransport, windowTransport } from "../../../src/rpc/index.js";

const query = new URLSearchParams(location.search);
const transport = windowTransport(window.parent, window, query.get("origin") ?? "*");
const server = new JSONRPCServer(transport);
const client = new JSONRPCClient(transport);
let navigated = 0;
server.method("fetch", (params) => ({ status: 200, body: `of ${(params as { url: string }).url}` }));
server.method("navigate", () => {
  throw new RPCError(-32006, "Navigation failed", { reason: "cross-origin" });
});
server.method("askBack", () => client.request("whoAreYou"));
server.method("navigated", () => navigated);
server.onNotify("updateNavigationState", () => navigated++);
// Another protocol may transfer a port, which then uses ours.
window.addEventListener("message", (event) => {
  if (event.data === "port") {
    new JSONRPCServer(portTransport(event.ports[0]!)).method("ping", () => "pong through the port");
  }
});
client.notify("console", { level: "log", message: "frame is here" });
