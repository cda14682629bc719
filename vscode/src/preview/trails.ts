// Where the previews of a workspace were: a page of VS Code in a browser forgets what it was told in its last moments.
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The addresses that a preview has been to, and which of them it shows. */
export interface Kept {
  urls?: string[];
  at?: number;
}

/** A file for each project, in a folder. Of two windows with the same project the one that moved last counts. */
export class Trails {
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly folder: string, private readonly onError: (error: unknown) => void) {}

  /** What was kept of a project; nothing where that is nothing, or cannot be read. */
  async of(project: string): Promise<Kept> {
    try {
      return keptOf(JSON.parse(await readFile(this.path(project), "utf8")));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.onError(error);
      return {};
    }
  }

  keep(project: string, kept: unknown): void {
    this.last = this.last.then(() => this.write(project, keptOf(kept))).catch(this.onError);
  }

  /** Resolves when all is on the disk. */
  async written(): Promise<void> {
    await this.last;
  }

  private async write(project: string, kept: Kept): Promise<void> {
    const path = this.path(project);
    await mkdir(this.folder, { recursive: true });
    await writeFile(`${path}.new`, JSON.stringify(kept), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  private path(project: string): string {
    return join(this.folder, `${createHash("sha256").update(project).digest("hex").slice(0, 16)}.json`);
  }
}

function keptOf(value: unknown): Kept {
  const { urls, at } = (value ?? {}) as Kept;
  return Array.isArray(urls) && urls.every((url) => typeof url === "string") && Number.isInteger(at) && urls[at!] !== undefined ? { urls, at: at! } : {};
}
