// Builds and gates of a project: lists them, runs them, and reads the findings and file positions in their output.
import type { CancellationToken } from "vscode-jsonrpc/node";
import { isAbsolute, join } from "node:path";
import type { BuildResult, BuildTarget, Diagnostic, GateResult, HubEvent } from "../protocol";
import type { HubConnection } from "./connection";
import type { HubNotification } from "./events";

/** A build of the project's configuration. */
export type Buildable = BuildTarget;

/** Receives the progress of a build. */
export interface BuildListener {
  /** The build waits until another build of the same name ends. */
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
 * Runs the builds of a project, one at a time for each name: progress notifications carry the name of a build, not the
 * request that started it.
 */
export class Builds {
  private readonly last = new Map<string, Promise<unknown>>();

  constructor(private readonly connection: HubConnection) {}

  async list(): Promise<Buildable[]> {
    return (await this.connection.request("build.list", {})).builds;
  }

  /**
   * Runs the build with this name and resolves when it has succeeded. Rejects with the daemon's error, also after token was
   * cancelled.
   */
  async run(name: string, listener: BuildListener, token?: CancellationToken): Promise<BuildResult> {
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

  private async runNow(name: string, listener: BuildListener, token?: CancellationToken): Promise<BuildResult> {
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
      return await this.connection.request("build.run", { name }, token);
    } finally {
      stop();
    }
  }
}

/** A gate of the configuration. */
export interface Gate {
  name: string;
  /** Empty while the gate waits for trust. */
  command: string[];
  /** The user has not trusted the project's configuration file yet. */
  waitsForTrust: boolean;
}

/** Lists the gates. Rejects as HubConnection.request does, also if the workspace is not trusted. */
export async function listGates(connection: HubConnection): Promise<Gate[]> {
  const { gates, waiting } = await connection.request("gate.list", {});
  return [
    ...gates.map(({ name, command }) => ({ name, command, waitsForTrust: false })),
    ...waiting.map((name) => ({ name, command: [], waitsForTrust: true })),
  ];
}

/** The exit status of a gate's command. It is 1 if the gate failed without a status. */
export function statusOf({ passed, reason }: Pick<GateResult, "passed" | "reason">): number {
  if (passed) return 0;
  return Number(/^exit status (\d{1,3})$/.exec(reason ?? "")?.[1] ?? 1);
}

/** Runs a gate, given by name or as a shell command, and resolves when it has ended, passed or failed. print gets whole lines. */
export async function checkGate(connection: HubConnection, gate: string, print: (text: string) => void, token: CancellationToken): Promise<GateResult> {
  const stop = connection.onNotification(({ method, params }) => {
    if (method !== "gateProgress") return;
    const { gate: of, output } = params as { gate: string; output: string };
    if (of === gate) print(output);
  });
  try {
    return await connection.request("gate.check", { gate }, token);
  } finally {
    stop();
  }
}

/** A problem in a file, reported by a build or a gate. */
export type Finding = Diagnostic;

/** The findings of the last run of one build or gate. */
export interface Report {
  /** "build NAME" or "gate NAME". */
  source: string;
  findings: Finding[];
}

/** Returns the path of a finding's file. Findings name files relative to the root of the project. */
export function pathOf(finding: Finding, root: string): string {
  return isAbsolute(finding.file) ? finding.file : join(root, finding.file);
}

/** keyOf identifies a finding. Findings with the same key are duplicates. */
function keyOf({ file, line, column, severity, message }: Finding): string {
  return JSON.stringify([file, line, column, severity, message]);
}

/**
 * The findings of a project's builds and gates. A new run replaces the findings of the one before. The take methods return
 * the changed report, if there is one.
 */
export class Findings {
  private readonly builds = new Map<string, { id: string; seen: Set<string>; report: Report }>();

  /** Takes a notification about a build that this connection started. */
  takeNotification({ method, params }: HubNotification): Report | undefined {
    if (method !== "buildWarning") return undefined;
    const { build_id, name, ...finding } = params as Finding & { build_id: string; name: string };
    return this.add(name, build_id, [finding]);
  }

  /** Takes an event about a build of any client, or about a gate. */
  takeEvent({ kind, data }: HubEvent): Report | undefined {
    if (kind === "build.progress") {
      const { name, build_id, stage, diagnostics } = data;
      // A cancelled build has no diagnostics. Its findings until then stay.
      return stage === "started" || diagnostics ? this.add(name, build_id, diagnostics ?? []) : undefined;
    }
    if (kind === "gate.result") {
      const { gate, passed, findings } = data;
      return { source: `gate ${gate}`, findings: passed ? [] : findings };
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

/** A position in a file, named by the output of a tool. */
export interface Location {
  path: string;
  /** From 1. */
  line: number;
  column?: number;
  /** The offsets of the whole reference in the text. */
  start: number;
  end: number;
}

/** The most locations of one text. Each costs a look at the disk. */
const mostLocations = 2_000;

// One expression for path and position would read a long line again from each of its characters.
const pathPattern = /[\w@+~./\\-]+/g;
const placePattern = /:(\d+)(?::(\d+))?|\((\d+)(?:,(\d+))?\)/y;

/** Finds the positions in files that a tool's output names: FILE:LINE, FILE:LINE:COLUMN and FILE(LINE,COLUMN). */
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

/** startOf returns where the path in a run of path characters begins, with its drive. undefined: the run belongs to the text before it. */
function startOf(text: string, from: number, to: number): number | undefined {
  if (text[from - 1] !== ":") return from;
  const isDrive = /[\\/]/.test(text[from]!) && /[A-Za-z]/.test(text[from - 2] ?? "") && !/[\w/\\.:-]/.test(text[from - 3] ?? " ");
  if (isDrive) return from - 2;
  for (let at = from; at < to; at++) if (/[@+~]/.test(text[at]!)) return at + 1;
  return undefined;
}

/** Reports whether a run ends as a file name does: with two name characters, and at most one dot between them. */
function endsAsName(text: string, from: number, to: number): boolean {
  return /[\w-]\.?[\w-]$/.test(text.slice(Math.max(from, to - 3), to));
}
