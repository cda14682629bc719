// How long tasks of a page hold the browser up. PerformanceObserver tells its long tasks; on a machine that does other
// things, too, their time is also that of others, so what is judged is the processor time of a task, which Chromium's
// tracing tells.
import type { CDPSession, Page } from "playwright-core";

declare const window: { tasks: number[] };

/** No task may take longer, in milliseconds: a person would notice. */
export const longest = 100;

/** Processor time has noise as well, that of shared caches: the best of some rounds counts. */
const rounds = 3;

export interface Task {
  /** Milliseconds of the processor. */
  processor: number;
  /** Milliseconds of the clock, as PerformanceObserver tells them; 0: under 50. */
  clock: number;
}

/** observe looks at tasks from now on; the function that it returns tells the longest, once the page has come to rest. */
export async function observe(page: Page): Promise<() => Promise<Task>> {
  await page.evaluate(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => Math.round(duration)))).observe({ type: "longtask" });
  });
  const session: CDPSession = await page.context().newCDPSession(page);
  let processor = 0;
  session.on("Tracing.dataCollected", ({ value }) => {
    for (const event of value as unknown as Array<{ ph: string; name: string; tdur?: number }>) {
      if (event.ph === "X" && event.name.endsWith("RunTask")) processor = Math.max(processor, Math.round((event.tdur ?? 0) / 1_000));
    }
  });
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["toplevel"] } });
  return async () => {
    const clock = await page.evaluate(async () => {
      for (let i = 0; i < 3; i++) await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 60)));
      return Math.max(0, ...window.tasks);
    });
    const complete = new Promise<void>((resolve) => session.once("Tracing.tracingComplete", () => resolve()));
    await session.send("Tracing.end");
    await complete;
    return { processor, clock };
  };
}

/** best repeats a measurement until it is good, tells all it has got, and returns the shortest processor time. */
export async function best(t: { diagnostic(text: string): void }, what: string, measure: () => Promise<Task>): Promise<number> {
  const all: Task[] = [];
  while (all.length < rounds && !all.some(({ processor }) => processor <= longest)) all.push(await measure());
  t.diagnostic(`${what}: longest task ${all.map(({ processor, clock }) => `${processor} ms of the processor, ${clock === 0 ? "under 50" : clock} ms of the clock`).join("; ")}`);
  return Math.min(...all.map(({ processor }) => processor));
}
