// The sessions of other projects of this machine, as `duet-rpc session list --all-projects` tells them.
import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Session } from "./model";

/** A project that is not open in this window. */
export interface OtherProject {
  root: string;
  /** A hub runs there; else it is what was kept. */
  hub: boolean;
  /** Of each conversation the last session, those first in which something happened last. */
  sessions: Session[];
  /** Why its sessions cannot be told. */
  error?: string;
}

/** How many sessions are asked for. */
const most = 300;

/** Takes the projects out of what the program has printed, but for those that are open. Throws if that is something else. */
export function othersOf(printed: string, open: readonly string[]): OtherProject[] {
  const { projects } = JSON.parse(printed) as { projects: OtherProject[] };
  return projects.filter(({ root, sessions, error }) => !open.includes(root) && (sessions.length > 0 || error)).map((project) => {
    const threads = new Map<string, Session>();
    for (const session of project.sessions) if (!session.archived && !threads.has(session.thread_id)) threads.set(session.thread_id, session);
    return { ...project, sessions: [...threads.values()] };
  });
}

/** Asks the program, in a folder of the window. */
export function listOthers(program: string, folder: string, open: readonly string[], env: NodeJS.ProcessEnv): Promise<OtherProject[]> {
  return new Promise((resolve, reject) => {
    execFile(program, ["session", "list", "--all-projects", "--json", "--limit", String(most)], { cwd: folder, env, timeout: 30_000, windowsHide: true, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      try {
        if (error) throw new Error(stderr.trim() || error.message);
        resolve(othersOf(stdout, open));
      } catch (failure) {
        reject(failure);
      }
    });
  });
}

/** The name of the worktree of git that a session works in, where that is not the project's own directory. */
export function worktreeOf(workingDirectory: string | undefined, root: string): string | undefined {
  if (!workingDirectory || workingDirectory === root) return undefined;
  // In a worktree .git is a file that names the repository.
  const file = join(workingDirectory, ".git");
  return existsSync(file) && statSync(file).isFile() ? basename(workingDirectory) : undefined;
}
