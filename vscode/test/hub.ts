// Starts the built duet-rpc for tests. Each test has its own project, home and state directory.
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { devNull, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { findBinary } from "../src/hub/binary";
import { HubConnection } from "../src/hub/connection";
import type { ConnectionOptions, Log } from "../src/hub/connection";
import { ProjectModel } from "../src/hub/model";

export const duetBinary = resolve(process.env["DUET_RPC_BIN"] ?? "../bin/duet-rpc");

export interface TestProject {
  folder: string;
  home: string;
  env: NodeJS.ProcessEnv;
}

export function newProject(name = "project"): TestProject {
  if (!existsSync(duetBinary)) throw new Error(`${duetBinary} is not there: make build makes it, DUET_RPC_BIN may name another`);
  const top = realpathSync(mkdtempSync(join(tmpdir(), "duet-vscode-")));
  const [folder, home] = [join(top, name), join(top, "home")];
  mkdirSync(folder);
  mkdirSync(home);
  const env: NodeJS.ProcessEnv = { PATH: process.env["PATH"], HOME: home, DUET_STATE_HOME: join(top, "state"), DUET_RPC_BIN: duetBinary, TMPDIR: process.env["TMPDIR"] };
  return { folder, home, env };
}

/** Runs git in a folder. Returns its output. */
export function git(folder: string, ...args: string[]): string {
  const env = { PATH: process.env["PATH"], GIT_CONFIG_GLOBAL: devNull, GIT_CONFIG_SYSTEM: devNull };
  return execFileSync("git", ["-C", folder, ...args], { env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

/** Makes a git repository with one commit of a folder's files. */
export function addRepository(folder: string): void {
  git(folder, "init", "--quiet", "--initial-branch=main");
  git(folder, "config", "user.name", "User");
  git(folder, "config", "user.email", "user@localhost");
  git(folder, "add", ".");
  git(folder, "commit", "--quiet", "--allow-empty", "--message=first");
}

/** The hubs of a project. */
const ends = new WeakMap<TestProject, Array<() => Promise<void>>>();

/** removeProject ends the project's hubs, because one would start a daemon again, stops the daemons of the project and of others in its state directory, and removes all files. */
export async function removeProject(project: TestProject): Promise<void> {
  const { folder, env } = project;
  await Promise.all((ends.get(project) ?? []).map((end) => end()));
  for (const root of knownRoots(env)) {
    try {
      await promisify(execFile)(duetBinary, ["--root", root, "daemon", "stop", "--force"], { env });
    } catch (error) {
      if (!/no daemon runs here/.test(String((error as { stderr?: string }).stderr))) throw error;
    }
  }
  rmSync(join(folder, ".."), { recursive: true, force: true, maxRetries: 5 });
}

/** knownRoots lists the roots of all projects that have a state directory. */
function knownRoots(env: NodeJS.ProcessEnv): string[] {
  const parent = join(env["DUET_STATE_HOME"]!, "projects");
  if (!existsSync(parent)) return [];
  const records = readdirSync(parent).map((name) => join(parent, name, "project.json")).filter((file) => existsSync(file));
  return records.map((file) => (JSON.parse(readFileSync(file, "utf8")) as { root: string }).root);
}

export interface TestHub {
  project: TestProject;
  connection: HubConnection;
  model: ProjectModel;
  log: string[];
  /** Resolves when holds returns true. It is called after each event and each change of the model. */
  until: (what: string, holds: () => boolean) => Promise<void>;
  /** Returns the id of the project's daemon. */
  daemon: () => Promise<number>;
  /** Stops the process of the connection, and resolves when it has ended. The daemon runs until removeProject. */
  end: () => Promise<void>;
}

/** startHub makes a connection, and starts no process: connection.start does. */
export function startHub(over: Partial<ConnectionOptions>, project: TestProject): TestHub {
  const log: string[] = [];
  const note = (message: string): void => void log.push(message);
  const logTo: Log = { trace: note, info: note, warn: note, error: note };
  const connection = new HubConnection({
    folder: project.folder, env: project.env, trusted: () => true, log: logTo,
    findBinary: () => findBinary({ env: project.env, setting: "", bundled: "/nonexistent", platform: process.platform }), ...over,
  });
  const model = new ProjectModel(connection, 300, (error) => note(`model: ${String(error)}`));
  let ended: Promise<void> | undefined;
  const end = (): Promise<void> => {
    if (!ended) model.dispose();
    return (ended ??= connection.stop());
  };
  ends.set(project, [...(ends.get(project) ?? []), end]);
  const until = (what: string, holds: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const stops: Array<() => void> = [];
      const look = (): void => {
        if (!holds()) return;
        for (const stop of stops) stop();
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => reject(new Error(`${what} did not come:\n${log.join("\n")}`)), 120_000);
      stops.push(model.onChange(look), connection.onState(look), connection.onEvent(look));
      look();
    });
  const daemon = async (): Promise<number> => (await connection.request("daemon.status", {})).pid;
  return { project, connection, model, log, until, daemon, end };
}
