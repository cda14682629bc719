// Checks that the requests of a page are about the conversation of its panel.
import type { Method, Params, Result } from "../protocol";
import { ErrorCode, RPCError } from "../rpc/messages";
import type { PassedMethod } from "./protocol";

export type Request = <M extends Method>(method: M, params: Params<M>) => Promise<Result<M>>;

type Members = Record<string, unknown>;

/** The parameters of each method that a page may use. Others could name things outside the conversation, such as programs to run. */
const members: Record<PassedMethod, readonly string[]> = {
  getConversation: ["session_id", "offset", "limit"],
  getSessionState: ["session_id"],
  "approval.list": ["turn"],
  "approval.decide": ["approval", "type", "decision", "comment", "updated_input", "scope", "option", "content", "pattern", "tell"],
  continueSession: ["session_id", "query", "content", "deliver"],
  interruptSession: ["session_id", "reason"],
  "session.set": ["session_id", "agent", "mode", "model", "options"],
  "session.queue": ["session_id"],
  "session.editQueued": ["session_id", "query"],
  "session.moveQueued": ["session_id", "before"],
  getAttachment: ["id", "offset", "limit"],
  getSessionSnapshots: ["session_id"],
};

/** Knows the ids of one conversation. It asks the hub about an unknown id. */
export class Scope {
  private readonly sessions: Set<string>;
  private readonly approvals = new Set<string>();
  private readonly attachments = new Set<string>();

  constructor(
    private readonly thread: string,
    private readonly request: Request,
  ) {
    this.sessions = new Set([thread]);
  }

  /** Checks the parameters of a page's request. Throws an RPCError that names the wrong one. */
  async check(method: PassedMethod, params: unknown): Promise<Members> {
    if (typeof params !== "object" || params === null || Array.isArray(params)) throw invalid(method, "params", "an object", params);
    const given = params as Members;
    const unknown = Object.keys(given).find((name) => !members[method].includes(name));
    if (unknown !== undefined) {
      throw new RPCError(ErrorCode.InvalidParams, `${method}: a panel may not give ${unknown}; it takes ${members[method].join(", ")}`, { param: unknown, accepted: members[method] });
    }
    if (method === "getAttachment") this.checkAttachment(given["id"]);
    else if (method === "approval.decide") await this.checkApproval(given["approval"], method);
    else if (method === "approval.list") {
      if (given["turn"] !== undefined) await this.checkSession(given["turn"], method, "turn");
    } else await this.checkSession(given["session_id"], method);
    if (given["before"] !== undefined) await this.checkSession(given["before"], method, "before");
    return given;
  }

  /** Checks that an approval belongs to this conversation. */
  async checkApproval(id: unknown, method = "panel.answer"): Promise<string> {
    if (typeof id !== "string" || id === "") throw invalid(method, "approval", "the id of an approval", id);
    if (!this.approvals.has(id)) {
      const { approval } = await this.request("approval.get", { approval: id });
      if (approval.session_uuid !== this.thread) throw foreign(method, "approval", id);
      this.approvals.add(id);
      this.approvals.add(approval.approval);
    }
    return id;
  }

  /** Notes the attachments in a result or an event of the conversation. */
  note(value: unknown): void {
    const open = [value];
    for (let i = 0; i < open.length; i++) {
      const next = open[i];
      if (typeof next !== "object" || next === null) continue;
      for (const [name, of] of Object.entries(next)) {
        if (name === "attachment_id" && typeof of === "string") this.attachments.add(of);
        else open.push(of);
      }
    }
  }

  noteSession(id: string): void {
    this.sessions.add(id);
  }

  /** Removes the approvals of other sessions from a result of approval.list. */
  own({ approvals }: Result<"approval.list">): Result<"approval.list"> {
    const own = approvals.filter(({ session_uuid }) => session_uuid === this.thread);
    for (const { approval } of own) this.approvals.add(approval);
    return { approvals: own };
  }

  private async checkSession(id: unknown, method: string, param = "session_id"): Promise<void> {
    if (typeof id !== "string" || id === "") throw invalid(method, param, "the id of a session of this conversation", id);
    if (this.sessions.has(id)) return;
    const { session } = await this.request("getSessionState", { session_id: id });
    if (session.thread_id !== this.thread) throw foreign(method, param, id);
    this.sessions.add(id);
  }

  private checkAttachment(id: unknown): void {
    if (typeof id !== "string" || id === "") throw invalid("getAttachment", "id", "the id of an attachment", id);
    if (!this.attachments.has(id)) throw foreign("getAttachment", "id", id);
  }
}

function invalid(method: string, param: string, expected: string, received: unknown): RPCError {
  const what = received === null ? "null" : Array.isArray(received) ? "array" : received === "" ? "an empty string" : typeof received;
  return new RPCError(ErrorCode.InvalidParams, `${method}: ${param} has to be ${expected}, and is ${received === undefined ? "missing" : what}`, { param, expected });
}

function foreign(method: string, param: string, id: string): RPCError {
  return new RPCError(ErrorCode.InvalidParams, `${method}: ${id} is not of the conversation that this panel shows`, { param, expected: "one of this conversation", received: id });
}
