// The page of a session panel.
import { webviewPageTransport } from "../rpc/index";
import type { WebviewApi } from "../rpc/index";
import { Host } from "./host";
import { Panel } from "./panel";

declare function acquireVsCodeApi(): WebviewApi & { getState(): unknown; setState(state: unknown): void };

const api = acquireVsCodeApi();
const panel = new Panel(document.getElementById("app")!, new Host(webviewPageTransport(api)), { get: () => api.getState(), set: (state) => api.setState(state) });
void panel.open();
