// Prompts that can be called back: upwards to older ones, downwards to what was being written.

export class PromptHistory {
  private at = -1;
  private draft = "";

  /** prompts: the newest first. */
  constructor(private prompts: string[] = []) {}

  set(prompts: readonly string[]): void {
    this.prompts = [...prompts];
    this.reset();
  }

  /** Takes a prompt that was sent. */
  add(prompt: string): void {
    if (prompt.trim() !== "") this.prompts = [prompt, ...this.prompts.filter((other) => other !== prompt)];
    this.reset();
  }

  /** Something else was typed: what is there is the draft again. */
  reset(): void {
    this.at = -1;
  }

  /** The next older prompt for what stands in the box; undefined: there is none. */
  older(current: string): string | undefined {
    if (this.at === -1) this.draft = current;
    let next = this.at + 1;
    if (this.at === -1) while (this.prompts[next] !== undefined && this.prompts[next] === current) next++;
    if (this.prompts[next] === undefined) return undefined;
    this.at = next;
    return this.prompts[next];
  }

  newer(): string | undefined {
    if (this.at === -1) return undefined;
    this.at--;
    return this.at === -1 ? this.draft : this.prompts[this.at];
  }
}
