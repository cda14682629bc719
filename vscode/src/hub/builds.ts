// Builds and gates of a project: their lists, their runs, what they find, and the places in files that their output names.
import type { CancellationToken } from "vscode-jsonrpc/node";
import { isAbsolute, join } from "node:path";
import type { Result } from "../protocol";
import type { HubConnection } from "./connection";
import type { HubEvent, HubNotification } from "./events";

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

/** Something wrong in a file, as builds and gates tell it. */
export type Finding = Result<"build">["warnings"][number];

/** The problems of one build, or of one gate: those of its last run. */
export interface Report {
  /** What was run: build or gate, and its name. */
  source: string;
  findings: Finding[];
}

/** Where a finding's file is: findings name files relative to the project's directory. */
export function pathOf(finding: Finding, root: string): string {
  return isAbsolute(finding.file) ? finding.file : join(root, finding.file);
}

/** What a finding says where: two that say the same are one. */
function keyOf({ file, line, column, severity, message }: Finding): string {
  return JSON.stringify([file, line, column, severity, message]);
}

interface BuildProgress {
  build_id: string;
  name: string;
  stage: string;
  diagnostics?: Finding[];
}

/**
 * The findings of a project's builds and gates. A new run of a build, or a new check of a gate, takes the place of the one
 * before. take returns what is otherwise than it was, if anything is.
 */
export class Findings {
  private readonly builds = new Map<string, { id: string; seen: Set<string>; report: Report }>();

  /** Takes a notification that the builds of this connection send. */
  takeNotification({ method, params }: HubNotification): Report | undefined {
    if (method !== "buildWarning") return undefined;
    const { build_id, name, ...finding } = params as Finding & { build_id: string; name: string };
    return this.add(name, build_id, [finding]);
  }

  /** Takes an event: builds that anybody has asked for, and gates. */
  takeEvent({ type, data }: HubEvent): Report | undefined {
    if (type === "build_progress") {
      const { name, build_id, stage, diagnostics } = data as unknown as BuildProgress;
      // One that was cancelled has not looked at everything: what it has found until then counts.
      return stage === "started" || diagnostics ? this.add(name, build_id, diagnostics ?? []) : undefined;
    }
    if (type === "gate_result") {
      const { gate, passed, findings } = data as unknown as { gate: string; passed: boolean; findings?: Finding[] };
      return { source: `gate ${gate}`, findings: passed ? [] : (findings ?? []) };
    }
    return undefined;
  }

  private add(name: string, id: string, findings: Finding[]): Report {
    let build = this.builds.get(name);
    if (build?.id !== id) {
      build = { id, seen: new Set(), report: { source: `build ${name}`, findings: [] } };
      this.builds.set(name, build);
    }
    for (const finding of findings) {
      if (build.seen.has(keyOf(finding))) continue;
      build.seen.add(keyOf(finding));
      build.report.findings.push(finding);
    }
    return build.report;
  }
}

export interface Location {
  path: string;
  /** From 1. */
  line: number;
  column?: number;
  /** Where its name begins and ends in the text. */
  start: number;
  end: number;
}

/** How many places are looked for: more are of no use to anybody, and each asks the disk for its file. */
const mostLocations = 2_000;

// One expression for path and placePattern would read a long line anew from each of its characters.
const pathPattern = /[\w@+~./\\-]+/g;
const placePattern = /:(\d+)(?::(\d+))?|\((\d+)(?:,(\d+))?\)/y;

export function locations(text: string): Location[] {
  const found: Location[] = [];
  for (pathPattern.lastIndex = 0; found.length < mostLocations; ) {
    const match = pathPattern.exec(text);
    if (!match) break;
    const behind = match.index + match[0].length;
    placePattern.lastIndex = behind;
    const at = placePattern.exec(text);
    if (!at) continue;
    pathPattern.lastIndex = placePattern.lastIndex;
    const start = startOf(text, match.index, behind);
    if (start === undefined || !endsAsName(text, start, behind)) continue;
    const path = text.slice(start, behind);
    if (!/[./\\]/.test(path)) continue; // a time, or a port
    const [line, column] = [at[1] ?? at[3], at[2] ?? at[4]];
    found.push({ path, line: Number(line), ...(column ? { column: Number(column) } : {}), start, end: pathPattern.lastIndex });
  }
  pathPattern.lastIndex = 0;
  return found;
}

/** startOf is where the path begins that a pathPattern of its characters is, with its drive; undefined: it belongs to what is before. */
function startOf(text: string, from: number, to: number): number | undefined {
  if (text[from - 1] !== ":") return from;
  const isDrive = /[\\/]/.test(text[from]!) && /[A-Za-z]/.test(text[from - 2] ?? "") && !/[\w/\\.:-]/.test(text[from - 3] ?? " ");
  if (isDrive) return from - 2;
  for (let at = from; at < to; at++) if (/[@+~]/.test(text[at]!)) return at + 1;
  return undefined;
}

/** Whether the end of a pathPattern is the end of a name: two characters at least, with a dot between them or none. */
function endsAsName(text: string, from: number, to: number): boolean {
  return /[\w-]\.?[\w-]$/.test(text.slice(Math.max(from, to - 3), to));
}
