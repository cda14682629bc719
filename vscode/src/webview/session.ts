// What the head of a panel tells of a session: what getSessionState says, and what events have changed since.
import type { PanelResult } from "../panel/protocol";
import type { Conversation } from "./conversation";
import { duration } from "./figures";
import { gatesWords } from "./gates";
import { backgroundWords } from "../hub/groups";
import { objectsOf, stringOf } from "./json";
import type { Data } from "./json";

export type SessionState = PanelResult<"getSessionState">["session"];

export interface Session {
  agent: string;
  /** The state of the run that works, else of the last one. */
  state: string;
  /** An agent works, or waits for a person. */
  working: boolean;
  /** Since when it works, in milliseconds since 1970. */
  since: number | undefined;
  /** How long the last run took, in milliseconds. */
  took: number | undefined;
  /** Since when the agent is silent. */
  silent: string | undefined;
  /** The titles of what the agent does in the background, while it works on no prompt. */
  background: string[];
  questions: number;
  /** Where its gates stand, in words; empty: it has none. */
  gates: string;
  tokens: number;
  contextUsed: number;
  contextSize: number;
  cost: number;
}

export function sessionOf(known: SessionState | undefined, conversation: Conversation): Session {
  const { runs } = conversation;
  const run = runs.active ?? known?.id ?? runs.last ?? "";
  const isKnown = known?.id === run;
  const used: Data = runs.usageOf(run);
  const number = (name: string, byState: number | undefined): number => {
    const told = used[name];
    return typeof told === "number" ? told : isKnown ? (byState ?? 0) : 0;
  };
  const began = runs.began(run) ?? (isKnown ? (known.started_at ?? known.created_at) : undefined);
  return {
    agent: known?.agent_session?.agent?.title || known?.agent || "",
    state: runs.state(run) ?? known?.state ?? "",
    working: runs.active !== undefined,
    since: began === undefined ? undefined : Date.parse(began),
    took: runs.active === undefined && isKnown ? known.duration_ms : undefined,
    silent: runs.silent,
    background: runs.active === undefined ? objectsOf(conversation.told.background ?? known?.background).map(({ title, kind }) => stringOf(title) ?? stringOf(kind) ?? "") : [],
    questions: conversation.questions.length,
    gates: gatesWords(conversation.gates),
    tokens: number("input_tokens", known?.input_tokens) + number("output_tokens", known?.output_tokens),
    contextUsed: number("context_used", known?.effective_context_tokens),
    contextSize: number("context_size", known?.context_limit),
    cost: number("cost_usd", known?.cost_usd),
  };
}

/** What a state is called, with what goes on in the background, and what stands for it in the style sheet. */
export function stateWords(session: Session, now: number): { id: string; text: string } {
  const { id, text } = ownStateWords(session, now);
  return { id, text: [text, backgroundWords(session.background.length)].filter((part) => part !== "").join("; ") };
}

function ownStateWords(session: Session, now: number): { id: string; text: string } {
  if (session.questions > 0) return { id: "waiting", text: session.questions === 1 ? "waits for your answer" : `waits for ${session.questions} answers` };
  if (session.silent !== undefined) return { id: "silent", text: `silent for ${duration(now - Date.parse(session.silent))}` };
  switch (session.state) {
    case "queued":
      return { id: "queued", text: "queued" };
    case "starting":
      return { id: "working", text: "starting" };
    case "running":
      return { id: "working", text: "working" };
    case "waiting_input":
      return { id: "waiting", text: "waits for you" };
    case "interrupting":
      return { id: "working", text: "is being interrupted" };
    case "failed":
    case "timed_out":
      return { id: "failed", text: session.state === "failed" ? "failed" : "took too long" };
    case "interrupted":
    case "cancelled":
      return { id: "failed", text: "interrupted" };
    case "completed":
      return { id: "done", text: "done" };
    default:
      return { id: "idle", text: session.state.replace("_", " ") };
  }
}
