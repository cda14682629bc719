// Where the program duet-rpc is, and whether it is one that this extension knows.
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";

/** The first two numbers of the versions of duet-rpc that this extension is for. */
export const wantedVersion = "0.1";

export interface BinaryOptions {
  /** Where names and folders are looked up: DUET_RPC_BIN, PATH and HOME. */
  env: NodeJS.ProcessEnv;
  /** The setting duet.executable; empty: not set. */
  setting: string;
  /** The program that came with the extension, where one did. */
  bundled: string;
  platform: NodeJS.Platform;
}

export interface Binary {
  path: string;
  /** Where it was found, in words. */
  source: string;
  version: string;
}

/** No program was found, or none that runs. The message says where it was looked for. */
export class BinaryError extends Error {
  override readonly name = "BinaryError";
}

/**
 * Finds the program, and asks it for its version. What a person has named, by the
 * environment or by the setting, is taken or is an error: another one in its place
 * would be a surprise.
 */
export async function findBinary(options: BinaryOptions): Promise<Binary> {
  const { env, setting, bundled } = options;
  if (env["DUET_RPC_BIN"]) return check(expandHome(env["DUET_RPC_BIN"], env), "the environment variable DUET_RPC_BIN");
  if (setting.trim() !== "") {
    const named = expandHome(setting.trim(), env);
    if (isAbsolute(named)) return check(named, "the setting duet.executable");
    if (/[/\\]/.test(named)) {
      throw new BinaryError(`The setting duet.executable is ${named}: give a whole path, one that begins with ~/, or the name of a program in PATH`);
    }
    const inPath = await lookUp(named, options);
    if (!inPath) throw new BinaryError(`${named}, which the setting duet.executable names, is not in PATH`);
    return check(inPath, "the setting duet.executable");
  }
  const inPath = await lookUp("duet-rpc", options);
  if (inPath) return check(inPath, "PATH");
  if (await isProgram(bundled)) return check(bundled, "the extension");
  throw new BinaryError("The program duet-rpc was not found: it is not in PATH, and neither the setting duet.executable nor DUET_RPC_BIN names one");
}

/** Tells what to say of a version that this extension is not for; nothing if it is. */
export function versionWarning(binary: Binary): string | undefined {
  if (binary.version.startsWith(`${wantedVersion}.`)) return undefined;
  return `${binary.path} is version ${binary.version}, and this extension is for ${wantedVersion}: update the older one`;
}

function expandHome(path: string, env: NodeJS.ProcessEnv): string {
  const home = env["HOME"] ?? env["USERPROFILE"];
  return home && /^~[/\\]/.test(path) ? join(home, path.slice(2)) : path;
}

async function lookUp(name: string, { env, platform }: BinaryOptions): Promise<string | undefined> {
  const ends = platform === "win32" ? ["", ".exe"] : [""];
  for (const folder of (env["PATH"] ?? env["Path"] ?? "").split(delimiter)) {
    // An empty or relative folder would be one of the workspace, and run what lies there.
    if (!isAbsolute(folder)) continue;
    for (const end of ends) {
      const path = join(folder, name + end);
      if (await isProgram(path)) return path;
    }
  }
  return undefined;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

async function check(path: string, source: string): Promise<Binary> {
  if (!(await isProgram(path))) throw new BinaryError(`${path}, which ${source} names, is not there or no program`);
  return new Promise((resolve, reject) => {
    execFile(path, ["--version"], { timeout: 10_000, windowsHide: true }, (error, stdout) => {
      const version = /^duet-rpc (\S+)/.exec(stdout)?.[1];
      if (version) resolve({ path, source, version });
      else if (error) reject(new BinaryError(`${path}, which ${source} names, does not run: ${error.message.trim()}`));
      else reject(new BinaryError(`${path}, which ${source} names, is not duet-rpc`));
    });
  });
}
