// The attempts of several agents at one prompt: a page compares them, and the user chooses one.
import { randomBytes } from "node:crypto";
import { join, posix } from "node:path";
import * as vscode from "vscode";
import type { Changes } from "./changes";
import type { Documents } from "./documents";
import { agentWords, isChoosable, isWorking } from "./hub/attempts";
import type { Attempt, Comparison, ComparisonMethods } from "./hub/attempts";
import { madeByPatch, partsOfPatch } from "./hub/changes";
import { short } from "./hub/groups";
import { onHost } from "./hub/host";
import type { Session } from "./hub/model";
import { confirm, inform } from "./messages";
import { messageHtml, pageHtml } from "./panel/html";
import type { Panels } from "./panel/panel";
import type { Project, Projects, ProjectSession } from "./projects";
import type { Result } from "./protocol";
import { JSONRPCClient, JSONRPCServer, webviewTransport } from "./rpc/index";
import { landedWords, pickMethod, showRefusal } from "./worktrees";

const viewType = "duet.attempts";

/** The parts of the extension that a comparison uses. */
export interface ComparisonParts {
  projects: Projects;
  panels: Pick<Panels, "open">;
  changes: Pick<Changes, "open">;
  documents: Pick<Documents, "openDiff">;
  extension: vscode.Uri;
  onError: (error: unknown) => void;
}

/** The data that restores a page. The page keeps it. */
interface Place {
  folder: string;
  /** The uuid of the session of one of the attempts. */
  session: string;
}

/** The comparisons of a window: one page for each prompt. */
export class Comparisons implements vscode.WebviewPanelSerializer, vscode.Disposable {
  private readonly open = new Map<string, vscode.WebviewPanel>();
  private readonly registration = vscode.window.registerWebviewPanelSerializer(viewType, this);

  constructor(private readonly parts: ComparisonParts) {}

  /** Shows the attempts at the prompt of a session. */
  show({ project, session }: ProjectSession): Promise<void> {
    const open = this.open.get(session.attempts ?? "");
    if (open) open.reveal();
    else this.fill(vscode.window.createWebviewPanel(viewType, `Attempts: ${short(session.prompt, 40)}`, vscode.ViewColumn.Active, { enableScripts: true, enableFindWidget: true }), project, session);
    return Promise.resolve();
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { place?: Partial<Place> } | undefined): Promise<void> {
    this.parts.projects.start();
    const { folder = "", session: id = "" } = state?.place ?? {};
    const project = this.parts.projects.at(folder);
    try {
      if (!project) throw new Error(`The folder ${folder} is not open in this window.`);
      await project.connection.start();
      const { turn: session } = await project.connection.request("turn.get", { turn: id });
      this.fill(panel, project, session);
    } catch (error) {
      panel.webview.html = messageHtml(panel.title, error instanceof Error ? error.message : String(error));
    }
  }

  dispose(): void {
    this.registration.dispose();
    for (const panel of this.open.values()) panel.dispose();
  }

  private fill(panel: vscode.WebviewPanel, project: Project, session: ProjectSession["session"]): void {
    const { extension, projects, onError } = this.parts;
    const key = session.attempts ?? "";
    this.open.set(key, panel);
    const { webview } = panel;
    const dist = vscode.Uri.joinPath(extension, "dist");
    webview.options = { enableScripts: true, localResourceRoots: [dist] };
    const transport = webviewTransport(webview);
    const [page, fromPage] = [new JSONRPCClient(transport), new JSONRPCServer(transport, { onError })];
    const own = (): Session[] => project.model.sessions.filter(({ attempts }) => attempts === key);
    const comparison = new ComparedAttempts(project, () => own()[0]?.session_uuid ?? session.session_uuid, this.parts, (data) => page.notify("comparison", data as unknown as Record<string, unknown>));
    for (const [name, method] of Object.entries(comparison.methods)) fromPage.method(name, async (params) => ((await method((params ?? {}) as never)), null));
    const states = (): string => JSON.stringify(own().map(({ turn_uuid, state, gates, worktree }) => [turn_uuid, state, gates?.state, worktree?.gone]).sort());
    let shown = states();
    const stop = projects.onChange(() => {
      if (project.connection.state.is !== "ready" || shown === states()) return;
      shown = states();
      comparison.refresh().catch(onError);
    });
    panel.onDidDispose(() => {
      if (this.open.get(key) === panel) this.open.delete(key);
      stop();
      fromPage.destroy();
      page.destroy();
    });
    const address = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    const place: Place = { folder: project.folder.uri.fsPath, session: session.session_uuid };
    webview.html = pageHtml({ source: webview.cspSource, script: address("attempts.js"), style: address("panel.css"), nonce: randomBytes(16).toString("base64url"), title: panel.title, place: JSON.stringify(place) });
  }
}

/** The attempts at one prompt, as their page shows them. */
export class ComparedAttempts {
  private known: Result<"attempt.list"> = { prompt: "", attempts: [] };
  private notes: string[] = [];
  private refreshing: Promise<void> | undefined;
  private again = false;

  constructor(
    private readonly project: Project,
    /** Returns a session of one of the attempts that are there. */
    private readonly session: () => string,
    private readonly parts: Pick<ComparisonParts, "panels" | "changes" | "documents">,
    private readonly show: (comparison: Comparison) => void,
  ) {}

  /** The methods for the page. */
  readonly methods: { [M in keyof ComparisonMethods]: (params: ComparisonMethods[M]) => Promise<void> } = {
    load: () => this.refresh(),
    openSession: async ({ session }) => void (await this.parts.panels.open(await this.projectSession(this.attempt(session)))),
    openFile: ({ session, path }) => this.openFile(this.attempt(session), path),
    choose: ({ session }) => this.choose(session),
  };

  /** Compares the attempts again, and shows them. A call during a comparison starts one more after it. */
  refresh(): Promise<void> {
    this.again = true;
    this.refreshing ??= (async () => {
      while (this.again) {
        this.again = false;
        this.known = await this.project.connection.request("attempt.list", { session: this.session() });
        this.show({ ...this.known, notes: this.notes });
      }
    })().finally(() => (this.refreshing = undefined));
    return this.refreshing;
  }

  private attempt(session: string): Attempt {
    const found = this.known.attempts.find(({ session_uuid }) => session_uuid === session);
    if (!found) throw new Error("this attempt was deleted");
    return found;
  }

  private async projectSession({ turn_uuid }: Attempt): Promise<ProjectSession> {
    const { turn: session } = await this.project.connection.request("turn.get", { turn: turn_uuid });
    return { project: this.project, session };
  }

  /** openFile shows how an attempt has changed a file since the common commit, else the change that its session has recorded. */
  private async openFile({ session_uuid, worktree }: Attempt, path: string): Promise<void> {
    const { attempts } = await this.project.connection.request("attempt.list", { session: this.session(), patch: true });
    const attempt = attempts.find((one) => one.session_uuid === session_uuid);
    if (!attempt || !worktree) throw new Error("this attempt was deleted");
    const { host } = this.project;
    const file = host ? posix.join(worktree.dir, path) : join(worktree.dir, path);
    const change = host ? partsOfPatch(attempt.patch ?? "", path) : madeByPatch(await textOf(file), attempt.patch ?? "", path);
    if (change) await this.parts.documents.openDiff(file, worktree.dir, change, short(agentWords(attempt), 40), host);
    else await this.parts.changes.open(await this.projectSession(attempt), file);
  }

  /** choose lands an attempt in a way that the user chooses, and discards the others. It asks before it interrupts those that work. */
  private async choose(session: string): Promise<void> {
    await this.refresh();
    const attempt = this.attempt(session);
    const agent = agentWords(attempt);
    if (!isChoosable(attempt)) throw new Error(isWorking(attempt) ? `${agent} still works: wait for its end, or interrupt it` : `the worktree of ${agent} is gone`);
    const method = await pickMethod(`How to land the changes of ${agent}, and discard the others?`);
    if (!method) return;
    const working = this.known.attempts.filter((other) => other !== attempt && isWorking(other)).map((other) => `${agentWords(other)} (${other.turn})`);
    const interrupt = "Interrupt and Discard";
    if (working.length > 0 && (await confirm(`${working.join(" and ")} still ${working.length === 1 ? "works" : "work"}`, "Choosing another attempt interrupts and discards this work. A git ref keeps it.", interrupt)) !== interrupt) return;
    let chosen: Result<"attempt.choose">;
    try {
      chosen = await this.project.connection.request("attempt.choose", { session: attempt.session_uuid, method, ...(working.length > 0 && { interrupt: true }) });
    } catch (error) {
      return showRefusal(error, await this.projectSession(attempt), this.parts.panels);
    }
    this.notes = [`${agent}${onHost(this.project.host)}: ${landedWords(chosen)}`, ...chosen.discarded.map(discardedWords)];
    await this.refresh();
    void offerCopy(this.notes.join("; "), chosen);
  }
}

function discardedWords({ agent, turn, ref, error, branch_kept, cleanup_error: cleanup }: Result<"attempt.choose">["discarded"][number]): string {
  if (error) return `${agent} (${turn}) stays: ${error}`;
  return [`${agent} (${turn}) is discarded`, ...(branch_kept ? ["its branch stays, because another working tree has it checked out"] : []), ...(cleanup ? [`its cleanup failed: ${cleanup}`] : []), ...(ref ? [`its work is kept: git branch NAME ${ref}`] : [])].join("; ");
}

/** Says what was landed and discarded, and offers to copy the commands that bring the others back. */
async function offerCopy(text: string, { discarded }: Result<"attempt.choose">): Promise<void> {
  const commands = discarded.flatMap(({ ref }) => (ref ? [`git branch NAME ${ref}`] : []));
  const copy = commands.length === 1 ? "Copy Command" : "Copy Commands";
  if ((await inform(text, ...(commands.length > 0 ? [copy] : []))) === copy) await vscode.env.clipboard.writeText(commands.join("\n"));
}

/** textOf returns the text of a file. Empty: it is not there. */
async function textOf(path: string): Promise<string> {
  const uri = vscode.Uri.file(path);
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  } catch {
    return "";
  }
}
