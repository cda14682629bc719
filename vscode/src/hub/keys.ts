// Answers the daemon's requests for keys. Nothing here writes a key to a log, or into an error.
import type { HubConnection } from "./connection";

/** The event secret.requested. */
export interface KeyRequest {
  request_id: string;
  service: string;
  agent: string;
  /** The turn whose agent needs the key. */
  turn_uuid: string | undefined;
}

/** The user, and the store of keys. */
export interface KeyUser {
  trusted: () => boolean;
  stored: (service: string) => Promise<string | undefined>;
  store: (service: string, key: string) => Promise<void>;
  /**
   * Asks the user. known: the store has a key. Resolves with undefined if the user does not answer. signal aborts when an
   * answer would come too late.
   */
  ask: (request: KeyRequest, known: boolean, signal: AbortSignal) => Promise<{ use: "given"; key: string; remember: boolean } | { use: "stored" | "none" } | undefined>;
  warn: (message: string) => void;
}

/** How long the daemon waits for a key, in milliseconds. */
const askedFor = 25_000;

/** The requests of one project, each answered at most once. */
export class KeyRequests {
  private readonly taken = new Set<string>();

  constructor(
    private readonly connection: HubConnection,
    private readonly user: KeyUser,
    private readonly patience = askedFor,
  ) {}

  /** Answers a request. Only in a trusted workspace does a stored key go out without a question to the user. */
  async take(request: KeyRequest): Promise<void> {
    if (this.taken.has(request.request_id)) return;
    this.taken.add(request.request_id);
    const kept = await this.user.stored(request.service);
    if (kept !== undefined && this.user.trusted()) {
      // Another window may have answered already. That is no error.
      await this.provide(request, kept).catch(() => {});
      return;
    }
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.patience);
    try {
      const answer = await this.user.ask(request, kept !== undefined, late.signal);
      if (answer?.use === "given" && answer.remember) await this.user.store(request.service, answer.key);
      if (late.signal.aborted) {
        // A stored key that came too late is there for the next request.
        this.user.warn(`the key for ${request.service} came too late: the agent waits ${Math.round(this.patience / 1_000)} seconds. Continue the session to be asked again.`);
      } else if (answer) {
        const secret = answer.use === "given" ? answer.key : answer.use === "stored" ? (kept ?? "") : "";
        await this.provide(request, secret).catch((error: unknown) => {
          // Another window may have answered, or the agent no longer waits.
          this.user.warn(`the key for ${request.service} was not accepted: ${error instanceof Error ? error.message : String(error)}`);
        });
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private async provide({ request_id, service }: KeyRequest, secret: string): Promise<void> {
    await this.connection.request("secret.provide", { request_id, service, secret });
  }
}
