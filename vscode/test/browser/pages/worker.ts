// The worker of rpc.test.ts.
import { JSONRPCServer, RPCError, selfTransport } from "../../../src/rpc/index.js";

const server = new JSONRPCServer(selfTransport());
server.method("build", (params) => ({ built: (params as { entry: string }).entry }));
server.method("buildBackend", () => {
  throw new RPCError(-32001, "Build failed", { diagnostics: [{ line: 1 }] });
});
