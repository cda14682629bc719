/** How many crashes within how many milliseconds are too many: the fifth within three minutes. */
const tooMany = 5;
const within = 3 * 60_000;

/** RestartRule decides whether a process that has died is started again. Stopping it on purpose is not a crash. */
export class RestartRule {
  private crashes: number[] = [];

  constructor(private readonly now: () => number = Date.now) {}

  /** Notes a crash. False: there were too many, do not start it again. */
  crashed(): boolean {
    const now = this.now();
    this.crashes = [...this.crashes.filter((at) => now - at < within), now];
    return this.crashes.length < tooMany;
  }

  /** Forgets all crashes, since a person wants it started. */
  forget(): void {
    this.crashes = [];
  }
}
