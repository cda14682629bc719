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
  await page.getByRole("heading", { name: "A conversation" }).waitFor();
  await tell(page, "message_delta", { message_id: "m1", delta: "I **write**" });
  await tell(page, "message_delta", { message_id: "m1", delta: " `a.txt`." });
  await page.locator(".said strong", { hasText: "write" }).waitFor();
  await tell(page, "conversation_updated", { event_type: "tool_call", tool_id: "c1", tool_name: "Bash", tool_title: "make test", tool_kind: "execute", tool_status: "pending", tool_input: { command: "make test" } });
  await tell(page, "new_approval", { approval_id: "q1", tool_use_id: "c1", type: "function_call", tool_name: "Bash", title: "make test", tool_input: { command: "make test" } });
  await tell(page, "session_status_changed", { state: "waiting_input" });
  const question = page.getByRole("group", { name: "Question: make test" });
  await question.getByRole("button", { name: "Allow", exact: true }).click();
  await question.waitFor({ state: "detached" });
  assert.deepEqual(await callsOf(page, "approval.decide"), [{ approval: "q1", decision: "approve" }]);
  await tell(page, "conversation_updated", { event_type: "tool_result", tool_result_for_id: "c1", tool_status: "completed", tool_result_content: "\u001b[32mok\u001b[0m all" });
  await page.locator(".tool .ansi-green", { hasText: "ok" }).waitFor();
  await tell(page, "session_status_changed", { state: "completed" });
  await page.getByRole("textbox", { name: "Prompt" }).fill("and now?");
  await page.keyboard.press("Enter");
  await page.locator(".prompt", { hasText: "and now?" }).waitFor();
  assert.deepEqual(await callsOf(page, "session.prompt"), [{ session: "thread", prompt: "and now?" }]);
  assert.equal(await page.getByRole("textbox", { name: "Prompt" }).inputValue(), "");
  assert.deepEqual(problemsOf(page), []);
});
