// A block of code, with a button that copies it as it was written.
import { button, fill, make } from "./dom";

export interface CodeBlock {
  element: HTMLElement;
  /** Puts more text behind what it has. */
  append(text: string): void;
}

export function codeBlock(content: string, language: string): CodeBlock {
  let whole = content;
  const code = make("code");
  fill(code, content.replace(/\n$/, ""));
  const element = make(
    "div",
    { class: "code-block" },
    make("div", { class: "code-head" }, make("span", { class: "code-language", text: language }), copyButton(() => whole, "Copy code")),
    make("pre", { is: { tabindex: "0" } }, code),
  );
  return {
    element,
    append: (text) => {
      whole += text;
      fill(code, text);
    },
  };
}

/** A button that copies a text, and says that it did. */
export function copyButton(text: () => string, name: string): HTMLButtonElement {
  const copy = button({
    icon: "copy", name, class: "icon-button copy",
    press: () => {
      navigator.clipboard.writeText(text()).then(
        () => said("Copied"),
        () => said("Could not copy"),
      );
    },
  });
  const note = make("span", { class: "copy-note", is: { role: "status" } });
  const said = (what: string): void => {
    note.textContent = what;
    setTimeout(() => (note.textContent = ""), 2_000);
  };
  copy.append(note);
  return copy;
}
