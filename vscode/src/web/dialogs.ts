// Dialogs: a question to the user, and a text from the user.
import { exactly } from "../hub/groups";
import { button, make } from "../webview/dom";
import type { Child } from "../webview/dom";

/** open shows a dialog until the user has decided. undefined: the user has closed it. */
function open<T>(title: string, fill: (close: (value: T) => void) => Child[]): Promise<T | undefined> {
  return new Promise((resolve) => {
    const before = document.activeElement;
    let value: T | undefined;
    const heading = make("h2", { text: title, is: { id: "dialog-title" } });
    const dialog = make("dialog", { class: "dialog", is: { "aria-labelledby": "dialog-title" } });
    // Escape closes the dialog. In the panel below it would interrupt the agent.
    dialog.addEventListener("keydown", (event) => event.stopPropagation());
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before instanceof HTMLElement) before.focus();
      resolve(value);
    });
    dialog.append(heading, ...fill((chosen) => {
      value = chosen;
      dialog.close();
    }).filter((child): child is Node => child instanceof Node));
    document.body.append(dialog);
    dialog.showModal();
  });
}

function cancelButton(): HTMLButtonElement {
  return button({ class: "secondary", label: "Cancel", press: ({ target }) => (target as Element).closest("dialog")?.close() });
}

/** Asks for a text of one line. */
export function askText(title: string, value: string, verb: string): Promise<string | undefined> {
  return open<string>(title, (close) => {
    const input = make("input", { is: { type: "text", dir: "auto", maxlength: "200", "aria-labelledby": "dialog-title" } });
    input.value = value;
    const form = make("form", { on: { submit: (event) => {
      event.preventDefault();
      close(input.value.trim());
    } } }, input, make("div", { class: "choices" }, make("button", { class: "primary", is: { type: "submit" }, text: verb }), cancelButton()));
    return [form];
  });
}

/** Asks whether to do something. */
export async function confirmed(title: string, text: string, verb: string): Promise<boolean> {
  return (await open<boolean>(title, (close) => [make("p", { text }), make("div", { class: "choices" }, button({ class: "primary", label: verb, press: () => close(true) }), cancelButton())])) === true;
}

/** Shows an address, which third-party text may have named, before the browser opens it. Resolves with whether the user has opened it. */
export async function openAddress(url: string, warnings: readonly string[] = []): Promise<boolean> {
  if (!/^(?:https?|mailto):/i.test(url)) throw new Error("only links of http, https and mailto are opened");
  // make writes out invisible characters of attributes, and an address has to stay as it is.
  const opens = Object.assign(make("a", { class: "primary", text: "Open", is: { target: "_blank", rel: "noopener noreferrer" } }), { href: url });
  return (await open<boolean>("Open this address?", (close) => [
    make("p", { class: "address", text: exactly(url) }),
    ...warnings.map((warning) => make("p", { class: "warning", text: exactly(warning) })),
    make("div", { class: "choices" }, Object.assign(opens, { onclick: () => close(true) }), cancelButton()),
  ])) === true;
}
