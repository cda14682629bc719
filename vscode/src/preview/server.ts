// The parts of the preview that need no VS Code: the server of the project's pages, and the stored trails.
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A response of the daemon's method fetch. */
export interface Page {
  status: number;
  headers: Record<string, string>;
  /** The body in base64. */
  body: string;
}

/** The sources of the server's content. */
export interface PreviewOptions {
  /** Gets the page at a URL. Rejects if there is none. */
  fetch: (url: string) => Promise<Page>;
  /** The script that each page gets. It reports the page's messages. */
  script: () => Promise<string>;
}

const scriptPath = "/.duet/capture.js";

/**
 * Serves the project's pages to an iframe, on this machine only. Its random host name is a secret key, and an origin of its
 * own: pages share nothing with other previews. A request with another host name, by another user or a web page, is refused.
 */
export class PreviewServer {
  private readonly server: Server;
  private readonly hosts = new Set<string>();
  private port = 0;
  private readonly name = `${randomBytes(16).toString("hex")}.localhost`;

  constructor(private readonly options: PreviewOptions) {
    this.hosts.add(this.name);
    this.server = createServer((request, response) => {
      this.answer(request, response).catch((error: unknown) => refuse(response, 502, error instanceof Error ? error.message : String(error), isPage(request)));
    });
  }

  /** Begins to listen, and returns the port. */
  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen(0, "127.0.0.1", () => resolve((this.port = (this.server.address() as AddressInfo).port)));
    });
  }

  /**
   * The origin for a page, given the external URL of the port. A URL with a path belongs to a proxy, under which pages do not
   * work: on this machine the port itself is used instead. Another host is a tunnel with its own access control, so requests
   * with that host name are accepted.
   */
  originFor(external: URL): string {
    if (["127.0.0.1", "localhost"].includes(external.hostname)) return `http://${this.name}:${external.pathname === "/" ? external.port : this.port}`;
    this.hosts.add(external.hostname);
    return external.origin;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const host = /^([^:]*)(:\d+)?$/.exec(request.headers.host ?? "")?.[1] ?? "";
    if (!this.hosts.has(host)) return refuse(response, 403, "This preview is for VS Code alone.");
    if (request.method !== "GET" && request.method !== "HEAD") return refuse(response, 405, "A preview can be read alone.");
    const url = request.url ?? "/";
    if (url.split("?")[0] === scriptPath) {
      response.writeHead(200, { "Content-Type": "text/javascript; charset=utf-8", "Cache-Control": "no-store" }).end(await this.options.script());
      return;
    }
    const { status, headers, body } = await this.options.fetch(url);
    const bytes = Buffer.from(body, "base64");
    if (status >= 400) return refuse(response, status, bytes.toString(), isPage(request));
    const type = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
    const content = type.startsWith("text/html") ? withScript(bytes) : bytes;
    const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !/^(content-length|cache-control)$/i.test(name)));
    response.writeHead(status, { ...kept, "Content-Length": content.length, "Cache-Control": "no-store" }).end(request.method === "HEAD" ? undefined : content);
  }
}

/** withScript puts the script before all other scripts of a page. */
export function withScript(page: Buffer): Buffer {
  const html = page.toString("latin1"); // keeps the bytes, whatever the page's encoding
  const at = /<head(\s[^<>]*)?>/i.exec(html) ?? /<html(\s[^<>]*)?>/i.exec(html) ?? /^\s*<!doctype[^>]*>/i.exec(html);
  const place = at ? at.index + at[0].length : 0;
  const line = html.slice(0, place).split("\n").length;
  return Buffer.from(`${html.slice(0, place)}<script src="${scriptPath}" data-line="${line}"></script>${html.slice(place)}`, "latin1");
}

function isPage({ headers }: IncomingMessage): boolean {
  const shown = headers["sec-fetch-dest"];
  return shown === undefined || shown === "document" || shown === "iframe";
}

/** Answers with a text. In a page, a script reloads it when a build has made what is missing. */
function refuse(response: ServerResponse, status: number, text: string, inPage = false): void {
  if (!response.headersSent) response.writeHead(status, { "Content-Type": `text/${inPage ? "html" : "plain"}; charset=utf-8`, "Cache-Control": "no-store" });
  if (!inPage) return void response.end(text);
  const shown = text.replace(/[&<>]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  response.end(withScript(Buffer.from(`<!doctype html><meta charset="utf-8"><pre>${shown}</pre>`)));
}

/** The navigation history of a preview: its URLs, and the index of the current one. */
export interface Kept {
  urls?: string[];
  at?: number;
}

/** Stores the trail of each project in a file. If two windows show the same project, the last change wins. */
export class Trails {
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly folder: string, private readonly onError: (error: unknown) => void) {}

  /** The stored trail of a project. Empty: there is none, or it cannot be read. */
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
