// Panels whose first prompt starts a session, against the built duet-rpc. A fake page is at the other end of a channel.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import type { Memento, WebviewPanel } from "vscode";
import { Drafts } from "../../src/panel/drafts";
import { Beginnings } from "../../src/panel/newsession";
import type { Beginning } from "../../src/panel/newsession";
import { Panel } from "../../src/panel/panel";
import type { PanelParts } from "../../src/panel/panel";
import { handlersOf } from "../../src/panel/requests";
import type { RequestParts } from "../../src/panel/requests";
import type { NewSession, PanelStart, Totals } from "../../src/panel/protocol";
import type { ItemList } from "../../src/protocol";
import { newSettingsOf } from "../../src/webview/settings";
import type { Project, Projects, ProjectSession } from "../../src/projects";
import { JSONRPCClient, JSONRPCServer } from "../../src/rpc/index";
import type { JSONRPCMessage, RPCTransport } from "../../src/rpc/index";
import { answers, executed, openFolders, settings, shown, Uri, window } from "../fakevscode";
import { addRepository, git, newProject, removeProject, startHub } from "../hub";
import type { TestHub } from "../hub";

interface Window {
  hub: TestHub;
  beginnings: Beginnings;
  /** Opens a panel, and returns the requests of its page. Without a beginning, the page is one of a later window. */
  open: (beginning: Omit<Beginning, "session"> | string) => { session: string; notified: string[]; moved: Project[]; compared: ProjectSession[]; closed: () => boolean; show: (state: { visible: boolean; active: boolean; isSideBar?: boolean }) => void; request: <T>(method: string, params?: Record<string, unknown>) => Promise<T> };
}

async function opened(t: test.TestContext, config = ""): Promise<Window> {
  const project = newProject();
  mkdirSync(join(project.home, ".config", "duet"), { recursive: true });
  writeFileSync(join(project.home, ".config", "duet", "config.toml"), config);
  const hub = startHub({}, project);
  t.after(async () => {
    await hub.end();
    await removeProject(project);
    settings["agent"] = undefined;
  });
  await hub.connection.start();
  const stored = new Map<string, unknown>();
  const beginnings = new Beginnings({ get: (key: string, fallback: unknown) => stored.get(key) ?? fallback, update: (key: string, value: unknown) => Promise.resolve(void stored.set(key, value)) } as unknown as Memento);
  const errors: unknown[] = [];
  t.after(() => assert.deepEqual(errors, []));
  const onError = (error: unknown): void => void errors.push(error);
  const folders = (...paths: string[]): unknown[] => paths.map((path) => ({ name: path.slice(path.lastIndexOf("/") + 1), uri: Uri.file(path) }));
  const own = { connection: hub.connection, model: hub.model, folder: folders(project.folder)[0], folders: folders(project.folder, join(project.folder, "docs")) } as unknown as Project;
  const other = { ...own, folders: folders("/elsewhere") } as unknown as Project;
  const projects = { all: [own, other], at: (path: string) => [own, other].find((one) => one.folders.some(({ uri }) => uri.fsPath === path)), onChange: () => () => {} } as unknown as Projects;
  const drafts = new Drafts(join(project.home, "drafts"));
  let count = 0;
  const open: Window["open"] = (beginning) => {
    const session = typeof beginning === "string" ? beginning : `00000000-0000-4000-8000-00000000000${++count}`;
    if (typeof beginning !== "string") beginnings.keep({ ...beginning, session });
    const [toPage, toHost] = [new Set<(message: JSONRPCMessage) => void>(), new Set<(message: unknown) => void>()];
    const send = <T>(to: Set<(message: T) => void>, message: unknown): void => void setImmediate((copy: T) => to.forEach((listener) => listener(copy)), JSON.parse(JSON.stringify(message)) as T);
    const nothing = (): { dispose: () => void } => ({ dispose: () => {} });
    const webview = {
      asWebviewUri: (uri: unknown) => uri, cspSource: "", postMessage: (message: unknown) => Promise.resolve(void send(toPage, message)),
      onDidReceiveMessage: (listener: (message: unknown) => void) => (toHost.add(listener), { dispose: () => toHost.delete(listener) }),
    };
    const moved: Project[] = [];
    const compared: ProjectSession[] = [];
    let closed = false;
    const parts = { drafts, projects, beginnings, move: (_: Panel, to: Project) => moved.push(to), compare: (of: ProjectSession) => Promise.resolve(void compared.push(of)), onError } as unknown as RequestParts;
    let changed = (): void => {};
    const view = { webview, visible: true, active: false, onDidChangeViewState: (listener: () => void) => ((changed = listener), nothing()), onDidDispose: nothing, dispose: () => (closed = true) };
    const show = (state: { visible: boolean; active: boolean }): void => {
      Object.assign(view, state);
      changed();
    };
    const panel = new Panel(view as unknown as WebviewPanel, own, { folder: project.folder, session, title: "A title" }, {
      window: "window", projects, extension: Uri.file("/extension"), beginnings, editor: { onChange: () => () => {}, get current() { return window.activeTextEditor; } }, handlers: (of: Panel) => handlersOf(of, parts), onError,
    } as unknown as PanelParts);
    t.after(() => panel.dispose());
    const transport: RPCTransport = { send: (message) => send(toHost, message), onMessage: (handler) => (toPage.add(handler), () => toPage.delete(handler)) };
    const client = new JSONRPCClient(transport, { timeout: 60_000 });
    const notified: string[] = [];
    const server = new JSONRPCServer(transport);
    for (const method of ["event", "panel.connection", "panel.entered"]) server.onNotify(method, () => void notified.push(method));
    return { session, notified, moved, compared, closed: () => closed, show, request: (method, params = {}) => client.request(method, params) };
  };
  return { hub, beginnings, open };
}

test("the first prompt starts the session with what was chosen, and its panel follows it", async (t) => {
  const { hub, beginnings, open } = await opened(t);
  const folder = join(hub.project.folder, "docs");
  mkdirSync(folder);
  const page = open({ title: "New session", chosen: { folder: hub.project.folder } });
  const { newSession, connection } = await page.request<PanelStart>("panel.start");
  assert.deepEqual([newSession!.agents.map(({ name }) => name), newSession!.chosen.agent, newSession!.description!.modes.some(({ id }) => id === "plan"), connection], [["demo"], "demo", true, { is: "ready" }]);
  assert.deepEqual(newSession!.folders.map(({ name }) => name), ["project", "docs", "elsewhere"]);
  await assert.rejects(page.request("panel.choose", { folder: "/etc" }), /folder has to be a folder of this workspace/);
  await page.request("panel.choose", { mode: "plan" });
  await page.request("panel.choose", { folder });
  await page.request("panel.keepDraft", { text: "quiet", content: [], session: page.session });
  await page.request("panel.keepDraft", { text: "of the page before", content: [], session: "another" });
  assert.equal((await page.request<PanelStart>("panel.start")).draft.text, "quiet");
  await page.request("panel.launch", { prompt: "quiet", content: [{ type: "resource_link", uri: "file:///a.ts", name: "a.ts" }] });
  const start = await page.request<PanelStart>("panel.start");
  assert.deepEqual([start.newSession, start.connection.is, beginnings.of(page.session)], [undefined, "ready", undefined]);
  const { turn: session } = await hub.connection.request("turn.get", { turn: page.session });
  assert.deepEqual([session.session_uuid, session.prompt, session.agent, session.working_dir, session.mode], [page.session, "quiet", "demo", folder, "plan"]);
  const { items } = await page.request<ItemList>("session.items", { session: page.session });
  assert.match(JSON.stringify(items[0]), /"uri":"file:\/\/\/a\.ts"/);
  await page.request("session.prompt", { session: page.session, prompt: "quiet again" });
  await hub.until("the end", () => hub.model.sessionOf({ session_uuid: page.session })?.state === "completed");
  await page.request("turn.get", { turn: page.session });
  assert.ok(page.notified.includes("event"), "its events reach the page");
  assert.ok(!page.notified.includes("panel.connection"), "a page that is told begins anew");
  await assert.rejects(page.request("panel.launch", { prompt: "twice" }), /has started already/);
  const { turns } = await hub.connection.request("turn.list", { session: page.session });
  const totals = await page.request<Totals>("panel.totals");
  assert.deepEqual([turns.length, totals.turns, totals.last], [2, 2, turns[0]!.turn_uuid]);
  assert.ok(totals.time > 0 && totals.time === turns.reduce((sum, { duration_ms = 0 }) => sum + duration_ms, 0));

  // A command may be about one turn of the session, and of no other one.
  const { turn_uuid: foreign } = await hub.connection.request("session.start", { prompt: "quiet elsewhere", agent: "demo" });
  await page.request("panel.command", { command: "duet.fork", turn: session.turn_uuid });
  assert.deepEqual([executed.at(-1)![0], executed.at(-1)![2]], ["duet.fork", session.turn_uuid]);
  await assert.rejects(page.request("panel.command", { command: "duet.fork", turn: foreign }), /is not of the session that this panel shows/);
});

test("code of a message replaces the selection of the editor, or runs in a terminal after a confirmation", async (t) => {
  const { hub, open } = await opened(t);
  const page = open({ title: "New session", chosen: { folder: hub.project.folder } });
  await page.request("panel.start");
  shown.length = answers.length = 0;
  answers.push(undefined);
  await page.request("panel.runCode", { code: "make \u202etest\n" });
  assert.deepEqual(shown.map(({ text, labels, detail }) => [text, labels, detail]), [["Duet: run this in a terminal?", ["Run"], "make <U+202E>test"]], "nothing runs without the button");
  answers.push("Run");
  await page.request("panel.runCode", { code: "make\nmake test\n" });
  assert.deepEqual(shown.at(-1), { text: "Duet", labels: ["make\nmake test"] });
  await assert.rejects(page.request("panel.runCode", { code: 1 }), /code has to be a string/);

  await assert.rejects(page.request("panel.insertCode", { code: "a" }), /there is no text editor: open a file first/);
  const edits: unknown[] = [];
  let editable = true;
  const edit = (of: (builder: { replace: (at: unknown, text: string) => void }) => void): Promise<boolean> => {
    of({ replace: (at, text) => edits.push([at, text]) });
    return Promise.resolve(editable);
  };
  const editor = { document: { fileName: "a.ts", uri: Uri.file("/a.ts") }, selection: "the selection", viewColumn: 1, edit };
  window.activeTextEditor = editor;
  window.visibleTextEditors.push(editor);
  t.after(() => {
    window.activeTextEditor = undefined;
    window.visibleTextEditors.length = 0;
  });
  await page.request("panel.insertCode", { code: "let a;\n" });
  assert.deepEqual(edits, [["the selection", "let a;\n"]]);
  editable = false;
  await assert.rejects(page.request("panel.insertCode", { code: "b" }), /a\.ts cannot be edited/);
});

test("a new session gets a worktree if that is chosen, for this prompt alone; its files are those of the worktree", async (t) => {
  const { hub, beginnings, open } = await opened(t);
  const folder = join(hub.project.folder, "docs");
  mkdirSync(folder);
  writeFileSync(join(folder, "guide.md"), "");
  writeFileSync(join(hub.project.folder, "top.txt"), "");
  const begin = (folder: string): ReturnType<Window["open"]> => open({ title: "New session", chosen: { folder, agent: "demo" } });
  const newSession = async (page: ReturnType<Window["open"]>): Promise<NewSession> => (await page.request<PanelStart>("panel.start")).newSession!;
  assert.equal((await newSession(begin(folder))).worktrees, undefined, "without a repository");
  addRepository(hub.project.folder);
  const page = begin(folder);
  const offered = await newSession(page);
  assert.deepEqual([offered.worktrees, offered.chosen.worktree, offered.about.includes("worktree")], [true, undefined, false]);
  await assert.rejects(page.request("panel.choose", { worktree: "maybe" }), /worktree has to be yes, no or empty/);
  await page.request("panel.choose", { worktree: "yes" });
  const chosen = await page.request<NewSession>("panel.choose", { agent: "demo" });
  assert.deepEqual([chosen.chosen.worktree, chosen.about.includes("docs, in its own git worktree")], ["yes", true], "another agent has it, too");
  assert.equal((await newSession(begin(folder))).chosen.worktree, undefined, "it is remembered for its own prompt only");
  const fork = open({ title: "Fork", chosen: { folder, worktree: "yes" }, fork: { turn: "1.1", chosen: { folder, agent: "demo" } } });
  assert.deepEqual([(await newSession(fork)).worktrees, (await newSession(fork)).chosen.worktree], [undefined, undefined]);

  await page.request("panel.launch", { prompt: "quiet parser" });
  await hub.until("the end", () => hub.model.sessionOf({ session_uuid: page.session })?.state === "completed");
  const { worktree, working_dir } = hub.model.sessionOf({ session_uuid: page.session })!;
  assert.deepEqual([worktree!.branch, working_dir, beginnings.of(page.session)], ["duet/quiet-parser", join(worktree!.dir, "docs"), undefined]);
  const { files } = await page.request<{ files: Array<{ path: string; uri: string }> }>("panel.findFiles", { query: "guide" });
  assert.deepEqual(files, [{ path: "guide.md", uri: pathToFileURL(join(working_dir, "guide.md")).href }]);
  openFolders.push(hub.project.folder);
  t.after(() => void (openFolders.length = 0, window.activeTextEditor = undefined));
  for (const path of [join(folder, "guide.md"), join(working_dir, "guide.md"), join(hub.project.folder, "top.txt")]) {
    window.activeTextEditor = { document: { uri: Uri.file(path) }, selection: { isEmpty: true, start: { line: 0, character: 0 }, end: { line: 0, character: 0 } } };
    assert.deepEqual(await page.request("panel.context"), path.endsWith("top.txt") ? null : { label: "guide.md", reference: "@guide.md" }, path);
  }
  executed.length = 0;
  for (const path of ["guide.md", join(worktree!.dir, "top.txt")]) await page.request("panel.openFile", { path });
  assert.deepEqual(executed.map(([command, uri]) => [command, (uri as { fsPath: string }).fsPath]), [["vscode.open", join(working_dir, "guide.md")], ["vscode.open", join(worktree!.dir, "top.txt")]]);
  await assert.rejects(page.request("panel.openFile", { path: join(worktree!.dir, "..", "other", "a.txt") }), /is not in this workspace/);
});

test("the first prompt is sent to several agents, which the user chooses, in a repository; a refused one starts nothing", async (t) => {
  const { hub, beginnings, open } = await opened(t, `[agents.other]\ndriver = "acp"\ncommand = [${JSON.stringify(process.execPath)}, "--eval", ""]\n`);
  answers.length = shown.length = 0;
  const { folder } = hub.project;
  const page = open({ title: "New session", chosen: { folder, agent: "demo" }, gates: ["true"], turns: 3 });
  git(folder, "init", "--quiet", "--initial-branch=main");
  const names = (await page.request<PanelStart>("panel.start")).newSession!.agents.map(({ name }) => name);
  const choose = (...labels: string[]): Promise<NewSession> => (answers.push(labels), page.request<NewSession>("panel.choose", { agents: [] }));
  answers.push(undefined);
  assert.equal((await page.request<NewSession>("panel.choose", { agents: [] })).chosen.agents, undefined, "cancelled");
  assert.deepEqual(shown.at(-1)!.labels, names);
  assert.equal((await choose(names[1]!)).chosen.agents, undefined, "one agent");
  const { chosen, about, description } = await choose(...names);
  assert.deepEqual([[...chosen.agents!].sort(), about, description!.modes.every(({ by }) => by === "duet")], [["demo", "other"], "Your first prompt starts 2 sessions in " + folder + ", each in its own git worktree, whose results you compare. ", true]);
  assert.ok(description!.modes.some(({ id }) => id === "acceptEdits"));
  await page.request("panel.choose", { mode: "acceptEdits" });
  await assert.rejects(page.request("panel.launch", { prompt: "quiet" }), /commit/);
  assert.deepEqual([page.compared, page.closed(), beginnings.of(page.session)?.chosen.agents?.length], [[], false, 2], "no session has started");
  addRepository(folder);
  await page.request("panel.keepDraft", { text: "quiet", content: [], session: page.session });
  await page.request("panel.launch", { prompt: "quiet" });
  const [compared] = page.compared;
  const { attempts } = await hub.connection.request("attempt.list", { session: compared!.session.session_uuid });
  assert.deepEqual(attempts.map(({ agent, gates }) => [agent, gates?.gates, gates?.max_iterations]).sort(), [["demo", ["true"], 3], ["other", ["true"], 3]]);
  const { turn: session } = await hub.connection.request("turn.get", { turn: attempts[1]!.turn_uuid });
  assert.deepEqual([session.mode, session.attempts, page.closed(), beginnings.of(page.session)], ["acceptEdits", compared!.session.attempts, true, undefined]);
  const back = open({ title: "New session", chosen: { folder, agents: ["demo", "other"] } });
  assert.equal((await back.request<NewSession>("panel.choose", { agent: "other" })).chosen.agents, undefined, "one agent again");
});

// An agent with two models, whose turns end at once.
const modeller = `
let current = "fast";
const configOptions = () => [{ id: "model", name: "Model", category: "model", type: "select", currentValue: current, options: [{ value: "fast", name: "Fast" }, { value: "deep", name: "Deep" }] }];
const answers = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {}, authMethods: [] }),
  "session/new": () => ({ sessionId: "one", configOptions: configOptions() }),
  "session/set_config_option": ({ value }) => ((current = value), { configOptions: configOptions() }),
  "session/prompt": () => ({ stopReason: "end_turn" }),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method]?.(params) ?? {} }) + "\\n");
}).on("close", () => process.exit(0));
`;

test("an agent gets the prompt several times, with models that it has reported", async (t) => {
  const { hub, open } = await opened(t, `[agents.modeller]\ndriver = "acp"\ncommand = [${JSON.stringify(process.execPath)}, "--eval", ${JSON.stringify(modeller)}]\n`);
  answers.length = shown.length = 0;
  const { folder } = hub.project;
  addRepository(folder);
  const session = "00000000-0000-4000-8000-000000000009";
  await hub.connection.request("session.start", { prompt: "hello", agent: "modeller", working_dir: folder, session_uuid: session });
  await hub.until("the end", () => hub.model.sessionOf({ session_uuid: session })?.state === "completed");
  const page = open({ title: "New session", chosen: { folder, agent: "modeller", model: "deep" } });
  await page.request("panel.start");
  answers.push(["modeller (Deep)"]);
  const { chosen } = await page.request<NewSession>("panel.choose", { agents: [] });
  assert.deepEqual(shown.at(-1)!.labels.filter((label) => label.startsWith("modeller")), ["modeller", "modeller (Fast)", "modeller (Deep)"]);
  assert.deepEqual([chosen.agent, chosen.model, chosen.agents], ["modeller", "deep", undefined], "one agent with its model");
  answers.push(["modeller (Fast)", "modeller (Deep)"]);
  const several = await page.request<NewSession>("panel.choose", { agents: [] });
  assert.deepEqual(several.chosen.agents, ["modeller=fast", "modeller=deep"]);
  await page.request("panel.launch", { prompt: "hello" });
  const { attempts } = await hub.connection.request("attempt.list", { session: page.compared[0]!.session.session_uuid });
  assert.deepEqual(attempts.map(({ agent, model }) => [agent, model]).sort(), [["modeller", "deep"], ["modeller", "fast"]]);
});

test("the configuration says whether a new session gets a worktree, unless the user has chosen", async (t) => {
  const { hub, open } = await opened(t, 'worktree = "session"\n');
  addRepository(hub.project.folder);
  const begin = async (worktree?: string): Promise<string | undefined> => {
    const page = open({ title: "New session", chosen: { folder: hub.project.folder, agent: "demo" } });
    if (worktree !== undefined) await page.request("panel.choose", { worktree });
    await page.request("panel.launch", { prompt: "quiet" });
    await hub.until("the end", () => hub.model.sessionOf({ session_uuid: page.session })?.state === "completed");
    return hub.model.sessionOf({ session_uuid: page.session })!.worktree?.branch;
  };
  assert.deepEqual([await begin(), await begin("no")], ["duet/quiet", undefined]);
});

test("a new session gets a sandbox where one works; a mode without questions recommends it", async (t) => {
  const { hub, open } = await opened(t);
  const folder = hub.project.folder;
  const page = open({ title: "New session", chosen: { folder, agent: "demo" } });
  const state = async (): Promise<NewSession> => (await page.request<PanelStart>("panel.start")).newSession!;
  await assert.rejects(page.request("panel.choose", { sandbox: "strict" }), /sandbox has to be workspace, offline or empty/);
  if (!(await state()).description!.sandboxes) return t.skip("bubblewrap does not work here");
  await page.request("panel.choose", { mode: "bypassPermissions" });
  assert.match((await state()).about, /a sandbox keeps its writes in the project/);
  await page.request("panel.choose", { sandbox: "offline" });
  const chosen = await state();
  assert.deepEqual([chosen.chosen.sandbox, chosen.about.includes("sandbox")], ["offline", false]);
  assert.deepEqual(newSettingsOf(chosen).find(({ id }) => id === "sandbox")!.values.map(({ id }) => id), ["", "workspace", "offline"]);
  assert.equal(newSettingsOf({ ...chosen, description: { ...chosen.description!, sandboxes: [] } }).find(({ id }) => id === "sandbox")!.current, "offline", "an agent without one shows the choice");
  await page.request("panel.launch", { prompt: "quiet" });
  await hub.until("the session", () => hub.model.sessionOf({ session_uuid: page.session }) !== undefined);
  assert.equal(hub.model.sessionOf({ session_uuid: page.session })!.sandbox, "offline");
});

test("a fork starts with its first prompt, and knows the session", async (t) => {
  const { hub, open } = await opened(t);
  const { turn_uuid, session_uuid } = await hub.connection.request("session.start", { prompt: "quiet", agent: "demo" });
  await hub.until("the end", () => hub.model.ofTurn(turn_uuid)?.state === "completed");
  const page = open({ title: "Fork", about: "It forks that.", chosen: { folder: hub.project.folder }, fork: { turn: turn_uuid, chosen: { folder: hub.project.folder, agent: "demo" } } });
  const { newSession } = await page.request<PanelStart>("panel.start");
  assert.deepEqual([newSession!.about, newSession!.chosen.agent, newSession!.folders], ["It forks that.", "demo", []]);
  assert.ok(newSession!.agents.some(({ name }) => name === "demo"));
  assert.deepEqual(newSession!.before!.filter(({ role }) => role === "user").map(({ text }) => text), ["quiet"], "the page has what the fork continues");
  // A prompt of the original is forked in its own session.
  const forked = async (): Promise<unknown[]> => {
    await page.request("panel.command", { command: "duet.fork", turn: turn_uuid });
    const [command, of, turn] = executed.at(-1)!;
    return [command, (of as ProjectSession).session.session_uuid, turn];
  };
  assert.deepEqual(await forked(), ["duet.fork", session_uuid, turn_uuid]);
  await page.request("panel.choose", { mode: "plan" });
  await page.request("panel.launch", { prompt: "quiet more" });
  assert.deepEqual(await forked(), ["duet.fork", session_uuid, turn_uuid]);
  assert.equal((await hub.connection.request("turn.get", { turn: page.session })).turn.mode, "plan");
  const { items } = await page.request<ItemList>("session.items", { session: page.session });
  assert.deepEqual(items.filter(({ role }) => role === "user").map(({ text }) => text), ["quiet", "quiet more"]);
  assert.equal((await hub.connection.request("turn.get", { turn: session_uuid })).turn.turn_uuid, turn_uuid, "the original is as it was");
});

test("gates and their turns go with the first prompt; a session that is refused has not started", async (t) => {
  const { hub, beginnings, open } = await opened(t);
  const gated = open({ title: "New session", chosen: { folder: hub.project.folder, agent: "missing" }, gates: ["true"], turns: 2 });
  await assert.rejects(gated.request("panel.launch", { prompt: "quiet" }), /missing/);
  assert.ok(beginnings.of(gated.session));
  const { chosen } = await gated.request<NewSession>("panel.choose", { agent: "demo" });
  assert.equal(chosen.agent, "demo");
  await gated.request("panel.launch", { prompt: "quiet" });
  const { turn: session } = await hub.connection.request("turn.get", { turn: gated.session });
  assert.match(JSON.stringify(session.gates), /"true"/);
  assert.match(JSON.stringify(session.gates), /"max_iterations":2/);
});

test("a beginning outlives its window; one whose session started meanwhile is that session", async (t) => {
  const { hub, beginnings, open } = await opened(t);
  const { session } = open({ title: "New session", chosen: { folder: hub.project.folder, mode: "plan" } });
  const later = open(session);
  assert.equal((await later.request<PanelStart>("panel.start")).newSession!.chosen.mode, "plan");
  await hub.connection.request("session.start", { prompt: "quiet", agent: "demo", session_uuid: session });
  assert.equal((await later.request<PanelStart>("panel.start")).newSession, undefined);
  assert.equal(beginnings.of(session), undefined);
});

test("the agent of a new session is the one of the settings, else the one that was chosen last", async (t) => {
  const { hub, beginnings, open } = await opened(t);
  const choose = async (): Promise<string | undefined> => (await open({ title: "New session", chosen: { folder: hub.project.folder } }).request<PanelStart>("panel.start")).newSession!.chosen.agent;
  const page = open({ title: "New session", chosen: { folder: hub.project.folder, model: "large" } });
  assert.equal((await page.request<NewSession>("panel.choose", { agent: "demo" })).chosen.model, undefined, "a model is one of its agent");
  assert.deepEqual([beginnings.agent, await choose()], ["demo", "demo"]);
  await page.request("panel.choose", { agent: "gone" });
  assert.equal(await choose(), "demo", "an agent that is not installed any more");
  settings["agent"] = "configured";
  await hub.connection.stop();
  void hub.connection.start();
  await assert.rejects(open({ title: "New session", chosen: { folder: hub.project.folder } }).request("panel.launch", { prompt: "sent while duet-rpc starts" }), /configured/);
  assert.equal(await choose(), "configured");
  await page.request("panel.choose", { folder: "/elsewhere" });
  assert.deepEqual([page.moved.length, beginnings.of(page.session)!.chosen.folder], [1, "/elsewhere"], "another project has a hub of its own");
});

test("a panel whose tab the user chooses gives its page the focus, once; the view in the side bar does not when it appears", async (t) => {
  const { hub, open } = await opened(t);
  const page = open({ title: "New session", chosen: { folder: hub.project.folder } });
  const entered = async (): Promise<number> => {
    await page.request("panel.start");
    await new Promise((resolve) => setTimeout(resolve, 50));
    return page.notified.filter((method) => method === "panel.entered").length;
  };
  assert.equal(await entered(), 0);
  page.show({ visible: true, active: true });
  page.show({ visible: true, active: true });
  assert.equal(await entered(), 1);
  page.show({ visible: false, active: false });
  page.show({ visible: true, active: true }); // before VS Code has loaded the page again
  assert.equal(await entered(), 2);
  page.show({ visible: false, active: false, isSideBar: true });
  page.show({ visible: true, active: true });
  assert.equal(await entered(), 2);
});
