import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import test from "node:test";
import { BinaryError, findBinary, versionWarning } from "../../src/hub/binary";

interface Place {
  folder: string;
  program(path: string, prints?: string): string;
}

function place(t: test.TestContext): Place {
  const folder = mkdtempSync(join(tmpdir(), "duet-binary-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    program: (path, prints = "duet-rpc 0.1.7 (go1.26 linux/amd64)") => {
      const file = join(folder, path);
      mkdirSync(join(file, ".."), { recursive: true });
      writeFileSync(file, `#!/bin/sh\necho "${prints}"\n`);
      chmodSync(file, 0o755);
      return file;
    },
  };
}

const shared = { setting: "", bundled: "/nonexistent/duet-rpc", platform: "linux" as const };

test("the environment comes first, then the setting, PATH, and what came with the extension", async (t) => {
  const { folder, program } = place(t);
  const [env, setting, inPath, bundled] = [program("env"), program("home/bin/mine"), program("bin/duet-rpc"), program("server/duet-rpc")];
  const PATH = ["", "relative", join(folder, "empty"), join(folder, "bin")].join(delimiter);
  const found = async (options: Partial<Parameters<typeof findBinary>[0]>): Promise<string> => (await findBinary({ ...shared, env: {}, bundled, ...options })).path;
  const HOME = join(folder, "home");
  assert.equal(await found({ env: { DUET_RPC_BIN: env, PATH, HOME }, setting }), env);
  assert.equal(await found({ env: { PATH, HOME }, setting: "~/bin/mine" }), setting);
  assert.equal(await found({ env: { PATH }, setting: "duet-rpc" }), inPath);
  assert.equal(await found({ env: { PATH } }), inPath);
  assert.equal(await found({ env: {} }), bundled);
});

test("what was named is taken, or is an error", async (t) => {
  const { folder, program } = place(t);
  const bundled = program("duet-rpc");
  const other = program("other", "GNU coreutils 9");
  const rejected = async (options: Partial<Parameters<typeof findBinary>[0]>, message: RegExp): Promise<void> => {
    await assert.rejects(findBinary({ ...shared, env: {}, bundled, ...options }), (error) => error instanceof BinaryError && message.test(error.message));
  };
  await rejected({ env: { DUET_RPC_BIN: "/nonexistent/bin" } }, /DUET_RPC_BIN names, is not there or no program/);
  await rejected({ setting: folder }, /duet.executable names, is not there or no program/);
  await rejected({ setting: "./bin/duet-rpc" }, /give a whole path/);
  await rejected({ setting: "elsewhere", env: { PATH: folder } }, /is not in PATH/);
  await rejected({ setting: other }, /is not duet-rpc/);
  await rejected({ bundled: "/nonexistent" }, /was not found/);
});

test("another version than this extension is for is told", async (t) => {
  const { program } = place(t);
  const of = async (prints: string): Promise<string | undefined> => versionWarning(await findBinary({ ...shared, env: { DUET_RPC_BIN: program("duet", prints) } }));
  assert.equal(await of("duet-rpc 0.1.0-dev (go1.26.8 linux/amd64)"), undefined);
  assert.equal(await of("duet-rpc 0.1.0-dev+abc1234.dirty (go1.26.8 linux/amd64)"), undefined);
  assert.match((await of("duet-rpc 0.2.0"))!, /is version 0\.2\.0, and this extension is for 0\.1: update the older one/);
  assert.match((await of("duet-rpc 0.10.0"))!, /0\.10\.0/);
});
