// The page of a session panel, and the draft that it keeps.
import type { Draft } from "../panel/protocol";
import { webviewPageTransport } from "../rpc/index";
import type { WebviewApi } from "../rpc/index";
import { Host } from "./host";
import { Panel } from "./panel";
import type { Kept } from "./panel";

declare function acquireVsCodeApi(): Api;

interface Api extends WebviewApi {
  getState(): unknown;
  setState(state: unknown): void;
}

interface PageState {
  /** The extension finds the session by this when VS Code restores the panel. */
  place: { window: string; session: string } & Record<string, unknown>;
  kept?: Draft;
}

/** How long typing has to pause before the extension gets a draft with images or files, in milliseconds. */
const pause = 400;

/**
 * The draft of the page's prompt. The state of the page gets each change at once: it outlives a hidden panel. The
 * extension writes the draft to the disk (panel.keepDraft), where it outlives the window.
 */
class KeptDraft implements Kept {
  private kept: Draft | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly api: Api,
    private readonly host: Host,
    private readonly place: PageState["place"],
  ) {
    const before = api.getState() as PageState | undefined;
    // The state counts in the same window only. After that window has ended, VS Code may have an older state than the extension.
    // In the side bar, it may be the state of the session before.
    if (before?.place.window === place.window && before.place.session === place.session && isDraft(before.kept)) this.kept = before.kept;
    this.save();
    if (this.kept) this.store(this.kept);
  }

  get draft(): Draft | undefined {
    return this.kept;
  }

  keep(draft: Draft): void {
    this.kept = draft;
    this.save();
    clearTimeout(this.timer);
    // VS Code ends a hidden page without a warning, so the extension gets a short draft at once.
    if (draft.content.length === 0) this.store(draft);
    else this.timer = setTimeout(() => this.store(draft), pause);
  }

  private save(): void {
    this.api.setState({ place: this.place, ...(this.kept ? { kept: this.kept } : {}) } satisfies PageState);
  }

  private store(draft: Draft): void {
    this.host.request("panel.keepDraft", { ...draft, session: this.place.session }).catch(() => undefined); // the page's state still has it
  }
}

function isDraft(value: Draft | undefined): boolean {
  return value?.text !== undefined && Array.isArray(value.content);
}

const api = acquireVsCodeApi();
const root = document.getElementById("app")!;
const host = new Host(webviewPageTransport(api));
const panel = new Panel(root, host, new KeptDraft(api, host, JSON.parse(root.dataset["place"]!) as PageState["place"]));
void panel.open();
