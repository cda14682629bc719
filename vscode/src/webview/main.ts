// The page of a session panel.
import type { Draft } from "../panel/protocol";
import { webviewPageTransport } from "../rpc/index";
import type { WebviewApi } from "../rpc/index";
import { Host } from "./host";
import { Panel } from "./panel";

declare function acquireVsCodeApi(): WebviewApi & { getState(): unknown; setState(state: unknown): void };

interface PageState {
  /** By this the extension finds what the panel has shown, when VS Code opens it again. */
  place: { window: string } & Record<string, unknown>;
  kept?: Draft;
}

const api = acquireVsCodeApi();
const root = document.getElementById("app")!;
const place = JSON.parse(root.dataset["place"]!) as PageState["place"];
const before = api.getState() as PageState | undefined;
// What a page has kept counts as long as the window is the same, in which panels are hidden and shown. Of a window that
// has ended VS Code may have an older state than the extension (panel.keepDraft), which is asked instead.
let kept = before?.place.window === place.window ? before.kept : undefined;
const keep = (draft: Draft | undefined): void => {
  kept = draft;
  api.setState({ place, ...(draft ? { kept: draft } : {}) } satisfies PageState);
};
keep(kept);
const host = new Host(webviewPageTransport(api));
// A page ends without a word when its panel is hidden, so that the extension is told at once of what is not long.
const tell = (draft: Draft): void => void host.request("panel.keepDraft", draft).catch(() => undefined);
if (kept !== undefined) tell(kept);
const panel = new Panel(root, host, {
  get: () => kept,
  set: (state) => {
    keep(state as Draft);
    if ((state as Draft).content.length === 0) tell(state as Draft);
  },
});
void panel.open();
