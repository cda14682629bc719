// The keys that answer a question while it has the focus.

/**
 * How long a question takes no key after it has appeared or has got the focus, in milliseconds. The user may have pressed
 * the key for what had the focus before.
 */
export const pause = 500;

/** Passes on the keys that answer a question, and holds back those that the user may not have meant for it. */
export class AnswerKeys {
  private readyAt = 0;

  /** press gives the answer of a key. It returns false if the key has none. takes reports whether the key has one. */
  constructor(
    element: HTMLElement,
    private readonly takes: (key: string) => boolean,
    private readonly press: (key: string) => void,
  ) {
    this.wait();
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** Takes no key for a moment, because other content has just come under the user's fingers. */
  wait(): void {
    this.readyAt = performance.now() + pause;
  }

  private key(event: KeyboardEvent): void {
    const { key, target } = event;
    if (event.defaultPrevented || event.isComposing || !(target instanceof Element) || target.closest("input, textarea, select")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || (event.shiftKey && key !== "?")) return;
    const isPress = (key === "Enter" || key === " ") && target.closest(".choices button") !== null;
    if (!isPress && !this.takes(key)) return;
    const isMeant = !event.repeat && event.timeStamp >= this.readyAt;
    if (isPress && isMeant) return; // the browser presses the button
    event.preventDefault();
    if (isMeant) this.press(key);
  }
}
