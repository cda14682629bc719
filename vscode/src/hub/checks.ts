// What a project can run by itself to know whether it is well: builds, and the gates of its configuration.
import type { CancellationToken } from "vscode-jsonrpc/node";
import { ResponseError } from "vscode-jsonrpc/node";
import type { Result } from "../protocol";
import type { HubConnection } from "./connection";

/** Something that is wrong at a place, as builds and gates have it. Its file is relative to the project. */
export type Finding = Result<"build">["warnings"][number];

/** A build or a gate of a project. */
export interface Check {
  kind: "build" | "gate";
  name: string;
  command: string[];
  /** In which it runs, relative to the project; undefined: the project's own. */
  directory: string | undefined;
}

/** How a check went. */
export interface CheckResult {
  passed: boolean;
  /** Why not. */
  reason: string;
  findings: Finding[];
}

/** The builds and gates of a project, and the names of those gates that wait for its user's trust. */
export async function listChecks(connection: HubConnection): Promise<{ checks: Check[]; waiting: string[] }> {
  const [{ builds }, { gates, waiting }] = await Promise.all([connection.request("listBuilds", {}), connection.request("listGates", {})]);
  return {
    checks: [
      ...builds.map(({ name, command, directory }): Check => ({ kind: "build", name, command, directory })),
      ...gates.map(({ name, command, directory }): Check => ({ kind: "gate", name, command, directory })),
    ],
    waiting,
  };
}

/**
 * Runs a build, or a gate, by its name (of a gate also a line for the shell), and resolves at its end; a check that does
 * not pass is a result, too. print gets what it prints, as it comes. It rejects as HubConnection.request does, and if
 * it is cancelled.
 */
export async function runCheck(connection: HubConnection, kind: Check["kind"], name: string, print: (text: string) => void, token: CancellationToken): Promise<CheckResult> {
  const stop = connection.onNotification(({ method, params }) => {
    if (params[kind === "build" ? "name" : "gate"] !== name) return;
    if (method === "gateProgress" || (method === "buildProgress" && params["stage"] === "output")) print(params["output"] as string);
    else if (method === "buildProgress" && params["stage"] === "waiting") print("Another build of this name has to end first.\n");
  });
  try {
    if (kind === "gate") {
      const { passed, reason, findings } = await connection.request("checkGate", { gate: name }, token);
      return { passed, reason: reason ?? "", findings };
    }
    const { warnings } = await connection.request("build", { name }, token);
    return { passed: true, reason: "", findings: warnings };
  } catch (error) {
    const failure = error instanceof ResponseError ? (error.data as { kind?: unknown; diagnostics?: Finding[] } | undefined) : undefined;
    if (failure?.kind !== "build_failed") throw error;
    return { passed: false, reason: (error as Error).message, findings: failure.diagnostics ?? [] };
  } finally {
    stop();
  }
}
