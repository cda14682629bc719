import assert from "node:assert/strict";
import test from "node:test";
import { editableInput } from "../../src/hub/edits";

test("the text of a file, or of the part of it that a tool replaces, is edited as text", () => {
  const write = editableInput({ tool_input: { file_path: "/p/a.ts", content: "one\n" }, input_text_member: "content", paths: ["/p/a.ts"] });
  assert.deepEqual([write.path, write.name, write.before, write.text, write.changed("two\n")], ["/p/a.ts", "a.ts", undefined, "one\n", { file_path: "/p/a.ts", content: "two\n" }]);
  const edit = editableInput({ tool_input: { path: "a.ts", old_string: "a", new_string: "b", replace_all: true }, input_text_member: "new_string", paths: ["a.ts"] });
  assert.deepEqual([edit.path, edit.before, edit.text, edit.changed("c")], ["a.ts", "a", "b", { path: "a.ts", old_string: "a", new_string: "c", replace_all: true }]);
});

test("a command is edited as text, and an input without a text as JSON", () => {
  const command = editableInput({ tool_input: { command: "make" }, input_text_member: "command" });
  assert.deepEqual([command.path, command.name, command.text, command.changed("make test")], [undefined, "command.sh", "make", { command: "make test" }]);
  const input = { edits: [{ new_string: "b" }] };
  const { path, text, changed } = editableInput({ tool_input: input, paths: ["a.ts"] });
  assert.deepEqual([path, changed(text)], [undefined, input]);
  assert.throws(() => changed("{"), /the input is not JSON/);
  assert.throws(() => changed("[]"), /has to be a JSON object/);
});
