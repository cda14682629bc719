// The page of a session panel in Chromium.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { callsOf, problemsOf, startPages, tell } from "./panelpage";
import type { PanelPages } from "./panelpage";

let pages: PanelPages;

before(async () => {
  pages = await startPages();
});

after(() => pages?.close());

test("text streams, a tool call runs, its question is answered by a button, and a prompt is sent", async () => {
  const page = await pages.open({ prepare: (host) => (host.session = { ...host.session, state: "running" }) });
  await page.getByRole("heading", { name: "A session" }).waitFor();
  await tell(page, "text.delta", { key: "m1", text: "I **write**" });
  await tell(page, "text.delta", { key: "m1", text: " `a.txt`." });
  await page.locator(".said strong", { hasText: "write" }).waitFor();
  await tell(page, "item.changed", { type: "tool_call", key: "c1", tool_name: "Bash", title: "make test", tool_kind: "execute", status: "pending", tool_input: { command: "make test" } });
  await tell(page, "approval.opened", { approval: "q1", tool_use_id: "c1", type: "function_call", tool_name: "Bash", title: "make test", tool_input: { command: "make test" } });
  await tell(page, "turn.state", { state: "waiting_input" });
  const question = page.getByRole("group", { name: "Question: make test" });
  await question.getByRole("button", { name: "Allow", exact: true }).click();
  await question.waitFor({ state: "detached" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q1", decision: "approve" }]);
  await tell(page, "item.changed", { type: "tool_call", key: "c1", status: "completed", result: "\u001b[32mok\u001b[0m all" });
  await page.locator(".tool .ansi-green", { hasText: "ok" }).waitFor();
  await tell(page, "turn.state", { state: "completed" });
  await page.getByRole("textbox", { name: "Prompt" }).fill("and now?");
  await page.keyboard.press("Enter");
  await page.locator(".prompt", { hasText: "and now?" }).waitFor();
  assert.deepEqual(await callsOf(page, "session.prompt"), [{ session: "thread", prompt: "and now?" }]);
  assert.equal(await page.getByRole("textbox", { name: "Prompt" }).inputValue(), "");
  assert.deepEqual(problemsOf(page), []);
});
