// Finds projects: the root of a folder's project, its state directory, its worktrees, and the other projects of this machine.
import { createHash } from "node:crypto";
import { existsSync, realpathSync, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join, sep } from "node:path";
import { execFile } from "node:child_process";
import type { Turn } from "../protocol";
import type { Session } from "./model";

/** The files that mark the root of a project, as in duet-rpc. */
const markers = [".duet.toml", ".git"];

/** Directories that contain projects and are never projects themselves. */
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

/** Whether the project at a root has stored sessions. The root is absolute and has no symbolic links. */
function hasState(root: string, exists: (path: string) => boolean): boolean {
  return exists(join(stateDirectory(root), "project.json"));
}

/** The directory in which duet-rpc stores the sessions of the project at a root. */
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

/** The innermost folder that contains a file or is the file. undefined: there is none. */
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

/** A project that is not open in this window. */
export interface OtherProject {
  /** Empty: this machine. */
  host: string;
  root: string;
  /** Whether a daemon runs there. Else the sessions are from the store. */
  hub: boolean;
  /** The most recently active first. */
  sessions: Session[];
  /** Why the sessions cannot be listed. */
  error?: string;
}

/** The most sessions that the program lists. */
const most = 300;

type Listed = Array<Omit<OtherProject, "host" | "sessions"> & { turns: Turn[] }>;

/** Parses the program's list of projects. Throws if the list is malformed. */
function othersOf(printed: string): OtherProject[] {
  const { projects, hosts = [] } = JSON.parse(printed) as { projects: Listed; hosts?: Array<{ host: string; projects: Listed; error?: string }> };
  const read = (listed: Listed, host: string, missing?: string): OtherProject[] =>
    listed.map(({ turns, error = missing, ...project }) => {
      const sessions = new Map<string, Session>();
      for (const turn of turns) if (!turn.archived && !sessions.has(turn.session_uuid)) sessions.set(turn.session_uuid, turn);
      return { ...project, host, sessions: [...sessions.values()], ...(error === undefined ? {} : { error }) };
    });
  const unseen = (host: string, error: string): OtherProject => ({ host, root: "", hub: false, sessions: [], error });
  return [...read(projects, ""), ...hosts.flatMap(({ host, projects: there, error }) => (error !== undefined && there.length === 0 ? [unseen(host, error)] : read(there, host, error)))];
}

/** Runs `duet-rpc session list --all-projects` in a folder of the window. The projects of a host that cannot be reached are as they were last. */
export function listOthers(program: string, folder: string, isOpen: (project: OtherProject) => boolean, env: NodeJS.ProcessEnv): Promise<OtherProject[]> {
  return new Promise((resolve, reject) => {
    execFile(program, ["session", "list", "--all-projects", "--json", "--limit", String(most)], { cwd: folder, env, timeout: 30_000, windowsHide: true, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      try {
        if (error) throw new Error(stderr.trim() || error.message);
        resolve(othersOf(stdout).filter((project) => !isOpen(project) && (project.sessions.length > 0 || project.error)));
      } catch (failure) {
        reject(failure);
      }
    });
  });
}

/** The top of the git repository that a folder is in. undefined: it is in none. */
export function repositoryOf(folder: string, exists: (path: string) => boolean = existsSync): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    if (exists(join(at, ".git"))) return at;
    if (dirname(at) === at) return undefined;
  }
}

/** The name of the git worktree that a session works in. undefined: it works in the project's own directory. */
export function worktreeOf(workingDirectory: string | undefined, root: string): string | undefined {
  if (!workingDirectory || workingDirectory === root) return undefined;
  // In a worktree, .git is a file that names the repository.
  const file = join(workingDirectory, ".git");
  return existsSync(file) && statSync(file).isFile() ? basename(workingDirectory) : undefined;
}
