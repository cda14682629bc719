// The page of duet-rpc web in Chromium, on a phone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { approvalOf, sessionOf } from "./fakeweb";
import type { FakeWeb } from "./fakeweb";
import { startWebPages, webProblems } from "./webpage";
import type { WebPages } from "./webpage";

let pages: WebPages;

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
