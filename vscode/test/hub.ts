// Starts the built duet-rpc for tests, in a project and a home of their own.
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
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
  const env: NodeJS.ProcessEnv = { PATH: process.env["PATH"], HOME: home, DUET_RPC_BIN: duetBinary, TMPDIR: process.env["TMPDIR"] };
  return { folder, home, env };
}

export function removeProject({ folder }: TestProject): void {
  rmSync(join(folder, ".."), { recursive: true, force: true, maxRetries: 5 });
}

export interface TestHub {
  project: TestProject;
  connection: HubConnection;
  model: ProjectModel;
  log: string[];
  /** Resolves when holds is true, which is looked at after each event and each change of the model. */
  until: (what: string, holds: () => boolean) => Promise<void>;
  /** Ends the process, and resolves when it has ended. */
  end: () => Promise<void>;
}

/** startHub begins no process: connection.start does. */
export function startHub(over: Partial<ConnectionOptions>, project: TestProject): TestHub {
  const log: string[] = [];
  const note = (message: string): void => void log.push(message);
  const logTo: Log = { trace: note, info: note, warn: note, error: note };
  const connection = new HubConnection({
    folder: project.folder, env: project.env, trusted: () => true, log: logTo,
    findBinary: () => findBinary({ env: project.env, setting: "", bundled: "/nonexistent", platform: process.platform }), ...over,
  });
  const model = new ProjectModel(connection, 300, (error) => note(`model: ${String(error)}`));
  const end = async (): Promise<void> => {
    model.dispose();
    await connection.stop();
  };
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
  return { project, connection, model, log, until, end };
}
