// Builds and their diagnostics, against the built duet-rpc.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { CancellationTokenSource, ResponseError } from "vscode-jsonrpc/node";
import { Builds, Findings, locations, pathOf } from "../../src/hub/builds";
import type { Report } from "../../src/hub/builds";
import type { HubEvent } from "../../src/protocol";
import { byRoot, folderWith, projectRoot, stateDirectory, usesDuet } from "../../src/hub/root";
import { newProject, removeProject, startHub } from "../hub";
import type { TestHub } from "../hub";

function hub(t: test.TestContext, config: string, trusted = true): TestHub {
  const project = newProject();
  writeFileSync(join(project.folder, ".duet.toml"), config);
  const started = startHub({ trusted: () => trusted }, project);
  t.after(async () => {
    await started.end();
    await removeProject(project);
  });
  return started;
}

function event(kind: string, data: Record<string, unknown>): HubEvent {
  return { kind, time: "", data } as HubEvent;
}

test("what a build finds is told once, and the next build of that name takes its place", async (t) => {
  const { connection, project } = hub(t, `[[builds]]\nname = "demo"\ncommand = ["sh", "-c", "cat output; test ! -e broken"]\n`);
  const at = (name: string): string => join(project.folder, name);
  writeFileSync(at("output"), "main.go:9:6: declared and not used: n\n");
  writeFileSync(at("broken"), "");
  await connection.start();
  const findings = new Findings();
  let last: Report | undefined;
  let ends = 0;
  const ended: Array<() => void> = [];
  connection.onNotification((notification) => (last = findings.takeNotification(notification) ?? last));
  connection.onEvent((event) => {
    last = findings.takeEvent(event) ?? last;
    if (event.kind === "build.progress" && event.data.stage !== "started") {
      ends++;
      for (const resolve of ended) resolve();
    }
  });
  const untilEnds = (count: number): Promise<void> => new Promise((resolve) => {
    const look = (): void => void (ends >= count && resolve());
    ended.push(look);
    look();
  });
  const builds = new Builds(connection);
  assert.deepEqual((await builds.list()).map(({ name }) => name), ["demo"]);
  let [output, started] = ["", 0];
  const listener = { onOutput: (text: string) => (output += text), onStarted: () => started++ };
  await assert.rejects(builds.run("demo", listener), (error) => error instanceof ResponseError && /demo failed: exit status 1/.test(error.message));
  await untilEnds(1);
  assert.equal(output, "main.go:9:6: declared and not used: n\n");
  assert.equal(started, 1);
  assert.equal(last?.source, "build demo");
  assert.deepEqual(last.findings.map(({ file, line, column, severity, message }) => [file, line, column, severity, message]), [["main.go", 9, 6, "error", "declared and not used: n"]]);
  assert.equal(pathOf(last.findings[0]!, project.folder), at("main.go"));
  assert.equal(pathOf({ file: "/elsewhere/a.go", severity: "error", message: "" }, project.folder), "/elsewhere/a.go");

  writeFileSync(at("output"), "");
  await connection.request("build.run", {}).catch(() => {}); // by another client
  await untilEnds(2);
  assert.deepEqual(last.findings, []);
});

test("a build is cancelled, and one of the same name waits for another", async (t) => {
  const { connection, project } = hub(t, `[[builds]]\nname = "slow"\ncommand = ["sh", "-c", "echo begun; test -e go || exec sleep 600"]\n`);
  await connection.start();
  const builds = new Builds(connection);
  const cancel = new CancellationTokenSource();
  let waiting = 0;
  const first = builds.run("slow", { onOutput: () => cancel.cancel() }, cancel.token);
  let output = "";
  const second = builds.run("slow", { onOutput: (text) => (output += text), onWaiting: () => waiting++ });
  // Work that is queued here runs before the second process can exist.
  await assert.rejects(first.finally(() => writeFileSync(join(project.folder, "go"), "")));
  assert.equal((await second).success, true);
  assert.equal(waiting, 1);
  assert.equal(output, "begun\n");
});

test("in an untrusted workspace nothing is built, and the error says so", async (t) => {
  const { connection, project } = hub(t, `[[builds]]\nname = "theirs"\ncommand = ["touch", "ran"]\n`, false);
  await connection.start();
  await assert.rejects(new Builds(connection).list(), (error) => error instanceof ResponseError && (error.data as { kind: string }).kind === "not_trusted" && /trust it in the editor/.test(error.message));
  assert.ok(!existsSync(join(project.folder, "ran")));
});

test("findings of gates are those of the last check", () => {
  const findings = new Findings();
  const finding = { file: "a.go", line: 3, severity: "error", message: "undefined: x" };
  assert.deepEqual(findings.takeEvent(event("gate.result", { gate: "make test", passed: false, findings: [finding] })), { source: "gate make test", findings: [finding] });
  assert.deepEqual(findings.takeEvent(event("gate.result", { gate: "make test", passed: true })), { source: "gate make test", findings: [] });
  assert.equal(findings.takeEvent(event("plan", {})), undefined);
});

test("places in output are found, and times are none", () => {
  const found = (text: string): unknown[] => locations(text).map(({ path, line, column }) => [path, line, column]);
  assert.deepEqual(found("./main.go:9:6: declared"), [["./main.go", 9, 6]]);
  assert.deepEqual(found("src/a-b.ts(12,3): error TS1: no\n  at /x/y.js:4\n"), [["src/a-b.ts", 12, 3], ["/x/y.js", 4, undefined]]);
  assert.deepEqual(found("12:30:01 begun; http://localhost:8080 is up"), []);
  const [only] = locations("see a.go:1.");
  assert.equal("see a.go:1.".slice(only!.start, only!.end), "a.go:1");
});

test("folders of one project belong together", () => {
  const there = (path: string): boolean => path === join("/home/me/project", ".duet.toml");
  const roots = byRoot(["/home/me/project/client", "/home/me/other", "/home/me/project/server"], (path) => path, there);
  assert.deepEqual([...roots], [["/home/me/project", ["/home/me/project/client", "/home/me/project/server"]], ["/home/me/other", ["/home/me/other"]]]);
});

test("a session starts in the folder that contains the active editor's file", () => {
  const of = (file: string, ...folders: string[]): string | undefined => folderWith(folders, (path) => path, file);
  const [a, b] = [join("/repo", "a"), join("/repo", "b")];
  assert.equal(of(join(b, "src", "main.ts"), a, b), b);
  assert.equal(of(b, a, b), b, "the folder itself");
  assert.equal(of(join("/repo", "b2", "x.ts"), a, b), undefined, "a name that only begins like it");
  assert.equal(of(join("/else", "x.ts"), a, b), undefined);
  assert.equal(of(join(b, "x.ts"), "/repo", b), b, "the innermost folder");
  assert.equal(of(join("/repo", "x.ts"), "/"), "/");
});

test("the state directory of a project has its name and a hash of its path", () => {
  assert.equal(stateDirectory("/home/me/a project of ä name that is long", { XDG_STATE_HOME: "/state" }), "/state/duet/projects/a-project-of---name-that-7d76d87cce8a06d4");
  assert.equal(stateDirectory("/p", { XDG_STATE_HOME: "relative", DUET_STATE_HOME: "/mine" }), "/mine/projects/p-00d74baf14ea415c");
});

test("a directory of which sessions are kept is a project", () => {
  const there = (path: string): boolean => path === join(stateDirectory("/home/me/project"), "project.json");
  assert.equal(projectRoot("/home/me/project/sub/dir", there), "/home/me/project");
  assert.equal(projectRoot("/home/me/other", there), "/home/me/other");
  const inGit = (path: string): boolean => there(path) || path === join("/home/me/project/sub", ".git");
  assert.equal(projectRoot("/home/me/project/sub/dir", inGit), "/home/me/project/sub", "the nearest marker counts");
  assert.deepEqual(["/home/me/project/sub/dir", "/home/me/other"].map((path) => usesDuet(path, there)), [true, false]);
  assert.equal(usesDuet("/home/me/project/sub", inGit), false, "a repository that Duet was not used in");
});
