// Duet: Set Up an Agent…: which agents are there, how one is installed, and how the user signs in to it.
import * as vscode from "vscode";
import { onHost } from "./hub/host";
import { during, confirm, inform } from "./messages";
import type { Project } from "./projects";
import type { Result } from "./protocol";

type Agent = Result<"agent.list">["agents"][number];
type Method = Result<"agent.check">["report"]["methods"][number];

/** The agent that is a part of duet-rpc, and needs neither an installation nor an account. */
export const demo = "demo";

/** Lists the agents. Installs the one that the user chooses, after asking, or signs in to it, and then begins a session. */
export async function setUpAgent(project: Project, begin: () => void): Promise<void> {
  const { agents } = await project.connection.request("agent.list", {});
  const title = agents.some(({ available, name }) => available && name !== demo) ? "Which agent?" : "Only the demo agent is ready. Which agent do you want?";
  const items = agents.map((agent) => ({ label: agent.name, description: [...(agent.title === agent.name ? [] : [agent.title]), stateOf(agent)].join(" · "), agent }));
  const chosen = (await vscode.window.showQuickPick(items, { title, matchOnDescription: true }))?.agent;
  if (!chosen) return;
  if (!chosen.available) return install(chosen, project.host);
  await signIn(project, chosen, begin);
}

/** Which agents a user can work with: only the demo agent, or another one, to which the user is signed in as far as is known. */
export async function usableAgents({ connection }: Project): Promise<"demo" | "ready"> {
  const { agents } = await connection.request("agent.list", {});
  return agents.some(({ name, available, signed_in }) => name !== demo && available && signed_in !== "no") ? "ready" : "demo";
}

function stateOf({ available, trusted, signed_in }: Agent): string {
  if (!trusted) return "defined by the project, which you do not trust";
  if (!available) return "not installed";
  if (signed_in === "no") return "you are not signed in";
  return signed_in === "yes" || signed_in === "not_needed" ? "ready" : "installed";
}

/** install runs the agent's known command in a terminal. The user sees it before and while it runs. */
async function install({ name, install: how }: Agent, host: string): Promise<void> {
  if (host) return void inform(`${name} is not installed on ${host}; install it there: ${how ?? "see its own page"}`);
  if (how === undefined || !how.startsWith("npm install ")) {
    void inform(`to install ${name}, ${how ?? "see its own page"}`);
    return;
  }
  const run = "Install";
  const detail = `This runs in a terminal:\n\n${how}\n\nIt needs Node.js. When it is done, choose the agent again: you sign in to it then.`;
  if ((await confirm(`install ${name}?`, detail, run)) !== run) return;
  const terminal = vscode.window.createTerminal({ name: `Install ${name}` });
  terminal.show();
  terminal.sendText(how);
}

async function signIn({ connection, folder, host }: Project, { name }: Agent, begin: () => void): Promise<void> {
  const { report } = await during(`asking ${name} whether you are signed in`, () => connection.request("agent.check", { agent: name }));
  const signed = report.signed_in === "yes" || report.signed_in === "not_needed";
  const state = signed ? (report.account ? `you are signed in to ${name} as ${report.account}${onHost(host)}` : `${name} is ready${onHost(host)}`) : report.signed_in === "no" ? `you are not signed in to ${name}${onHost(host)}` : `${name} does not say whether you are signed in`;
  const [session, login] = ["New Session", "Sign In"];
  const buttons = [...(report.methods.length > 0 ? [login] : []), ...(report.signed_in === "no" ? [] : [session])];
  const pressed = await inform(state, ...(signed ? [session] : buttons));
  if (pressed === session) begin();
  if (pressed !== login) return;
  const method = await pickMethod(name, report.methods);
  if (method?.type === "terminal") {
    const terminal = vscode.window.createTerminal({
      name: `Sign in to ${name}${onHost(host)}`, cwd: folder.uri, shellPath: await connection.program(), shellArgs: [...connection.flags, "agents", "login", name, "--method", method.id], env: { DUET_HOST: null },
    });
    terminal.show();
  } else if (method?.type === "env_var") {
    const wanted = (method.missing ?? method.variables ?? []).join(" and ");
    void inform(`${name} needs ${wanted} in ${host ? `its environment on ${host}` : "the environment of VS Code"}, or a key in [agents.${name}] of your configuration${host ? " there" : ""}`);
  } else if (method) {
    await during(`signing in to ${name}${host ? `${onHost(host)}, which may open a browser there` : ", which may open your browser"}`, () => connection.request("agent.login", { agent: name, method: method.id }));
    if ((await inform(`you are signed in to ${name}`, session)) === session) begin();
  }
}

async function pickMethod(name: string, methods: readonly Method[]): Promise<Method | undefined> {
  if (methods.length === 1) return methods[0];
  const items = methods.map((method) => ({ label: method.name, ...(method.description === undefined ? {} : { detail: method.description }), method }));
  return (await vscode.window.showQuickPick(items, { title: `How do you sign in to ${name}?` }))?.method;
}
