// The protocol between the page of a session panel and the extension, over src/rpc. Most of it is the protocol of
// duet-rpc itself (docs/methods.md): the page calls its methods, and the extension passes them on. A panel shows one
// session. The extension gives a page access to no other one.
import type { HubEvent, Method, Params, Result, Sandbox, SessionItem } from "../protocol";

/** The methods of duet-rpc that a page may call. The extension refuses every other one. */
export const passedMethods = [
  "session.items",
  "turn.get",
  "session.get",
  "approval.list",
  "approval.decide",
  "session.prompt",
  "turn.interrupt",
  "session.set",
  "turn.edit",
  "turn.move",
  "attachment.get",
] as const satisfies readonly Method[];

export type PassedMethod = (typeof passedMethods)[number];

/** An unsent prompt. */
export interface Draft {
  text: string;
  /** Images, and files that the text names. */
  content: PromptContent[];
  /** The user has removed the active editor from the prompt. */
  withoutEditor?: boolean;
}

/** The file in the active editor and the lines selected in it, which a prompt refers to by itself. */
export interface EditorContext {
  /** For the user, such as a.ts:3-5. */
  label: string;
  /** For a prompt, such as @src/a.ts#L3-5. */
  reference: string;
}

/** A content block of the Agent Client Protocol, a parameter of session.prompt. */
export type PromptContent = NonNullable<Params<"session.prompt">["content"]>[number];

/** The data with which a page starts. */
export interface PanelStart {
  /** The uuid of the panel's session. */
  session: string;
  title: string;
  /** The project of a session on a host, such as parser@devbox. Absent: this machine. */
  where?: string;
  /** The stored draft, also one from another window or from before VS Code was closed. */
  draft: Draft;
  /** The state of duet-rpc. */
  connection: PanelConnection;
  /** Earlier prompts of this project, the newest first, for the prompt box. */
  history: string[];
  /** The session does not exist yet: panel.launch starts it. */
  newSession?: NewSession;
}

/** A session that the first prompt of its panel starts. */
export interface NewSession {
  /** Tells the user what the first prompt starts. */
  about: string;
  /** The last items before the first prompt of a fork. */
  before?: SessionItem[];
  /** The folders to choose from. Empty: the user has no choice. */
  folders: Array<{ path: string; name: string }>;
  /** Only the demo agent is installed. */
  onlyDemo?: boolean;
  /** The agents to choose from. Empty: they are unknown, or the user has no choice. */
  agents: Array<{ name: string; title: string; description: string }>;
  /** The session can get a git worktree of its own. */
  worktrees?: boolean;
  /** The prompt goes to one agent only. Absent: the user may choose several, each with a worktree. */
  oneAgent?: boolean;
  /** The host to which the files of this machine go, unless the user chooses a place there. undefined: they go to none. */
  sends?: string;
  /** The modes of the chosen agent, and what it reported last. undefined: unknown. */
  description?: Result<"agent.describe">;
  chosen: Choices;
}

/** The user's choices for a new session. An empty value is the agent's default. */
export interface Choices {
  /** The agent's working directory. */
  folder: string;
  /** Whether the agent works in a git worktree of its own: "yes", "no", or empty as configured. */
  worktree?: string;
  /** The level of the agent's sandbox. Empty: as configured. */
  sandbox?: Sandbox;
  agent?: string;
  /**
   * Several agents, in place of one: each gets the prompt, in a git worktree of its own. One is AGENT, or AGENT=MODEL, as in the
   * shell. In panel.choose, an empty list asks the user which.
   */
  agents?: string[];
  mode?: string;
  model?: string;
  options?: Record<string, string>;
}

export interface PanelConnection {
  is: "stopped" | "starting" | "ready" | "failed";
  /** The reason of a failure. */
  reason?: string;
  /** The daemon does not answer now, and why: it is ready, and goes on by itself. */
  trouble?: string;
  /** The host of the session. Absent: this machine. */
  host?: string;
}

/** The sums over turns of a session. */
export interface Totals {
  turns: number;
  /** The uuid of the last turn of them. Empty: no turn has ended. */
  last: string;
  tokens: number;
  /** In US dollars. */
  cost: number;
  /** The time of work, in milliseconds. */
  time: number;
}

/** Names an item of a session. */
export type ItemKey = Pick<SessionItem, "turn_uuid" | "type" | "key">;

/** Context for a prompt that is no file. */
export type ContextSource = "problems" | "terminal" | "changes";

/** A file or a folder of the workspace for a prompt. */
export interface FileMatch {
  /** The path after @ in a prompt, relative to the folder of the session. A folder's ends with a slash. */
  path: string;
  /** The URI of a resource link for session.prompt. */
  uri: string;
}

/** The extension's own methods for a page. */
export interface PanelMethods {
  /** The first request of a page, also after a reload. The page then gets all events after its session.items. */
  "panel.start": { params: Record<string, never>; result: PanelStart };
  /** Stores choices for a new session. Other choices of it may change with them. */
  "panel.choose": { params: Partial<Choices>; result: NewSession };
  /** Starts the session of a panel without one. Then the page begins again with panel.start, or ends if it has started several. beside: turns of other sessions that work in the same directory. */
  "panel.launch": { params: { prompt: string; content?: PromptContent[] }; result: { beside: string[] } };
  /** Stores the draft. The side bar may get the last one of a page whose session it no longer shows: session says whose it is. */
  "panel.keepDraft": { params: Draft & { session: string }; result: null };
  /** The files whose paths match the text after @, the best match first, at most 50. */
  "panel.findFiles": { params: { query: string }; result: { files: FileMatch[] } };
  /** Reads dropped or pasted file URIs as content. An image has its data. */
  "panel.readFiles": { params: { uris: string[] }; result: { content: PromptContent[]; refused: string[] } };
  /** Reads a source as content. refused says why there is none. */
  "panel.readSource": { params: { source: ContextSource }; result: { content: PromptContent[]; refused: string[] } };
  /** Lets the user choose files, a folder or a source as content. */
  "panel.pickContext": { params: Record<string, never>; result: { content: PromptContent[]; refused: string[] } };
  /** The active editor. null: a prompt refers to no editor. */
  "panel.context": { params: Record<string, never>; result: EditorContext | null };
  /** Reads the active editor as content: the selected lines, or a link to the file. */
  "panel.readContext": { params: Record<string, never>; result: { content: PromptContent[] } };
  /** Opens a file of the workspace, at a line from 1 on. */
  "panel.openFile": { params: { path: string; line?: number; column?: number }; result: null };
  /** Opens a URL in the browser, after VS Code has asked the user. */
  "panel.openLink": { params: { url: string }; result: null };
  /** Shows the change of a tool call in VS Code's diff editor. The texts may be parts of the file. before: null if it is a new file. */
  "panel.openDiff": { params: { path: string; before: string | null; after: string }; result: null };
  /** Shows the change of a question in VS Code's diff editor, from a unified diff of one file. */
  "panel.openPatch": { params: { path: string; patch: string }; result: null };
  /** Shows the session's changes in VS Code's diff editor: one file, or all. */
  "panel.openChanges": { params: { path?: string }; result: null };
  /** Opens the address of a question in the browser, after VS Code has asked the user. opened: false if the user did not want it. */
  "panel.openAddress": { params: { approval: string }; result: { opened: boolean } };
  /** Opens what the tool of a question gets in an editor. There the user changes it, and allows the tool with it. */
  "panel.editInput": { params: { approval: string }; result: null };
  /** Runs a command of the extension for this session, such as duet.fork. Only the commands in panelCommands are allowed. turn: for a command that is about one turn. */
  "panel.command": { params: { command: PanelCommand; turn?: string }; result: null };
  /** The sums over all ended turns of the session. */
  "panel.totals": { params: Record<string, never>; result: Totals };
  /** Inserts code in place of the selection in the text editor that was active last. */
  "panel.insertCode": { params: { code: string }; result: null };
  /** Runs code in a terminal of VS Code, in the agent's directory, after the user has confirmed it. */
  "panel.runCode": { params: { code: string }; result: null };
}

/** The commands of the extension that a page may run. */
export const panelCommands = ["duet.setUpAgent", "duet.fork", "duet.rename", "duet.rewind", "duet.editPrompt", "duet.land", "duet.discardWorktree", "duet.openWorktree", "duet.compareAttempts", "duet.showChanges", "duet.archive", "duet.openText", "duet.restart", "duet.showLog"] as const;

export type PanelCommand = (typeof panelCommands)[number];

/** Notifications from the extension to a page. */
export interface PanelNotifications {
  /** An event of the session's subscription. */
  event: HubEvent;
  /** The state of duet-rpc has changed. Before it is ready again, the page gets all missed events. */
  "panel.connection": PanelConnection;
  /** Inserts text into the prompt box at the cursor, such as an editor's selection. */
  "panel.insert": { text: string; content?: PromptContent[] };
  /** The active editor, its selection or the setting has changed. */
  "panel.contextChanged": { context: EditorContext | null };
  /** Moves the focus to an open question, and gives an answer, by the id of its choice. */
  "panel.showQuestion": { id: string; choice?: string };
  /** Scrolls to an item of the session. The page loads older items until it has that one. */
  "panel.showItem": ItemKey;
  /** Moves the focus into the prompt box. */
  "panel.focus": Record<string, never>;
  /** The user has come to the panel: moves the focus to an open question, else to the prompt box. */
  "panel.entered": Record<string, never>;
}

export type PanelMethod = keyof PanelMethods;

/** The parameters of a method, of the extension or of duet-rpc. */
export type PanelParams<M extends PanelMethod | PassedMethod> = M extends PanelMethod ? PanelMethods[M]["params"] : M extends PassedMethod ? Params<M> : never;

/** A prompt that waits for a connection: the page's host sends it once there is one. */
export interface KeptPrompt {
  delivered: "kept";
}

export type PanelResult<M extends PanelMethod | PassedMethod> = M extends PanelMethod ? PanelMethods[M]["result"] : M extends "session.prompt" ? Result<M> | KeptPrompt : M extends PassedMethod ? Result<M> : never;
