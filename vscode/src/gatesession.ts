// A session whose work is done when gates pass.
import * as vscode from "vscode";
import { listGates } from "./hub/gates";
import type { Project } from "./projects";
import { tellUntrusted } from "./trust";

/** How many turns there are where the person says nothing: as the hub has it. */
const usual = 5;

/** Asks for gates, for turns and for a prompt, and begins the session in a folder; its id, or nothing if the person has thought better of it. */
export async function launchWithGates(project: Project, folder: vscode.WorkspaceFolder, agent: string): Promise<string | undefined> {
  let gates: string[] | undefined;
  try {
    gates = await pickGates(project);
  } catch (error) {
    if (await tellUntrusted(project, error)) return undefined;
    throw error;
  }
  if (!gates) return undefined;
  const title = `New session, until ${gates.join(" and ")} ${gates.length === 1 ? "passes" : "pass"}`;
  const turns = await vscode.window.showInputBox({
    title, value: String(usual), prompt: "How many turns may the agent take? The first one counts.", ignoreFocusOut: true,
    validateInput: (text) => (/^\s*([1-9]\d?|100)\s*$/.test(text) ? undefined : "A number from 1 to 100"),
  });
  if (turns === undefined) return undefined;
  const query = await vscode.window.showInputBox({ title, placeHolder: "What is to be done?", ignoreFocusOut: true, prompt: "Press Enter to begin, or Escape to leave it." });
  if (query === undefined || query.trim() === "") return undefined;
  try {
    const { session_id } = await project.connection.request("launchSession", { query, agent, working_dir: folder.uri.fsPath, gates, max_iterations: Number(turns) });
    return session_id;
  } catch (error) {
    if (await tellUntrusted(project, error)) return undefined;
    throw error;
  }
}

async function pickGates(project: Project): Promise<string[] | undefined> {
  const typed = "$(edit) A command…";
  const configured = await listGates(project.connection);
  const items = [
    ...configured.map(({ name, command, waitsForTrust }) => ({ label: name, detail: command.join(" "), description: waitsForTrust ? "waits for your trust" : "" })),
    { label: typed, detail: "A line for the shell, such as make test", description: "" },
  ];
  const picked = configured.length === 0 ? [{ label: typed }] : await vscode.window.showQuickPick(items, { title: "What has to succeed?", canPickMany: true, matchOnDetail: true, ignoreFocusOut: true });
  if (!picked || picked.length === 0) return undefined;
  const gates = picked.map(({ label }) => label).filter((label) => label !== typed);
  if (gates.length === picked.length) return gates;
  const line = await vscode.window.showInputBox({
    title: "What has to succeed?", prompt: "A line for the shell, run after each turn where the agent works", placeHolder: "make test", ignoreFocusOut: true,
    validateInput: (text) => (text.trim() === "" ? "Type a command, or press Escape" : undefined),
  });
  return line === undefined ? undefined : [...gates, line.trim()];
}
