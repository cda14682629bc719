// The active editor, which prompts refer to.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type { TextEditor } from "vscode";
import { ActiveEditor, contextOf, selected } from "../../src/panel/files";
import { fire, openFolders, settings, Uri, window } from "../fakevscode";

/** editorOf makes an editor of a file with 100 lines. The selection is from a line to another position, both from 0 on. */
function editorOf(path: string, selection?: { from: number; to: number; character: number }, over: Record<string, unknown> = {}): TextEditor {
  const { from, to, character } = selection ?? { from: 3, to: 3, character: 0 };
  const uri = { ...Uri.file(path), ...over };
  return {
    viewColumn: 1, document: { uri, getText: (range: unknown) => (range ? "the selected lines" : "all") },
    selection: { start: { line: from, character: 0 }, end: { line: to, character }, isEmpty: selection === undefined },
  } as unknown as TextEditor;
}

function workspace(t: test.TestContext): string {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "duet-context-")));
  mkdirSync(join(top, "project", "src"), { recursive: true });
  for (const file of ["project/src/panel.ts", "secret.txt"]) writeFileSync(join(top, file), "");
  openFolders.splice(0, openFolders.length, join(top, "project"));
  t.after(() => {
    openFolders.length = 0;
    settings["editorContext"] = undefined;
    rmSync(top, { recursive: true });
  });
  return top;
}

test("a prompt refers to the file in the active editor, and to the lines that are selected in it", (t) => {
  const project = join(workspace(t), "project");
  const path = join(project, "src", "panel.ts");
  assert.deepEqual(contextOf(editorOf(path), [project]), { label: "panel.ts", reference: "@src/panel.ts" });
  assert.deepEqual(selected(editorOf(path), [project]).content, [{ type: "resource_link", uri: `file://${path}`, name: "src/panel.ts" }]);
  const lines = editorOf(path, { from: 45, to: 90, character: 0 });
  assert.deepEqual(contextOf(lines, [project]), { label: "panel.ts:46-90", reference: "@src/panel.ts#L46-90" }, "the last line has no selected character");
  assert.deepEqual(selected(lines, [project]).content, [{ type: "resource", resource: { uri: `file://${path}#L46-90`, mimeType: "text/plain", text: "the selected lines" } }]);
  assert.equal(contextOf(editorOf(path, { from: 4, to: 4, character: 9 }), [project])?.label, "panel.ts:5");
});

test("it refers to no file outside of the folder, nor to what is no file, nor to anything if the setting is off", (t) => {
  const top = workspace(t);
  const project = join(top, "project");
  symlinkSync(join(top, "secret.txt"), join(project, "link.txt"));
  symlinkSync(project, join(top, "same"));
  const of = (path: string, folder = project, over = {}): string | undefined => contextOf(editorOf(path, undefined, over), [folder])?.label;
  const file = join(project, "src", "panel.ts");
  assert.equal(of(file), "panel.ts");
  assert.equal(of(file, join(top, "same")), "panel.ts", "the folder by another name");
  for (const path of [join(top, "secret.txt"), join(project, "link.txt")]) assert.equal(of(path, project), undefined, path);
  assert.equal(of(join(top, "secret.txt"), top), undefined, "in the folder of the session, and not in the workspace");
  assert.equal(of(file, join(project, "docs")), undefined, "in the workspace, and not in the folder of the session");
  for (const scheme of ["untitled", "git", "duet", "vscode-userdata"]) assert.equal(of(file, project, { scheme }), undefined, scheme);
  settings["editorContext"] = false;
  assert.equal(of(file), undefined);
});

test("in a worktree, a prompt names the files of the worktree, and those of the same folder of the project", (t) => {
  const top = workspace(t);
  const [project, worktree] = [join(top, "project"), join(top, "worktree")];
  mkdirSync(join(worktree, "src"), { recursive: true });
  writeFileSync(join(worktree, "src", "panel.ts"), "");
  const of = (path: string, folders: readonly [string, string?]): string | undefined => contextOf(editorOf(path), folders)?.reference;
  const [theirs, mine] = [join(worktree, "src", "panel.ts"), join(project, "src", "panel.ts")];
  assert.deepEqual([of(theirs, [worktree, project]), of(mine, [worktree, project])], ["@src/panel.ts", "@src/panel.ts"]);
  assert.deepEqual([of(theirs, [join(worktree, "src"), join(project, "src")]), of(mine, [join(worktree, "src"), join(project, "src")])], ["@panel.ts", "@panel.ts"]);
  assert.equal(selected(editorOf(mine), [worktree, project]).text, "@src/panel.ts ");
  assert.deepEqual([of(join(top, "secret.txt"), [worktree, project]), of(mine, [worktree]), of(theirs, [worktree])], [undefined, undefined, undefined]);
});

test("the active editor stays the same while a panel has the focus, until its tab is closed", async (t) => {
  const editor = new ActiveEditor();
  t.after(() => editor.dispose());
  let changes = 0;
  editor.onChange(() => changes++);
  const changed = async (): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, 150));
    return changes;
  };
  const [first, second] = [editorOf("/project/a.ts"), editorOf("/project/b.ts")];
  const tabOf = ({ document }: TextEditor): unknown => ({ input: { uri: document.uri } });
  const activate = (active: TextEditor | undefined): void => {
    window.activeTextEditor = active;
    fire("onDidChangeActiveTextEditor", active);
  };
  activate(first);
  activate(second);
  assert.deepEqual([await changed(), editor.current?.document], [1, second.document]);
  fire("onDidChangeTextEditorSelection", { textEditor: first }); // in another column
  activate({ ...first, viewColumn: undefined }); // the output
  activate(undefined); // a panel
  assert.deepEqual([await changed(), editor.current?.document], [1, second.document]);
  window.tabGroups.all = [{ tabs: [tabOf(second)] }];
  fire("onDidChangeTabs", { closed: [tabOf(first), tabOf(second)] });
  assert.deepEqual(editor.current?.document, second.document, "it is open in another column");
  window.tabGroups.all = [];
  fire("onDidChangeTabs", { closed: [tabOf(second)] });
  assert.equal(editor.current, undefined);
  assert.equal(await changed(), 2);
});
