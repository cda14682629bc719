// Notifications, in a fake VS Code whose answers a test sets.
import assert from "node:assert/strict";
import test from "node:test";
import { notice } from "../../src/messages";
import { desktopNotification, notifications } from "../../src/notifications";
import type { ProjectQuestion, Projects } from "../../src/projects";
import { shown, standing } from "../fakevscode";

test("a notice has links to its own commands alone", () => {
  notice("Run [ls](command:evil)", [{ label: "[Allow]", command: "duet.answer", args: ["id", "approve"] }], "a name").dispose();
  const { text } = shown.at(-1)!;
  assert.equal(text, 'Run [ls] (command:evil) — [Allow](command:duet.answer?%5B%22id%22%2C%22approve%22%5D "duet.answer") — a name');
});

test("the desktop gets a text as one argument that is no option and no markup", () => {
  assert.deepEqual(desktopNotification("linux", "-a <b>\nmore"), ["notify-send", ["--app-name=Duet", "--", "Duet", "-a &#60;b&#62;"]]);
  assert.equal(desktopNotification("darwin", '" & quit')[1].at(-1), '" & quit');
  assert.equal(desktopNotification("win32", "text")[0], undefined);
});

test("the notification of a question ends when a panel shows the question, such as one that VS Code restores later", async () => {
  const question = (approval: string, session_uuid: string): ProjectQuestion =>
    ({ project: { model: { sessionOf: (of: { session_uuid: string }) => ({ session_uuid: of.session_uuid, title: of.session_uuid }) } }, question: { approval, session_uuid, type: "function_call", title: approval, options: [] } }) as unknown as ProjectQuestion;
  const questions = [question("q1", "restored"), question("q2", "elsewhere")];
  const visible = new Set<string>();
  const calls: { asked?: (given: ProjectQuestion[]) => void; seen?: () => void } = {};
  const projects = { questions, sessions: [], onQuestions: (listener: () => void) => ((calls.asked = listener), () => {}), onChange: () => () => {} } as unknown as Projects;
  const all = notifications(projects, {
    attempt: () => {}, open: () => {}, isShown: ({ session }) => visible.has(session.session_uuid), onShown: (listener) => ((calls.seen = listener), () => {}),
  });
  calls.asked!(questions);
  assert.equal(standing.size, 2);
  visible.add("restored");
  calls.seen!();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([...standing].map((title) => title.includes("q2")), [true]);
  all.dispose();
});
