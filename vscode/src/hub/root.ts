// Where the project of a folder is.
import { createHash } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join, sep } from "node:path";

/** What the root of a project contains, as duet-rpc looks for it. */
const markers = [".duet.toml", ".git"];

/** Directories that hold projects, and are none. */
const reserved = new Set([homedir(), tmpdir(), "/", "/tmp", "/var/tmp", "/home"]);

/** The root of the project that a folder is in: the nearest directory with a marker, else the folder. */
export function projectRoot(folder: string, exists: (path: string) => boolean = existsSync): string {
  for (let at = folder; ; at = dirname(at)) {
    if (!reserved.has(at) && (markers.some((marker) => exists(join(at, marker))) || hasState(at, exists))) return at;
    if (dirname(at) === at) return folder;
  }
}

/** Whether Duet is used in the project of a folder: it has a configuration, or sessions. */
export function usesDuet(folder: string, exists: (path: string) => boolean = existsSync): boolean {
  const root = projectRoot(folder, exists);
  return exists(join(root, ".duet.toml")) || hasState(root, exists);
}

/** Whether sessions are kept of the project at a root, which is absolute and without symbolic links. */
function hasState(root: string, exists: (path: string) => boolean): boolean {
  return exists(join(stateDirectory(root), "project.json"));
}

/** The directory in which duet-rpc keeps the sessions of the project at a root. */
export function stateDirectory(root: string, env: NodeJS.ProcessEnv = process.env): string {
  const xdg = env.XDG_STATE_HOME !== undefined && isAbsolute(env.XDG_STATE_HOME) ? env.XDG_STATE_HOME : join(homedir(), ".local", "state");
  const home = env.DUET_STATE_HOME ? env.DUET_STATE_HOME : join(xdg, "duet");
  const name = basename(root).replace(/[^-_.0-9A-Za-z]/gu, "-").slice(0, 24);
  return join(home, "projects", `${name}-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`);
}

/** The folders of each project, by its root. Two folders of one project have one hub. */
export function byRoot<F>(folders: readonly F[], pathOf: (folder: F) => string, exists?: (path: string) => boolean): Map<string, F[]> {
  const roots = new Map<string, F[]>();
  for (const folder of folders) {
    const root = projectRoot(realPath(pathOf(folder)), exists);
    roots.set(root, [...(roots.get(root) ?? []), folder]);
  }
  return roots;
}

/** The folder that contains a file, or is it: the innermost of several. undefined if there is none. */
export function folderWith<F>(folders: readonly F[], pathOf: (folder: F) => string, file: string): F | undefined {
  const inside = (path: string): boolean => file === path || file.startsWith(path.endsWith(sep) ? path : path + sep);
  return folders.filter((folder) => inside(pathOf(folder))).sort((a, b) => pathOf(b).length - pathOf(a).length)[0];
}

/** A path without symbolic links, as duet-rpc reads it. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
