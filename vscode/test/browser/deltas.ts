// Sends the text of an agent to the page of a session panel, delta by delta.
import type { Page } from "playwright-core";
import type { FakeHost } from "./pages/panelhost";

declare const window: { host: FakeHost };

export const kinds = ["prose", "paragraph", "list", "code", "table"];

/** Sends count deltas of a kind of text to the page, at a given number per second. */
export async function stream(page: Page, count: number, perSecond: number, kind: string): Promise<void> {
  await page.evaluate(
    async ([length, rate, kind]) => {
      const words = ["The ", "parser ", "reads ", "**one** ", "token ", "`next()` ", "after ", "another. "];
      const piece = (i: number): string => {
        if (kind === "paragraph") return words[i % words.length]!;
        if (kind === "code") return i === 0 ? "```ts\n" : i % 8 === 7 ? ";\n" : `value${i % 10} `;
        if (kind === "list") return i % 12 === 0 ? `\n- ` : words[i % words.length]!;
        if (kind === "table") return i === 0 ? "| a | b |\n| --- | --- |\n" : `| ${i} | ${words[i % words.length]!.trim()} |\n`;
        return i % 40 === 0 ? "\n\n" : i % 400 === 1 ? "\n\n```js\nlet a = 1;\n```\n\n" : words[i % words.length]!;
      };
      const began = performance.now();
      let sent = 0;
      await new Promise<void>((resolve) => {
        const timer = setInterval(() => {
          const due = Math.min(length, Math.floor(((performance.now() - began) * rate) / 1_000));
          while (sent < due) window.host.event("text.delta", { key: `m-${kind}`, text: piece(sent++) });
          if (sent < length) return;
          clearInterval(timer);
          resolve();
        }, 4);
      });
    },
    [count, perSecond, kind] as const,
  );
}

/** Reports whether the text of 10,000 deltas is complete. A long table ends with the number of hidden rows. */
export function isComplete(text: string): boolean {
  return text.length > 20_000 || /(… and|Show) \d{4} more rows/.test(text);
}
