// Uses the palette of VS Code and its lists by the keyboard.
//
// VS Code closes a list when another element takes the focus, such as the page of a panel that has just loaded. It also
// redraws the rows while it filters. So look checks the row and presses Enter in one step inside the page, and carryOut
// opens the palette again if VS Code closed it before that.
import type { Page } from "playwright-core";

interface Wanted {
  /** The text that the input field of the list must have. */
  value?: string;
  label: string;
  /** The label of the row must be equal to label; otherwise it must contain it. */
  exact: boolean;
  /** Presses Enter at the row. */
  press: boolean;
}

/**
 * look runs in the page. It reports whether the list has the row. To press Enter there, it first moves to the row with the
 * arrow keys, one key in each call. "elsewhere" means that the list is closed, or that another one is open.
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

/** find waits for a row, and presses Enter there if wanted.press is set. It returns false if the row does not appear. */
async function find(page: Page, wanted: Wanted, milliseconds: number): Promise<boolean> {
  for (const until = Date.now() + milliseconds; ; await page.waitForTimeout(50)) {
    const found = await page.evaluate(look, wanted);
    if (found === "found") return true;
    // A closed palette does not open again by itself. The list of a command may not be open yet.
    if ((found === "elsewhere" && wanted.value !== undefined) || Date.now() > until) return false;
  }
}

/** carryOut carries out a command of the palette, and then picks or finds a choice in the list that the command shows. */
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
