// The page of a session panel, and the draft and the place that it keeps.
import type { Draft } from "../panel/protocol";
import { webviewPageTransport } from "../rpc/index";
import type { WebviewApi } from "../rpc/index";
import { Host } from "./host";
import { Panel } from "./panel";
import type { Kept } from "./panel";
import type { ReadingPlace } from "./transcript";

declare function acquireVsCodeApi(): Api;

interface Api extends WebviewApi {
  getState(): unknown;
  setState(state: unknown): void;
}

interface PageState {
  /** The extension finds the session by this when VS Code restores the panel. */
  place: { window: string; session: string } & Record<string, unknown>;
  kept?: Draft;
  /** The place in the transcript. Absent: its end. */
  reading?: ReadingPlace;
  /** The turns whose queued prompts the user took back. */
  takenBack?: string[];
}

/** The most turns of these that the page remembers. */
const mostTakenBack = 200;

/** How long typing has to pause before the extension gets a draft with images or files, in milliseconds. */
const pause = 400;

/**
 * The draft of the page's prompt, and the place in its transcript. The state of the page gets each change at once: it outlives a hidden panel. The
 * extension writes the draft to the disk (panel.keepDraft), where it outlives the window.
 */
class KeptDraft implements Kept {
  private kept: Draft | undefined;
  private reading: ReadingPlace | undefined;
  private turns: string[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly api: Api,
    private readonly host: Host,
    private readonly session: PageState["place"],
  ) {
    const before = api.getState() as PageState | undefined;
    // The state counts in the same window only. After that window has ended, VS Code may have an older state than the extension.
    // In the side bar, it may be the state of the session before.
    if (before?.place.window === session.window && before.place.session === session.session && isDraft(before.kept)) this.kept = before.kept;
    if (before?.place.session === session.session && isPlace(before.reading)) this.reading = before.reading;
    if (before?.place.session === session.session && Array.isArray(before.takenBack)) this.turns = before.takenBack;
    this.save();
    if (this.kept) this.store(this.kept);
  }

  get draft(): Draft | undefined {
    return this.kept;
  }

  get place(): ReadingPlace | undefined {
    return this.reading;
  }

  keepPlace(place: ReadingPlace | undefined): void {
    this.reading = place;
    this.save();
  }

  get takenBack(): readonly string[] {
    return this.turns;
  }

  keepTakenBack(turn: string): void {
    this.turns = [...this.turns, turn].slice(-mostTakenBack);
    this.save();
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
    this.api.setState({ place: this.session, ...(this.kept ? { kept: this.kept } : {}), ...(this.reading ? { reading: this.reading } : {}), ...(this.turns.length > 0 ? { takenBack: this.turns } : {}) } satisfies PageState);
  }

  private store(draft: Draft): void {
    this.host.request("panel.keepDraft", { ...draft, session: this.session.session }).catch(() => undefined); // the page's state still has it
  }
}

function isPlace(value: ReadingPlace | undefined): boolean {
  return typeof value?.key === "string" && typeof value.offset === "number";
}

function isDraft(value: Draft | undefined): boolean {
  return value?.text !== undefined && Array.isArray(value.content);
}

const api = acquireVsCodeApi();
const root = document.getElementById("app")!;
const host = new Host(webviewPageTransport(api));
const panel = new Panel(root, host, new KeptDraft(api, host, JSON.parse(root.dataset["place"]!) as PageState["place"]));
void panel.open();
