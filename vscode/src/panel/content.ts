// Files for a prompt: as content blocks, and ranked for what is typed after @. It needs no VS Code.
import { readFile, stat } from "node:fs/promises";
import { basename, extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { PromptContent } from "./protocol";

/** The longest image that duet-rpc accepts in a prompt, in bytes. */
export const longestImage = 10 << 20;

/** The image types that agents accept. */
const images: Record<string, string> = { ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp" };

/** A file as a content block: an image with its data; a longer image, or any other file, as a link. Throws if it does not exist. */
export async function contentOf(path: string): Promise<PromptContent> {
  const found = await stat(path);
  if (!found.isFile() && !found.isDirectory()) throw new Error("it is neither a file nor a folder");
  const [uri, name] = [pathToFileURL(path).href, basename(path)];
  const mimeType = images[extname(path).toLowerCase()];
  if (found.isDirectory()) return { type: "resource_link", uri, name };
  if (mimeType && found.size <= longestImage) return { type: "image", mimeType, uri, data: (await readFile(path)).toString("base64") };
  return { type: "resource_link", uri, name, size: found.size, ...(mimeType ? { mimeType } : {}) };
}

/** The longest text of a file that a prompt contains, in bytes. */
const longestText = 1 << 20;

/**
 * A file of this machine for an agent on a host, which cannot read it: its text or its image, and no path. Throws if it has
 * neither, or is too long.
 */
export async function textOf(path: string, host: string): Promise<PromptContent> {
  const block = await contentOf(path);
  if (block.type === "image") return { type: "image", mimeType: block.mimeType!, data: block.data!, name: basename(path) };
  const found = await stat(path);
  if (found.isDirectory()) throw new Error(`it is a folder of this machine, and the agent works on ${host}`);
  if (found.size > longestText) throw new Error(`it is too long to be sent to ${host}: the limit is 1 MiB`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path));
  } catch {
    throw new Error(`it is no text, and the agent works on ${host}`);
  }
  return sentText(basename(path), text);
}

/** A text of this machine for an agent on a host. Its address names no file there. */
export function sentText(name: string, text: string): PromptContent {
  return { type: "resource", resource: { uri: `duet:/sent/${encodeURI(name)}`, mimeType: "text/plain", text } };
}

/** Reads dropped URIs as content, for an agent on a host if one is given. refused says for each failed one why. */
export async function readUris(uris: readonly string[], pathOf: (uri: string) => string, host = ""): Promise<{ content: PromptContent[]; refused: string[] }> {
  const [content, refused]: [PromptContent[], string[]] = [[], []];
  for (const uri of uris) {
    try {
      const path = pathOf(uri);
      content.push(await (host ? textOf(path, host) : contentOf(path)));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      refused.push(`${uri}: ${code === "ENOENT" ? "there is no such file" : code === "EACCES" ? "it may not be read" : message}`);
    }
  }
  return { content, refused };
}

/** foldersOf returns the folders of files, each with a slash at its end. */
export function foldersOf(files: readonly string[]): Set<string> {
  const folders = new Set<string>();
  for (const file of files) {
    for (let at = file.lastIndexOf("/"); at > 0; at = file.lastIndexOf("/", at - 1)) {
      const folder = file.slice(0, at + 1);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}

/** The most files that a page gets. */
export const mostFiles = 50;

/**
 * The paths that contain the letters of a query in order, the best match first. Adjacent letters, letters at the start of
 * a word and letters in the file name score higher, and so does a preferred path. Of equal matches the shorter path is first.
 */
export function rank(query: string, paths: Iterable<string>, preferred: ReadonlySet<string> = new Set()): string[] {
  const wanted = query.trim().toLowerCase().replaceAll("\\", "/");
  const found: Array<{ path: string; score: number }> = [];
  for (const path of paths) {
    const score = scoreOf(wanted, path);
    if (score !== undefined) found.push({ path, score: score + (preferred.has(path) ? (wanted === "" ? 1_000 : 6) : 0) });
  }
  found.sort((a, b) => b.score - a.score || a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
  return found.slice(0, mostFiles).map(({ path }) => path);
}

/** scoreOf rates a match. undefined: a letter is missing. */
function scoreOf(wanted: string, path: string): number | undefined {
  if (wanted === "") return 0;
  const lower = path.toLowerCase();
  const name = lower.lastIndexOf("/", lower.length - 2) + 1; // a folder's path ends with a slash
  // The whole query in one piece is the best match, above all in the file name.
  const inName = lower.indexOf(wanted, name);
  if (inName === name) return 1_000 + (lower.length === name + wanted.length ? 500 : 0);
  if (inName > 0) return 700 + (isStart(path, inName) ? 100 : 0);
  const whole = lower.indexOf(wanted);
  if (whole >= 0) return 500 + (isStart(path, whole) ? 100 : 0);
  // Search backwards, to prefer letters in the file name over its folders.
  let [score, at, last] = [0, lower.length, lower.length];
  for (let i = wanted.length - 1; i >= 0; i--) {
    at = lower.lastIndexOf(wanted[i]!, at - 1);
    if (at < 0) return undefined;
    score += 1 + (at === last - 1 ? 4 : 0) + (isStart(path, at) ? 6 : 0) + (at >= name ? 3 : 0);
    last = at;
    if (at === 0 && i > 0) return undefined;
  }
  return Math.min(score, 400);
}

/** isStart reports whether a word begins there: after punctuation, or with a capital letter. */
function isStart(path: string, at: number): boolean {
  if (at === 0) return true;
  const [before, here] = [path[at - 1]!, path[at]!];
  return /[^\p{L}\p{N}]/u.test(before) || (/\p{Ll}/u.test(before) && /\p{Lu}/u.test(here));
}
