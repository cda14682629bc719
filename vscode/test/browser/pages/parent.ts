// The page of rpc.test.ts: it has an iframe, a worker and a channel, through which the test sends requests.
import { JSONRPCClient, JSONRPCServer, portTransport, webviewPageTransport, windowTransport, workerTransport } from "../../../src/rpc/index.js";

Object.assign(window, { JSONRPCClient, JSONRPCServer, portTransport, webviewPageTransport, windowTransport, workerTransport });
