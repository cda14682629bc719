// Attachments: images, files and other content beside text, of a session and of a prompt.
import type { EditorContext, PromptContent } from "../panel/protocol";
import { button, icon, make } from "./dom";
import { stringOf } from "./json";
import type { Data } from "./json";
import { nameOf } from "./output";
import type { Actions } from "./view";

/** The image types that are shown, and that a prompt accepts. SVG is a document with scripts, so it is not among them. */
const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** The elements for the attachments of a message or a tool call: pictures, and chips for anything else. */
export function attachments(all: readonly Data[], actions: Actions): HTMLElement[] {
  return all.map((attachment) => {
    const type = stringOf(attachment["mime_type"]) ?? "";
    const id = stringOf(attachment["attachment_id"]);
    const name = stringOf(attachment["name"]) ?? stringOf(attachment["uri"]) ?? (type.startsWith("image/") ? "Image" : type || "Attachment");
    if (id === undefined || !pictures.has(type)) return chip(name, attachment, actions);
    const image = make("img", { class: "picture", is: { alt: name }, tip: name });
    void actions.picture(id, type).then((address) => {
      if (address === undefined) image.replaceWith(chip(`${name} (it cannot be shown)`, attachment, actions));
      else image.src = address;
    });
    return image;
  });
}

function chip(name: string, attachment: Data, actions: Actions): HTMLElement {
  const uri = stringOf(attachment["uri"]);
  if (uri?.startsWith("file:") === true) {
    const path = decodeURIComponent(new URL(uri).pathname);
    return make("button", { class: "chip", is: { type: "button" }, tip: path, on: { click: () => actions.openFile(path) } }, icon("file"), make("span", { text: name }));
  }
  const size = attachment["size"];
  return make("span", { class: "chip" }, icon("paperclip"), make("span", { text: typeof size === "number" ? `${name} · ${sizeOf(size)}` : name }));
}

/** A size in bytes, in short form. */
function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** The limits of session.prompt for one image and for all images, in bytes. */
const mostOfOne = 10 << 20;
const mostOfAll = 20 << 20;

/** Reads files as content. refused says for each other file why. */
export async function contentOf(files: readonly File[], already: readonly PromptContent[]): Promise<{ content: PromptContent[]; refused: string[] }> {
  const [content, refused]: [PromptContent[], string[]] = [[], []];
  let total = already.reduce((sum, block) => sum + bytesOf(block), 0);
  for (const file of files) {
    const name = file.name || "The image";
    if (!pictures.has(file.type)) refused.push(`${name} is no image that can be sent (PNG, JPEG, GIF or WebP): name files by @ in the prompt`);
    else if (file.size > mostOfOne) refused.push(`${name} is too large: ${sizeOf(file.size)}, and an image may have 10 MiB`);
    else if (total + file.size > mostOfAll) refused.push(`${name} is too much: all images of a prompt may have 20 MiB together`);
    else {
      total += file.size;
      content.push({ type: "image", mimeType: file.type, data: await base64(file), ...(file.name === "" ? {} : { name: file.name }) });
    }
  }
  return { content, refused };
}

/** The content without the files that the text no longer names by @. */
export function stillNamed(text: string, content: readonly PromptContent[], named: ReadonlySet<string>): PromptContent[] {
  return content.filter(({ type, uri, name }) => type !== "resource_link" || uri === undefined || !named.has(uri) || text.includes(`@${name ?? ""}`));
}

/** The address of a file, or of its selected lines. */
export function uriOf({ uri, resource }: PromptContent): string | undefined {
  return uri ?? resource?.uri;
}

/** The chip of the active editor, with a button that removes it from the prompt. */
export function contextChip({ label, reference }: EditorContext, remove: () => void): HTMLElement {
  return make("li", { class: "attached chip", tip: `The active editor, which the prompt refers to: ${reference}` }, icon("file"), make("span", { text: label }), button({ icon: "close", name: `Remove the active editor, ${label}`, press: remove }));
}

/** Chips for the attachments of a prompt, each with a button that removes it. */
export function chips(content: readonly PromptContent[], named: ReadonlySet<string>, remove: (block: PromptContent) => void): HTMLElement[] {
  return content.flatMap((block, i) => {
    if (block.type === "resource_link" && block.uri !== undefined && named.has(block.uri)) return []; // the text has it
    const uri = uriOf(block);
    const name = block.name ?? (uri === undefined ? (block.type === "image" ? `Image ${i + 1}` : block.type) : nameOf(uri));
    const away = button({ icon: "close", name: `Remove ${name}`, press: () => remove(block) });
    const isPicture = block.type === "image" && block.data !== undefined && pictures.has(block.mimeType ?? "");
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
