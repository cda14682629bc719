// The page of duet-rpc web in Chromium, on a phone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Locator } from "playwright-core";
import { approvalOf, sessionOf } from "./fakeweb";
import type { FakeWeb } from "./fakeweb";
import { startWebPages, until, webProblems } from "./webpage";
import type { WebPages } from "./webpage";

let pages: WebPages;

/** Waits until a text box has a text. */
async function hasText(box: Locator, text: string): Promise<void> {
  await box.and(box.page().locator("textarea")).evaluate((element, expected) => new Promise<void>((resolve) => {
    const look = (): void => ((element as HTMLTextAreaElement).value === expected ? resolve() : void requestAnimationFrame(look));
    look();
  }), text);
}

before(async () => {
  pages = await startWebPages();
});

after(() => pages?.close());

/** A project with a working session and a question. */
function working(web: FakeWeb): void {
  web.sessions[0]!.sessions.push(sessionOf(12, { state: "waiting_input", title: "Make the parser accept comments" }), sessionOf(11, { session_title: "Umlaute äöü prüfen" }));
  web.items["session-12"] = [{ id: 1, seq: 90, turn_uuid: "turn-12", type: "message", role: "user", key: "p1", text: "Make the parser accept comments", created_at: "2026-01-02T03:04:05Z" }];
  web.approvals.push({ project: "p1", approval: approvalOf("q1", 12) });
}

test("a device is paired by the code in the address, which does not stay there", async () => {
  const { page, web } = await pages.open({ paired: false });
  assert.equal(await page.getByLabel("Name of this device").inputValue(), "Android phone");
  assert.equal(await page.getByLabel("Code").inputValue(), web.code);
  assert.doesNotMatch(page.url(), /code=/);
  await page.getByLabel("Code").fill("wrong");
  await page.getByRole("button", { name: "Pair" }).tap();
  await page.getByText("The device was not paired: the code is wrong or has expired").waitFor();
  await page.getByLabel("Code").fill(web.code);
  await page.getByRole("button", { name: "Pair" }).tap();
  await page.getByRole("heading", { name: "Inbox" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Inbox" }).waitFor();
  assert.deepEqual(web.of("web.hello").map(({ key }) => key), ["key-1", "key-1"]);
  assert.deepEqual(webProblems(page), []);
});

test("a question of the inbox is answered with its fingerprint, and the inbox is empty then", async () => {
  const { page, web } = await pages.open({ prepare: working });
  await page.getByRole("link", { name: /parser.*Make the parser accept comments.*Run npm test/ }).tap();
  await page.getByRole("group", { name: "Question: Run npm test" }).getByRole("button", { name: "Allow", exact: true }).tap();
  await page.getByText("No question is open.").waitFor();
  const { client, ...decided } = web.of("approval.decide")[0]!;
  assert.deepEqual(decided, { approval: "q1", decision: "approve", fingerprint: "print-q1", project: "p1" });
  assert.equal(client, "Android phone");
  assert.deepEqual(webProblems(page), []);
});

test("a question that was answered elsewhere says so within a second", async () => {
  const { page, web } = await pages.open({ prepare: working, hash: "#/question/p1/q1" });
  await page.getByRole("button", { name: "Allow", exact: true }).waitFor();
  web.answer("q1", "denied");
  await page.getByText("Answered elsewhere: denied").waitFor({ timeout: 1_000 });
  assert.equal(await page.getByRole("button", { name: "Allow", exact: true }).count(), 0);
  await page.getByRole("button", { name: "To the inbox" }).tap();
  await page.getByText("No question is open.").waitFor();
});

test("the buttons of a question are in the lower half of the screen, also below a long diff", async () => {
  const { page } = await pages.open({
    prepare: (web) => {
      working(web);
      web.approvals[0]!.approval = approvalOf("q1", 12, { diff: `--- a/a.ts\n+++ b/a.ts\n@@ -0,0 +1,300 @@\n${Array.from({ length: 300 }, (_, i) => `+line ${i} ${"x".repeat(i % 2 === 0 ? 10 : 400)}`).join("\n")}\n` });
    },
    hash: "#/question/p1/q1",
  });
  const allow = page.getByRole("button", { name: "Allow", exact: true });
  await page.getByRole("button", { name: "Show 284 more lines" }).tap();
  await page.getByText("line 299").waitFor({ state: "attached" });
  const box = (await allow.boundingBox())!;
  assert.ok(box.y > 370 && box.y + box.height <= 740, JSON.stringify(box));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
});

test("a conversation streams, its question is answered in it, and a prompt follows", async () => {
  const { page, web } = await pages.open({ prepare: working, hash: "#/sessions" });
  await page.getByRole("link", { name: /Make the parser accept comments/ }).tap();
  await page.getByRole("heading", { name: "Make the parser accept comments" }).waitFor();
  const of = { session_uuid: "session-12", turn_uuid: "turn-12" };
  web.event("p1", "text.delta", of, { key: "m1", text: "I **write** " });
  web.event("p1", "text.delta", of, { key: "m1", text: "äöü: שלום" });
  await page.locator(".said strong", { hasText: "write" }).waitFor();
  await page.getByText("äöü: שלום").waitFor();
  await page.getByRole("group", { name: "Question: Run npm test" }).getByRole("button", { name: "Deny", exact: true }).tap();
  await page.getByRole("group", { name: "Question: Run npm test" }).waitFor({ state: "detached" });
  const [{ comment, client, fingerprint } = {}] = web.of("approval.decide");
  assert.deepEqual([comment, client, fingerprint], ["Denied in Android phone", "Android phone", "print-q1"]);
  await page.getByRole("textbox", { name: "Prompt" }).fill("And the tests?");
  await page.getByRole("textbox", { name: "Prompt" }).press("Enter");
  assert.equal(await page.getByRole("textbox", { name: "Prompt" }).inputValue(), "And the tests?\n", "on a touch screen, Enter begins a new line");
  await page.getByRole("button", { name: /^(?:Send|Add to the queue)$/ }).tap();
  await page.locator(".prompt", { hasText: "And the tests?" }).waitFor();
  await hasText(page.getByRole("textbox", { name: "Prompt" }), "");
  await page.goBack();
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  assert.deepEqual(webProblems(page), []);
});

test("the first prompt starts a session with the chosen agent and model, and shows it", async () => {
  const { page, web } = await pages.open({
    prepare: (web) => {
      web.projects.push({ id: "p2", name: "website@devbox", root: "/w", host: "devbox", state: "connected" });
      web.sessions.push({ project: "p2", sessions: [] });
    },
    hash: "#/new",
  });
  await page.getByRole("textbox", { name: "Prompt" }).fill("Add a dark mode");
  await page.getByRole("combobox", { name: "Project" }).selectOption({ label: "website@devbox" });
  await page.getByRole("combobox", { name: "Agent" }).selectOption("codex");
  await page.getByRole("combobox", { name: "Model" }).selectOption("sonnet");
  await page.getByRole("combobox", { name: "Place of work" }).selectOption("yes");
  assert.equal(await page.getByRole("combobox", { name: "Agent" }).getByText("Several Agents…").count(), 0);
  await hasText(page.getByRole("textbox", { name: "Prompt" }), "Add a dark mode"); // it stays when the project changes
  await page.getByRole("button", { name: "Send", exact: true }).tap();
  await page.locator(".prompt", { hasText: "Add a dark mode" }).waitFor();
  await page.getByRole("heading", { name: "Add a dark mode" }).waitFor();
  const [{ session_uuid, start_id, ...started } = {}] = web.of("session.start");
  assert.deepEqual(started, { prompt: "Add a dark mode", agent: "codex", model: "sonnet", worktree: true, project: "p2" });
  assert.notEqual(session_uuid, start_id);
  assert.match(page.url(), new RegExp(`#/session/p2/${String(session_uuid)}$`));
  await page.getByRole("button", { name: "Back" }).tap();
  await page.getByRole("link", { name: "New" }).tap();
  await page.getByRole("combobox", { name: "Agent" }).waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Prompt" }).inputValue(), "", "the next session begins without a draft");
  assert.deepEqual(webProblems(page), []);
});

test("changes are accepted and reverted by hunk, and a decision of another client is shown", async () => {
  const diff = "--- a/a.ts\n+++ b/a.ts\n@@ -1,1 +1,1 @@\n-old one\n+new one\n@@ -9,1 +9,1 @@\n-old two\n+new two\n";
  const hunk = (id: string, at: number): Record<string, unknown> => ({ id, old_start: at, old_lines: 1, new_start: at, new_lines: 1, added: 1, removed: 1, state: "open" });
  const { page, web } = await pages.open({
    prepare: (web) => {
      working(web);
      web.changes["turn-12"] = [{ path: "/home/alice/parser/a.ts", before: "", after: "", binary: false, diff, hunks: [hunk("h1", 1), hunk("h2", 9)], state: "open", changed_at: "2026-01-02T03:04:05Z" }];
    },
    hash: "#/session/p1/session-12",
  });
  await page.getByRole("button", { name: "Show changes" }).tap();
  await page.getByRole("button", { name: "Accept hunk 1 of /home/alice/parser/a.ts" }).tap();
  await page.getByText("1 accepted, 1 open").waitFor();
  await page.getByRole("button", { name: "Revert hunk 2 of /home/alice/parser/a.ts" }).tap();
  await page.getByText("1 accepted, 1 reverted").waitFor();
  await page.getByRole("button", { name: "Undo hunk 1 of /home/alice/parser/a.ts" }).tap();
  await page.getByText("1 reverted, 1 open").waitFor();
  assert.deepEqual(["change.accept", "change.revert", "change.reopen"].map((method) => web.of(method).map(({ hunk, turn }) => [hunk, turn])), [[["h1", "turn-12"]], [["h2", "turn-12"]], [["h1", "turn-12"]]]);
  (web.changes["turn-12"]![0]!["hunks"] as Array<Record<string, unknown>>)[0]!["state"] = "accepted";
  web.event("p1", "change.decided", { session_uuid: "session-12", turn_uuid: "turn-12" }, {});
  await page.getByText("1 accepted, 1 reverted").waitFor();
  assert.deepEqual(webProblems(page), []);
});

test("an answer given offline outlives a reload, and is sent once with the fingerprint of what was shown", async () => {
  const { page, web } = await pages.open({ prepare: working, hash: "#/question/p1/q1" });
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.getByRole("button", { name: "Allow", exact: true }).waitFor();
  web.off();
  await page.getByText("Offline: reconnecting…").waitFor();
  await page.getByRole("button", { name: "Allow", exact: true }).tap();
  await page.getByText("Allow: Run npm test").waitFor();
  await page.reload(); // the service worker has the page
  await page.getByText("Allow: Run npm test").waitFor();
  web.on();
  await page.getByText("Your answer counted: Run npm test").waitFor();
  assert.deepEqual(web.of("approval.decide").map(({ fingerprint }) => fingerprint), ["print-q1"]);
  await page.getByText("Answered elsewhere").or(page.getByText("No question is open.")).or(page.getByText("Answered: allowed")).waitFor();
});

test("an answer given offline to a question that changed meanwhile is refused, and the new one is shown", async () => {
  const { page, web } = await pages.open({ prepare: working, hash: "#/question/p1/q1" });
  await page.getByRole("button", { name: "Allow", exact: true }).waitFor();
  web.off();
  await page.getByText("Offline: reconnecting…").waitFor();
  await page.getByRole("button", { name: "Allow", exact: true }).tap();
  await page.getByText("Allow: Run npm test").waitFor();
  web.approvals[0]!.approval = approvalOf("q1", 12, { title: "Run rm -r build", tool_input: { command: "rm -r build" }, fingerprint: "print-2" });
  web.on();
  await page.getByText("Your answer did not count: the question has changed since it was shown").waitFor();
  await page.getByRole("group", { name: "Question: Run rm -r build" }).waitFor();
  await page.getByText("The question has changed. This is how it is now:").waitFor();
  const until = (await page.evaluate(() => performance.now())) + 1_000; // until then, the thumb may still be on its way to the question before
  await page.waitForFunction((until) => performance.now() > until, until);
  await page.getByRole("button", { name: "Allow", exact: true }).tap();
  await page.getByText("No question is open.").waitFor();
  assert.deepEqual(web.of("approval.decide").map(({ fingerprint }) => fingerprint), ["print-q1", "print-2"]);
});

test("a prompt sent offline is kept, can be taken back, and is sent once there is a connection", async () => {
  const { page, web } = await pages.open({ prepare: (web) => web.sessions[0]!.sessions.push(sessionOf(12)), hash: "#/session/p1/session-12" });
  const box = page.getByRole("textbox", { name: "Prompt" });
  await page.getByText("completed").waitFor();
  web.off();
  await page.getByText("Offline: reconnecting…").waitFor();
  await box.fill("First");
  await page.getByRole("button", { name: "Send", exact: true }).tap();
  await page.getByText("Prompt: First").waitFor();
  await hasText(box, "");
  await page.getByRole("button", { name: "Take back: First" }).tap();
  await page.getByText("Prompt: First").waitFor({ state: "detached" });
  await hasText(box, "First");
  await box.fill("Second");
  await page.getByRole("button", { name: "Send", exact: true }).tap();
  web.on();
  await page.locator(".prompt", { hasText: "Second" }).waitFor();
  assert.deepEqual(web.of("session.prompt").map(({ prompt }) => prompt), ["Second"]);
  await page.getByText("Offline: reconnecting…").waitFor({ state: "detached" });
});

test("events during a break of the line come after it, and drafts and half-typed reasons outlive a reload", async () => {
  const { page, web } = await pages.open({ prepare: working, hash: "#/session/p1/session-12" });
  const question = page.getByRole("group", { name: "Question: Run npm test" });
  await question.waitFor();
  await page.getByRole("textbox", { name: "Prompt" }).fill("Noch nicht fertig");
  web.off();
  await page.getByText("Offline: reconnecting…").waitFor();
  web.event("p1", "item.added", { session_uuid: "session-12", turn_uuid: "turn-12" }, { type: "message", role: "assistant", key: "m9", text: "Said while you were away" });
  web.on();
  await page.getByText("Said while you were away").waitFor();
  assert.equal(await page.getByText("Said while you were away").count(), 1);
  await question.getByRole("button", { name: "Deny and say why" }).tap();
  await question.getByRole("textbox").fill("Erst die Tests");
  await page.reload();
  await question.getByRole("button", { name: "Deny and say why" }).tap();
  assert.equal(await question.getByRole("textbox").inputValue(), "Erst die Tests");
  await hasText(page.getByRole("textbox", { name: "Prompt" }), "Noch nicht fertig");
});

test("a removed device shows the pairing, and forgets what was written there", async () => {
  const { page, web } = await pages.open({ prepare: working, hash: "#/session/p1/session-12" });
  await page.getByRole("textbox", { name: "Prompt" }).fill("A secret draft");
  await page.waitForFunction(() => Object.values(localStorage).some((text) => String(text).includes("A secret draft")));
  web.kick(4403);
  await page.getByText("This device was removed.").waitFor();
  await page.waitForFunction(() => Object.keys(localStorage).filter((key) => key.startsWith("duet ")).length === 0);
  await page.reload();
  await page.getByRole("button", { name: "Pair" }).waitFor();
});

test("a search finds titles and what was said, and leads to that place", async () => {
  const { page, web } = await pages.open({ prepare: working, hash: "#/sessions" });
  web.answers["session.search"] = () => ({ hits: [{ turn: "12.1", session: 12, turn_uuid: "turn-12", session_uuid: "session-12", title: "Make the parser accept comments", agent: "claude", item: 1, key: "p1", type: "message", snippet: "accept comments", rank: 1, created_at: "2026-01-02T03:04:05Z" }] });
  await page.getByRole("searchbox", { name: "Search sessions" }).fill("umlaute");
  await page.getByText("Make the parser accept comments · ").waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Found in parser" }).getByRole("link").tap();
  await page.getByRole("heading", { name: "Make the parser accept comments" }).waitFor();
  assert.deepEqual(webProblems(page), []);
});

test("a link in an agent's text shows its address before it opens", async () => {
  const { page } = await pages.open({
    prepare: (web) => {
      working(web);
      web.items["session-12"]!.push({ id: 2, seq: 91, turn_uuid: "turn-12", type: "message", role: "assistant", key: "m1", text: "[Your bank](https://evil.example/login) and [this](javascript:alert(1))", created_at: "2026-01-02T03:04:05Z" });
    },
    hash: "#/session/p1/session-12",
  });
  await page.getByRole("link", { name: "Your bank" }).tap();
  const dialog = page.getByRole("dialog", { name: "Open this address?" });
  await dialog.getByText("https://evil.example/login").waitFor();
  assert.equal(await dialog.getByRole("link", { name: "Open" }).getAttribute("rel"), "noopener noreferrer");
  await dialog.getByRole("button", { name: "Cancel" }).tap();
  assert.equal(await page.getByRole("link", { name: "this" }).count(), 0);
});

test("Escape reaches the panel that is shown, and neither one that was left nor one below a dialog", async () => {
  const { page, web } = await pages.open({
    prepare: (web) => {
      web.sessions[0]!.sessions.push(sessionOf(12, { state: "running" }), sessionOf(11));
      web.items["session-12"] = [{ id: 1, seq: 90, turn_uuid: "turn-12", turn_state: "running", type: "message", role: "user", key: "p1", text: "Go", created_at: "2026-01-02T03:04:05Z" }, { id: 2, seq: 91, turn_uuid: "turn-12", turn_state: "running", type: "message", role: "assistant", key: "m1", text: "[a link](https://example.org)", created_at: "2026-01-02T03:04:05Z" }];
    },
    hash: "#/session/p1/session-12",
  });
  await page.getByText("running").first().waitFor();
  await page.getByRole("link", { name: "a link" }).tap();
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Back" }).tap();
  await page.getByRole("heading", { name: "Inbox" }).waitFor();
  await page.keyboard.press("Escape");
  await page.evaluate(() => (location.hash = "#/session/p1/session-12"));
  await page.getByRole("link", { name: "a link" }).waitFor();
  assert.deepEqual(web.of("turn.interrupt"), []);
  await page.keyboard.press("Escape");
  await until("the interruption", () => web.of("turn.interrupt"), ({ length }) => length > 0);
  assert.deepEqual(web.of("turn.interrupt"), [{ turn: "turn-12", project: "p1" }]);
});

test("the settings say what leaves the machine, and answers need a notification that says all", async () => {
  const { page, web } = await pages.open({ hash: "#/settings" });
  // The headless Chromium has no push service.
  await page.addInitScript(() => {
    Object.defineProperty(Notification, "permission", { get: () => "default" });
    Notification.requestPermission = () => Promise.resolve("granted");
    let subscription: object | null = null;
    Object.assign(PushManager.prototype, {
      getSubscription: () => Promise.resolve(subscription),
      subscribe: () => Promise.resolve((subscription = { toJSON: () => ({ endpoint: "https://push.example/1" }), unsubscribe: () => Promise.resolve((subscription = null)) })),
    });
  });
  await page.reload();
  await page.getByRole("switch", { name: "Notify this device" }).tap();
  await page.getByText("What leaves your machine").waitFor();
  const answers = page.getByRole("switch", { name: /Answer in the notification/ });
  assert.equal(await answers.isDisabled(), true);
  await page.getByRole("radio", { name: /^All/ }).tap();
  await page.waitForFunction(() => !document.querySelector<HTMLInputElement>("#answers")!.disabled);
  await answers.tap();
  await until("the answers", () => web.of("web.push.set"), ({ length }) => length === 3);
  await page.getByRole("radio", { name: /^Nothing/ }).tap();
  await until("nothing", () => web.of("web.push.set"), ({ length }) => length === 4);
  assert.deepEqual(web.of("web.push.set").map(({ content, answers }) => [content, answers]), [["none", false], ["all", false], ["all", true], ["none", false]]);
  await page.getByRole("switch", { name: "Notify this device" }).tap();
  const all = await until("the end", () => web.of("web.push.set"), ({ length }) => length === 5);
  assert.equal(all.at(-1)!["subscription"], null);
  await page.getByLabel("Name of this device").fill("Größes Telefon");
  await page.getByRole("button", { name: "Rename" }).tap();
  await until("the name", () => web.of("web.rename"), ({ length }) => length === 1);
  await page.getByRole("button", { name: "Sign out" }).tap();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out" }).tap();
  await page.getByText("You are signed out.").waitFor();
  assert.deepEqual([web.of("web.rename"), web.of("web.leave").length], [[{ name: "Größes Telefon" }], 1]);
});

test("a project that was never reached has no sessions, and breaks no screen", async () => {
  const { page } = await pages.open({
    prepare: (web) => {
      working(web);
      web.projects.push({ id: "p9", name: "asleep", root: "/a", state: "asleep" });
      web.sessions.push({ project: "p9", sessions: null as unknown as [] });
    },
    hash: "#/sessions",
  });
  await page.getByRole("region", { name: "asleep" }).getByText("No sessions yet.").waitFor();
  assert.deepEqual(webProblems(page), []);
});
