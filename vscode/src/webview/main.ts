// The page of a session panel.
import { webviewPageTransport } from "../rpc/index";
import type { WebviewApi } from "../rpc/index";
import { Host } from "./host";
import { Panel } from "./panel";

declare function acquireVsCodeApi(): WebviewApi & { getState(): unknown; setState(state: unknown): void };

/** The extension finds by place what the panel has shown, when VS Code opens it again. */
interface PageState {
  place: unknown;
  kept?: unknown;
}

const api = acquireVsCodeApi();
const root = document.getElementById("app")!;
const place: unknown = JSON.parse(root.dataset["place"] ?? "null");
const kept = (): unknown => (api.getState() as PageState | undefined)?.kept;
const keep = (state: unknown): void => api.setState({ place, kept: state } satisfies PageState);
keep(kept());
const panel = new Panel(root, new Host(webviewPageTransport(api)), { get: kept, set: keep });
void panel.open();
