// The gates of a configuration, as `duet-rpc config --json` tells them.
import { execFile } from "node:child_process";

export interface Gate {
  name: string;
  /** As it is told: the command, and what belongs to it. */
  text: string;
  /** It stands in a project's file that nobody trusts yet. */
  waitsForTrust: boolean;
  command: string[];
  /** Relative to where the agent works, here the project. */
  directory: string;
  /** It has variables of its own, whose values are not told. */
  hasVariables: boolean;
}

interface Listed {
  values: Array<{ key: string; value: unknown; waits_for_trust?: boolean }>;
}

/** Takes the gates out of what `duet-rpc config --json` has printed. Throws if that is something else. */
export function gatesOf(printed: string): Gate[] {
  const { values } = JSON.parse(printed) as Listed;
  return values.flatMap(({ key, value, waits_for_trust }) => {
    const name = /^gates\.(.+)$/.exec(key)?.[1];
    if (name === undefined) return [];
    if (Array.isArray(value)) return [{ name, text: value.join(" "), waitsForTrust: waits_for_trust === true, command: value as string[], directory: "", hasVariables: false }];
    const text = String(value);
    // ["a", "b"] in "directory" env { NAME = "…" }
    const parts = /^(\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\])(?: in ("(?:[^"\\]|\\.)*"))?(.*)$/s.exec(text);
    const command = parts?.[1] === undefined ? [] : (JSON.parse(parts[1]) as string[]);
    const directory = parts?.[2] === undefined ? "" : (JSON.parse(parts[2]) as string);
    return [{ name, text, waitsForTrust: waits_for_trust === true, command, directory, hasVariables: /\benv \{/.test(parts?.[3] ?? text) }];
  });
}

/** Asks the program for the gates of a folder's project. */
export function listGates(program: string, folder: string, env: NodeJS.ProcessEnv): Promise<Gate[]> {
  return new Promise((resolve, reject) => {
    execFile(program, ["config", "--json"], { cwd: folder, env, timeout: 20_000, windowsHide: true, maxBuffer: 16 << 20 }, (error, stdout, stderr) => {
      try {
        if (error) throw new Error(stderr.trim() || error.message);
        resolve(gatesOf(stdout));
      } catch (failure) {
        reject(failure);
      }
    });
  });
}
