// The gates of a configuration, as the built duet-rpc tells them.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { listGates } from "../../src/hub/gates";
import { duetBinary, newProject, removeProject } from "../hub";

test("gates are read with their commands and directories", async (t) => {
  const project = newProject();
  t.after(() => removeProject(project));
  writeFileSync(join(project.folder, ".duet.toml"), `[[gates]]
name = "tests"
command = ["make", "test \\"all\\"] in"]
[[gates]]
name = "there"
command = ["sh", "-c", "true"]
directory = "sub dir"
env = { A = "b" }
`);
  const gates = await listGates(duetBinary, project.folder, project.env);
  assert.deepEqual(gates.map(({ name, command, directory, hasVariables, waitsForTrust }) => ({ name, command, directory, hasVariables, waitsForTrust })), [
    { name: "tests", command: ["make", 'test "all"] in'], directory: "", hasVariables: false, waitsForTrust: true },
    { name: "there", command: ["sh", "-c", "true"], directory: "sub dir", hasVariables: true, waitsForTrust: true },
  ]);
});

test("a configuration that is wrong is told as the program tells it", async (t) => {
  const project = newProject();
  t.after(() => removeProject(project));
  writeFileSync(join(project.folder, ".duet.toml"), "[[gates]]\nname = 3\n");
  await assert.rejects(listGates(duetBinary, project.folder, project.env), /configuration is wrong/);
});
