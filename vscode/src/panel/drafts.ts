// Stores drafts of prompts on the disk. They outlive a page, a window and VS Code.
import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Draft } from "./protocol";

const end = ".json";

/**
 * The drafts of a window, one for each session. All windows of the workspace share the folder. Each window has its
 * own file for a session, so two windows do not overwrite each other's draft. The next window that opens the
 * session takes over the file of a closed window.
 */
export class Drafts {
  private readonly known = new Map<string, Draft>();
  private readonly writing = new Map<string, Promise<void>>();
  /** The sessions whose draft changed while it was being written. */
  private readonly again = new Set<string>();

  constructor(
    private readonly folder: string,
    /** An id that no other window has. */
    private readonly window: string = randomUUID(),
    private readonly onError: (error: unknown) => void = () => {},
  ) {}

  /** The last draft of this window, else one that another window left, else a text. */
  async of(session: string, text = ""): Promise<Draft> {
    return this.known.get(session) ?? (await this.takeOver(session)) ?? { text, content: [] };
  }

  /** Stores a draft, or deletes it if it is empty. It writes after a write in progress. */
  keep(session: string, draft: Draft): void {
    this.known.set(session, draft);
    // Typing is faster than a disk: of several waiting drafts only the last is written.
    if (this.writing.has(session)) {
      this.again.add(session);
      return;
    }
    const write = async (): Promise<void> => {
      do {
        this.again.delete(session);
        await this.write(session, this.known.get(session)!).catch(this.onError);
      } while (this.again.has(session));
    };
    this.writing.set(session, write().finally(() => this.writing.delete(session)));
  }

  /** Resolves when all is on the disk. */
  async written(): Promise<void> {
    await Promise.all(this.writing.values());
  }

  private path(session: string, window = this.window): string {
    return join(this.folder, `${encodeURIComponent(session)}.${window}${end}`);
  }

  private async write(session: string, draft: Draft): Promise<void> {
    const path = this.path(session);
    if (draft.text === "" && draft.content.length === 0) {
      await rm(path, { force: true });
      return;
    }
    await mkdir(this.folder, { recursive: true });
    await writeFile(`${path}.new`, JSON.stringify(draft), { mode: 0o600 });
    await rename(`${path}.new`, path);
  }

  /** takeOver moves the newest draft of another window to this one. If that window is still open, it has its draft in memory. */
  private async takeOver(session: string): Promise<Draft | undefined> {
    const start = `${encodeURIComponent(session)}.`;
    const names = (await readdir(this.folder).catch(() => [])).filter((name) => name.startsWith(start) && name.endsWith(end));
    const found = await Promise.all(names.map(async (name) => ({ path: join(this.folder, name), at: (await stat(join(this.folder, name)).catch(() => undefined))?.mtimeMs ?? 0 })));
    for (const { path } of found.sort((a, b) => b.at - a.at)) {
      try {
        const draft = draftOf(JSON.parse(await readFile(path, "utf8")));
        await rename(path, this.path(session)); // of two windows that try this, only one succeeds
        this.known.set(session, draft);
        return draft;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.onError(error);
      }
    }
    return undefined;
  }
}

/** draftOf checks the content of a file. Throws if it is not a draft. */
function draftOf(value: unknown): Draft {
  const { text, content, withoutEditor } = (value ?? {}) as Partial<Draft>;
  if (typeof text !== "string" || !Array.isArray(content)) throw new Error("a stored draft cannot be read");
  return { text, content, ...(withoutEditor === true && { withoutEditor }) };
}
