// Notifications, in a fake VS Code whose answers a test sets.
import assert from "node:assert/strict";
import test from "node:test";
import { notice } from "../../src/messages";
import { desktopNotification } from "../../src/notifications";
import { shown } from "../fakevscode";

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
