// What the page of a session panel and the extension say to each other, over src/rpc. Most of it is the protocol of
// duet-rpc itself (docs/protocol.md): the page calls its methods, and the extension hands them on. A panel shows one
// conversation; whatever it is asked, the extension lets a page reach no other one.
import type { Method, Params, Result } from "../protocol";
import type { EventParams } from "../hub/events";

/** The methods of duet-rpc that a page may call. The extension refuses every other one. */
export const passedMethods = [
  "getConversation",
  "getSessionState",
  "fetchApprovals",
  "sendDecision",
  "continueSession",
  "interruptSession",
  "session.set",
  "session.queue",
  "session.editQueued",
  "session.moveQueued",
  "getAttachment",
  "getSessionSnapshots",
] as const satisfies readonly Method[];

export type PassedMethod = (typeof passedMethods)[number];

/** A prompt as a person writes it: what the page keeps while it is not sent. */
export interface Draft {
  text: string;
  /** What goes with it: images, and files that the text names. */
  content: PromptContent[];
}

/** A content block of the Agent Client Protocol, as continueSession takes it. */
export type PromptContent = NonNullable<Params<"continueSession">["content"]>[number];

/** What a page has to know before it asks for anything. */
export interface PanelStart {
  /** The conversation that it shows. */
  thread: string;
  /** Its last session. */
  session: string;
  title: string;
  /** What was typed and not sent, also in another window or before VS Code was closed. */
  draft: Draft;
  /** How duet-rpc is. */
  connection: PanelConnection;
  /** Prompts of this project, the newest first, to be called back into the prompt box. */
  history: string[];
}

export interface PanelConnection {
  is: "stopped" | "starting" | "ready" | "failed";
  /** Why it has failed. */
  reason?: string;
}

/** A file of the workspace that can be named in a prompt. */
export interface FileMatch {
  /** As it is written in a prompt behind @: from the folder of the conversation. */
  path: string;
  /** An address that continueSession takes as that of a resource link. */
  uri: string;
}

/** What the extension itself does for a page. */
export interface PanelMethods {
  /** The first request of a page, also after a reload: from then on it gets the events behind its getConversation. */
  "panel.start": { params: Record<string, never>; result: PanelStart };
  /** Keeps what is typed. */
  "panel.keepDraft": { params: Draft; result: null };
  /** Files whose path fits what is typed behind @, the best first, 50 at most. */
  "panel.findFiles": { params: { query: string }; result: { files: FileMatch[] } };
  /** What dropped or pasted addresses of files are as content; an image comes with its data. */
  "panel.readFiles": { params: { uris: string[] }; result: { content: PromptContent[]; refused: string[] } };
  /** Opens a file of the workspace, at a line from 1 on. */
  "panel.openFile": { params: { path: string; line?: number; column?: number }; result: null };
  /** Opens an address in the browser, after VS Code has asked. */
  "panel.openLink": { params: { url: string }; result: null };
  /** Shows texts in VS Code's own diff editor, such as the change that a question or a tool call is about. */
  "panel.openDiff": { params: { path: string; before: string | null; after: string }; result: null };
  /** Shows what the session has changed, in VS Code's own diff editor: one file, or all. */
  "panel.openChanges": { params: { path?: string }; result: null };
  /** Asks a person what an answer needs beyond a button: words, a form, an address to open. True: it was answered. */
  "panel.answer": { params: { approval_id: string; choice?: string }; result: { answered: boolean } };
  /** Carries out a command of the extension for this session, such as duet.fork; only those that panelCommands names. */
  "panel.command": { params: { command: PanelCommand }; result: null };
}

/** Commands of the extension that a page may ask for. */
export const panelCommands = ["duet.fork", "duet.showChanges", "duet.archive", "duet.openText", "duet.restart", "duet.showLog"] as const;

export type PanelCommand = (typeof panelCommands)[number];

/** Notifications from the extension to a page. */
export interface PanelNotifications {
  /** An event of the conversation, as Subscribe has it. */
  event: EventParams;
  /** duet-rpc has ended, is started again, or is there. Once it is ready again, all events that the page has missed have come. */
  "panel.connection": PanelConnection;
  /** Puts text into the prompt box, at the cursor, such as what is selected in an editor. */
  "panel.insert": { text: string; content?: PromptContent[] };
  /** Moves the keyboard into the prompt box. */
  "panel.focus": Record<string, never>;
}

export type PanelMethod = keyof PanelMethods;

/** What a method takes, be it the extension's own or one of duet-rpc. */
export type PanelParams<M extends PanelMethod | PassedMethod> = M extends PanelMethod ? PanelMethods[M]["params"] : M extends PassedMethod ? Params<M> : never;

export type PanelResult<M extends PanelMethod | PassedMethod> = M extends PanelMethod ? PanelMethods[M]["result"] : M extends PassedMethod ? Result<M> : never;
