// What goes with a prompt: images that were pasted or dropped, and files.
import type { PromptContent } from "../panel/protocol";
import { sizeOf } from "./attachments";
import { button, icon, make } from "./dom";
import { nameOf } from "./filediff";

/** Bytes of one image, and of all: more is not taken by continueSession. */
const mostOfOne = 10 << 20;
const mostOfAll = 20 << 20;

const types = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** Files as content; what cannot be taken is told, with why. */
export async function contentOf(files: readonly File[], already: readonly PromptContent[]): Promise<{ content: PromptContent[]; refused: string[] }> {
  const [content, refused]: [PromptContent[], string[]] = [[], []];
  let total = already.reduce((sum, block) => sum + bytesOf(block), 0);
  for (const file of files) {
    const name = file.name || "The image";
    if (!types.has(file.type)) refused.push(`${name} is no image that can be sent (PNG, JPEG, GIF or WebP): name files by @ in the prompt`);
    else if (file.size > mostOfOne) refused.push(`${name} is too large: ${sizeOf(file.size)}, and an image may have 10 MiB`);
    else if (total + file.size > mostOfAll) refused.push(`${name} is too much: all images of a prompt may have 20 MiB together`);
    else {
      total += file.size;
      content.push({ type: "image", mimeType: file.type, data: await base64(file), ...(file.name === "" ? {} : { name: file.name }) });
    }
  }
  return { content, refused };
}

/** The content of which the text still speaks: a file that was named by @ goes with its name. */
export function stillNamed(text: string, content: readonly PromptContent[], named: ReadonlySet<string>): PromptContent[] {
  return content.filter(({ type, uri, name }) => type !== "resource_link" || uri === undefined || !named.has(uri) || text.includes(`@${name ?? ""}`));
}

/** Chips for what goes with a prompt, each with a button that takes it away. */
export function chips(content: readonly PromptContent[], named: ReadonlySet<string>, remove: (block: PromptContent) => void): HTMLElement[] {
  return content.flatMap((block, i) => {
    if (block.type === "resource_link" && block.uri !== undefined && named.has(block.uri)) return []; // the text has it
    const uri = block.uri ?? block.resource?.uri; // lines that were selected come with their text
    const name = block.name ?? (uri === undefined ? (block.type === "image" ? `Image ${i + 1}` : block.type) : nameOf(uri));
    const away = button({ icon: "close", name: `Remove ${name}`, press: () => remove(block) });
    const isPicture = block.type === "image" && block.data !== undefined && types.has(block.mimeType ?? "");
    const picture = isPicture && make("img", { class: "thumbnail", is: { alt: name, src: `data:${block.mimeType!};base64,${block.data!}` }, tip: name });
    return [make("li", { class: isPicture ? "attached picture-chip" : "attached chip" }, picture || icon("paperclip"), !isPicture && make("span", { text: name }), away)];
  });
}

function bytesOf({ data, resource }: PromptContent): number {
  return Math.floor(((data?.length ?? resource?.blob?.length ?? 0) * 3) / 4) + (resource?.text?.length ?? 0);
}

async function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve((reader.result as string).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error(`${file.name} could not be read`));
    reader.readAsDataURL(file);
  });
}
