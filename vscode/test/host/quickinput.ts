// The palette of VS Code and its lists, as a person with a keyboard uses them.
//
// VS Code closes a list when something else takes the focus, such as the page of a panel that has just loaded, and it draws
// rows anew while it filters. So the row is looked at and Enter is pressed in one step inside of the page, and a list that
// was closed before that is opened again.
import type { Page } from "playwright-core";

interface Wanted {
  /** What the field of the list has to say. */
  value?: string;
  label: string;
  /** The label is the whole text of the row, not a part of it. */
  exact: boolean;
  /** Presses Enter at the row. */
  press: boolean;
}

/**
 * look runs in the page. It reports whether the list has the row, goes there with the arrow keys, and then presses Enter.
 * "elsewhere": the list is closed, or another one is open.
 */
function look({ value, label, exact, press }: Wanted): "elsewhere" | "no such row" | "found" {
  const widget = document.querySelector<HTMLElement>(".quick-input-widget");
  const input = widget?.querySelector<HTMLInputElement>("input[type=text]");
  if (!widget || !input || widget.offsetParent === null || (value !== undefined && input.value !== value)) return "elsewhere";
  const textOf = (row: Element): string => row.querySelector(".label-name")?.textContent ?? "";
  const fits = (row: Element): boolean => (exact ? textOf(row) === label : textOf(row).includes(label));
  const rows = [...widget.querySelectorAll(".quick-input-list .monaco-list-row")];
  if (!rows.some(fits)) return "no such row";
  if (!press) return "found";
  const key = (name: string, keyCode: number): boolean => input.dispatchEvent(new KeyboardEvent("keydown", { key: name, code: name, keyCode, bubbles: true, cancelable: true }));
  const focused = rows.find((row) => row.classList.contains("focused"));
  if (focused && fits(focused)) {
    key("Enter", 13);
    return "found";
  }
  key("ArrowDown", 40);
  return "no such row";
}

/** find waits for a row, and presses Enter there if that is wanted. It returns false if the row does not appear. */
async function find(page: Page, wanted: Wanted, milliseconds: number): Promise<boolean> {
  for (const until = Date.now() + milliseconds; ; await page.waitForTimeout(50)) {
    const found = await page.evaluate(look, wanted);
    if (found === "found") return true;
    // A list that has closed does not open again by itself.
    if ((found === "elsewhere" && wanted.value !== undefined) || Date.now() > until) return false;
  }
}

/** carryOut carries out a command of the palette; with a choice also the row of the list that the command shows. */
export async function carryOut(page: Page, title: string, patience: number, choice?: { label: string; press: boolean }): Promise<void> {
  const value = `>${title}`;
  const input = page.locator(".quick-input-widget input[type=text]");
  const attempt = async (): Promise<boolean> => {
    await page.keyboard.press("F1"); // a page that is still loading loses keys
    if (!(await input.fill(value, { timeout: 5_000 }).then(() => true, () => false))) return false;
    if (!(await find(page, { value, label: title, exact: true, press: true }, 10_000))) return false;
    return choice === undefined || find(page, { ...choice, exact: false }, 20_000);
  };
  for (const until = Date.now() + patience; !(await attempt()); ) {
    if (Date.now() > until) throw new Error(`the palette does not carry out ${title}${choice ? ` and show ${choice.label}` : ""}`);
  }
}

/** pick presses Enter at a row of a list that stays open. */
export async function pick(page: Page, label: string, patience: number): Promise<void> {
  if (!(await find(page, { label, exact: false, press: true }, patience))) throw new Error(`no list shows ${label}`);
}
