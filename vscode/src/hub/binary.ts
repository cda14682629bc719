// Finds the program duet-rpc and checks its version.
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";

/** The major and minor version of duet-rpc that this extension supports. */
export const wantedVersion = "0.1";

export interface BinaryOptions {
  /** The environment: DUET_RPC_BIN, PATH and HOME. */
  env: NodeJS.ProcessEnv;
  /** The setting duet.executable; empty: not set. */
  setting: string;
  /** The program in the extension's own directory. It may be absent. */
  bundled: string;
  platform: NodeJS.Platform;
}

export interface Binary {
  path: string;
  /** Where it was found, for a message. */
  source: string;
  version: string;
}

/** No usable program was found. The message lists the places that were searched. */
export class BinaryError extends Error {
  override readonly name = "BinaryError";
}

/**
 * Finds the program and asks it for its version. If the environment or the setting names
 * a program that does not work, this is an error. No other program replaces it.
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

/** Returns a warning if this extension does not support the program's version. */
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
    // An empty or relative entry of PATH would run a program of the workspace.
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
