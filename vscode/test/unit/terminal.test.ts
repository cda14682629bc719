// Terminals of the hub, against the built duet-rpc.
import assert from "node:assert/strict";
import test from "node:test";
import { HubTerminal } from "../../src/hub/terminal";
import { newProject, removeProject, startHub } from "../hub";
import type { TestHub } from "../hub";

interface Shown {
  terminal: HubTerminal;
  /** Resolves when its output contains a text. */
  prints: (what: RegExp) => Promise<void>;
  end: Promise<{ code: number | undefined; reason: string }>;
}

function show(hub: TestHub, which: ConstructorParameters<typeof HubTerminal>[1]): Shown {
  const terminal = new HubTerminal(hub.connection, which);
  let text = "";
  const looks = new Set<() => void>();
  terminal.onOutput((more) => {
    text += more;
    for (const look of looks) look();
  });
  const end = new Promise<{ code: number | undefined; reason: string }>((resolve) => terminal.onEnd(resolve));
  const prints = (what: RegExp): Promise<void> => new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${String(what)} was not printed:\n${text}`)), 60_000);
    const look = (): void => {
      if (!what.test(text)) return;
      clearTimeout(timer);
      looks.delete(look);
      resolve();
    };
    looks.add(look);
    look();
  });
  return { terminal, prints, end };
}

function hub(t: test.TestContext): TestHub {
  const project = newProject();
  const started = startHub({ env: { ...project.env, SHELL: "/bin/sh" } }, project);
  t.after(async () => {
    await started.end();
    await removeProject(project);
  });
  return started;
}

test("what is typed is done, in the size of the view, and its end has its status", async (t) => {
  const own = hub(t);
  await own.connection.start();
  const { terminal, prints, end } = show(own, { start: { cwd: own.project.folder } });
  await terminal.open({ cols: 91, rows: 17 });
  await terminal.write("stty size; printf 'caf\\303\\251-%s\\n' done\n");
  await prints(/17 91/);
  await prints(/café-done/);
  await terminal.resize({ cols: 50, rows: 20 });
  await terminal.write("stty size; exit 3\n");
  await prints(/20 50/);
  assert.deepEqual(await end, { code: 3, reason: "ended with status 3" });
});

test("what is typed, and a size that is set, before the terminal is there, reaches it", async (t) => {
  const own = hub(t);
  await own.connection.start();
  const { terminal, prints, end } = show(own, { start: {} });
  const opened = terminal.open({ cols: 91, rows: 17 });
  await terminal.resize({ cols: 50, rows: 20 });
  await terminal.write("stty size; ");
  await terminal.write("exit 4\n");
  await opened;
  await prints(/20 50/);
  assert.equal((await end).code, 4);
});

test("a view that is closed before its terminal is there leaves none behind", async (t) => {
  const own = hub(t);
  await own.connection.start();
  const { terminal } = show(own, { start: {} });
  const exited = new Promise((resolve) => own.connection.onTerminal(({ kind }) => kind === "terminal.exited" && resolve("exited")));
  const opened = terminal.open(undefined);
  await terminal.close();
  await opened;
  assert.equal(await Promise.race([exited, new Promise((resolve) => setTimeout(resolve, 60_000, "it runs on").unref())]), "exited");
});

test("one is closed with its view; one that is watched goes on", async (t) => {
  const own = hub(t);
  await own.connection.start();
  const first = show(own, { start: {} });
  await first.terminal.open(undefined);
  await first.terminal.write("echo hello-$((40+2))\n");
  await first.prints(/hello-42/);
  const running = async (): Promise<string[]> => (await own.connection.request("terminal.list", {})).terminals.map(({ terminal_id }) => terminal_id);
  const [id] = await running();
  const second = show(own, { attach: id! });
  await second.terminal.open(undefined);
  await second.prints(/hello-42/);
  assert.equal(second.terminal.readOnly, false);
  await second.terminal.close();
  assert.deepEqual(await running(), [id]);
  const third = show(own, { attach: id! });
  await third.terminal.open(undefined);
  await first.terminal.close();
  assert.match((await third.end).reason, /^ended/);
});

test("a terminal is watched again after a restart of the process, and ends with the daemon", async (t) => {
  const project = newProject();
  const [first, second] = [startHub({}, project), startHub({}, project)];
  t.after(async () => {
    await second.end();
    await first.end();
    await removeProject(project);
  });
  await first.connection.start();
  await second.connection.start();
  const shown = show(second, { start: { cwd: project.folder } });
  await shown.terminal.open(undefined);
  await shown.terminal.write("echo before-$((1+1))\n");
  await shown.prints(/before-2/);
  process.kill(second.connection.pid!, "SIGKILL");
  await shown.prints(/\u001bc/);
  await shown.terminal.settled();
  await shown.terminal.write("echo after-$((1+2))\n");
  await shown.prints(/after-3/);

  process.kill(await first.daemon(), "SIGKILL");
  assert.equal((await shown.end).reason, "ended with the daemon of duet-rpc");
  const other = show(first, { attach: "nothing" });
  await Promise.all([other.terminal.open(undefined), other.end]);
  assert.match((await other.end).reason, /nothing/);
});
