// Prompts that were written and not sent. They outlive a page, a window and VS Code.
import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Draft } from "./protocol";

const end = ".json";

/**
 * The drafts of a window, one a conversation, in a folder that all windows of the workspace have in common. Each
 * window has a file of its own for a conversation, so that two in which it is open do not overwrite each other's; what
 * a window has left that is closed is taken over by the one that opens the conversation next.
 */
export class Drafts {
  private readonly known = new Map<string, Draft>();
  private readonly writing = new Map<string, Promise<void>>();
  /** Those that were typed while they were being written. */
  private readonly again = new Set<string>();

  constructor(
    private readonly folder: string,
    /** What no other window has. */
    private readonly window: string = randomUUID(),
    private readonly onError: (error: unknown) => void = () => {},
  ) {}

  /** What was typed last in this window; else what another one has left. */
  async of(thread: string): Promise<Draft> {
    return this.known.get(thread) ?? (await this.takeOver(thread)) ?? { text: "", content: [] };
  }

  /** Keeps a draft; an empty one is none. It is written after what is being written. */
  keep(thread: string, draft: Draft): void {
    this.known.set(thread, draft);
    // Who types is faster than a disk: of several that wait the last one is written.
    if (this.writing.has(thread)) {
      this.again.add(thread);
      return;
    }
    const write = async (): Promise<void> => {
      do {
        this.again.delete(thread);
        await this.write(thread, this.known.get(thread)!).catch(this.onError);
      } while (this.again.has(thread));
    };
    this.writing.set(thread, write().finally(() => this.writing.delete(thread)));
  }

  /** Resolves when all is on the disk. */
  async written(): Promise<void> {
    await Promise.all(this.writing.values());
  }

  private path(thread: string, window = this.window): string {
    return join(this.folder, `${encodeURIComponent(thread)}.${window}${end}`);
  }

  private async write(thread: string, draft: Draft): Promise<void> {
    const path = this.path(thread);
    if (draft.text === "" && draft.content.length === 0) {
      await rm(path, { force: true });
      return;
    }
    await mkdir(this.folder, { recursive: true });
    await writeFile(`${path}.new`, JSON.stringify(draft), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  /** takeOver makes the newest draft of another window this one's. That one, if it is still there, has its own in its memory. */
  private async takeOver(thread: string): Promise<Draft | undefined> {
    const start = `${encodeURIComponent(thread)}.`;
    const names = (await readdir(this.folder).catch(() => [])).filter((name) => name.startsWith(start) && name.endsWith(end));
    const found = await Promise.all(names.map(async (name) => ({ path: join(this.folder, name), at: (await stat(join(this.folder, name)).catch(() => undefined))?.mtimeMs ?? 0 })));
    for (const { path } of found.sort((a, b) => b.at - a.at)) {
      try {
        const draft = draftOf(JSON.parse(await readFile(path, "utf8")));
        await rename(path, this.path(thread)); // of two windows that take it over one gets it
        this.known.set(thread, draft);
        return draft;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.onError(error);
      }
    }
    return undefined;
  }
}

/** draftOf is what a file has, if it is a draft. Throws else. */
function draftOf(value: unknown): Draft {
  const { text, content } = (value ?? {}) as Partial<Draft>;
  if (typeof text !== "string" || !Array.isArray(content)) throw new Error("a draft that was kept cannot be read");
  return { text, content };
}
