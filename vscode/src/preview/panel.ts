// The preview of a project in a panel of VS Code.
import * as vscode from "vscode";
import { existsSync } from "node:fs";
import { join, normalize } from "node:path";
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { describe, nameOf } from "../hub/groups";
import { notHere } from "../hub/host";
import { projectRoot } from "../hub/root";
import { fail, inform } from "../messages";
import { escaped } from "../panel/html";
import type { Project, Projects } from "../projects";
import { JSONRPCClient, JSONRPCServer, webviewTransport } from "../rpc/index";
import { promptOf } from "./entries";
import { PreviewServer, Trails } from "./server";

const viewType = "duet.preview";

/** The directories in which a page's source is searched: those that the preview serves by default, then those of sources. */
const directories = ["dist", "build", "out", "_site", "public", ".", "src"];

/** The preview panels, one for each project. */
export class Previews implements vscode.WebviewPanelSerializer, vscode.Disposable {
  private readonly open = new Map<Project, vscode.WebviewPanel>();
  private readonly trails: Trails;
  private readonly registration = vscode.window.registerWebviewPanelSerializer(viewType, this);

  /** A project that has moved to another host, or was closed, has no pages here. */
  private readonly stop: () => void;

  constructor(private readonly projects: Projects, private readonly context: Pick<vscode.ExtensionContext, "extensionUri" | "storageUri" | "globalStorageUri">, private readonly onError: (error: unknown) => void) {
    this.trails = new Trails(vscode.Uri.joinPath(context.storageUri ?? context.globalStorageUri, "preview").fsPath, onError);
    this.stop = projects.onChange(() => {
      for (const [project, panel] of this.open) if (!projects.all.includes(project)) panel.dispose();
    });
  }

  async show(project: Project): Promise<void> {
    const panel = this.open.get(project);
    if (panel) panel.reveal();
    else await this.fill(vscode.window.createWebviewPanel(viewType, `Preview: ${project.name}`, vscode.ViewColumn.Beside, { enableScripts: true, retainContextWhenHidden: true }), project);
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { folder?: string } | undefined): Promise<void> {
    this.projects.start();
    const project = (state?.folder === undefined ? undefined : this.projects.at(state.folder)) ?? this.projects.all[0];
    if (project) await this.fill(panel, project, await this.trails.of(project.folder.uri.fsPath));
    else panel.dispose();
  }

  dispose(): void {
    this.stop();
    this.registration.dispose();
    for (const panel of this.open.values()) panel.dispose();
  }

  private async fill(panel: vscode.WebviewPanel, project: Project, trail = {}): Promise<void> {
    this.open.set(project, panel);
    const { connection } = project;
    const folder = project.folder.uri.fsPath;
    const server = new PreviewServer({
      fetch: (url) => connection.request("preview.fetch", { url }),
      script: () => readFile(vscode.Uri.joinPath(this.context.extensionUri, "dist", "preview", "capture.js").fsPath, "utf8"),
    });
    const ends: Array<() => void> = [() => server.close()];
    panel.onDidDispose(() => {
      this.open.delete(project);
      for (const end of ends) end();
    });
    const port = await server.listen();
    const external = await vscode.env.asExternalUri(vscode.Uri.parse(`http://127.0.0.1:${port}/`));
    const origin = server.originFor(new URL(external.toString(true)));
    panel.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.context.extensionUri, "dist", "preview")] };
    const transport = webviewTransport(panel.webview);
    const page = new JSONRPCClient(transport);
    const fromPage = new JSONRPCServer(transport);
    ends.push(() => fromPage.destroy(), () => page.destroy());
    for (const [said, method] of [["console", "preview.console"], ["error", "preview.error"], ["updateNavigationState", "preview.navigated"]] as const) {
      fromPage.onNotify(said, async (params) => {
        await connection.request(method, params as never).catch(this.onError);
      });
    }
    fromPage.onNotify("keep", (params) => this.trails.keep(folder, params));
    fromPage.onNotify("open", (params) => void openSource(project, params as unknown as Place).catch((error: unknown) => {
      this.onError(error);
      if (project.host) void fail(error instanceof Error ? error.message : String(error));
    }));
    fromPage.onNotify("send", (params) => void send(project, (params as { report: string }).report).catch((error: unknown) => {
      this.onError(error);
      void fail(error instanceof Error ? error.message : String(error));
    }));
    ends.push(connection.onNotification(({ method, params }) => {
      if (method === "navigate" || method === "refresh") page.notify(method, params as Record<string, unknown>);
    }));
    panel.webview.html = this.html(panel.webview, { origin, folder, trail: JSON.stringify(trail) });
  }

  private html(webview: vscode.Webview, { origin, folder, trail }: Record<"origin" | "folder" | "trail", string>): string {
    const nonce = randomBytes(16).toString("hex");
    const file = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(this.context.extensionUri, "dist", "preview", name)).toString();
    return `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; frame-src ${origin}; script-src 'nonce-${nonce}'; style-src ${webview.cspSource}">
<link rel="stylesheet" href="${file("page.css")}"></head>
<body data-origin="${origin}" data-folder="${escaped(folder)}" data-trail="${escaped(trail)}"><script nonce="${nonce}" src="${file("page.js")}"></script></body></html>`;
  }
}

interface Place {
  url: string;
  line?: number;
  column?: number;
}

async function openSource(project: Project, { url, line = 1, column = 1 }: Place): Promise<void> {
  const path = decodeURIComponent(url.replace(/^https?:\/\/[^/]*/, "").replace(/[?#][^]*$/, ""));
  const name = normalize(path.endsWith("/") ? `${path}index.html` : path);
  if (project.host) throw notHere(path, project.host);
  const root = projectRoot(project.folder.uri.fsPath);
  // A normalized path that begins with a slash cannot lead out of the directory.
  const file = name.startsWith("/") || name.startsWith("\\") ? directories.map((directory) => join(root, directory, name)).find((candidate) => existsSync(candidate)) : undefined;
  if (!file) throw new Error(`${path} was not found in the project`);
  const at = new vscode.Position(Math.max(0, line - 1), Math.max(0, column - 1));
  await vscode.window.showTextDocument(vscode.Uri.file(file), { selection: new vscode.Range(at, at), viewColumn: vscode.ViewColumn.One });
}

/** send sends a page's report and the user's words as a prompt to a session that the user picks. */
async function send(project: Project, report: string): Promise<void> {
  if (report === "") {
    void inform("the page has no messages yet");
    return;
  }
  const items = project.model.sessions.filter(({ archived }) => !archived).map((session) => ({ label: nameOf(session), description: describe(session, Date.now()), session }));
  if (items.length === 0) throw new Error("there is no session yet: begin one with Duet: New Session");
  const session = items.length === 1 ? items[0]!.session : (await vscode.window.showQuickPick(items, { title: "Send to which session?" }))?.session;
  if (!session) return;
  const words = await vscode.window.showInputBox({ title: nameOf(session), prompt: "The page's messages follow your words.", value: "The page in the preview says this. Find out why, and fix it.", ignoreFocusOut: true });
  if (words === undefined) return;
  await project.connection.request("session.prompt", { session: session.session_uuid, prompt: promptOf(words, report) });
}
