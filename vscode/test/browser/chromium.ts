// Starts the Chromium of this machine.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";
import type { Browser } from "playwright-core";

/** The path of Chromium: DUET_TEST_CHROMIUM, else the first one in PATH. The headless shell needs a third of the processor time. */
export function findChromium(): string | undefined {
  const named = process.env["DUET_TEST_CHROMIUM"];
  if (named) return named;
  for (const name of ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]) {
    for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
      const path = join(folder, name);
      if (existsSync(path)) return path;
    }
  }
  return undefined;
}

export async function startChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (!executablePath) throw new Error("there is no Chromium: run .ci/install, or name one with DUET_TEST_CHROMIUM");
  // Without its own sandbox it runs in a container, too. It only opens pages of this machine.
  return chromium.launch({ executablePath, timeout: 120_000, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
}
