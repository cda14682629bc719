// The messages between this page and duet-rpc web. Methods of the daemon have one more member: the id of the project.
import type { Question as Asked, Session } from "../hub/model";

/** A project of the user, on this machine or on a host. */
export interface Project {
  id: string;
  /** For people, such as parser or parser@devbox. */
  name: string;
  root: string;
  host?: string;
  state: "connected" | "asleep" | "unreachable";
  /** Why it cannot be reached. */
  error?: string;
  last_seen?: string;
}

/** An approval, with the fingerprint of its content. */
export type Approval = Asked & { fingerprint?: string };

/** An open question of the inbox. */
export interface Question {
  /** The id of its project. */
  project: string;
  approval: Approval;
}

export interface Device {
  id: string;
  name: string;
}

/** The answer to POST pair. */
export interface Paired {
  key: string;
  device: Device;
}

/** How much a push message says about a question. */
export type PushContent = "none" | "title" | "all";

/** The push messages of this device. */
export interface PushSettings {
  /** The key with which the server signs them. */
  public_key: string;
  content?: PushContent;
  /** A notification has buttons that answer its question. It has to say all of it for that. */
  answers?: boolean;
}

/** The result of web.hello, the first request of a connection. */
export interface Hello {
  device: Device;
  version: string;
  projects: Project[];
  inbox: Question[];
  /** Absent: this process sends no push messages. */
  push?: PushSettings;
}

/** The sessions of a project, by their last turns. */
export interface ProjectSessions {
  /** The id of the project. */
  project: string;
  sessions: Session[];
  error?: string;
  last_seen?: string;
}

/** The methods of duet-rpc web itself. */
export interface WebMethods {
  "web.hello": { params: { key: string }; result: Hello };
  "web.sessions": { params: Record<string, never>; result: { projects: ProjectSessions[] } };
  "web.rename": { params: { name: string }; result: unknown };
  /** Signs this device out. */
  "web.leave": { params: Record<string, never>; result: unknown };
  "web.push.set": { params: { subscription: PushSubscriptionJSON | null; content: PushContent; answers: boolean }; result: unknown };
  "web.push.test": { params: Record<string, never>; result: unknown };
}

/** The notifications of duet-rpc web. Lists are always whole. */
export interface WebNotifications {
  "web.projects": { projects: Project[] };
  "web.inbox": { questions: Question[] };
  /** The daemon of a project that this page uses does not answer, or answers again. */
  "web.trouble": { project: string; reason: string | null };
}

/** The close codes of the WebSocket after which this device has to be paired again. */
export const closeCodes = { notPaired: 4401, removed: 4403 } as const;

/** The body of a push message. */
export type Push =
  | { tag: string; withdrawn: true }
  | {
      tag: string;
      title: string;
      body: string;
      withdrawn?: undefined;
      project?: string;
      approval?: string;
      fingerprint?: string;
      /** The notification has buttons that answer the question. */
      actions?: boolean;
    };

/** The body of POST decide, which the service worker sends. */
export interface PushDecision {
  project: string;
  approval: string;
  fingerprint: string;
  decision: "approve" | "deny";
}
