// Checks that the requests of a page are about the session of its panel.
import type { Request } from "../hub/model";
import type { Result } from "../protocol";
import { ErrorCode, RPCError } from "../rpc/messages";
import type { PassedMethod } from "./protocol";

type Members = Record<string, unknown>;

/** The parameters of each method that a page may use. Others could name things outside the session, such as programs to run. */
const members: Record<PassedMethod, readonly string[]> = {
  "session.items": ["session", "turn", "key", "before", "limit"],
  "turn.get": ["turn"],
  "session.get": ["session"],
  "approval.list": ["turn"],
  "approval.decide": ["approval", "type", "decision", "comment", "updated_input", "scope", "option", "content", "pattern", "tell"],
  "session.prompt": ["session", "prompt", "content", "deliver"],
  "turn.interrupt": ["turn", "reason"],
  "session.set": ["session", "agent", "mode", "model", "options"],
  "turn.edit": ["turn", "prompt"],
  "turn.move": ["turn", "before"],
  "attachment.get": ["id", "offset", "limit"],
};

/** isReference reports whether a parameter names a session or a turn. */
function isReference(method: PassedMethod, name: string): boolean {
  return name === "session" || name === "turn" || (method === "turn.move" && name === "before");
}

/** mayOmit reports whether a request needs no value for a reference. */
function mayOmit(method: PassedMethod, name: string, given: Members): boolean {
  if (method === "session.items") return given[name === "session" ? "turn" : "session"] !== undefined;
  return method === "approval.list" || (method === "turn.move" && name === "before");
}

/** Knows the uuids of one session and its turns. It asks the daemon about an unknown one. */
export class Scope {
  private readonly known: Set<string>;
  private readonly approvals = new Set<string>();
  private readonly attachments = new Set<string>();
  /** The turns whose items the page has, also of the sessions that its session was forked from. */
  private readonly shown = new Set<string>();

  constructor(
    private readonly session: string,
    private readonly request: Request,
  ) {
    this.known = new Set([session]);
  }

  /** Checks the parameters of a page's request, and returns those for the daemon. Throws an RPCError that names the wrong one. */
  async check(method: PassedMethod, params: unknown): Promise<Members> {
    if (typeof params !== "object" || params === null || Array.isArray(params)) throw invalid(method, "params", "an object", params);
    const given = params as Members;
    const unknown = Object.keys(given).find((name) => !members[method].includes(name));
    if (unknown !== undefined) {
      throw new RPCError(ErrorCode.InvalidParams, `${method}: a panel may not give ${unknown}; it takes ${members[method].join(", ")}`, { param: unknown, accepted: members[method] });
    }
    if (method === "attachment.get") this.checkAttachment(given["id"]);
    if (method === "approval.decide") await this.checkApproval(given["approval"], method);
    const checked = { ...given };
    for (const name of members[method].filter((one) => isReference(method, one))) {
      if (given[name] !== undefined || !mayOmit(method, name, given)) checked[name] = await this.uuidOf(given[name], method, name);
    }
    return checked;
  }

  /** Checks that an approval belongs to this session. */
  async checkApproval(id: unknown, method = "panel.openAddress"): Promise<string> {
    if (typeof id !== "string" || id === "") throw invalid(method, "approval", "the id of an approval", id);
    if (!this.approvals.has(id)) {
      const { approval } = await this.request("approval.get", { approval: id });
      if (approval.session_uuid !== this.session) throw foreign(method, "approval", id);
      this.approvals.add(id);
      this.approvals.add(approval.approval);
    }
    return id;
  }

  /** Checks that a page shows a turn, of this session or of one that it was forked from, and returns its uuid. */
  async checkTurn(id: unknown): Promise<string> {
    return typeof id === "string" && this.shown.has(id) ? id : this.uuidOf(id, "panel.command", "turn");
  }

  /** Notes the attachments and the turns in a result or an event of the session. */
  note(value: unknown): void {
    const open = [value];
    for (let i = 0; i < open.length; i++) {
      const next = open[i];
      if (typeof next !== "object" || next === null) continue;
      for (const [name, of] of Object.entries(next)) {
        if (name === "attachment_id" && typeof of === "string") this.attachments.add(of);
        else if (name === "turn_uuid" && typeof of === "string") this.shown.add(of);
        else open.push(of);
      }
    }
  }

  noteApproval(id: string): void {
    this.approvals.add(id);
  }

  noteTurn(uuid: string): void {
    this.known.add(uuid);
  }

  /** Removes the approvals of other sessions from a result of approval.list. */
  own({ approvals }: Result<"approval.list">): Result<"approval.list"> {
    const own = approvals.filter(({ session_uuid }) => session_uuid === this.session);
    for (const { approval } of own) this.approvals.add(approval);
    return { approvals: own };
  }

  /** uuidOf checks that a turn belongs to this session. Another client can give its turn an id that looks like a number, so only uuids reach the daemon. */
  private async uuidOf(id: unknown, method: string, param: string): Promise<string> {
    if (typeof id !== "string" || id === "") throw invalid(method, param, "the id of a turn of this session", id);
    if (this.known.has(id)) return id;
    const { turn } = await this.request("turn.get", { turn: id });
    if (turn.session_uuid !== this.session) throw foreign(method, param, id);
    this.known.add(turn.turn_uuid);
    return turn.turn_uuid;
  }

  private checkAttachment(id: unknown): void {
    if (typeof id !== "string" || id === "") throw invalid("attachment.get", "id", "the id of an attachment", id);
    if (!this.attachments.has(id)) throw foreign("attachment.get", "id", id);
  }
}

function invalid(method: string, param: string, expected: string, received: unknown): RPCError {
  const what = received === null ? "null" : Array.isArray(received) ? "array" : received === "" ? "an empty string" : typeof received;
  return new RPCError(ErrorCode.InvalidParams, `${method}: ${param} has to be ${expected}, and is ${received === undefined ? "missing" : what}`, { param, expected });
}

function foreign(method: string, param: string, id: string): RPCError {
  return new RPCError(ErrorCode.InvalidParams, `${method}: ${id} is not of the session that this panel shows`, { param, expected: "one of this session", received: id });
}
