import assert from "node:assert/strict";
import test from "node:test";
import { editableInput } from "../../src/hub/edits";

test("the text of a file, or of the part of it that a tool replaces, is edited as text", () => {
  const write = editableInput({ file_path: "/p/a.ts", content: "one\n" });
  assert.deepEqual([write.path, write.before, write.text, write.changed("two\n")], ["/p/a.ts", undefined, "one\n", { file_path: "/p/a.ts", content: "two\n" }]);
  const edit = editableInput({ path: "a.ts", old_string: "a", new_string: "b", replace_all: true });
  assert.deepEqual([edit.path, edit.before, edit.text, edit.changed("c")], ["a.ts", "a", "b", { path: "a.ts", old_string: "a", new_string: "c", replace_all: true }]);
});

test("an input that is no text of a file is edited as JSON", () => {
  for (const input of [{ command: "make" }, { content: "no file" }, { file_path: "a.ts", new_string: "b" }]) {
    const edit = editableInput(input);
    assert.deepEqual([edit.path, edit.changed(edit.text)], [undefined, input]);
  }
  const { changed } = editableInput({ command: "make" });
  assert.deepEqual(changed('{"command":"make test"}'), { command: "make test" });
  assert.throws(() => changed("{"), /the input is not JSON/);
  assert.throws(() => changed("[]"), /has to be a JSON object/);
});
