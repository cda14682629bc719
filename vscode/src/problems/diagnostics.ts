// What builds and gates say to be wrong, by who says it.
import { isAbsolute, join } from "node:path";
import type { HubEvent, HubNotification } from "../hub/events";
import type { Result } from "../protocol";

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
