// A block of code, with a button that copies it as it was written.
import { button, cutBefore, fill, inTurns, make, piecesOf } from "./dom";

/** How much of a block, and of a line of it, is shown at first, in characters. */
const longestBlock = 200_000;
const longestLine = 5_000;

export interface CodeBlock {
  element: HTMLElement;
  /** Puts more text behind what it has. */
  append(text: string): void;
}

export function codeBlock(content: string, language: string): CodeBlock {
  let whole = "";
  let shown = 0;
  let lineLength = 0;
  let showsAll = false;
  const code = make("code");
  const all = button({
    class: "text-button", label: "Show all",
    press: () => {
      all.hidden = true;
      showsAll = true;
      code.replaceChildren();
      inTurns(piecesOf(whole.replace(/\n$/, "")), code, (piece) => make("span", { text: piece }));
    },
  });
  all.hidden = true;
  /** Shows what may be shown of more text. The browser would stand still over a very long line. */
  const show = (text: string): void => {
    if (showsAll) return fill(code, text);
    let part = "";
    for (let at = 0; at < text.length && shown < longestBlock; ) {
      const newline = text.indexOf("\n", at);
      const end = newline === -1 ? text.length : newline;
      const last = cutBefore(text, Math.min(end, at + Math.max(0, longestLine - lineLength)));
      part += text.slice(at, last);
      if (newline !== -1) part += "\n";
      if (last < end) all.hidden = false;
      lineLength = newline === -1 ? lineLength + end - at : 0;
      shown += last - at + 1;
      at = end + 1;
    }
    fill(code, ...piecesOf(part));
    if (shown >= longestBlock) all.hidden = false;
  };
  const element = make(
    "div",
    { class: "code-block" },
    make("div", { class: "code-head" }, make("span", { class: "code-language", text: language }), copyButton(() => whole, "Copy code")),
    make("pre", { is: { tabindex: "0" } }, code),
    all,
  );
  whole = content;
  show(content.replace(/\n$/, ""));
  return {
    element,
    append: (text) => {
      whole += text;
      show(text);
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
