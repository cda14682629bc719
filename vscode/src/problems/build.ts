// Has the hub build something, and tells what it prints.
import type { CancellationToken } from "vscode-jsonrpc/node";
import type { HubConnection } from "../hub/connection";
import type { Result } from "../protocol";

export type Buildable = Result<"listBuilds">["builds"][number];

/** What is told while something is built. */
export interface BuildListener {
  /** Another build of that name has to end first. */
  onWaiting?: () => void;
  onStarted?: (command: string[], directory: string) => void;
  /** Whole lines. */
  onOutput: (text: string) => void;
}

interface Progress {
  build_id: string;
  name: string;
  stage: string;
  command?: string[];
  directory?: string;
  output?: string;
}

/**
 * Builds one thing at a time of each name: what is said of a build names it, and not who has asked for it.
 */
export class Builds {
  private readonly last = new Map<string, Promise<unknown>>();

  constructor(private readonly connection: HubConnection) {}

  async list(): Promise<Buildable[]> {
    return (await this.connection.request("listBuilds", {})).builds;
  }

  /**
   * Builds what has a name, and resolves when that has succeeded. It rejects with the error of the hub, also when token
   * has cancelled it.
   */
  async run(name: string, listener: BuildListener, token?: CancellationToken): Promise<Result<"build">> {
    const before = this.last.get(name);
    if (before) listener.onWaiting?.();
    const mine = (before ?? Promise.resolve()).catch(() => {}).then(() => this.runNow(name, listener, token));
    this.last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.last.get(name) === mine) this.last.delete(name);
    }
  }

  private async runNow(name: string, listener: BuildListener, token?: CancellationToken): Promise<Result<"build">> {
    let id: string | undefined;
    const stop = this.connection.onNotification(({ method, params }) => {
      if (method !== "buildProgress") return;
      const progress = params as Progress;
      if (progress.name !== name || progress.build_id !== (id ??= progress.build_id)) return;
      if (progress.stage === "waiting") listener.onWaiting?.();
      else if (progress.stage === "started") listener.onStarted?.(progress.command ?? [], progress.directory ?? "");
      else if (progress.output) listener.onOutput(progress.output);
    });
    try {
      return await this.connection.request("build", { name }, token);
    } finally {
      stop();
    }
  }
}
