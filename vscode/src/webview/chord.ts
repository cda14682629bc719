// The keys of the extension's commands. VS Code runs the commands, but it does not keep the second key from the page.

/** The first key of each keybinding in package.json. VS Code and the desktops leave it free, and so does AltGr. */
export const prefix = "alt+q";

/** How long VS Code waits for the second key, in milliseconds. */
const patience = 5_000;

/** Keys that only modify others. */
const modifiers = new Set(["Alt", "AltGraph", "Control", "Meta", "Shift", "CapsLock", "NumLock", "Fn"]);

/** Keeps the keys of the extension's commands from the page. They still reach VS Code, which listens at the window. */
export function catchChords(signal: AbortSignal): void {
  let since: number | undefined;
  const caught = (event: KeyboardEvent): void => {
    if (event.isComposing || modifiers.has(event.key)) return;
    const isSecond = since !== undefined && event.timeStamp - since < patience;
    const isFirst = !isSecond && isPrefix(event);
    since = isFirst ? event.timeStamp : undefined;
    if (isFirst || isSecond) event.preventDefault();
  };
  document.addEventListener("keydown", caught, { capture: true, signal });
  window.addEventListener("blur", () => (since = undefined), { signal });
}

/** isPrefix compares by the key code, which follows the layout of the keyboard. On a Mac, Option makes another character of the key. */
function isPrefix(event: KeyboardEvent): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- VS Code reads it, too; nothing else names the key by its layout
  return event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.keyCode === prefix.at(-1)!.toUpperCase().charCodeAt(0);
}
