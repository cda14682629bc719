// Opens the links of a transcript, by the pointer and by the keyboard.
import type { Actions } from "./actions";

export function openLinks(root: HTMLElement, actions: Actions): void {
  const follow = (event: Event): void => {
    const link = event.target instanceof Element ? event.target.closest<HTMLElement>("[role=link]") : null;
    if (!link) return;
    event.preventDefault();
    const { url, path, line, column } = link.dataset;
    if (url !== undefined) actions.openLink(url);
    else if (path !== undefined) actions.openFile(path, line === undefined ? undefined : Number(line), column === undefined ? undefined : Number(column));
  };
  root.addEventListener("click", follow);
  root.addEventListener("keydown", (event) => {
    if (event.key === "Enter") follow(event);
  });
}
