// Sends a prompt, and finds out what became of it when duet-rpc ended on the way.
import type { Draft } from "../panel/protocol";
import { ErrorCode, RPCError } from "../rpc/index";
import type { Conversation } from "./conversation";
import type { Host } from "./host";
import { stringOf } from "./json";
import type { Pages } from "./pages";
import { UnknownOutcome } from "./promptbox";

/** How many of the newest items are looked at for a prompt. Each has its own, and its agent may have begun to answer. */
const looked = 50;

/** What became of a prompt: the agent that works has it, it waits for its turn, or it began a turn. */
export type Delivered = "injected" | "queued" | "started";

/**
 * Sends a prompt, and resolves when the hub has it, with what became of it. With now an agent that
 * works gets it in the middle of its turn, if it can take it. It rejects when the hub does not have
 * it, and with an UnknownOutcome when nobody can tell.
 */
export async function sendPrompt(host: Host, conversation: Conversation, pages: Pages, thread: string, { text, content }: Draft, now = false): Promise<Delivered | undefined> {
  const runs = new Set(conversation.runs.ids);
  const messages = new Set(conversation.entries.map(({ key }) => key));
  try {
    const { session_id: id, delivered } = await host.request("continueSession", { session_id: thread, query: text, ...(content.length > 0 ? { content } : {}), ...(now ? { deliver: "steer" } : {}) });
    if (delivered !== "injected") conversation.loadSession({ id, state: conversation.runs.state(id) ?? "queued" });
    return delivered as Delivered;
  } catch (error) {
    // No hub carries out what it has not kept, so that the next one knows.
    if (!(error instanceof RPCError && error.code === ErrorCode.HubLost && pages.loaded)) throw error;
    // What an agent gets while it works is a new message in a run that is known.
    if (!(await arrived(pages, text, (run, key) => runs.has(run) && (!now || messages.has(key))))) throw error;
    return undefined;
  }
}

/** What a person is told of a prompt that was sent; empty: nothing. */
export function deliveredWords(delivered: Delivered | undefined, { now, working, content }: { now: boolean; working: boolean; content: boolean }): string {
  switch (delivered) {
    case "injected":
      return "Sent: the agent has it.";
    case "queued":
      if (!working) return "";
      return `Queued: it runs when this turn has ended${!now ? "" : content ? " (files wait for that)" : " (the agent cannot take it now)"}.`;
    default:
      return now ? "Sent." : "";
  }
}

/** arrived tells whether a message that was not known yet has this text. */
async function arrived(pages: Pages, text: string, known: (run: string, key: string) => boolean): Promise<boolean> {
  try {
    const items = await pages.newest(looked);
    return items.some((item) => item.event_type === "message" && item.role === "user" && item.content?.trim() === text.trim() && !known(stringOf(item.session_id) ?? "", item.key ?? ""));
  } catch (error) {
    throw new UnknownOutcome(`It is not known whether it was sent: ${(error as Error).message}. Look whether it stands in the conversation before you send it again.`);
  }
}
