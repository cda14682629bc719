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

/**
 * Sends a prompt, and resolves when the hub has it. It rejects when the hub does not have it,
 * and with an UnknownOutcome when nobody can tell.
 */
export async function sendPrompt(host: Host, conversation: Conversation, pages: Pages, thread: string, { text, content }: Draft): Promise<void> {
  const known = new Set(conversation.runs.ids);
  try {
    const { session_id: id } = await host.request("continueSession", { session_id: thread, query: text, ...(content.length > 0 ? { content } : {}) });
    conversation.loadSession({ id, state: conversation.runs.state(id) ?? "queued" });
  } catch (error) {
    // No hub carries out what it has not kept, so that the next one knows.
    if (!(error instanceof RPCError && error.code === ErrorCode.HubLost && pages.loaded)) throw error;
    if (!(await arrived(pages, text, known))) throw error;
  }
}

/** arrived tells whether a run that was not known yet has this prompt. */
async function arrived(pages: Pages, text: string, known: ReadonlySet<string>): Promise<boolean> {
  try {
    const items = await pages.newest(looked);
    return items.some((item) => item.event_type === "message" && item.role === "user" && item.content?.trim() === text.trim() && !known.has(stringOf(item.session_id) ?? ""));
  } catch (error) {
    throw new UnknownOutcome(`It is not known whether it was sent: ${(error as Error).message}. Look whether it stands in the conversation before you send it again.`);
  }
}
