// Files as content of a prompt.
import { readFile, stat } from "node:fs/promises";
import { basename, extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { PromptContent } from "./protocol";

/** The longest image that goes with a prompt as it is, in bytes: what duet-rpc takes. */
export const longestImage = 10 << 20;

/** The images that agents take. */
const images: Record<string, string> = { ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp" };

/** A file as a content block: an image as it is, anything else and a long image as a link. Throws if it is not there. */
export async function contentOf(path: string): Promise<PromptContent> {
  const found = await stat(path);
  if (!found.isFile() && !found.isDirectory()) throw new Error("it is neither a file nor a folder");
  const [uri, name] = [pathToFileURL(path).href, basename(path)];
  const mimeType = images[extname(path).toLowerCase()];
  if (found.isDirectory()) return { type: "resource_link", uri, name };
  if (mimeType && found.size <= longestImage) return { type: "image", mimeType, uri, data: (await readFile(path)).toString("base64") };
  return { type: "resource_link", uri, name, size: found.size, ...(mimeType ? { mimeType } : {}) };
}

/** What dropped addresses are as content; refused says of each other one why not. */
export async function readUris(uris: readonly string[], pathOf: (uri: string) => string): Promise<{ content: PromptContent[]; refused: string[] }> {
  const [content, refused]: [PromptContent[], string[]] = [[], []];
  for (const uri of uris) {
    try {
      content.push(await contentOf(pathOf(uri)));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      refused.push(`${uri}: ${code === "ENOENT" ? "there is no such file" : code === "EACCES" ? "it may not be read" : message}`);
    }
  }
  return { content, refused };
}
