// The user's edit of what a tool gets, in VS Code's diff editor, before the tool runs.
import { resolve } from "node:path";
import * as vscode from "vscode";
import { editableInput } from "./hub/edits";
import type { EditableInput } from "./hub/edits";
import { onHost } from "./hub/host";
import { inform } from "./messages";
import { readText } from "./panel/files";
import type { Project } from "./projects";
import type { Approval } from "./protocol";

const scheme = "duet-edit";

/** An open edit, by the URI of its text. */
interface Edit {
  project: Project;
  approval: string;
  input: EditableInput;
}

/** Opens inputs of tools as texts, and allows the tools with the edited texts. The texts are files in memory. */
export class Edits implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changed.event;
  private readonly files = new Map<string, { content: Uint8Array; mtime: number }>();
  private readonly edits = new Map<string, Edit>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly onError: (error: unknown) => void) {
    this.subscriptions = [
      vscode.workspace.registerFileSystemProvider(scheme, this, { isCaseSensitive: true }),
      vscode.commands.registerCommand("duet.allowEdit", (uri?: vscode.Uri) => void this.allow(uri).catch(this.onError)),
    ];
  }

  /** Opens what a question's tool gets, for the user to edit. folder: the working directory of the agent. */
  async open(project: Project, question: Approval, folder: string): Promise<void> {
    const { approval, input_editable, truncated } = question;
    if (!input_editable) throw new Error("this agent runs the tool with its own input: deny it, and say what to run");
    if (truncated) throw new Error("the input is too long to be edited here");
    const input = editableInput(question);
    const { name } = input;
    const [before, after] = ["before", "after"].map((side) => vscode.Uri.from({ scheme, path: `/${approval}/${side}/${name}` })) as [vscode.Uri, vscode.Uri];
    // A text that the user has begun to edit stays.
    if (!this.files.has(after.path)) this.put(after, input.text);
    this.edits.set(after.path, { project, approval, input });
    // A file on a host cannot be read, and one of the same path here is another one.
    if (input.path === undefined || (project.host && input.before === undefined)) {
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(after), { preview: false });
      return;
    }
    this.put(before, input.before ?? (await readText(resolve(folder, input.path))));
    await vscode.commands.executeCommand("vscode.diff", before, after, `${name}${onHost(project.host)} (your edit)`, { preview: false });
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
    this.changed.dispose();
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => {});
  }

  stat({ path }: vscode.Uri): vscode.FileStat {
    const file = this.file(path);
    return { type: vscode.FileType.File, ctime: 0, mtime: file.mtime, size: file.content.length };
  }

  readFile({ path }: vscode.Uri): Uint8Array {
    return this.file(path).content;
  }

  writeFile({ path }: vscode.Uri, content: Uint8Array): void {
    this.files.set(path, { content, mtime: Date.now() });
  }

  readDirectory(): [] {
    return [];
  }

  createDirectory(): void {
    throw vscode.FileSystemError.NoPermissions("these texts have no folders");
  }

  delete(): void {
    throw vscode.FileSystemError.NoPermissions("these texts cannot be deleted");
  }

  rename(): void {
    throw vscode.FileSystemError.NoPermissions("these texts cannot be renamed");
  }

  /** allow allows the tool of an edit with the edited text, and closes the editor. */
  private async allow(uri = vscode.window.activeTextEditor?.document.uri): Promise<void> {
    const edit = this.edits.get(uri?.path ?? "");
    const document = uri && vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri.toString());
    if (!edit || !document) throw new Error("there is no edit here: choose Edit at a question");
    const { project, approval, input } = edit;
    // A document has one kind of line ends and no mark of its encoding: an input that the user has not touched stays as it was.
    const touched = document.isDirty || !Buffer.from(input.text).equals(this.file(document.uri.path).content);
    const { success, error } = await project.connection.request("approval.decide", {
      approval, decision: "approve", client: "VS Code", ...(touched && { updated_input: input.changed(document.getText()) }),
    });
    if (!success) return void inform(error ?? "the question has been answered");
    await document.save(); // VS Code would ask about an unsaved text
    await vscode.window.tabGroups.close(vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs).filter(({ input: shown }) => (shown instanceof vscode.TabInputTextDiff ? shown.modified : shown instanceof vscode.TabInputText ? shown.uri : undefined)?.toString() === document.uri.toString()));
    for (const side of [document.uri.path, document.uri.path.replace("/after/", "/before/")]) this.files.delete(side);
    this.edits.delete(document.uri.path);
  }

  private put({ path }: vscode.Uri, text: string): void {
    this.files.set(path, { content: new TextEncoder().encode(text), mtime: Date.now() });
  }

  private file(path: string): { content: Uint8Array; mtime: number } {
    const file = this.files.get(path);
    if (!file) throw vscode.FileSystemError.FileNotFound(path);
    return file;
  }
}
