// A view of a terminal of the daemon. It needs no VS Code.
import type { HubConnection } from "./connection";
import { Emitter } from "./events";
import type { TerminalUpdate } from "./events";

export interface Size {
  cols: number;
  rows: number;
}

/** A new terminal, or the id of an existing one, perhaps an agent's. */
export type Which = { start: { cwd?: string } } | { attach: string };

/**
 * Watches one terminal, and continues after duet-rpc has restarted. Output is text: the bytes of a partial character wait
 * for the rest.
 */
export class HubTerminal {
  private readonly outputEmitter = new Emitter<string>();
  private readonly endEmitter = new Emitter<{ code: number | undefined; reason: string }>();
  private readonly stops: Array<() => void>;
  private decoder = new TextDecoder();
  private id: string | undefined;
  private size: Size | undefined;
  /** Events from before the response with the terminal's id. */
  private early: TerminalUpdate[] = [];
  /** Input from before the terminal was ready. undefined: it is ready. */
  private typed: string | undefined = "";
  private over = false;
  private attaching: Promise<void> | undefined;
  private lost = false;

  readonly onOutput = this.outputEmitter.on;
  /** The program has ended, or the terminal can no longer be watched. */
  readonly onEnd = this.endEmitter.on;
  /** An agent owns the terminal: it takes no input. */
  readOnly = false;

  constructor(private readonly connection: HubConnection, private readonly which: Which) {
    this.stops = [
      connection.onTerminal((event) => this.take(event)),
      connection.onState((state) => {
        if (this.over || this.id === undefined) return;
        if (state.is !== "ready") this.lost = true;
        else if (this.lost) {
          this.lost = false;
          this.attachAgain(this.id);
        }
      }),
    ];
  }

  /** Starts or attaches the terminal, with a size if that is known. */
  async open(size: Size | undefined): Promise<void> {
    this.size = size;
    try {
      if ("start" in this.which) {
        const { terminal_id } = await this.connection.request("terminal.start", { ...this.which.start, ...size, env: { TERM: "xterm-256color" } });
        this.name(terminal_id);
      } else {
        await this.attach(this.which.attach);
      }
      if (this.over) { // the view was closed meanwhile
        if (this.id !== undefined) await this.leave(this.id);
        return;
      }
      if (this.size !== undefined && this.size !== size) await this.resize(this.size);
      const { typed } = this;
      this.typed = undefined;
      if (typed) await this.write(typed);
    } catch (error) {
      this.end(undefined, error instanceof Error ? error.message : String(error));
    }
  }

  /** Sends input. It waits until the terminal is ready. An agent's terminal ignores it. */
  async write(data: string): Promise<void> {
    if (this.over || this.readOnly) return;
    if (this.id === undefined || this.typed !== undefined) {
      this.typed = (this.typed ?? "") + data;
      return;
    }
    await this.connection.request("terminal.write", { terminal_id: this.id, data });
  }

  async resize(size: Size): Promise<void> {
    this.size = size;
    if (this.over || this.readOnly || this.id === undefined || size.cols < 1 || size.rows < 1) return;
    await this.connection.request("terminal.resize", { terminal_id: this.id, ...size });
  }

  /** Ends the view. Closes a terminal that the view started, and detaches from any other. */
  async close(): Promise<void> {
    const { id, over } = this;
    this.dispose();
    if (id !== undefined && !over) await this.leave(id);
  }

  private async leave(id: string): Promise<void> {
    await this.connection.request("start" in this.which ? "terminal.close" : "terminal.detach", { terminal_id: id });
  }

  /** Ends the view without a request to the daemon. The terminal continues. */
  dispose(): void {
    this.over = true;
    for (const stop of this.stops) stop();
    this.outputEmitter.clear();
    this.endEmitter.clear();
  }

  private async attach(id: string): Promise<void> {
    const { read_only } = await this.connection.request("terminal.attach", { terminal_id: id, ...(this.readOnly ? {} : this.size) });
    this.readOnly = read_only;
    this.name(id);
  }

  private attachAgain(id: string): void {
    this.decoder = new TextDecoder();
    this.outputEmitter.fire("\u001bc"); // reset the screen: recent output comes again
    this.attaching = this.attach(id).catch((error: unknown) => this.end(undefined, `duet-rpc was started again, and the terminal is not there any more: ${error instanceof Error ? error.message : String(error)}`));
  }

  /** Resolves when an attempt to attach again is over. */
  async settled(): Promise<void> {
    await this.attaching;
  }

  private name(id: string): void {
    this.id = id;
    const early = this.early;
    this.early = [];
    for (const event of early) this.take(event);
  }

  private take(event: TerminalUpdate): void {
    if (this.over) return;
    if (this.id === undefined) {
      this.early.push(event);
      return;
    }
    if (event.data.terminal_id !== this.id) return;
    if (event.kind === "terminal.exited") {
      const { exit_code, signal } = event.data;
      this.end(exit_code, reasonOf(exit_code, signal));
      return;
    }
    if (event.kind === "terminal.lagged") {
      this.outputEmitter.fire(`\r\n[${event.data.dropped_bytes} bytes were left out]\r\n`);
      return;
    }
    const { data, encoding } = event.data;
    this.outputEmitter.fire(this.decoder.decode(Buffer.from(data, encoding === "base64" ? "base64" : "utf8"), { stream: true }));
  }

  private end(code: number | undefined, reason: string): void {
    if (this.over) return;
    this.over = true;
    this.endEmitter.fire({ code, reason });
  }
}

/** reasonOf says why a program has ended. The relay reports "hub gone" for the terminals of a dead daemon. */
function reasonOf(code: number, signal?: string): string {
  if (signal === "hub gone") return "ended with the daemon of duet-rpc";
  return signal ? `ended by ${signal}` : `ended with status ${code}`;
}
