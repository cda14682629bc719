// What a person can do when a session has failed.
import { objectsOf, stringOf } from "./json";

export function remedyOf(code: string | undefined, methods: unknown): string {
  switch (code) {
    case "AGENT_AUTH_REQUIRED": {
      const names = objectsOf(methods).map((method) => stringOf(method["name"]) ?? stringOf(method["id"]) ?? "");
      return `Sign in to the agent in a terminal (duet-rpc agents login)${names.length > 0 ? `; it offers: ${names.join(", ")}` : ""}. Then send the prompt again.`;
    }
    case "AGENT_NOT_FOUND":
      return "Install the agent's program, or name another one in the configuration; duet-rpc doctor says what it looks for.";
    case "AGENT_CONTEXT_OVERFLOW":
      return "The conversation no longer fits into the model's context: fork it from an earlier prompt, or begin a new session.";
    case "STORE_FULL":
      return "The disk is full: make room, then send the prompt again.";
    case "TIMEOUT":
      return "It took longer than it may. Send a prompt to go on from here.";
    case "SETTING_REFUSED":
      return "Choose another mode or model below, then send the prompt again.";
    default:
      return "Send a prompt to go on from here. The log says more.";
  }
}
