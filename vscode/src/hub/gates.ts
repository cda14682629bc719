// The gates of a project's configuration, and how one is run because a person asks.
import type { CancellationToken } from "vscode-jsonrpc/node";
import type { Result } from "../protocol";
import type { HubConnection } from "./connection";

export interface Gate {
  name: string;
  /** Nothing is told of the command of one that waits for trust. */
  command: string[];
  /** It stands in a project's file that nobody trusts yet. */
  waitsForTrust: boolean;
}

/** Rejects as HubConnection.request does: also where the workspace is not trusted. */
export async function listGates(connection: HubConnection): Promise<Gate[]> {
  const { gates, waiting } = await connection.request("listGates", {});
  return [
    ...gates.map(({ name, command }) => ({ name, command, waitsForTrust: false })),
    ...waiting.map((name) => ({ name, command: [], waitsForTrust: true })),
  ];
}

/** The exit status of a gate: that of its command, else 1 if it did not pass. */
export function statusOf({ passed, reason }: Pick<Result<"checkGate">, "passed" | "reason">): number {
  if (passed) return 0;
  return Number(/^exit status (\d{1,3})$/.exec(reason ?? "")?.[1] ?? 1);
}

/** Runs a gate by its name, or a line for the shell, and resolves at its end, passed or not. print gets whole lines. */
export async function checkGate(connection: HubConnection, gate: string, print: (text: string) => void, token: CancellationToken): Promise<Result<"checkGate">> {
  const stop = connection.onNotification(({ method, params }) => {
    if (method !== "gateProgress") return;
    const { gate: of, output } = params as { gate: string; output: string };
    if (of === gate) print(output);
  });
  try {
    return await connection.request("checkGate", { gate }, token);
  } finally {
    stop();
  }
}
