/** Tells any number of listeners. What one of them throws does not keep the others from hearing. */
export class Emitter<T> {
  private readonly listeners = new Set<(value: T) => void>();

  constructor(private readonly onError: (error: unknown) => void = (error) => console.error(error)) {}

  /** Calls listener from now on; the function that is returned ends that. */
  readonly on = (listener: (value: T) => void): (() => void) => {
    const own = (value: T): void => listener(value);
    this.listeners.add(own);
    return () => void this.listeners.delete(own);
  };

  fire(value: T): void {
    for (const listener of [...this.listeners]) {
      try {
        listener(value);
      } catch (error) {
        this.onError(error);
      }
    }
  }

  clear(): void {
    this.listeners.clear();
  }
}
