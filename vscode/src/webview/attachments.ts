// Images, and other things beside text, that a prompt, an agent or a tool has.
import type { Actions } from "./actions";
import { icon, make } from "./dom";
import type { Data } from "./json";
import { stringOf } from "./json";

/** Types that are shown as pictures; SVG is a document, and not among them. */
const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

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

/** A size in bytes, in few characters. */
export function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
