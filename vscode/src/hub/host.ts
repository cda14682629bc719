// Hosts: other machines and containers on which agents work. duet-rpc connects to them (duet-rpc hosts --help).
import { execFile } from "node:child_process";
import { posix } from "node:path";

/** Where the project of a folder is. */
export interface Place {
  /** A host of the user's configuration. Empty: this machine. */
  host: string;
  /** The project's directory on the host. Empty: the one that the host's configuration gives. */
  directory: string;
}

/** The flags of duet-rpc for a place. */
export function flagsOf({ host, directory }: Place): string[] {
  return !host ? [] : [`--host=${host}`, ...(directory === "" ? [] : [`--root=${directory}`])];
}

/** The environment of duet-rpc. The settings name the host, and not a variable of VS Code's environment. */
export function withoutHost(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, DUET_HOST: undefined };
}

/** For a sentence: " on devbox". Empty: this machine. */
export function onHost(host: string): string {
  return host ? ` on ${host}` : "";
}

/** An error for the user: a file of a session on a host is not opened here. */
export function notHere(path: string, host: string): Error {
  return new Error(`${path} is on ${host}: VS Code opens only files of this machine; Show Changes shows its changes`);
}

/** The path of a file on a host for the user: relative to the directory of its session if it is there. */
export function shownThere(path: string, folder: string, host: string): string {
  return `${path.startsWith(`${folder}/`) ? posix.relative(folder, path) : path}${onHost(host)}`;
}

/** The data.kind of the error of a connection that failed only because the host does not have the project. */
export const lacksProject = "no_project_directory";

/** Whether the work of a session on a host lands in a repository of this machine, because it began with its files. */
export function landsHere(root: string, session: string): Promise<boolean> {
  // Duet keeps the work of the session under this name.
  return new Promise((resolve) => execFile("git", ["show-ref", "--verify", "--quiet", `refs/duet/hosts/${session}`], { cwd: root, windowsHide: true }, (error) => resolve(!error)));
}

/** Lists the names of the hosts of the user's configuration. Asks no host. */
export function listHosts(program: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  return new Promise((resolve, reject) => {
    execFile(program, ["hosts", "--names"], { env: withoutHost(env), timeout: 10_000, windowsHide: true }, (error, stdout, stderr) => {
      if (error) reject(new Error(stderr.trim() || error.message));
      else resolve(stdout.split("\n").filter((name) => name !== ""));
    });
  });
}
