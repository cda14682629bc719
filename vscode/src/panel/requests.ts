// The extension's own methods for the page of a panel.
import { posix, resolve } from "node:path";
import * as vscode from "vscode";
import type { Changes } from "../changes";
import type { Documents } from "../documents";
import type { Edits } from "../edits";
import { agentOf } from "../hub/attempts";
import { partsOfPatch, wholeOfParts, wholeOfPatch } from "../hub/changes";
import { clipped, exactly, visible } from "../hub/groups";
import { notHere, onHost } from "../hub/host";
import type { Session } from "../hub/model";
import { confirm } from "../messages";
import { showUntrusted } from "../projects";
import { sessionWith } from "../sessions";
import type { Project, Projects, ProjectSession } from "../projects";
import type { Turn } from "../protocol";
import { ErrorCode, RPCError } from "../rpc/messages";
import type { PanelHandlers } from "./bridge";
import { readUris } from "./content";
import type { Drafts } from "./drafts";
import { findFiles, isInside, readText, selected, stat } from "./files";
import { launch, launchAttempts, newSessionOf } from "./newsession";
import type { Beginnings } from "./newsession";
import type { Panel } from "./panel";
import { panelCommands } from "./protocol";
import type { Choices, Draft, NewSession, PanelCommand } from "./protocol";
import { pickContext, readSource } from "./sources";

/** The parts of the extension that the methods use. */
export interface RequestParts {
  drafts: Drafts;
  projects: Projects;
  beginnings: Beginnings;
  /** Gives a panel without a session to another project. */
  move: (panel: Panel, project: Project) => void;
  documents: Documents;
  changes: Changes;
  edits: Edits;
  /** Shows the attempts at one prompt, one of which is given. */
  compare: (of: ProjectSession) => Promise<void>;
  onError: (error: unknown) => void;
}

/** The most earlier prompts that a page gets. */
const longestHistory = 100;

/** The longest of these prompts, in characters. */
const longestPrompt = 20_000;

/** The most turns of one request of turn.list. Older ones do not count in the totals. */
const mostTurns = 1_000;

/** The longest command that a dialog shows in whole, in characters. */
const longestCommand = 2_000;

/** Creates the methods for the page of a panel. */
export function handlersOf(panel: Panel, { drafts, projects, beginnings, move, documents, changes, edits, compare, onError }: RequestParts): PanelHandlers {
  const { project, uuid } = panel;
  const { connection, host } = project;
  /** An absolute path of a file of the session, which is on its host. */
  const fileAt = (inFolder: string, path: string): string => (host ? posix.resolve(inFolder, path) : resolve(inFolder, path));
  /** The text of a file of the session as it is. Empty: it is not there, or on a host, where it cannot be read. */
  const textAt = (file: string): Promise<string> => (host ? Promise.resolve("") : readText(file));
  /** The folder whose files the user has here. */
  const here = async (): Promise<string> => (host ? project.folder.uri.fsPath : folder());
  /** The session, if there is one and it can be asked for. */
  const session = async (): Promise<Session | undefined> => (connection.answers && !panel.beginning ? (await panel.askSession()).session : panel.session);
  /** The working directory of the agent. */
  const folder = async (): Promise<string> => (await session())?.working_dir ?? panel.folder;
  const newSession = async (): Promise<NewSession | undefined> => panel.beginning && newSessionOf(panel.beginning, project, projects, beginnings.agent);
  const history = async (): Promise<string[]> => {
    if (!connection.answers) return [];
    const { turns } = await connection.request("turn.list", { limit: 3 * longestHistory });
    const prompts = turns.filter(({ source }) => source !== "gate" && source !== "trigger").map(({ prompt }) => prompt);
    return [...new Set(prompts)].filter((prompt) => prompt.trim() !== "" && prompt.length <= longestPrompt).slice(0, longestHistory);
  };
  return {
    "panel.start": async () => {
      const beginning = await newSession();
      return {
        title: panel.title, ...(host && { where: project.name }), draft: await drafts.of(uuid, panel.beginning?.prompt), ...(beginning && { newSession: beginning }),
        history: await history().catch((error: unknown) => {
          onError(error); // the panel works without it
          return [];
        }),
      };
    },
    "panel.choose": async (given) => {
      const { beginning } = panel;
      if (!beginning) throw begun();
      const choices = checked(given);
      if (choices.agents) {
        const { agent = "", model, agents: before = [model ? `${agent}=${model}` : agent] } = (await newSession())!.chosen;
        const agents = await pickAgents(project, before);
        if (agents) beginnings.choose(beginning, agents.length === 1 ? agentOf(agents[0]!) : { agents });
        return (await newSession())!;
      }
      const chosen = choices.folder === undefined ? project : projects.at(choices.folder);
      if (!chosen?.folders.some(({ uri }) => uri.fsPath === (choices.folder ?? uri.fsPath))) throw wrong("folder", "a folder of this workspace");
      // Another project has agents of its own.
      beginnings.choose(beginning, chosen === project ? choices : { ...choices, agent: "" });
      if (chosen !== project) move(panel, chosen);
      return (await newSession())!;
    },
    "panel.launch": async ({ prompt: typed, content }) => {
      const { beginning } = panel;
      if (!beginning) throw begun();
      if (content !== undefined && !Array.isArray(content)) throw wrong("content", "an array of content blocks");
      await connection.start(); // the agent is known once duet-rpc is ready
      const { chosen } = (await newSession())!;
      const prompt = { prompt: text(typed, "prompt"), ...(content && { content }) };
      if (chosen.agents) {
        const { turns } = await launchAttempts(beginning, chosen, chosen.agents, project, prompt).catch((error: unknown) => {
          void showUntrusted(project, error).catch(onError);
          throw error;
        });
        beginnings.forget(uuid);
        drafts.keep(uuid, { text: "", content: [] });
        // The sessions are there, also if they cannot be shown.
        await connection.request("turn.get", { turn: turns[0]!.turn_uuid }).then(({ turn }) => compare({ project, session: turn })).catch(onError);
        panel.view.dispose(); // it has no session
        return { beside: [] };
      }
      let beside: string[] | undefined;
      try {
        ({ beside } = await launch(beginning, chosen, project, prompt));
      } catch (error) {
        void showUntrusted(project, error).catch(onError);
        // The daemon may have started the session and died before it answered.
        if (await panel.isNew().catch(() => true)) throw error;
      }
      beginnings.forget(uuid);
      return { beside: beside ?? [] };
    },
    "panel.keepDraft": (given) => {
      if (given.session === uuid) drafts.keep(uuid, draftOf(given));
      return null;
    },
    "panel.findFiles": async ({ query }) => ({ files: host ? [] : await findFiles(await folder(), text(query, "query")) }), // those of a host are not known here
    "panel.readFiles": async ({ uris }) => readUris(texts(uris, "uris"), pathOf, host),
    "panel.readSource": async ({ source }) => readSource(source, await here()),
    "panel.pickContext": async () => pickContext(await here(), host),
    "panel.context": () => panel.context ?? null,
    "panel.readContext": () => ({ content: panel.context ? selected(panel.editor!, panel.folders).content : [] }),
    "panel.openFile": async ({ path, line, column }) => {
      if (host) throw new RPCError(ErrorCode.InvalidParams, notHere(text(path, "path"), host).message);
      const inFolder = await folder();
      // A mention has an @ before the file's name, and so has the name of some folders.
      const named = resolve(inFolder, text(path, "path"));
      const file = path.startsWith("@") && (await stat(vscode.Uri.file(named))) === undefined ? resolve(inFolder, path.slice(1)) : named;
      const { worktree } = (await session()) ?? {}; // its top may be above the folder
      const allowed = [inFolder, ...(worktree ? [worktree.dir] : []), ...(vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath)];
      if (!allowed.some((one) => isInside(one, file))) {
        throw new RPCError(ErrorCode.InvalidParams, `${path} is not in this workspace: open it by File: Open File… if you trust it`);
      }
      const position = new vscode.Position(Math.max(0, whole(line, "line") - 1), Math.max(0, whole(column, "column") - 1));
      const uri = vscode.Uri.file(file);
      if ((await stat(uri)) === undefined) throw new RPCError(ErrorCode.InvalidParams, `${path} is not there any more`);
      // This also opens files that are not text, such as images.
      await vscode.commands.executeCommand("vscode.open", uri, { selection: new vscode.Range(position, position), preview: true });
      return null;
    },
    "panel.openLink": async ({ url }) => {
      const uri = vscode.Uri.parse(text(url, "url"), true);
      if (!["http", "https", "mailto"].includes(uri.scheme)) throw new RPCError(ErrorCode.InvalidParams, `${url} is opened nowhere: links of http, https and mailto are`);
      await vscode.env.openExternal(uri);
      return null;
    },
    "panel.openDiff": async ({ path, before, after }) => {
      const inFolder = await folder();
      const file = fileAt(inFolder, text(path, "path"));
      await documents.openDiff(file, inFolder, wholeOfParts(await textAt(file), before === null ? "" : text(before, "before"), text(after, "after")), undefined, host);
      return null;
    },
    "panel.openPatch": async ({ path, patch }) => {
      const inFolder = await folder();
      const file = fileAt(inFolder, text(path, "path"));
      const change = wholeOfPatch(await textAt(file), text(patch, "patch")) ?? (host ? partsOfPatch(patch) : undefined);
      if (!change) throw new RPCError(ErrorCode.InvalidParams, `${path} has other text by now, which the change does not fit`);
      await documents.openDiff(file, inFolder, change, undefined, host);
      return null;
    },
    "panel.openChanges": async ({ path }) => {
      await changes.open(await panel.askSession(), path === undefined ? undefined : text(path, "path"));
      return null;
    },
    "panel.openAddress": async ({ approval: asked }) => {
      const id = await panel.scope.checkApproval(asked);
      const { url } = (await connection.request("approval.get", { approval: id })).approval;
      if (!url) throw new RPCError(ErrorCode.InvalidParams, `panel.openAddress: the question ${id} has no address`);
      return { opened: await vscode.env.openExternal(vscode.Uri.parse(url, true)) };
    },
    "panel.editInput": async ({ approval: asked }) => {
      const id = await panel.scope.checkApproval(asked, "panel.editInput");
      await edits.open(project, (await connection.request("approval.get", { approval: id })).approval, await folder());
      return null;
    },
    "panel.command": async ({ command, turn }) => {
      if (!panelCommands.includes(command)) throw new RPCError(ErrorCode.InvalidParams, `panel.command: a panel may not ask for ${command}; it may for ${panelCommands.join(", ")}`);
      const needsNoSession: PanelCommand[] = ["duet.setUpAgent", "duet.restart", "duet.showLog"];
      if (needsNoSession.includes(command)) await vscode.commands.executeCommand(command);
      else if (turn === undefined) await vscode.commands.executeCommand(command, await panel.askSession());
      else {
        const { turn: of } = await connection.request("turn.get", { turn: await panel.scope.checkTurn(turn) });
        await vscode.commands.executeCommand(command, { project, session: await sessionWith(project, of.session_uuid) }, of.turn_uuid);
      }
      return null;
    },
    "panel.totals": async () => {
      const { turns } = await connection.request("turn.list", { session: uuid, limit: mostTurns });
      const ended = turns.filter(({ ended_at }) => ended_at);
      const sum = (of: (turn: Turn) => number | undefined): number => ended.reduce((total, turn) => total + (of(turn) ?? 0), 0);
      return {
        turns: ended.length, last: ended[0]?.turn_uuid ?? "", cost: sum(({ cost_usd }) => cost_usd), time: sum(({ duration_ms }) => duration_ms),
        tokens: sum(({ input_tokens, output_tokens }) => (input_tokens ?? 0) + (output_tokens ?? 0)),
      };
    },
    "panel.insertCode": async ({ code }) => {
      const inserted = text(code, "code");
      if (!panel.editor) throw new RPCError(ErrorCode.InvalidParams, "there is no text editor: open a file first");
      const { document, selection } = panel.editor;
      const shown = vscode.window.visibleTextEditors.find((editor) => editor.document === document);
      const editor = await vscode.window.showTextDocument(document, { selection, ...(shown?.viewColumn !== undefined && { viewColumn: shown.viewColumn }) });
      if (!(await editor.edit((edit) => edit.replace(selection, inserted)))) throw new RPCError(ErrorCode.InvalidParams, `${document.fileName} cannot be edited`);
      return null;
    },
    "panel.runCode": async ({ code }) => {
      if (host) throw new RPCError(ErrorCode.InvalidParams, `the code is for ${host}, and a terminal of VS Code runs it on this machine: copy it into Duet: New Terminal, which is${onHost(host)}`);
      const command = text(code, "code").replace(/\n+$/, "");
      if ((await confirm("run this in a terminal?", clipped(exactly(command), longestCommand), "Run")) !== "Run") return null;
      const terminal = vscode.window.createTerminal({ name: "Duet", cwd: await folder() });
      terminal.show(true);
      terminal.sendText(command);
      return null;
    },
  };
}

/** The most agents at one prompt, as in the daemon. */
const mostAgents = 10;

/** pickAgents asks which of the available agents get the prompt, and which of their models. undefined: the user has chosen none. */
async function pickAgents({ connection }: Project, chosen: readonly string[]): Promise<string[] | undefined> {
  const available = (await connection.request("agent.list", {})).agents.filter((agent) => agent.available);
  const items = (await Promise.all(available.map(async ({ name, title, version }) => {
    // An agent that has not reported its models can still get the prompt.
    const described = await connection.request("agent.describe", { agent: name }).catch(() => undefined);
    const label = visible(name);
    return [
      { label, description: visible([title, version].filter((part) => part && part !== name).join(" ")), name },
      ...(described?.agent_session?.model?.available ?? []).map((model) => ({ label: `${label} (${visible(model.name || model.id)})`, description: "", name: `${name}=${model.id}` })),
    ];
  }))).flat().map((item) => ({ ...item, picked: chosen.includes(item.name) }));
  const picked = await vscode.window.showQuickPick(items, { title: "Which agents get the prompt? Each works in its own git worktree.", canPickMany: true, ignoreFocusOut: true });
  if (picked && picked.length > mostAgents) throw new RPCError(ErrorCode.InvalidParams, `a prompt can have at most ${mostAgents} agents`);
  return picked && picked.length > 0 ? picked.map(({ name }) => name) : undefined;
}

/** pathOf returns the path of a dropped URI. In a remote window the explorer gives vscode-remote URIs. */
function pathOf(address: string): string {
  const uri = vscode.Uri.parse(address, true);
  if (uri.scheme === "file" || (uri.scheme === "vscode-remote" && vscode.env.remoteName !== undefined)) return uri.with({ scheme: "file", authority: uri.scheme === "file" ? uri.authority : "" }).fsPath;
  throw new Error(`only files can be dropped, and this is ${uri.scheme}:`);
}

function begun(): RPCError {
  return new RPCError(ErrorCode.InvalidParams, "this session has started already");
}

function checked({ options, agents, ...others }: Partial<Choices>): Partial<Choices> {
  for (const [name, value] of Object.entries({ ...others, ...options })) text(value, name);
  if (!["yes", "no", "", undefined].includes(others.worktree)) throw wrong("worktree", "yes, no or empty");
  if (!["workspace", "offline", "", undefined].includes(others.sandbox)) throw wrong("sandbox", "workspace, offline or empty");
  return { ...others, ...(options && { options }), ...(agents && { agents: texts(agents, "agents") }) };
}

function draftOf(given: Draft): Draft {
  if (!Array.isArray(given.content)) throw wrong("content", "an array of content blocks");
  return { text: text(given.text, "text"), content: given.content, ...(given.withoutEditor === true && { withoutEditor: true }) };
}

function text(value: unknown, param: string): string {
  if (typeof value !== "string") throw wrong(param, "a string");
  return value;
}

function texts(value: unknown, param: string): string[] {
  if (!Array.isArray(value) || !value.every((one) => typeof one === "string")) throw wrong(param, "an array of strings");
  return value;
}

function whole(value: unknown, param: string): number {
  if (value === undefined) return 1;
  if (!Number.isInteger(value)) throw wrong(param, "a whole number");
  return value as number;
}

function wrong(param: string, expected: string): RPCError {
  return new RPCError(ErrorCode.InvalidParams, `${param} has to be ${expected}`, { param, expected });
}
