// Folders whose agents work on a host. The host is this machine with another directory, behind a script that tests break.
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import type * as vscode from "vscode";
import { Changes } from "../../src/changes";
import { chooseHost } from "../../src/commands";
import { Documents } from "../../src/documents";
import { Edits } from "../../src/edits";
import { partsOfPatch } from "../../src/hub/changes";
import { listHosts } from "../../src/hub/host";
import { listOthers } from "../../src/hub/root";
import { setUpAgent } from "../../src/agents";
import { Drafts } from "../../src/panel/drafts";
import type { ActiveEditor } from "../../src/panel/files";
import { selected } from "../../src/panel/files";
import { Beginnings, launch, newSessionOf } from "../../src/panel/newsession";
import { messageHtml } from "../../src/panel/html";
import { Panels } from "../../src/panel/panel";
import type { Panel, PanelParts } from "../../src/panel/panel";
import { handlersOf } from "../../src/panel/requests";
import type { RequestParts } from "../../src/panel/requests";
import { notifications, statusBar } from "../../src/notifications";
import { Projects, workingDirectory } from "../../src/projects";
import type { Project, ProjectSession } from "../../src/projects";
import { Keys } from "../../src/secrets";
import { openProject } from "../../src/views";
import { land, openWorktree } from "../../src/worktrees";
import { Bridge } from "../../src/panel/bridge";
import type { PanelHandlers } from "../../src/panel/bridge";
import type { PanelConnection } from "../../src/panel/protocol";
import { answers, executed, fire, opened as openedDocuments, openFolders, settings, shown, standing, statusItem, updated, Uri } from "../fakevscode";
import { addRepository, duetBinary, git, newProject, removeProject, startHub } from "../hub";
import type { TestHub, TestProject } from "../hub";

const log = { warn: () => {}, info: () => {}, error: () => {}, debug: () => {}, trace: () => {} } as unknown as vscode.LogOutputChannel;

interface HostedProject extends TestProject {
  /** The directory of the project on the host. */
  there: string;
  /** Whether the host can be reached. */
  reachable: (is: boolean) => void;
  /** Breaks the line to the host. */
  breakLine: () => void;
}

/** hosted makes a project whose configuration names the host devbox, on which the project has another directory. */
function hosted(): HostedProject {
  const project = newProject();
  const top = join(project.folder, "..");
  const [there, down, pid, line] = [join(top, "there", "project"), join(top, "down"), join(top, "pid"), join(top, "line.sh")];
  mkdirSync(there, { recursive: true });
  writeFileSync(line, `if test -e '${down}'; then echo 'ssh: No route to host' >&2; exit 255; fi\necho $$ >'${pid}'\nexec "$@"\n`);
  const config = join(project.home, ".config", "duet");
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, "config.toml"), `[hosts.devbox]\ncommand = ["sh", "${line}"]\ndirectory = "${join(top, "there")}"\nprogram = "${duetBinary}"\n`);
  return {
    ...project, there,
    reachable: (is) => (is ? rmSync(down, { force: true }) : writeFileSync(down, "")),
    breakLine: () => void process.kill(Number(readFileSync(pid, "utf8"))),
  };
}

interface HostedHub extends TestHub {
  project: HostedProject;
  /** The project as the extension has it. */
  of: Project;
}

/** begin makes a connection to the project on devbox, and starts it. */
async function begin(t: test.TestContext, over: Parameters<typeof startHub>[0] = {}, given = hosted()): Promise<HostedHub> {
  const hub = startHub({ place: { host: "devbox", directory: "" }, retryAfter: 50, ...over }, given);
  t.after(async () => {
    await hub.end();
    await removeProject(given);
  });
  await hub.connection.start();
  answers.length = shown.length = executed.length = 0;
  const folder = { name: "project", uri: Uri.file(given.folder), index: 0 };
  const of = { name: "project@devbox", host: "devbox", root: given.folder, folder, folders: [folder], connection: hub.connection, model: hub.model } as unknown as Project;
  return { ...hub, project: given, of };
}

async function run({ connection, model, until }: TestHub, prompt: string): Promise<ProjectSession["session"]> {
  const { turn_uuid } = await connection.request("session.start", { prompt, agent: "demo" });
  await until("the question or the end", () => ["completed", "waiting_input"].includes(model.ofTurn(turn_uuid)?.state ?? ""));
  return model.ofTurn(turn_uuid)!;
}

test("agents work on the host of the folder, in the directory there; it gets no editor tools, no trust and no variable of another host", async (t) => {
  const project = hosted();
  const top = join(project.folder, "..");
  const [wrapper, said, flags] = [join(top, "duet-rpc"), join(top, "said"), join(top, "flags")];
  writeFileSync(wrapper, `#!/bin/sh\necho "$*" >>'${flags}'\ntest "$1" = --version && exec '${duetBinary}' --version\ntee -a '${said}' | '${duetBinary}' "$@"\n`);
  chmodSync(wrapper, 0o755);
  project.env["DUET_RPC_BIN"] = wrapper;
  project.env["DUET_HOST"] = "another";
  const asked: string[] = [];
  const tools = { names: () => ["open"], answer: (tool: string) => Promise.resolve(void asked.push(tool)) };
  const { connection, ...hub } = await begin(t, { tools }, project);
  delete project.env["DUET_HOST"];
  assert.deepEqual(connection.state.is, "ready");
  await connection.trustChanged();
  await connection.toolsChanged();
  const session = await run({ ...hub, connection }, "quiet");
  assert.equal(session.working_dir, project.there);
  assert.match(readFileSync(flags, "utf8"), /^--stdio --host=devbox$/m);
  const messages = readFileSync(said, "utf8");
  assert.ok(!/editor\.offer|workspaceTrusted/.test(messages), messages);
});

test("the directory of the project on the host can be given, and a session of a subfolder works there", async (t) => {
  const project = hosted();
  const other = join(project.there, "..", "other");
  for (const folder of [join(other, "docs"), join(project.folder, "docs")]) mkdirSync(folder, { recursive: true });
  const { of, connection } = await begin(t, { place: { host: "devbox", directory: other } }, project);
  assert.deepEqual([workingDirectory(of, project.folder), workingDirectory(of, join(project.folder, "docs")), workingDirectory({ ...of, host: "" }, "/a")], [undefined, "docs", "/a"]);
  settings["hostSend"] = false; // the project there has its own files
  t.after(() => (settings["hostSend"] = undefined));
  const { turn_uuid } = await launch({ session: "00000000-0000-4000-8000-000000000001", title: "", chosen: { folder: "" } }, { folder: join(project.folder, "docs"), agent: "demo" }, of, { prompt: "quiet" });
  assert.equal((await connection.request("turn.get", { turn: turn_uuid })).turn.working_dir, join(other, "docs"));
});

test("a session begins with the files of this machine on a host that has no such project, and its work lands here", async (t) => {
  const project = hosted();
  const changed = join(project.folder, "changed.txt");
  addRepository(project.folder);
  writeFileSync(changed, "not committed\n");
  rmSync(project.there, { recursive: true });
  const hub = await begin(t, { retryAfter: 1_000_000 }, project);
  const { of, connection, model, until } = hub;
  const missing = "sessions are not available: devbox: finding the project: there is no directory";
  assert.deepEqual(connection.state, { is: "failed", reason: `${missing} ${project.there}`, kind: "no_project_directory" });
  const uuid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;
  const beginning = (n: number): Parameters<typeof launch>[0] => ({ session: uuid(n), title: "", chosen: { folder: project.folder } });
  const choices = { folder: project.folder, agent: "demo" };
  const projects = { all: [of] } as unknown as Projects;
  const offered = async (worktree?: string): Promise<unknown[]> => {
    const { about, sends } = await newSessionOf({ ...beginning(1), chosen: { folder: project.folder, ...(worktree && { worktree }) } }, of, projects, "");
    return [about.includes("which begins with your files"), sends];
  };
  assert.deepEqual([await offered(), await offered("no")], [[true, "devbox"], [false, "devbox"]]);
  settings["agent"] = "demo";
  assert.equal((await newSessionOf(beginning(1), of, projects, "")).chosen.agent, "demo", "the agents there are not known yet");
  settings["agent"] = undefined;

  assert.equal(Projects.prototype.remedy.call(projects, `${missing} ${project.there}`), "a new session brings the project there, with your files");

  const panel = { project: of, uuid: uuid(1), beginning: { ...beginning(1), chosen: { ...choices, mode: "acceptEdits" } }, isNew: () => Promise.resolve(true), folder: project.folder, folders: [project.folder], title: "" } as unknown as Panel;
  const memento = { get: (_: string, fallback: unknown) => fallback, update: () => Promise.resolve() } as unknown as vscode.Memento;
  const handlers = handlersOf(panel, { projects, drafts: new Drafts(join(project.home, "drafts")), beginnings: new Beginnings(memento), onError: (error: unknown) => assert.fail(String(error)) } as unknown as RequestParts);
  assert.equal((await handlers["panel.start"]()).newSession?.sends, "devbox");
  const launched = handlers["panel.launch"]({ prompt: "hello" });
  while (standing.size === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual([...standing], ["Duet: sending your files to devbox…"]);
  await launched;
  assert.deepEqual([connection.state.is, standing.size], ["ready", 0]);
  const session = (): ProjectSession => ({ project: of, session: model.sessionOf({ session_uuid: uuid(1) })! });
  const ended = (prompt: string): Promise<void> => until("the end", () => session().session?.prompt === prompt && session().session.state === "completed" && session().session.worktree !== undefined);
  await ended("hello");
  assert.equal(readFileSync(join(session().session.worktree!.dir, "changed.txt"), "utf8"), "not committed\n");
  assert.ok(!existsSync(join(project.there, "changed.txt")), "the project there stays at the commit");

  const inserted: string[] = [];
  const panels = { open: () => Promise.resolve({ insert: (text: string) => inserted.push(text), focus: () => {} }) } as unknown as Panels;
  git(project.folder, "add", ".");
  git(project.folder, "commit", "--quiet", "--message=second");
  answers.push("Merge");
  await land(session(), panels);
  assert.match(shown.at(-1)!.text, /^Duet: landed on main: 1 commit, 1 file$/);
  assert.ok(existsSync(join(project.folder, "demo.txt")));

  // The agent gets the user's branch under the name that it has there.
  await connection.request("session.prompt", { session: uuid(1), prompt: "again" });
  await ended("again");
  writeFileSync(join(project.folder, "demo.txt"), "mine\n");
  git(project.folder, "commit", "--quiet", "--all", "--message=mine");
  answers.push("Merge", "Let the Agent Merge");
  await land(session(), panels);
  assert.deepEqual(inserted, [`Merge refs/duet/from/${uuid(1)} into yours and resolve the conflicts`]);

  // The user can choose the project there, for one session or for all.
  const directoryOf = async (n: number, worktree?: string): Promise<string> => {
    const { turn_uuid } = await launch(beginning(n), { ...choices, ...(worktree && { worktree }) }, of, { prompt: "quiet" });
    return (await connection.request("turn.get", { turn: turn_uuid })).turn.working_dir;
  };
  assert.equal(await directoryOf(2, "no"), project.there);
  settings["hostSend"] = false;
  t.after(() => (settings["hostSend"] = undefined));
  assert.deepEqual([await directoryOf(3), await offered()], [project.there, [false, undefined]]);
  // The work of such a session lands there.
  const { turn_uuid } = await launch(beginning(4), { ...choices, worktree: "yes" }, of, { prompt: "quiet" });
  await until("its end", () => model.ofTurn(turn_uuid)?.state === "completed" && model.ofTurn(turn_uuid)?.worktree !== undefined);
  answers.push("Patch"); // its clone has no branch checked out
  await land({ project: of, session: model.ofTurn(turn_uuid)! }, panels);
  assert.equal(shown.at(-1)!.text, "Duet: there is nothing new to land on devbox");
});

test("a folder without a repository has no files to send, and the user reads that", async (t) => {
  const { of } = await begin(t);
  const launched = launch({ session: "00000000-0000-4000-8000-000000000001", title: "", chosen: { folder: "" } }, { folder: of.root, agent: "demo" }, of, { prompt: "quiet" });
  await assert.rejects(launched, /is in no git repository: run git init and make a commit/);
});

test("a broken line is shown in the words of its notice, and events go on without a gap when it is back", async (t) => {
  const hub = await begin(t);
  const { connection, model, until, project } = hub;
  const troubles: Array<string | undefined> = [];
  connection.onTrouble((trouble) => troubles.push(trouble));
  const session = await run(hub, "Greet the reader");
  const [posted, connections]: [Array<{ method?: string; params?: { seq?: number } }>, PanelConnection[]] = [[], []];
  let receive: (message: unknown) => void = () => {};
  const bridge = new Bridge({
    webview: {
      postMessage: (message) => {
        posted.push(message as never);
        const { method, params } = message as { method?: string; params: PanelConnection };
        if (method === "panel.connection") connections.push(params);
        return Promise.resolve(true);
      },
      onDidReceiveMessage: (listener) => ((receive = listener), { dispose: () => {} }),
    },
    hub: connection, session: session.session_uuid, onLost: () => assert.fail("the events are lost"), onError: (error) => assert.fail(String(error)),
    handlers: { "panel.start": () => Promise.resolve({ title: "", draft: { text: "", content: [] }, history: [] }) } as unknown as PanelHandlers,
  });
  t.after(() => bridge.dispose());
  receive({ jsonrpc: "2.0", id: 1, method: "panel.start", params: {} });
  await until("the page", () => posted.some((message) => "result" in message));

  project.reachable(false);
  project.breakLine();
  await new Promise<void>((resolve) => connection.onTrouble((trouble) => trouble?.includes("No route") && resolve()));
  assert.deepEqual(troubles, ["the line to devbox broke; the agents there go on", "devbox: ssh: No route to host"]);
  assert.deepEqual([connection.state.is, connection.answers], ["ready", false]);
  assert.deepEqual(connections.at(-1), { is: "ready", trouble: "devbox: ssh: No route to host", host: "devbox" });
  await assert.rejects(connection.request("session.prompt", { session: session.session_uuid, prompt: "go on" }), /devbox: ssh: No route to host/);

  project.reachable(true);
  await new Promise<void>((resolve) => connection.onTrouble((trouble) => trouble === undefined && resolve()));
  await connection.request("turn.interrupt", { turn: session.turn_uuid });
  await until("the end", () => model.ofTurn(session.turn_uuid)?.state === "interrupted");
  await until("the connection of the page", () => connections.at(-1)?.trouble === undefined);
  assert.deepEqual(connections.at(-1), { is: "ready", host: "devbox" });
});

test("a host that cannot be reached is shown, and is tried again", async (t) => {
  const project = hosted();
  project.reachable(false);
  const { of, connection, until } = await begin(t, {}, project);
  const states: string[] = [];
  connection.onState(({ is }) => states.push(is));
  const reason = "sessions are not available: devbox: ssh: No route to host";
  assert.deepEqual(connection.state, { is: "failed", reason, kind: "subsystem_unavailable" });
  assert.equal(Projects.prototype.remedy.call({ all: [of] }, reason), "", "no session helps");
  project.reachable(true);
  await until("the connection", () => connection.state.is === "ready");
  assert.ok(!states.includes("starting"), "the reason stays on the screen meanwhile");
});

test("no file of this machine is read, opened or named for a session on a host", async (t) => {
  const hub = await begin(t);
  const { of, project } = hub;
  const secret = join(project.there, "a.txt"); // the same path on this machine
  writeFileSync(secret, "local\n");
  writeFileSync(join(project.folder, "mine.txt"), "my text");
  writeFileSync(join(project.folder, "mine.bin"), Buffer.from([0xff, 0xfe, 0xff]));
  const session = await run(hub, "quiet");
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const projects = { all: [of], at: () => of, onChange: () => () => {}, onEvent: () => () => {}, sessions: [{ project: of, session }] } as unknown as Projects;
  const documents = new Documents(projects);
  const edits = new Edits(onError);
  const panel = { project: of, uuid: session.session_uuid, folder: session.working_dir, folders: [session.working_dir], title: "", askSession: () => Promise.resolve({ project: of, session }), session, scope: { checkApproval: (id: string) => id } } as unknown as Panel;
  const handlers = handlersOf(panel, { documents, edits, projects, drafts: new Drafts(join(project.home, "drafts")), onError } as unknown as RequestParts);

  for (const path of [secret, "a.txt", "@a.txt"]) await assert.rejects(async () => handlers["panel.openFile"]({ path }), /a\.txt is on devbox: VS Code opens only files of this machine/);
  await assert.rejects(async () => handlers["panel.runCode"]({ code: "make" }), /the code is for devbox/);
  assert.deepEqual((await handlers["panel.findFiles"]({ query: "a" })).files, []);
  assert.deepEqual([executed, shown], [[], []]);

  // Both sides of a diff are texts of the session.
  await handlers["panel.openDiff"]({ path: "a.txt", before: "old\n", after: "new\n" });
  await handlers["panel.openPatch"]({ path: "a.txt", patch: "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n" });
  const [parts, patch] = executed.map(([, before, after, title]) => [before, after, title] as [vscode.Uri, vscode.Uri, string]);
  const texts = await Promise.all([parts![0], parts![1], patch![0], patch![1]].map((uri) => documents.provideTextDocumentContent(uri)));
  assert.deepEqual(texts, ["old\n", "new\n", "same\nold\n", "same\nnew\n"]);
  assert.deepEqual([parts![2], patch![0].scheme], ["a.txt on devbox (the changed part)", "duet"]);

  // The text of a dropped file is sent, and no path.
  const files = await handlers["panel.readFiles"]({ uris: ["mine.txt", "mine.bin", "."].map((name) => pathToFileURL(join(project.folder, name)).href) });
  assert.deepEqual(files.content, [{ type: "resource", resource: { uri: "duet:/sent/mine.txt", mimeType: "text/plain", text: "my text" } }]);
  assert.match(files.refused.join("\n"), /mine\.bin: it is no text, and the agent works on devbox\n.*: it is a folder of this machine/);
  const document = { uri: { ...Uri.file(join(project.folder, "mine.txt")), path: join(project.folder, "mine.txt") }, getText: () => "my text" };
  const chosen = selected({ document, selection: { isEmpty: false, start: { line: 2, character: 0 }, end: { line: 4, character: 3 } } } as never, panel.folders, "devbox");
  assert.deepEqual(chosen, { text: "", content: [{ type: "resource", resource: { uri: "duet:/sent/mine.txt:3-5", mimeType: "text/plain", text: "my text" } }] });

  // An edit of a whole file shows no file of this machine beside it.
  executed.length = 0;
  await edits.open(of, { approval: "q", input_editable: true, tool_input: { file_path: "a.txt", content: "new\n" }, input_text_member: "content", paths: ["a.txt"] } as never, session.working_dir);
  assert.deepEqual([executed, openedDocuments.at(-1)?.path], [[], "/q/after/a.txt"]);

  await assert.rejects(openWorktree({ project: of, session: { ...session, worktree: { branch: "b", dir: project.there } } }), /is on devbox/);
  assert.deepEqual(errors, []);
});

test("the changes of a session on a host are shown from the daemon, decided there, and marked in no file of this machine", async (t) => {
  const hub = await begin(t);
  const { of, connection, model, until, project } = hub;
  const { turn_uuid, session_uuid } = await run(hub, "Write it");
  await until("the question", () => model.questions.length === 1);
  await connection.request("approval.decide", { approval: model.questions[0]!.approval, decision: "approve" });
  await until("the end", () => model.ofTurn(turn_uuid)?.state === "completed");
  const session = model.sessionOf({ session_uuid })!;
  const { changes: [change] } = await connection.request("change.list", { turn: turn_uuid });
  assert.ok(change, "the demo agent has written a file");
  const errors: unknown[] = [];
  const projects = { all: [of], at: () => of, onChange: () => () => {}, onEvent: () => () => {}, sessions: [{ project: of, session }] } as unknown as Projects;
  const changes = new Changes(projects, (error) => errors.push(error));
  t.after(() => changes.dispose());
  await changes.open({ project: of, session });
  const [, before, after, title] = executed.find(([command]) => command === "vscode.diff") as [string, vscode.Uri, vscode.Uri, string];
  assert.deepEqual([before.scheme, after.scheme], ["duet-change", "duet-change"]);
  assert.match(title, / on devbox \(/);
  assert.equal(await changes.provideTextDocumentContent(after), change.after);
  const local = { uri: Uri.file(change.path), getText: () => change.after, lineCount: 100, isDirty: true };
  assert.deepEqual(await changes.provideCodeLenses(local as unknown as vscode.TextDocument), [], "a file of the same path here");
  answers.push(undefined);
  await changes.decideAll("revert", { project: of, session });
  assert.equal(existsSync(change.path), change.before !== null, "the daemon has reverted it");
  assert.deepEqual(errors, []);
  assert.ok(change.path.startsWith(project.there));
});

test("the parts of a diff are its sides", () => {
  const patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n a\n-b\n@@ -9,1 +8,2 @@\n c\n+d\n\\ No newline at end of file\n";
  assert.deepEqual(partsOfPatch(patch), { before: "a\nb\n…\nc\n", after: "a\n…\nc\nd\n", is: "part" });
  assert.deepEqual([partsOfPatch(patch, "x")?.is, partsOfPatch(patch, "y"), partsOfPatch("")], ["part", undefined, undefined]);
});

test("a host gets a stored key only after the user has seen whose request it is", async () => {
  const sent: unknown[] = [];
  let ask: (given: unknown) => void = () => {};
  const project = { name: "project@devbox", host: "devbox", model: { ofTurn: () => undefined }, connection: { request: (method: string, params: unknown) => Promise.resolve(void sent.push([method, params])) } } as unknown as Project;
  const projects = { all: [project], labels: () => ["project@devbox"], onEvent: (listener: typeof ask) => ((ask = listener), () => {}) } as unknown as Projects;
  const context = { secrets: { get: () => Promise.resolve("the key") }, globalState: { get: () => [] } } as unknown as vscode.ExtensionContext;
  const keys = new Keys(projects, context, (error) => assert.fail(String(error)));
  ask({ project, event: { kind: "secret.requested", data: { request_id: "1", service: "openai", agent: "codex" } } });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(sent, [], "nothing is sent without an answer");
  const [open] = keys.open;
  assert.deepEqual([open!.what, open!.about], ["codex on devbox needs a key for openai", "project@devbox"]);
  await keys.answer("1", "kept");
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(sent, [["secret.provide", { request_id: "1", service: "openai", secret: "the key" }]]);
  keys.dispose();
});

test("an agent that is missing on a host is not installed here, and its login runs there", async (t) => {
  const { of, connection } = await begin(t);
  const { agents } = await connection.request("agent.list", {});
  const missing = agents.find(({ available, install }) => !available && install !== undefined);
  assert.ok(missing, "an agent is not installed");
  answers.push(missing.name);
  await setUpAgent(of, () => {});
  assert.match(shown.at(-1)!.text, new RegExp(`${missing.name} is not installed on devbox; install it there: `));
  assert.deepEqual(connection.flags, ["--host=devbox"], "which commands in terminals get");
});

test("the setting of a folder connects it to another host; its name says which, and panels say where their session is", async (t) => {
  const project = hosted();
  t.after(() => removeProject(project));
  process.env["DUET_RPC_BIN"] = join(project.home, "none"); // a connection fails, and starts nothing
  openFolders.splice(0, openFolders.length, project.folder);
  t.after(() => {
    openFolders.length = 0;
    settings["host"] = undefined;
  });
  const projects = new Projects(log, "", {} as unknown as ActiveEditor);
  t.after(() => projects.dispose());
  projects.start();
  const [first] = projects.all;
  assert.deepEqual([first!.name, first!.host, projects.labels(first!)], ["project", "", []]);
  const views: Array<{ webview: { html: string } }> = [];
  const panels = new Panels(projects, { window: "w", projects, extension: Uri.file("/extension"), beginnings: new Beginnings({ get: (_: string, fallback: unknown) => fallback, update: () => Promise.resolve() } as unknown as vscode.Memento), editor: { onChange: () => () => {} }, handlers: () => ({}), onError: () => {} } as unknown as PanelParts);
  const view = (): vscode.WebviewPanel => {
    const webview = { html: "", asWebviewUri: (uri: unknown) => uri, cspSource: "", postMessage: () => Promise.resolve(true), onDidReceiveMessage: () => ({ dispose: () => {} }) };
    const made = { webview, onDidChangeViewState: () => ({ dispose: () => {} }), onDidDispose: () => ({ dispose: () => {} }), dispose: () => {} };
    views.push(made);
    return made as unknown as vscode.WebviewPanel;
  };
  await panels.deserializeWebviewPanel(view(), { place: { folder: project.folder, session: "here", title: "Of this machine" } });
  await panels.deserializeWebviewPanel(view(), { place: { folder: project.folder, session: "there", title: "Of devbox", host: "devbox" } });
  const elsewhere = (title: string, host: string): string => messageHtml(title, `This session is on ${host}, and the agents of its folder now work elsewhere. “Duet: Choose Where Agents Work…” changes that.`);
  assert.deepEqual(views.map(({ webview }) => webview.html === elsewhere("Of devbox", "devbox")), [false, true]);

  settings["host"] = " devbox ";
  fire("onDidChangeConfiguration", { affectsConfiguration: (name: string) => name === "duet.host" });
  const [second] = projects.all;
  assert.notEqual(second, first);
  assert.deepEqual([second!.name, second!.host, second!.connection.flags, projects.labels(second!)], ["project@devbox", "devbox", ["--host=devbox"], ["project@devbox"]]);
  assert.equal(first!.connection.state.is, "stopped");
  assert.equal(views[0]!.webview.html, elsewhere("Of this machine", "this machine"));
  assert.match(views[1]!.webview.html, /id="app"/);
});

test("the command offers this machine and the hosts of the configuration, and stores the choice in the folder's settings", async (t) => {
  const project = hosted();
  t.after(() => removeProject(project));
  assert.deepEqual(await listHosts(duetBinary, { ...project.env, DUET_HOST: "another" }), ["devbox"]);
  const home = process.env["HOME"];
  process.env["HOME"] = project.home;
  t.after(() => (process.env["HOME"] = home));
  answers.length = shown.length = updated.length = 0;
  const of = { name: "project", host: "", folder: { name: "project", uri: Uri.file(project.folder) }, connection: { program: () => Promise.resolve(duetBinary) } } as unknown as Project;
  answers.push("$(remote) devbox");
  await chooseHost({ all: [of] } as unknown as Projects);
  assert.deepEqual(shown.at(-1)!.labels, ["$(device-desktop) This machine", "$(remote) devbox"]);
  assert.deepEqual(updated, [["host", "devbox"]]);
  answers.push("$(device-desktop) This machine");
  await chooseHost({ all: [{ ...of, host: "devbox" }] } as unknown as Projects);
  assert.deepEqual(updated.at(-1), ["host", undefined]);
});

test("an untrusted workspace cannot set the host of its folders", () => {
  const { capabilities, contributes } = JSON.parse(readFileSync("package.json", "utf8")) as { capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } }; contributes: { configuration: { properties: Record<string, { scope: string; default: string }> } } };
  for (const name of ["duet.host", "duet.hostDirectory"]) {
    assert.ok(capabilities.untrustedWorkspaces.restrictedConfigurations.includes(name), name);
    assert.deepEqual([contributes.configuration.properties[name]!.scope, contributes.configuration.properties[name]!.default], ["resource", ""]);
  }
  assert.ok(capabilities.untrustedWorkspaces.restrictedConfigurations.includes("duet.hostSend"), "nor whether a host gets its files");
});

test("notifications and the status bar say on which host a session is, and that its line is broken", () => {
  const project = { name: "project@devbox", host: "devbox", model: { sessionOf: () => ({ session: 1, title: "A title", turn: "1.1" }) } };
  let ask: (given: unknown) => void = () => {};
  const projects = {
    all: [project], questions: [], sessions: [], state: "ready", reasons: [], troubles: [] as string[],
    onQuestions: (listener: typeof ask) => ((ask = listener), () => {}), onChange: (listener: () => void) => ((projects.changed = listener), () => {}), changed: () => {},
  };
  const all = notifications(projects as unknown as Projects, { attempt: () => {}, open: () => {}, isShown: () => false, onShown: () => () => {} });
  ask([{ project, question: { approval: "q", session_uuid: "s", type: "function_call", title: "Write a.txt", options: [] } }]);
  assert.match(shown.at(-1)!.text, / — 1 A title · project@devbox$/);
  all.dispose();
  const bar = statusBar(projects as unknown as Projects);
  assert.deepEqual([statusItem.text, statusItem.tooltip], ["$(comment-discussion) Duet@devbox", "Duet: no session works or waits for you\nproject@devbox"]);
  projects.troubles = ["the line to devbox broke; the agents there go on"];
  projects.changed();
  assert.deepEqual([statusItem.text, statusItem.tooltip], ["$(warning) Duet@devbox", "the line to devbox broke; the agents there go on\nDuet: no session works or waits for you\nproject@devbox"]);
  bar.dispose();
});

test("the list of other projects has those of hosts, as they were last while a host is away; one is shown in place of a folder's own", async (t) => {
  const hub = await begin(t);
  const { project } = hub;
  const session = await run(hub, "quiet");
  const list = async (): Promise<unknown[]> => {
    const others = await listOthers(duetBinary, project.folder, ({ host }) => host === "", project.env);
    return others.map(({ host, root, sessions, error }) => [host, root, sessions.map(({ session_uuid }) => session_uuid), error]);
  };
  assert.deepEqual(await list(), [["devbox", project.there, [session.session_uuid], undefined]]);
  project.reachable(false);
  assert.deepEqual(await list(), [["devbox", project.there, [session.session_uuid], "ssh: No route to host"]]);
  project.reachable(true);

  updated.length = 0;
  answers.push("Show Its Sessions");
  await openProject({ all: [hub.of] } as unknown as Projects, { host: "devbox", root: "/srv/parser" });
  assert.deepEqual(updated, [["hostDirectory", "/srv/parser"], ["host", "devbox"]]);
});
