// Sessions, questions and proposed changes as read-only documents.
import * as vscode from "vscode";
import { nameOf, short } from "./hub/groups";
import type { Change } from "./hub/changes";
import { shownThere } from "./hub/host";
import { transcript } from "./hub/transcript";
import { shownPath } from "./panel/files";
import type { Project, Projects, ProjectSession } from "./projects";
import type { ItemList, SessionItem } from "./protocol";

const scheme = "duet";

/** Serves documents of the scheme duet. The document of a session updates as the session grows. */
export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];
  /** The texts of open diffs, by URI. */
  private readonly sides = new Map<string, string>();
  private readonly stops: Array<() => void>;
  private readonly pending = new Set<string>();

  constructor(private readonly projects: Projects) {
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(scheme, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => void this.sides.delete(uri.toString())),
    ];
    this.stops = [
      projects.onEvent(({ project, event }) => {
        const session = project.model.ofTurn(event.turn_uuid ?? "");
        if (session) this.refreshSoon(session.session_uuid);
      }),
      projects.onChange(() => {
        for (const { session } of projects.sessions) if (this.documentOf(session.session_uuid)) this.refreshSoon(session.session_uuid);
      }),
    ];
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const side = this.sides.get(uri.toString());
    if (side !== undefined) return side;
    const { id } = JSON.parse(uri.query) as { id: string };
    const found = this.projects.sessions.find(({ session }) => session.session_uuid === id);
    if (!found) return "This session was deleted, or duet-rpc is still starting.\n";
    return transcript(nameOf(found.session), await itemsOf(found));
  }

  async openTranscript({ session }: ProjectSession): Promise<void> {
    await this.show(`${fileName(nameOf(session))}.md`, { kind: "conversation", id: session.session_uuid });
  }

  /** Shows a file before and after a change of a session in the diff editor. about stands behind the path in the title. host: that of the session, whose file is there. */
  async openDiff(path: string, folder: string, { before, after, is }: Change, about = changeWords[is], host = ""): Promise<void> {
    const id = String(this.sides.size);
    const side = (kind: string, text: string): vscode.Uri => {
      const uri = vscode.Uri.from({ scheme, path: vscode.Uri.file(path).path, query: JSON.stringify({ kind, id, at: Date.now() }) });
      this.sides.set(uri.toString(), text);
      return uri;
    };
    await vscode.commands.executeCommand("vscode.diff", side("before", before), side("after", after), `${host === "" ? shownPath(path, folder) : shownThere(path, folder, host)} (${about})`);
  }

  dispose(): void {
    for (const stop of this.stops) stop();
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changed.dispose();
  }

  private async show(name: string, query: { kind: string; id: string }): Promise<void> {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.from({ scheme, path: `/${name}`, query: JSON.stringify(query) }));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  private documentOf(session: string): vscode.TextDocument | undefined {
    return vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === scheme && uri.query === JSON.stringify({ kind: "conversation", id: session }));
  }

  /** refreshSoon reloads the open document of a session after a short delay, once for all events in between. */
  private refreshSoon(session: string): void {
    if (this.pending.has(session)) return;
    this.pending.add(session);
    setTimeout(() => {
      this.pending.delete(session);
      const document = this.documentOf(session);
      if (document) this.changed.fire(document.uri);
    }, 100);
  }
}

const changeWords: Record<Change["is"], string> = { proposed: "what is proposed", made: "what was changed", part: "the changed part" };

/** itemsOf loads all items of a session. */
async function itemsOf({ project, session }: { project: Project; session: { session_uuid: string } }): Promise<SessionItem[]> {
  const items: SessionItem[] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: ItemList = await project.connection.request("session.items", { session: session.session_uuid, after, limit: 1000 });
    items.push(...page.items);
    after = page.next_after;
  }
  return items;
}

function fileName(name: string): string {
  return short(name, 40).replace(/[/\\:*?"<>|]/g, "-") || "session";
}
