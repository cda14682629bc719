// The worker of rpc.test.ts.
import { parentPort } from "node:worker_threads";
import { JSONRPCServer, selfTransport } from "../../src/rpc/index.js";

const server = new JSONRPCServer(selfTransport(parentPort!));
server.method("build", (params) => ({ built: (params as { entry: string }).entry }));
server.method("exit", () => process.exit(0));
