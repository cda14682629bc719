// Made by `make generate`. The methods of duet-rpc, as rpc.discover describes them, and the events.

export type AdoptParams = {
  /** The agent's name in the configuration. Default: the default agent. */
  agent?: string;
  /** The agent's id of the session, from agent.sessions. */
  agent_session_id: string;
  /** The directory in which to continue; ~ is expanded. Default: the one that the agent reports, or the project's root. */
  working_dir?: string;
  /** The session's title. Default: the agent's title. */
  title?: string;
};

export type AdoptResult = {
  /** The turn's number, such as 12.3. */
  turn: string;
  /** The session's number in the project. */
  session: number;
  turn_uuid: string;
  session_uuid: string;
  /** The agent that runs the prompt. */
  agent: string;
  state: State;
  /** injected: the working agent has the prompt, and turn is its turn. */
  delivered: Delivery;
  /** Turns of other sessions that work in the same directory and may change the same files. */
  beside?: Array<string>;
  /** With send: files that did not go to the host. They are not committed, and above 50 MB or in a nested repository. Absent: none. */
  not_sent?: Listing;
  agent_session_id: string;
  /** false: a session of Duet for this one already existed and was not changed. */
  adopted: boolean;
  /** Whether the agent replayed the session's history. true for a session of Duet that already existed. */
  history: boolean;
  /** What the user should know about the adoption. */
  note?: string;
};

export type Agent = {
  name: string;
  title: string;
  /** acp, command or executor. */
  driver: string;
  /** Used if a request names no agent. */
  default: boolean;
  /** Duet has found the agent's program. */
  available: boolean;
  /** The path of its program. */
  path?: string;
  /** How to install it, if it is not available. */
  install?: string;
  /** The path of the agent's own command line, if its adapter for the Agent Client Protocol is missing. */
  cli?: string;
  /** The host on which the agent works: the daemon here does not start it, and session.start refuses it (agent_on_host). */
  host?: string;
  /** The configuration that defined it last: built-in, user or project. */
  source: string;
  /** The configured sandbox: workspace or offline. Absent: none. */
  sandbox?: string;
  /** false: the agent is defined in a project's file that the user does not trust, so Duet does not start it. */
  trusted: boolean;
  /** Version of its program or adapter. Absent: unknown without starting it. */
  version?: string;
  /** The last report: yes, no, not_needed or opens_sessions (see agent.check). answered: the agent has answered a prompt. unknown: call agent.check. Absent: the agent cannot be asked. */
  signed_in?: string;
  /** The account as the agent names it, or why there is none. */
  account?: string;
  /** Time of that report. */
  signed_in_at?: string;
  /** If signed_in is not known: evidence that the user is signed in, for people. */
  signed_in_hint?: string;
};

export type AgentCommand = {
  /** Without the slash. */
  name: string;
  description?: string;
  /** Describes the text that may follow. */
  input_hint?: string;
  /** The agent's other members, unchanged. */
  extra?: unknown;
};

export type AgentDescription = {
  agent: string;
  /** All modes that a client can request. */
  modes: Array<Mode>;
  /** Absent: the agent has reported nothing yet. */
  agent_session?: AgentSession;
  /** The levels of a sandbox that a new session can ask for: they work on the daemon's machine, and the agent's configuration does not have them anyway. */
  sandboxes?: Array<Sandbox>;
};

export type AgentErrorEvent = {
  /** Such as MCP_SERVER_FAILED. */
  code: string;
  message: string;
};

export type AgentInfo = {
  name?: string;
  title?: string;
  version?: string;
};

export type AgentList = {
  /** The default agent first, then available agents. */
  agents: Array<Agent>;
};

export type AgentOption = {
  id: string;
  name?: string;
  description?: string;
  /** mode, model, thought_level, or another word. */
  category?: string;
  /** select, boolean, or another word. */
  type?: string;
  /** The id of a value; boolean: true or false. Empty for an unknown type. */
  current: string;
  /** The available values. Empty for an unknown type. */
  values: Array<Choice>;
  /** The agent's other members, unchanged. */
  extra?: unknown;
};

export type AgentParams = {
  /** The agent's name in the configuration. Default: the default agent. */
  agent?: string;
};

export type AgentReport = {
  /** The program's own name. */
  agent?: string;
  version?: string;
  /** yes, no, not_needed, or opens_sessions: the agent opens sessions but does not report whether the user is signed in. Some agents check that only when they get a prompt. */
  signed_in: string;
  /** The account as the agent names it, or why there is none. */
  account?: string;
  /** The sign-in methods that it offers. */
  methods: Array<SignInMethod>;
  /** Whether the agent can sign out on request. */
  logout: boolean;
};

export type AgentSession = {
  /** The agent's program, as the agent names it. */
  agent?: AgentInfo;
  /** The current mode, and all modes of the agent. Without available modes: the agent has none. */
  mode?: Selection;
  /** The current model, and all models of the agent. Without available models: the agent does not list them. */
  model?: Selection;
  /** The agent's other settings, in its order, with those that choose its mode and model. */
  options?: Array<AgentOption>;
  /** The agent's slash commands. A prompt may begin with / and one of these names. */
  commands?: Array<AgentCommand>;
  /** The agent's title of the session. */
  info?: SessionInfo;
  /** The agent's background work while no prompt runs. */
  background?: Array<BackgroundTask>;
};

export type AgentSessionEvent = {
  /** The agent's program, as the agent names it. */
  agent?: AgentInfo;
  /** The current mode, and all modes of the agent. Without available modes: the agent has none. */
  mode?: Selection;
  /** The current model, and all models of the agent. Without available models: the agent does not list them. */
  model?: Selection;
  /** The agent's other settings, in its order, with those that choose its mode and model. */
  options?: Array<AgentOption>;
  /** The agent's slash commands. A prompt may begin with / and one of these names. */
  commands?: Array<AgentCommand>;
  /** The agent's title of the session. */
  info?: SessionInfo;
  /** The agent's background work while no prompt runs. */
  background?: Array<BackgroundTask>;
  /** turn.get has the rest. */
  truncated?: boolean;
};

export type AgentUpdateEvent = {
  /** As the agent sent it. */
  update: unknown;
};

export type Answer = {
  /** The answer: the user's text, or the name of the option. */
  response: string;
  /** The option_id of the chosen option. */
  option?: string;
  /** The approval, for approval.get. */
  approval_id: string;
};

export type AnswerNote = {
  approval: string;
  type: ApprovalType;
  /** Not pending. */
  status: ApprovalStatus;
  title: string;
  response?: string;
  /** As in approval.get. */
  decided_by: string;
  /** The client in which the user decided. */
  decided_in?: string;
  input_was_edited?: boolean;
  /** Describes the rule or mode that decided. */
  explanation?: string;
  /** How the answer reached the agent, if the agent was not seen to act on it. */
  delivery?: string;
};

export type Approval = {
  approval: string;
  /** A unique id: tool_use_id, or an id made from it if another approval already has it. */
  call_id: string;
  /** The turn that asks, such as 12.3. */
  turn: string;
  /** The session's number in the project. */
  session: number;
  turn_uuid: string;
  session_uuid: string;
  agent?: string;
  status: ApprovalStatus;
  /** The process that asked is gone. Approving resumes the turn. */
  stale: boolean;
  /** The approval that this one repeats: it was answered, but the agent is not known to have acted on the answer. */
  reopens?: string;
  /** Why Duet asks again, for people; show it. */
  reopened?: string;
  /** The approval that repeats this one. */
  reopened_as?: string;
  /** When the agent was seen to act on the answer. */
  taken_at?: string;
  created_at: string;
  /** When the approval expires. */
  deadline?: string;
  /** Identifies what a person decides on: the tool, its whole input and what Duet shows of it. A decision may name it. */
  fingerprint: string;
  tool_name: string;
  tool_input: unknown;
  /** Whether a decision may have updated_input. Most agents would run the tool with their own input anyway. */
  input_editable: boolean;
  /** The member of tool_input that has the text that the tool writes or runs: a file, a part of a file, or a command. An editor shows that text, and updated_input has the changed one. Absent: the input is edited as JSON. */
  input_text_member?: string;
  /** Why programs may read tool_input differently, such as a duplicate member; the title says so too. No rule allows such a call, and a user can approve it only once. */
  input_ambiguity?: string;
  /** The agent's id of the waiting tool call, as in events and the items of a session. Agents reuse ids in other sessions. */
  tool_use_id?: string;
  /** read, edit, delete, move, search, execute, think, fetch or other. */
  tool_kind?: string;
  /** The question, for people. */
  title: string;
  subject?: string;
  /** The agent's answers to choose from: [{option_id,name,kind}]. */
  options?: Array<unknown>;
  /** human_contact: only one of the options is an answer, because the agent can receive nothing else. Other text is refused. */
  options_only?: boolean;
  /** human_contact: it can also be denied, which means that the user chose, filled in or opened nothing. */
  declinable?: boolean;
  /** The files that the call touches. */
  paths?: Array<string>;
  /** The changes that the tool would make, as a unified diff. */
  diff?: string;
  /** The agent's text about the tool call, in addition to title and input, for people. If an agent sends no input, nothing else is known about the call. */
  details?: string;
  /** The agent's plan, if it asks to leave its plan mode; mostly Markdown. The answer makes no rule. */
  plan?: string;
  /** The rule that a decision with a scope would make, by the scopes of approval.decide other than once. Absent: no rule is possible. This is Duet's rule; the name of an option of kind allow_always describes what the agent itself remembers. */
  rule_preview?: Record<string, RulePreview>;
  /** Whether the agent receives the comment with the decision. If not, a decision with tell sends it as the next prompt. */
  takes_comment: boolean;
  channel?: unknown;
  responded_at?: string;
  /** user, rule=…, mode=…, timeout, end, overtaken (the session continued without it), or changed (the agent changed the tool call, and another approval asks again). */
  decided_by?: string;
  /** Describes the rule or mode that decided. For a rule of a file: which rule, and its place. */
  explanation?: string;
  comment?: string;
  response?: string;
  /** The chosen option. */
  option?: string;
  /** The input as the user changed it. */
  updated_input?: unknown;
  /** Parts of the input or the texts were left out to fit into a message. */
  truncated?: boolean;
  /** form or url: the user fills in a form or opens an address. The answer is respond, deny (declined) or cancel. */
  mode?: string;
  /** form: a flat JSON Schema object, as in ACP's elicitation. The answer's content must fit it. */
  schema?: unknown;
  /** The address to open. Open it only after the user agrees; respond says that the user agrees. */
  url?: string;
  /** The host of url. Show it next to the address. */
  url_host?: string;
  /** What the user should check before opening url. Show them. */
  url_warnings?: Array<string>;
  /** The values of the form as the user filled them in. */
  content?: unknown;
  type: ApprovalType;
};

export type ApprovalClosedEvent = {
  approval: string;
  call_id: string;
  type: ApprovalType;
  /** Not pending. */
  status: ApprovalStatus;
  response?: string;
  comment?: string;
  /** The chosen option. */
  option?: string;
  decided_by: string;
  /** The client in which the user decided. */
  decided_in?: string;
  title?: string;
  tool_name?: string;
  tool_use_id?: string;
  input_was_edited?: boolean;
  /** Describes the rule or mode that decided. */
  explanation?: string;
};

export type ApprovalList = {
  /** The oldest first. */
  approvals: Array<Approval>;
};

export type ApprovalListParams = {
  /** Only approvals of this turn; a session means its last turn. Absent: all. */
  turn?: string | number;
};

export type ApprovalOpenedEvent = {
  approval: string;
  call_id: string;
  /** The agent's id of the waiting tool call. */
  tool_use_id?: string;
  /** The tool call of the sub-agent that asks. */
  parent_tool_use_id?: string;
  type: ApprovalType;
  tool_name: string;
  tool_input?: unknown;
  /** read, edit, delete, move, search, execute, think, fetch or other. */
  tool_kind?: string;
  /** Whether a decision may have updated_input. */
  input_editable: boolean;
  /** The member of tool_input to edit as a text. */
  input_text_member?: string;
  /** Why programs may read tool_input differently. */
  input_ambiguity?: string;
  /** The question, for people. */
  title?: string;
  subject?: string;
  /** The agent's answers to choose from: [{option_id,name,kind}]. */
  options?: Array<unknown>;
  /** Only one of the options is an answer. */
  options_only?: boolean;
  /** human_contact: it can also be denied. */
  declinable?: boolean;
  /** The files that the call touches. */
  paths?: Array<string>;
  /** The changes that the tool would make. */
  diffs?: Array<Diff>;
  /** The agent's plan, if it asks to leave its plan mode. */
  plan?: string;
  /** The agent's text about the tool call, for people. */
  details?: string;
  /** The rule that a decision with a scope would make, by scope. */
  rule_preview?: Record<string, RulePreview>;
  /** The agent receives the comment with the decision. */
  takes_comment?: boolean;
  /** The process that asked is gone. Approving resumes the turn. */
  stale?: boolean;
  /** The approval that this one repeats. */
  reopens?: string;
  /** Why Duet asks again, for people. */
  reopened?: string;
  /** A pending question that comes again. */
  replayed?: boolean;
  /** Parts were left out; approval.get has them. */
  truncated?: boolean;
  /** form or url: the user fills in a form or opens an address. The answer is respond, deny (declined) or cancel. */
  mode?: string;
  /** form: a flat JSON Schema object, as in ACP's elicitation. The answer's content must fit it. */
  schema?: unknown;
  /** The address to open. Open it only after the user agrees; respond says that the user agrees. */
  url?: string;
  /** The host of url. Show it next to the address. */
  url_host?: string;
  /** What the user should check before opening url. Show them. */
  url_warnings?: Array<string>;
};

export type ApprovalParams = {
  /** The approval's id, or the id of its tool call. */
  approval: string;
};

export type ApprovalResult = {
  approval: Approval;
};

export type ApprovalStatus = "pending" | "approved" | "denied" | "responded" | "expired" | "cancelled";

export type ApprovalType = "function_call" | "human_contact";

export type ApprovalsStatus = {
  pending: number;
};

export type ArchiveSessionsParams = {
  /** The sessions. */
  sessions: Array<string | number>;
  /** Default true; false restores the sessions. */
  archived?: boolean;
};

export type ArchiveSessionsResult = {
  /** The sessions that could not be changed. */
  failed: Array<string>;
};

export type AskParams = {
  /** The question. */
  message: string;
  /** The topic, in a few words. */
  subject?: string;
  /** Answers to choose from: strings, or {option_id,name,kind}. Absent: any text is an answer. */
  options?: unknown;
  /** An active session, such as 12: the question belongs to it, and the session waits too. Any other name selects a session of questions, which is created if necessary. Default: the project's. */
  session?: string;
  /** The directory for relative paths and rules, if the question does not belong to a session. Default: the project's root. */
  working_dir?: string;
  /** Keep the question open when the connection or the daemon ends. The same question in the same session then gets the answer, for an hour. No effect on a question of an agent's session. */
  keep?: boolean;
};

export type AttachTerminalParams = {
  /** The terminal. */
  terminal_id: string;
  /** With rows: the terminal's new size for all that watch it. Absent or 0: no change. */
  cols?: number;
  /** See cols. */
  rows?: number;
  /** Pass the terminal's file descriptor with the reply (SCM_RIGHTS, only on a Unix socket). Until terminal.detach or its end the client reads and writes it, and gets no terminal.output. Refused while other connections watch. */
  descriptor?: boolean;
};

export type AttachTerminalResult = {
  terminal_id: string;
  /** Process id of the program in the terminal; 0 if unknown. */
  pty_pid: number;
  program: string;
  args: Array<string>;
  cwd: string;
  /** Absent for an agent's terminal, which has no size. */
  cols?: number;
  rows?: number;
  /** The tmux session that it shows. */
  tmux_session?: string;
  /** The turn whose agent runs the terminal, such as 12.3. */
  turn?: string;
  turn_uuid?: string;
  /** An agent's terminal: clients can only watch it. */
  read_only: boolean;
  /** Number of connections that watch it. */
  attached: number;
  /** A connection has its descriptor, so others cannot watch it. */
  taken: boolean;
  started_at: string;
  /** With descriptor: recent output from before the reply. */
  recent?: string;
  /** Encoding of recent. */
  recent_encoding?: Encoding;
};

export type Attachment = {
  type: string;
  attachment_id?: string;
  mime_type?: string;
  size?: number;
  name?: string;
  title?: string;
  description?: string;
  uri?: string;
  annotations?: unknown;
  _meta?: unknown;
};

export type AttachmentParams = {
  /** The attachment_id. */
  id: string;
  /** Number of bytes to skip. */
  offset?: number;
  /** Maximum number of bytes. Absent or 0: as many as fit. */
  limit?: number;
};

export type AttachmentResult = {
  id: string;
  /** As first reported. Absent: unknown. */
  mime_type?: string;
  /** Total size in bytes. */
  size: number;
  /** Base64. */
  data: string;
  /** Present if there is more: pass it as offset. */
  next_offset?: number;
};

export type Attempt = {
  /** The last turn of the session, such as 12.3. */
  turn: string;
  /** The session's number in the project. */
  session: number;
  turn_uuid: string;
  session_uuid: string;
  agent: string;
  model?: string;
  state: State;
  error?: string;
  /** The beginning of the agent's last message. */
  result?: string;
  /** Of the session. */
  usage: Usage;
  /** The state of the gates. Absent without gates. */
  gates?: Gates;
  worktree?: WorktreeState;
  /** Why the members below are not known. */
  unknown?: string;
  /** The changed files, committed or not, since the commit that the branch and the user's branch share. */
  files: Array<FileChange>;
  /** How many more files there are, which do not fit into the result. */
  more?: number;
  /** Added lines in all files. */
  added: number;
  /** Removed lines in all files. */
  removed: number;
  /** The commits of the branch. Files that are not committed become one when they are landed. */
  commits: number;
  /** The branch has no work that is not landed. */
  landed?: boolean;
  /** A unified diff of the files. With patch. */
  patch?: string;
  /** The patch is not complete, because it does not fit into the result. */
  patch_cut?: boolean;
};

export type AttemptAgent = {
  /** The agent's name in the configuration. Default: the default agent. */
  agent?: string;
  /** As in session.start. */
  model?: string;
  /** As in session.start. */
  mode?: string;
  /** As in session.start. */
  options?: Record<string, string>;
};

export type AttemptsParams = {
  /** The session of one of the attempts. */
  session?: string | number;
  /** The id that all of them have, instead of a session. */
  attempts?: string;
  /** Also return the patch of each attempt. */
  patch?: boolean;
};

export type AttemptsResult = {
  /** The prompt of all attempts. */
  prompt: string;
  /** In the order of their start. */
  attempts: Array<Attempt>;
};

export type AuthMethod = {
  /** For agent.login, and for duet-rpc agents login --method. */
  id: string;
  name: string;
  description?: string;
  /** agent: the agent does it itself, usually in a browser. terminal: a program in a terminal does it. env_var: variables of the agent's environment do it. */
  type: string;
};

export type AuthenticateParams = {
  /** The agent's name in the configuration. Default: the default agent. */
  agent?: string;
  /** The id of a sign-in method from agent.check. Default: the only one. */
  method?: string;
};

export type AutomationExecution = {
  id: number;
  ruleId: string;
  eventType: string;
  /** As in trigger.log. */
  status: string;
  timestamp: string;
  action: string;
  /** The task id of the turn that it started, or that has the question. */
  taskId?: string;
  session_id?: string;
  approval_id?: string;
  error?: string;
  /** Number of executions in a row that led to this one. */
  depth?: number;
};

export type AutomationRule = {
  id: string;
  /** The events that it reacts to. */
  trigger: TriggerEvent;
  /** The action. */
  action: TriggerAction;
  enabled: boolean;
  cooldownMs: number;
  /** A person must approve the action first. */
  requiresApproval: boolean;
  description?: string;
  conditions?: Array<TriggerCondition>;
  /** The events that it reacts to, for people. */
  when: string;
  /** When it acted last. */
  lastFired?: string;
  /** The next scheduled time. */
  nextFire?: string;
  /** The configuration that defines it: user or project. */
  from: string;
  file?: string;
  line?: number;
};

export type AutomationStatus = {
  /** Whether triggers are enabled as a whole. */
  enabled: boolean;
  ruleCount: number;
  rules: Array<AutomationRule>;
  /** The last 10, the newest last. */
  recentExecutions: Array<AutomationExecution>;
  /** Why no trigger works. */
  problem?: string;
  /** Changes that triggers cannot see because the system allows no more watches, and the remedy. */
  issues?: Array<string>;
};

export type BackgroundTask = {
  id: string;
  /** tool_call, terminal, process, or goal: what the agent works towards in turn after turn. */
  kind: string;
  /** A tool call's title, or a command, such as /goal with its text. */
  title?: string;
  /** The task can be stopped alone. */
  stoppable?: boolean;
};

export type BuildEvent = {
  build_id: string;
  name: string;
  /** started, succeeded, failed or cancelled. */
  stage: string;
  command: Array<string>;
  /** At the end. */
  duration_ms?: number;
  errors?: number;
  warnings?: number;
  /** The first ones. */
  diagnostics?: Array<Diagnostic>;
  /** Why it failed. */
  reason?: string;
};

export type BuildList = {
  builds: Array<BuildTarget>;
};

export type BuildResult = {
  success: boolean;
  build_id: string;
  name: string;
  command: Array<string>;
  duration_ms: number;
  /** Diagnostics of the build, at most 1,000. */
  warnings: Array<Diagnostic>;
};

export type BuildTarget = {
  name: string;
  /** The program and its arguments. */
  command: Array<string>;
  /** Working directory, relative to the project's. Default: the project's. */
  directory?: string;
  /** build.run with backend runs this build. */
  backend: boolean;
  /** The build comes from the project's files, not from the configuration. */
  detected: boolean;
};

export type CallToolParams = {
  /** The server's name from mcp.servers. */
  server: string;
  /** The agent whose servers are meant. Default: the agent of the session, or the default agent. */
  agent?: string;
  /** A session. Adds its own servers, and its directory applies. */
  session?: string | number;
  /** The tool's name from mcp.tools. */
  tool: string;
  /** An object that fits the tool's inputSchema. */
  arguments?: unknown;
  /** The user has just confirmed this call in the client, so Duet does not ask. Deny rules and plan mode still apply. */
  confirmed?: boolean;
};

export type CallToolResult = {
  /** As in the Model Context Protocol: an array of texts, images, … */
  content: unknown;
  /** The same as a value, if the tool returns one. */
  structuredContent?: unknown;
  /** The tool failed. content has the reason. */
  isError?: boolean;
};

export type Capabilities = {
  /** Whether batches are supported. */
  batch: boolean;
  /** $/cancelRequest cancels a long-running request. */
  cancellation: boolean;
  /** Maximum size of a message body. */
  maxFrameBytes: number;
  /** Maximum size of a header section. */
  maxHeaderBytes: number;
  /** The charset of messages. */
  charset: string;
  /** Methods whose requests run concurrently and can be cancelled. */
  longRunning: Array<string>;
  /** Supported families of methods: core, task, session, executor, terminal. */
  methodFamilies: Array<string>;
  /** The kinds of events that event.subscribe accepts. */
  eventKinds?: Array<string>;
};

export type Change = {
  path: string;
  /** The path of a file that the turn has deleted and whose text this new one has, in whole or for the most part. That file is a change of its own. */
  renamed_from?: string;
  /** The file before the turn. null if it did not exist, or is binary. */
  before: string | null;
  /** The file after the turn. null if it no longer exists, or is binary. */
  after: string | null;
  binary: boolean;
  /** The change as a unified diff. */
  diff: string;
  /** The hunks of diff, in order. Empty if the file is binary or empty, or if they do not fit into the result. */
  hunks: Array<Hunk>;
  /** The change of the file's executable bit. A decision about the whole file includes it. Absent if there is none. */
  mode?: FileMode;
  /** The decision about the whole file: open, accepted or reverted. open also if its hunks differ. */
  state: string;
  changed_at: string;
};

export type ChangeDecidedEvent = {
  path: string;
  /** accept, revert or reopen. */
  decision: string;
  /** The hunk's id. Absent: the whole file. */
  hunk?: string;
};

export type ChangeEvent = {
  path: string;
  /** The change since the turn began, as a unified diff. */
  diff: string;
  /** Number of added lines. */
  added: number;
  removed: number;
  binary?: boolean;
  /** The diff is cut; change.list has all of it. */
  truncated?: boolean;
};

export type ChangeList = {
  /** The turn, such as 12.3. */
  turn: string;
  turn_uuid: string;
  changes: Array<Change>;
  /** All changes as one unified diff, relative to the session's directory. */
  diff: string;
  /** true: the list is empty, and there is no checkpoint of before the turn, or no longer. Changes of the agent's commands may be missing. */
  not_recorded?: boolean;
};

export type ChangeParams = {
  /** The turn that made the change, such as 12.3; a session means its last turn. */
  turn: string | number;
  /** A path from change.list. A relative path is relative to the session's directory. */
  path: string;
  /** The id of one hunk, of one of its parts, or of the change of the mode. Absent: the whole file, all or nothing. */
  hunk?: string;
};

export type CheckGateParams = {
  /** The name of a configured gate, or a shell command line. */
  gate: string;
};

export type Choice = {
  id: string;
  name?: string;
  description?: string;
  /** The heading under which the agent lists it. */
  group?: string;
  /** The agent's other members, unchanged. */
  extra?: unknown;
};

export type ChooseAttemptParams = {
  /** The session. */
  session: string | number;
  /** merge (default): a merge commit, or none if the branch can be moved forward. squash: one new commit. rebase: each commit again. patch: no commit; the user's files are changed. */
  method?: LandMethod;
  /** The branch to land on. Absent: the one that was checked out when the worktree was made. Without meaning for patch. */
  into?: string;
  /** The message of the new commit. Absent: a plain one. */
  message?: string;
  /** Interrupt the other attempts that still work. Otherwise they are an error (bad_state). */
  interrupt?: boolean;
};

export type ChooseAttemptResult = {
  /** The branch that has the changes now. Empty with patch. */
  branch: string;
  /** The new commits of the branch, the oldest first. Empty if there was nothing new. */
  commits: Array<string>;
  /** The changed files, relative to the top of the repository. */
  files: Array<string>;
  /** How many more files there are, which do not fit into the result. */
  more?: number;
  /** Git repositories in the worktree, and submodules with work, which are not landed. */
  nested?: Array<string>;
  /** Files that this committed as they are, without the filter that .gitattributes names for them (Git LFS, git-crypt): its program is configured nowhere, or only in the repository, which is not trusted. */
  unfiltered?: Listing;
  /** The other attempts. */
  discarded: Array<DiscardedAttempt>;
};

export type ClientBuildParams = {
  /** The build id of the program that the client would start as a daemon. */
  build?: string;
  /** The program's version. */
  version?: string;
  /** The client shows the notice in the result to its user. */
  notices?: boolean;
  /** The client only follows what happens. Its connection keeps no idle daemon running, and replaces none. */
  observes?: boolean;
};

export type ClientEnvironmentParams = {
  /** At most 256 variables and 64 KiB. docs/configuration.md says which programs get which variables. */
  environment: Record<string, string>;
};

export type CloseTerminalParams = {
  /** The terminal. */
  terminal_id: string;
};

export type CloseTerminalResult = {
  closed: boolean;
};

export type ConsoleParams = {
  /** log, debug, info, warn or error. Default: log. */
  level?: string;
  /** The text. */
  message?: string;
  /** The values written, if there is no message: strings unchanged, other values as JSON. */
  args?: Array<unknown>;
  /** The page's address. */
  url?: string;
  /** Line of the script, from 1. */
  line?: number;
  /** Column in the line, from 1. */
  column?: number;
  /** The session to store the message with. Default: the one that started last. */
  session?: string | number;
};

export type ContentBlock = {
  /** text, image, audio, resource or resource_link. */
  type: string;
  /** text: the text. */
  text?: string;
  /** Such as image/png. Required for image and audio. */
  mimeType?: string;
  /** image and audio: the bytes in base64. */
  data?: string;
  /** resource_link: the address. image: its origin. */
  uri?: string;
  /** resource_link: the name. */
  name?: string;
  title?: string;
  description?: string;
  /** resource_link: the size in bytes. */
  size?: number;
  /** resource: its contents. */
  resource?: Resource;
  annotations?: unknown;
  _meta?: unknown;
};

export type ContentDescriptor = {
  name: string;
  description?: string;
  required?: boolean;
  schema: unknown;
};

export type CreateApprovalParams = {
  /** The turn that waits for the answer; a session means its last turn. */
  turn: string | number;
  /** Default: function_call. */
  type?: ApprovalType;
  /** function_call: the tool. */
  tool_name?: string;
  /** function_call: the tool's input. */
  tool_input?: unknown;
  /** The caller's id of the tool call. */
  tool_use_id?: string;
  /** human_contact: the question. */
  message?: string;
  /** human_contact: the topic, in a few words. */
  subject?: string;
  /** Answers to choose from: [{option_id,name,kind}]. */
  options?: unknown;
  /** Stored, and returned unchanged. */
  channel?: unknown;
  /** human_contact: a form to fill in, a flat JSON Schema object as in elicitation of the Agent Client Protocol. */
  schema?: unknown;
  /** human_contact: an address to open after the user agrees. */
  url?: string;
};

export type DaemonBuild = {
  /** The daemon's version. */
  version: string;
  /** Version of the protocol between clients and the daemon. A client of another build uses the daemon only if the versions are equal. */
  protocol: number;
  /** With notices: as in the result of event.subscribe. */
  notice?: string;
  /** true: the daemon closes the connection and ends, so that the client can start another one. */
  ends: boolean;
};

export type DaemonEvent = {
  message: string;
};

export type DaemonStatus = {
  pid: number;
  uptime_seconds: number;
  started_at: string;
  /** healthy or degraded. */
  health: string;
  /** The problems and their remedies. */
  issues?: Array<string>;
  version: string;
  /** daemon. */
  hub?: string;
  subsystems: Subsystems;
};

export type DecidedChange = {
  path: string;
  /** The state of the whole file, as in change.list. */
  state: string;
  /** All hunks of the file, in their current state. */
  hunks: Array<Hunk>;
  /** As in change.list. */
  mode?: FileMode;
};

export type DecisionParams = {
  /** The approval's id, or the id of its tool call. */
  approval: string;
  /** The expected type. Absent: any. */
  type?: ApprovalType;
  /** function_call: approve or deny. human_contact: respond, or deny if an agent offers options. An approval with a mode: respond, deny (decline) or cancel. */
  decision: Verdict;
  /** The reason, or the response. Required for deny, and for respond unless option is the response. */
  comment?: string;
  /** The tool runs with this input instead. Only if the approval is input_editable; otherwise deny, and write into the comment what to run. */
  updated_input?: unknown;
  /** once, or where the decision becomes a rule. The rule also decides pending approvals there. */
  scope?: DecisionScope;
  /** The option_id or name of one of the approval's options. It must agree with the decision. */
  option?: string;
  /** The values of a form: an object that fits the approval's schema. An error names the field, such as content.port. */
  content?: unknown;
  /** With a scope: the rule's pattern, in place of that in rule_preview. Commands: as in the configuration. Files: * does not match a slash, and src/** matches everything below src. The pattern must match this call. */
  pattern?: string;
  /** The deciding client's name for people, such as VS Code. Events and the items of the session show it as decided_in. At most 100 bytes. */
  client?: string;
  /** The fingerprint of the approval that the user saw. If the approval has another one, nothing is decided (changed). */
  fingerprint?: string;
  /** Deliver the comment to the agent. If the agent does not receive comments with decisions, the comment is the next prompt of its session. */
  tell?: boolean;
};

export type DecisionResult = {
  /** false: the approval was decided before; see error and status. */
  success: boolean;
  /** Why the decision has no effect. */
  error?: string;
  /** The approval's current status. */
  status?: ApprovalStatus;
  /** The turn whose prompt delivers the comment, if tell created one. */
  told_turn?: string;
};

export type DecisionScope = "once" | "session" | "project";

export type DeleteRuleParams = {
  /** The rule's id from rule.list. */
  rule_id: number;
};

export type DeleteRuleResult = {
  /** true */
  success: boolean;
};

export type DeleteSessionResult = {
  session_uuid: string;
  /** Number of deleted turns. */
  deleted: number;
  /** Number of turns that stay because other sessions were forked from them. */
  kept: number;
  /** The session's worktree if it stays, because another session uses it or git cannot delete it. */
  worktree?: string;
};

export type Delivery = "started" | "queued" | "injected";

export type DescribeAgentParams = {
  /** The agent's name in the configuration. Default: the default agent. */
  agent?: string;
};

export type DetachTerminalResult = {
  /** false: this connection did not watch the terminal. */
  detached: boolean;
};

export type Diagnostic = {
  /** Relative to the project's directory, or absolute if outside of it. */
  file: string;
  /** From 1. Absent: unknown. */
  line?: number;
  /** From 1, in the tool's own units. Absent: unknown. */
  column?: number;
  /** error, warning or note. */
  severity: string;
  message: string;
  /** The tool: go, gcc, typescript, rust, eslint, pytest, make, ... */
  source?: string;
};

export type Diff = {
  path: string;
  old_text?: string;
  new_text: string;
  line?: number;
};

export type DirectoriesParams = {
  /** Default 20, at most 1000. */
  limit?: number;
};

export type Directory = {
  path: string;
  /** The last activity of a session there. */
  last_used: string;
  /** Number of sessions. */
  sessions: number;
};

export type DirectoryList = {
  /** The last used first. */
  directories: Array<Directory>;
};

export type DiscardParams = {
  /** The session. */
  session: string | number;
  /** Also discard work that is not landed. It is kept in a git ref first. */
  force?: boolean;
};

export type DiscardResult = {
  /** The git ref that keeps the work that was not landed: git branch NAME REF brings it back. Absent: there was none. */
  ref?: string;
  /** The branch stays, because another working tree has it checked out. */
  branch_kept?: boolean;
  /** Why the configured cleanup command failed. The worktree is deleted all the same. */
  cleanup_error?: string;
  /** Of a host that was made for the session: removed, or kept because it has other sessions or host_error. Absent: there was none. */
  host?: string;
  /** Why the host was not removed, with the command that removes it. The worktree is deleted all the same. */
  host_error?: string;
};

export type DiscardedAttempt = {
  turn: string;
  turn_uuid: string;
  agent: string;
  /** The git ref that keeps the work that was not landed: git branch NAME REF brings it back. Absent: there was none. */
  ref?: string;
  /** The branch stays, because another working tree has it checked out. */
  branch_kept?: boolean;
  /** Why the configured cleanup command failed. The worktree is deleted all the same. */
  cleanup_error?: string;
  /** Of a host that was made for the session: removed, or kept because it has other sessions or host_error. Absent: there was none. */
  host?: string;
  /** Why the host was not removed, with the command that removes it. The worktree is deleted all the same. */
  host_error?: string;
  /** Why the worktree stays. */
  error?: string;
};

export type EditTurnParams = {
  /** The queued turn. */
  turn: string | number;
  /** The new prompt. */
  prompt: string;
};

export type EditorCallParams = {
  /** The session whose editor is asked. A turn means its session. */
  session: string | number;
  /** A tool of editor.offer. */
  tool: string;
  /** An object with the arguments of the tool. */
  arguments?: unknown;
};

export type EditorCallResult = {
  /** The editor's result. */
  result: unknown;
};

export type EditorOfferParams = {
  /** The editor's name for people, such as VS Code. At most 100 bytes. */
  client?: string;
  /** Names of tools that this connection answers: diagnostics, definition, references, symbols, buffers, selection, open. Empty: none any more. */
  tools: Array<string>;
};

export type EditorSavedParams = {
  /** Absolute paths of at most 100 files. Others than those of the project and its worktrees are ignored. */
  paths: Array<string>;
};

export type Encoding = "utf-8" | "base64";

export type Event = {
  subscription_id?: string;
  /** Its number in the log: they only rise. Absent: the log does not have it. */
  seq?: number;
  kind: string;
  time: string;
  /** The session's number in the project. */
  session?: number;
  /** The turn's number, such as 12.3. */
  turn?: string;
  turn_uuid?: string;
  data: unknown;
};

export type ExecutorsStatus = {
  running: number;
};

export type ExportFormat = "" | "md" | "json";

export type ExportParams = {
  /** The session, as for session.items. This or turn is required. */
  session?: string | number;
  /** In place of session: only this turn. */
  turn?: string | number;
  /** md: Markdown. json: the object of docs/export.md. Default: md. */
  format?: ExportFormat;
  /** The next of the part before. */
  after?: string;
};

export type Exported = {
  /** The document is the concatenation of the texts of all parts. */
  text: string;
  /** Present if there is more: pass it as after. */
  next?: string;
};

export type FileChange = {
  /** Relative to the top of the repository. */
  path: string;
  added: number;
  removed: number;
  /** Its lines are not counted. */
  binary?: boolean;
};

export type FileMode = {
  /** For change.accept, change.revert and change.reopen, as that of a hunk. */
  id: string;
  /** The mode before the turn, as git has it: 100644 or 100755. */
  old: string;
  new: string;
  /** open, accepted or reverted. */
  state: string;
};

export type FileNote = {
  path: string;
  added: number;
  removed: number;
  binary?: boolean;
  mode?: string;
};

export type ForgetProjectParams = {
  /** The project's directory, an absolute path. It need not exist. */
  root: string;
};

export type ForgottenProject = {
  root: string;
  /** A directory with worktrees that stay, because their repository is gone. */
  worktrees_kept?: string;
};

export type ForkParams = {
  /** The last turn that both sessions share. A session means its last turn. */
  turn: string | number;
  /** The prompt. */
  prompt: string;
  /** The agent that continues it. Default: the session's. */
  agent?: string;
  /** A model of the agent. Default: the session's, if the agent is the same. */
  model?: string;
  /** A permission mode, as in session.start. Default: plan if the session is in plan, else default. */
  mode?: string;
  /** Values of the agent's options, by option id. The session's others are kept, if the agent is the same. */
  options?: Record<string, string>;
  /** A UUID that the client chooses for the new session. */
  session_uuid?: string;
  /** Replaces the agent's system prompt, if the agent has one. */
  system_prompt?: string;
  /** Appended to the system prompt. */
  append_system_prompt?: string;
  /** Further instructions for the agent. */
  custom_instructions?: string;
  /** {mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}, or a string that contains this JSON. */
  mcp_config?: unknown;
  /** Kept for old clients. Duet asks for permission with approvals. */
  permission_prompt_tool?: string;
  /** The only tools that the agent may use; they need no approval. Empty: all tools, or those of the previous session. */
  allowed_tools?: Array<string>;
  /** Tools that the agent may not use. */
  disallowed_tools?: Array<string>;
  /** Directories in addition to working_dir that the agent may use. */
  additional_directories?: Array<string>;
  /** The client may have unsaved changes in files. When the agent reads a text file through Duet, the daemon asks this connection for it ("Files"). */
  reads_files?: boolean;
  /** Rounds of tool calls after which the daemon interrupts the agent. 0: as configured. */
  max_turns?: number;
  /** The sandbox in which the agent and its programs run: workspace, or offline, without a network. Only on Linux with bubblewrap; elsewhere the request fails (sandbox_unavailable). The stronger level of the agent's configuration, the session and this applies. Absent: that of the session. */
  sandbox?: Sandbox;
  /** Limits of each turn of the session, in place of the configured ones ([budget.turn]). Absent: those of the previous turn. */
  budget?: TurnBudget;
  /** Content blocks of the Agent Client Protocol: images, audio, resources and resource links. Text blocks are appended to the prompt. Limits: 10 MiB for each image, audio or resource, 20 MiB in total. If the agent does not accept images or audio, the session fails and lists what it accepts; a resource becomes a link. */
  content?: Array<ContentBlock>;
  /** Higher runs first. */
  priority?: number;
  /** A JSON object that is stored with the turn. */
  metadata?: unknown;
  /** Time limit in milliseconds. Absent or 0: that of the previous turn. */
  timeout_ms?: number;
  /** Commands that must succeed ("Gates"): names of [[gates]], or shell command lines. They run in the agent's directory after each completed turn. The failures are the session's next prompt. */
  gates?: Array<string>;
  /** With gates: the maximum number of turns. Default 5, at most 100. */
  max_iterations?: number;
};

export type GateDefinition = {
  name: string;
  /** The program and its arguments. */
  command: Array<string>;
  /** Working directory, relative to the agent's. Default: the agent's. */
  directory?: string;
};

export type GateIterationEvent = {
  /** From 1. */
  iteration: number;
  max_iterations: number;
  gates: Array<string>;
};

export type GateList = {
  gates: Array<GateDefinition>;
  /** Gates of a project's file that the user does not trust yet (duet-rpc trust). */
  waiting: Array<string>;
};

export type GateResult = {
  /** The command line, or the name of [[gates]]. */
  gate: string;
  passed: boolean;
  /** Why it did not pass, such as exit status 2. */
  reason?: string;
  /** Diagnostics in the output, at most 50. */
  findings: Array<Diagnostic>;
  /** Total number of errors. */
  errors?: number;
  warnings?: number;
  /** The first and last lines of the output of a gate that failed. */
  output?: string;
  duration_ms: number;
};

export type GateResultEvent = {
  /** The command line, or the name of [[gates]]. */
  gate: string;
  passed: boolean;
  /** Why it did not pass, such as exit status 2. */
  reason?: string;
  /** Diagnostics in the output, at most 50. */
  findings: Array<Diagnostic>;
  /** Total number of errors. */
  errors?: number;
  warnings?: number;
  /** The first and last lines of the output of a gate that failed. */
  output?: string;
  duration_ms: number;
  /** The turn of the work, from 1. */
  iteration: number;
  max_iterations: number;
};

export type GateStartedEvent = {
  gate: string;
  iteration: number;
};

export type Gates = {
  /** working, checking (the gates run), passed, failed, or stopped (a turn failed, or a client ended it). */
  state: string;
  /** Why the work failed or stopped. */
  reason?: string;
  /** The current or last turn, from 1. */
  iteration: number;
  max_iterations: number;
  gates: Array<string>;
  /** Gates that did not pass in the last check. */
  failing: Array<string>;
  /** The results of the last check. Not in lists. */
  results?: Array<GateResult>;
  /** The current or last turn, such as 12.3. */
  turn: string;
  turn_uuid: string;
};

export type GatesEndedEvent = {
  /** passed, failed or stopped. */
  gates_state: string;
  reason?: string;
  iteration: number;
  max_iterations: number;
  /** The gates that did not pass. */
  failing?: Array<string>;
};

export type GetSessionResult = {
  /** The session by its last turn. */
  session: Turn;
  /** The queued prompts, the next one first. */
  queued: Array<WaitingPrompt>;
};

export type Health = {
  /** ok or degraded. */
  status: string;
  version: string;
  /** The problems and their remedies. */
  issues?: Array<string>;
};

export type Hunk = {
  /** Stable while the change exists. */
  id: string;
  /** As in the hunk's header in diff; 0 if there are no lines. */
  old_start: number;
  old_lines: number;
  /** Line in the file as the turn left it, without regard to reverted hunks. */
  new_start: number;
  new_lines: number;
  /** Number of added lines. */
  added: number;
  removed: number;
  /** open, accepted or reverted. open also if its parts differ. */
  state: string;
  /** The changes of the hunk, in order, if there are several. Each can be decided alone. */
  parts?: Array<HunkPart>;
};

export type HunkPart = {
  /** For change.accept, change.revert and change.reopen, as that of a hunk. */
  id: string;
  /** The line before the change if old_lines is 0. */
  old_start: number;
  /** Number of lines that the change removed. */
  old_lines: number;
  /** Line in the file as the turn left it; the line before the change if new_lines is 0. */
  new_start: number;
  /** Number of lines that the change added. */
  new_lines: number;
  /** open, accepted or reverted. */
  state: string;
};

export type IPCStatus = {
  clients: number;
  /** Paths of the sockets. */
  sockets?: Array<string>;
  /** Clients that look for a daemon here and cannot reach this one, with the reason. Examples: AIWG's command line, if a daemon of AIWG runs; clients of a socket of --listen that cannot be opened. */
  unserved?: Array<string>;
};

export type InitializeParams = {
  /** The client's capabilities. If present, the result has those of duet-rpc. */
  capabilities?: unknown;
  /** true: the user trusts this workspace in the editor, so the current .duet.toml of the project takes effect, as after duet-rpc trust. false: programs of .duet.toml do not run for this connection, even if it was trusted before; other clients are not affected. Absent: duet-rpc trust decides. */
  workspaceTrusted?: boolean;
};

export type InitializeResult = {
  serverInfo: ServerInfo;
  protocolVersion: string;
  capabilities?: Capabilities;
};

export type InterruptTurnParams = {
  /** The turn, such as 12.3; a session means the turn at work, or else its last turn. */
  turn: string | number;
  /** The reason, stored with the turn. */
  reason?: string;
  /** Stop only this background task, by its id in background of turn.get. Agents of version 2 of the Agent Client Protocol may support this. Others stop all tasks or none, and the error not_offered says so. */
  background?: string;
};

export type InterruptTurnResult = {
  turn: string;
  /** interrupting; cancelled if the turn had not started; or its final state. */
  state: State;
};

export type Item = {
  type: ItemType;
  /** Its id. That of a tool call is the agent's, unique in its turn, and the tool_use_id of its approval. An item replaces an earlier one with the same key. */
  key: string;
  /** Message: user or assistant. */
  role?: string;
  text?: string;
  /** What a notice is about, such as worktree. */
  subtype?: string;
  /** What the tool call does, for people. */
  title?: string;
  tool_name?: string;
  /** read, edit, delete, move, search, execute, think, fetch or other. */
  tool_kind?: string;
  /** Of a tool call. */
  status?: ToolStatus;
  /** Absent in an event: as before. */
  tool_input?: unknown;
  /** Absent in an event: as before. */
  details?: ToolDetails;
  /** Of a tool call that has ended. */
  result?: string;
  /** What refused the tool call, as decided_by of an approval. Absent if the call failed for another reason. */
  refused_by?: string;
  /** The reason, for people. */
  refusal?: string;
  /** The key of the tool call that contains it, such as that of a sub-agent. */
  parent_tool_use_id?: string;
  /** The agent's id of its session. */
  agent_session_id?: string;
  /** A text is cut; session.items has the whole text. */
  truncated?: boolean;
  /** Content of a message or thought that is not text. attachment.get returns its bytes. */
  attachments?: Array<Attachment>;
  /** Of a message or thought: the agent's own, at most 8 KiB. */
  _meta?: unknown;
};

export type ItemList = {
  /** In order. They are whole; only one that is too long for a message is cut, and says so. */
  items: Array<SessionItem>;
  /** Present if there are earlier ones: pass it as before. */
  next_before?: number;
  /** With after, present if there are later ones: pass it as after. */
  next_after?: number;
};

export type ItemType = "message" | "thought" | "notice" | "tool_call" | "plan" | "change" | "answer";

export type ItemsParams = {
  /** The session, with the turns of others that it was forked from. A turn, such as 12.3, means the items up to and including it. This or turn is required. */
  session?: string | number;
  /** In place of session: only items of this turn. */
  turn?: string | number;
  /** With turn: only items with this key. */
  key?: string;
  /** In place of session: the agent's own id of its session, as in turn.get. */
  agent_session_id?: string;
  /** Only items before the one with this id, for paging. */
  before?: number;
  /** Only items after the one with this id, the first ones; 0: from the first item on. Without it the result has the last ones. */
  after?: number;
  /** Default 100, at most 1000. 1 brings two if one of them is a message in progress. */
  limit?: number;
};

export type KeepProjectParams = {
  /** The project's directory, an absolute path. Default: the daemon's own project. */
  root?: string;
};

export type KeptProject = {
  root: string;
  /** false: the directory was not replaced, so everything that the user allowed counted already. */
  kept: boolean;
};

export type LaggedEvent = {
  from_seq: number;
  to_seq: number;
};

export type LandMethod = "" | "merge" | "squash" | "rebase" | "patch";

export type LandParams = {
  /** The session. */
  session: string | number;
  /** merge (default): a merge commit, or none if the branch can be moved forward. squash: one new commit. rebase: each commit again. patch: no commit; the user's files are changed. */
  method?: LandMethod;
  /** The branch to land on. Absent: the one that was checked out when the worktree was made. Without meaning for patch. */
  into?: string;
  /** The message of the new commit. Absent: a plain one. */
  message?: string;
};

export type LandResult = {
  /** The branch that has the changes now. Empty with patch. */
  branch: string;
  /** The new commits of the branch, the oldest first. Empty if there was nothing new. */
  commits: Array<string>;
  /** The changed files, relative to the top of the repository. */
  files: Array<string>;
  /** How many more files there are, which do not fit into the result. */
  more?: number;
  /** Git repositories in the worktree, and submodules with work, which are not landed. */
  nested?: Array<string>;
  /** Files that this committed as they are, without the filter that .gitattributes names for them (Git LFS, git-crypt): its program is configured nowhere, or only in the repository, which is not trusted. */
  unfiltered?: Listing;
};

export type LeafFilter = "" | "normal" | "archived" | "draft";

export type Level = "debug" | "info" | "warn" | "error";

export type ListTurnsParams = {
  /** Only turns of this session. */
  session?: string | number;
  /** Only turns in one of these states. Absent: all except discarded ones. */
  states?: Array<State>;
  /** Only turns of this agent. */
  agent?: string;
  /** true: only turns of archived sessions; false: only of the others. */
  archived?: boolean;
  /** Default 500, at most 1000. */
  limit?: number;
  /** Only turns older than this one, for paging. */
  before?: string | number;
};

export type ListenParams = {
  /** An absolute path. Missing directories are created. */
  path: string;
};

export type Listing = {
  /** How many there are. */
  count: number;
  /** At most 20 of them. */
  first: Array<string>;
};

export type LogDamagedEvent = {
  from_seq?: number;
  to_seq?: number;
  message: string;
};

export type MCPServer = {
  name: string;
  /** stdio, http or sse. */
  type: string;
  /** stdio: the program, without its arguments, which may contain secrets. */
  command?: string;
  /** http and sse: the address, without parts that may be secret. */
  url?: string;
  /** Duet has started it or connected to it, for mcp.tools or mcp.call. */
  connected: boolean;
};

export type MCPServerList = {
  /** The agent that gets the servers. */
  agent: string;
  servers: Array<MCPServer>;
};

export type MCPServerName = {
  /** The server's name from mcp.servers. */
  server: string;
  /** The agent whose servers are meant. Default: the agent of the session, or the default agent. */
  agent?: string;
  /** A session. Adds its own servers, and its directory applies. */
  session?: string | number;
};

export type MCPServerOwner = {
  /** The agent whose servers are meant. Default: the agent of the session, or the default agent. */
  agent?: string;
  /** A session. Adds its own servers, and its directory applies. */
  session?: string | number;
};

export type MCPToolList = {
  /** The server's own name; may be empty. */
  server: string;
  version?: string;
  /** Tools as in the Model Context Protocol: name, title, description, inputSchema, … */
  tools: Array<unknown>;
};

export type MessagingStatus = {
  enabled: boolean;
};

export type MethodDescribed = {
  name: string;
  description: string;
  /** name: type, or name?: type if it is optional. */
  params: Array<string>;
  returns: string;
  longRunning?: boolean;
};

export type MethodListed = {
  name: string;
  description: string;
};

export type Mode = {
  id: string;
  name?: string;
  description?: string;
  /** agent; or duet: Duet applies this mode to the agent's requests, whatever the agent's own mode. */
  by: string;
};

export type MoveProjectParams = {
  /** The project's directory until now, an absolute path. It need not exist. */
  from: string;
  /** The project's new directory, an absolute path. It must exist and have no sessions. */
  to: string;
};

export type MoveTurnParams = {
  /** The queued turn. */
  turn: string | number;
  /** Move the turn before this queued turn of the same session. Absent: to the end of the queue. */
  before?: string | number;
};

export type MovedProject = {
  from: string;
  to: string;
};

export type NativeSession = {
  /** The agent's id of the session. */
  agent_session_id: string;
  /** The agent's title. */
  title?: string;
  /** Time of the last activity. */
  updated_at?: string;
  /** The session's working directory. */
  working_dir?: string;
  /** The last turn of the session here that continues it, such as 12.3. */
  turn?: string;
  /** The uuid of the same turn. */
  turn_uuid?: string;
};

export type NativeSessionDeleteParams = {
  /** The agent's name in the configuration. Default: the default agent. */
  agent?: string;
  /** The agent's id of the session. */
  agent_session_id: string;
};

export type NativeSessionList = {
  /** The agent's name in the configuration. */
  agent: string;
  sessions: Array<NativeSession>;
  /** Present if there may be more: pass it as cursor. */
  next_cursor?: string;
};

export type NativeSessionListParams = {
  /** The agent's name in the configuration. Default: the default agent. */
  agent?: string;
  /** Only sessions in this directory; ~ is expanded. Absent: all. */
  working_dir?: string;
  /** The next_cursor of the previous page. */
  cursor?: string;
  /** Default 50, at most 1000. */
  limit?: number;
};

export type NavigationParams = {
  /** The page's current address. */
  url: string;
  /** The page's title. */
  title?: string;
  /** The session to store the message with. Default: the one that started last. */
  session?: string | number;
};

export type NotRecorded = {
  /** Empty for untracked. */
  path: string;
  /** too-large (over 10 MB), special (a socket, named pipe or device), nested-repository, unreadable, reserved (a name of git), untracked (all files that git does not track, because there are too many), or changed (while files were first recorded). */
  reason: string;
};

export type OpenRPCDocument = {
  openrpc: string;
  info: OpenRPCInfo;
  methods: Array<OpenRPCMethod>;
};

export type OpenRPCInfo = {
  title: string;
  description: string;
  version: string;
};

export type OpenRPCMethod = {
  name: string;
  summary: string;
  paramStructure: string;
  params: Array<ContentDescriptor>;
  result: ContentDescriptor;
  "x-long-running"?: boolean;
};

export type PageErrorParams = {
  /** The error message. */
  message: string;
  /** The stack trace, line by line. */
  stack?: string;
  /** The address of the script or the page. */
  url?: string;
  /** Alias of url. */
  source?: string;
  /** From 1. */
  line?: number;
  /** Column in the line, from 1. */
  column?: number;
  /** The session to store the message with. Default: the one that started last. */
  session?: string | number;
};

export type PageMessage = {
  id: number;
  /** console, error or navigation. */
  kind: string;
  /** For console: log, debug, info, warn or error. */
  level?: string;
  /** For navigation: the title of the page. */
  message: string;
  url?: string;
  line?: number;
  column?: number;
  stack?: string;
  /** The turn at the time. */
  turn_uuid?: string;
  /** How often the message came in a row. */
  count: number;
  /** When it came last. */
  time: string;
};

export type PageMessages = {
  messages: Array<PageMessage>;
};

export type PageMessagesParams = {
  /** Only messages stored with this session, or with this turn. */
  session?: string | number;
  /** Only errors, and console messages of the levels warn and error. */
  problems?: boolean;
  /** Only messages with a higher id. */
  after_id?: number;
  /** Number of messages, the last ones. Default 100, at most 1000. */
  limit?: number;
  /** true: the connection gets further messages as notifications pageMessage, which look like the messages here. false ends this. Absent: no change. A message that repeats is sent again. */
  follow?: boolean;
};

export type Permission = {
  /** true */
  approved: boolean;
  /** user_approved, or the rule=… or mode=… that decided. */
  reason?: string;
  /** The user's comment. */
  comment?: string;
  /** The input that the tool must use instead. */
  updated_input?: unknown;
  /** The approval, for approval.get, if a person was asked. */
  approval_id?: string;
};

export type PingResult = {
  pong: boolean;
  /** The current time, ISO 8601 in UTC with milliseconds. */
  timestamp: string;
};

export type PlanEntry = {
  content: string;
  priority?: string;
  status?: string;
};

export type PlanEvent = {
  entries: Array<PlanEntry>;
};

export type PreviewFile = {
  status: number;
  headers: Record<string, string>;
  /** Base64. A file that does not fit into a message is the error preview_load_failed: the limit is 6 MiB with frames, 700 KiB with lines. */
  body: string;
};

export type PreviewKept = {
  /** false if the pages send too many messages. */
  kept: boolean;
};

export type PreviewParams = {
  /** A path, with an optional query. */
  url: string;
  /** The client's address of the preview, such as http://127.0.0.1:8080. URLs that begin with it count as paths. */
  origin?: string;
};

export type PreviewShown = {
  /** The address that the clients got. */
  url?: string;
  /** Number of clients that were notified. */
  shown: number;
};

export type ProgressEvent = {
  /** 0 to 100. */
  percent?: number;
  message?: string;
  completed_steps?: number;
  total_steps?: number;
};

export type Project = {
  /** The project's directory. */
  root: string;
  /** The directory with its sessions, rules and logs. */
  state_dir: string;
  /** Number of sessions. */
  sessions: number;
  /** The size of the files in state_dir. */
  bytes: number;
  /** When the last daemon of the project started. */
  last_used: string;
  /** The project's directory does not exist. */
  missing: boolean;
  /** The directory was deleted and created again. What was allowed before does not count. */
  replaced: boolean;
  /** Why the sessions could not be counted. */
  error?: string;
};

export type ProjectList = {
  /** The last used first. */
  projects: Array<Project>;
};

export type PromptParams = {
  /** The session. A turn that has ended and is not the last of its session starts a fork after it. */
  session: string | number;
  /** The prompt. Required unless the session is a draft, which has its own. */
  prompt?: string;
  /** A UUID that the client chooses for this prompt. A prompt that is sent again with the same id, for example after an error, returns the turn of the first one and starts nothing. Not with the delivery steer. */
  prompt_id?: string;
  /** queue (default): the prompt waits for the end of the current turn. steer: the agent gets the prompt during the turn if it can, otherwise the prompt waits, before the other queued prompts. A prompt with content, other settings or gates always waits. */
  deliver?: string;
  /** Replaces the agent's system prompt, if the agent has one. */
  system_prompt?: string;
  /** Appended to the system prompt. */
  append_system_prompt?: string;
  /** Further instructions for the agent. */
  custom_instructions?: string;
  /** {mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}, or a string that contains this JSON. */
  mcp_config?: unknown;
  /** Kept for old clients. Duet asks for permission with approvals. */
  permission_prompt_tool?: string;
  /** The only tools that the agent may use; they need no approval. Empty: all tools, or those of the previous session. */
  allowed_tools?: Array<string>;
  /** Tools that the agent may not use. */
  disallowed_tools?: Array<string>;
  /** Directories in addition to working_dir that the agent may use. */
  additional_directories?: Array<string>;
  /** The client may have unsaved changes in files. When the agent reads a text file through Duet, the daemon asks this connection for it ("Files"). */
  reads_files?: boolean;
  /** Rounds of tool calls after which the daemon interrupts the agent. 0: as configured. */
  max_turns?: number;
  /** The sandbox in which the agent and its programs run: workspace, or offline, without a network. Only on Linux with bubblewrap; elsewhere the request fails (sandbox_unavailable). The stronger level of the agent's configuration, the session and this applies. Absent: that of the session. */
  sandbox?: Sandbox;
  /** Limits of each turn of the session, in place of the configured ones ([budget.turn]). Absent: those of the previous turn. */
  budget?: TurnBudget;
  /** Content blocks of the Agent Client Protocol: images, audio, resources and resource links. Text blocks are appended to the prompt. Limits: 10 MiB for each image, audio or resource, 20 MiB in total. If the agent does not accept images or audio, the session fails and lists what it accepts; a resource becomes a link. */
  content?: Array<ContentBlock>;
  /** Higher runs first. */
  priority?: number;
  /** A JSON object that is stored with the turn. */
  metadata?: unknown;
  /** Time limit in milliseconds. Absent or 0: that of the previous turn. */
  timeout_ms?: number;
  /** Commands that must succeed ("Gates"): names of [[gates]], or shell command lines. They run in the agent's directory after each completed turn. The failures are the session's next prompt. */
  gates?: Array<string>;
  /** With gates: the maximum number of turns. Default 5, at most 100. */
  max_iterations?: number;
};

export type ProvideSecretParams = {
  /** The request_id of the event secret.requested. */
  request_id: string;
  /** The service that the secret is for. */
  service?: string;
  /** The secret. Empty: there is none. */
  secret: string;
};

export type QueueEvent = {
  /** The turn's new prompt, if it was edited. */
  prompt?: string;
  /** prompt is cut. */
  truncated?: boolean;
  /** The uuids of the session's queued turns, the next one first. */
  order: Array<string>;
};

export type QueuedTask = {
  id: string;
  /** The first 80 characters. */
  prompt: string;
  agent: string | null;
  priority: number;
  /** The turn's number, such as 12.3. */
  turn: string;
  turn_uuid: string;
};

export type QueuedTurns = {
  /** The queued prompts of the session, the next one first. */
  queued: Array<WaitingPrompt>;
};

export type RenameSessionParams = {
  /** The session. */
  session: string | number;
  /** The new title. Empty: none. */
  title: string;
};

export type RequestParams = {
  /** The tool. */
  tool_name: string;
  /** The tool's input. */
  tool_input?: unknown;
  /** The caller's id of the tool call. */
  tool_use_id?: string;
  /** An active session, such as 12: the question belongs to it, and the session waits too. Any other name selects a session of questions, which is created if necessary. Default: the project's. */
  session?: string;
  /** The directory for relative paths and rules, if the question does not belong to a session. Default: the project's root. */
  working_dir?: string;
  /** Keep the question open when the connection or the daemon ends. The same question in the same session then gets the answer, for an hour. No effect on a question of an agent's session. */
  keep?: boolean;
};

export type ResizeTerminalParams = {
  /** The terminal. */
  terminal_id: string;
  /** Columns, at least 1. */
  cols: number;
  /** Rows, at least 1. */
  rows: number;
};

export type Resource = {
  uri: string;
  mimeType?: string;
  /** The text. Either this or blob. */
  text?: string;
  /** The bytes in base64. */
  blob?: string;
};

export type RewindFile = {
  path: string;
  /** What happens to the file: added (it is there again), deleted, modified, mode (only its executable bit) or type (a link becomes a file, or the reverse). */
  change: string;
  /** Number of lines that come back. */
  added: number;
  /** Number of lines that go. */
  removed: number;
  /** The file stays as it is, because: edited (it was edited after the session's last change of it), other (the session has not changed it) or busy (see detail). With all, edited and other are restored. */
  left?: string;
  /** Why a file could not be restored. */
  detail?: string;
};

export type RewindParams = {
  /** The turn before which the files are to be as they were, such as 12.3; a session means its last turn. */
  turn: string | number;
  /** Also restore the files that others have changed since. */
  all?: boolean;
  /** Change nothing, only return what would change. */
  preview?: boolean;
  /** Undo the last rewind to before this turn that is not undone: its files become as they were before it. Files that were edited after it are left alone; the same call tries them again once. Without all and preview. */
  undo?: boolean;
};

export type RewindResult = {
  /** false: the files before the turn are not recorded, or no longer, so no file is restored. Checkpoints need git, and can be disabled in the configuration. */
  checkpoint: boolean;
  /** The files that differ from those before the turn, by path. */
  files: Array<RewindFile>;
  /** How many more files there are, which do not fit into the result. */
  more: number;
  /** Files that are not recorded, and so stay as they are. */
  not_recorded?: Array<NotRecorded>;
  /** How many more of them there are. */
  more_not_recorded?: number;
  /** The turn before, such as 12.2: session.fork continues the session from there. Absent: the session begins with this turn. */
  fork_turn?: string;
  /** The prompt of the turn. */
  prompt: string;
};

export type Rule = {
  rule_id: number;
  /** allow or deny. */
  effect: string;
  tool_name: string;
  /** Only this command. Absent: any input. */
  command?: string;
  /** The command is a pattern, as in the configuration. */
  pattern?: boolean;
  /** Only these files: a pattern in which * does not match a slash. */
  path?: string;
  /** Only this exact input. */
  same_input?: boolean;
  /** The scope of the decision that made it, as in approval.decide. */
  scope: string;
  /** The session, if the rule is for one alone. */
  session?: number;
  session_uuid?: string;
  /** The session's title. */
  title?: string;
  created_at: string;
};

export type RuleList = {
  rules: Array<Rule>;
};

export type RulePreview = {
  tool_name: string;
  /** command, files, input (exactly this input) or tool (any input). */
  covers: string;
  /** The pattern of the command or files. approval.decide accepts another one. */
  pattern?: string;
  /** The whole rule, for people. */
  text: string;
};

export type RunBuildParams = {
  /** A name from build.list. Default: the first one. */
  name?: string;
  /** Without a name: the first of [[builds]] with backend = true, or a build found in a project that also has a package.json or tsconfig.json. */
  backend?: boolean;
};

export type RunningTask = {
  id: string;
  /** The first 80 characters. */
  prompt: string;
  agent: string | null;
  startedAt: string | null;
  pid: number | null;
  /** The turn's number, such as 12.3. */
  turn: string;
  turn_uuid: string;
  state: string;
};

export type Sandbox = "" | "workspace" | "offline";

export type SaveParams = {
  /** The session. */
  session: string | number;
  /** The name of the author of the files that are not committed, with email. Absent: Duet. */
  name?: string;
  /** The author's e-mail address. */
  email?: string;
  /** The commit of an earlier call, after it was landed in another repository. If it still has all files of the worktree, the worktree's branch gets it, as it does after session.land. */
  landed?: string;
};

export type SaveResult = {
  /** The commit. The ref refs/duet/saved/SESSION_UUID of the repository has it. */
  commit: string;
  /** The worktree's name: its branch is duet/NAME. */
  name: string;
  /** Git repositories in the worktree, and submodules with work, which the commit does not have. */
  nested?: Array<string>;
};

export type SchedulerStatus = {
  enabled: boolean;
  /** Number of triggers with a schedule. */
  jobs: number;
  /** The last scheduled time of each trigger since the start. */
  last_fires: Record<string, string>;
};

export type SearchHit = {
  /** Such as 12.3. */
  turn: string;
  /** The session's number in the project. */
  session: number;
  turn_uuid: string;
  session_uuid: string;
  /** The session's title, or the first 80 characters of its first prompt. */
  title: string;
  agent: string;
  /** The item's id in session.items. */
  item: number;
  /** Its key. */
  key: string;
  type: ItemType;
  role?: string;
  tool_name?: string;
  /** At most 400 characters of the text around the match, which is marked by « and »; … is text left out. */
  snippet: string;
  /** Lower is better. */
  rank: number;
  created_at: string;
};

export type SearchParams = {
  /** Words to find: at most 64, and duplicates count once. */
  query: string;
  /** Default 20, at most 200. */
  limit?: number;
  /** Number of hits to skip. */
  offset?: number;
};

export type SearchResult = {
  hits: Array<SearchHit>;
  /** Present if there may be more: pass it as offset. */
  next_offset?: number;
};

export type SecretEvent = {
  request_id: string;
  /** Whose key it is, as in [keys.NAME]. */
  service: string;
  agent: string;
};

export type Selection = {
  /** An id. Empty if the agent does not report it. */
  current: string;
  available: Array<Choice>;
};

export type ServerInfo = {
  name: string;
  version: string;
};

export type SessionDeletedEvent = {
  session_uuid: string;
  /** The numbers of the turns, such as 12.3. */
  turns: Array<string>;
  turn_uuids: Array<string>;
  /** Number of turns that stay because other sessions were forked from them. */
  kept?: number;
};

export type SessionEvent = {
  title?: string;
  mode?: string;
  model?: string;
  auto_accept_edits?: boolean;
  skip_permissions?: boolean;
  skip_permissions_until?: string;
  archived?: boolean;
  additional_directories?: Array<string>;
  /** The agent's other settings, by their ids. */
  options?: Record<string, string>;
  requested_agent?: string;
  reason?: string;
  /** The agent's own id of the session. */
  agent_session_id?: string;
  /** The agent could not continue its session and began another one. */
  agent_session_was_replaced?: boolean;
  /** The agent forked its own session. */
  forked?: boolean;
  /** The mode that the agent reports. */
  agent_mode?: string;
  /** The ids of all modes of the agent. */
  agent_modes?: Array<string>;
  /** All modes of the agent, with their names. */
  agent_mode_choices?: Array<Choice>;
};

export type SessionInfo = {
  title?: string;
  /** In the agent's format. */
  updated_at?: string;
};

export type SessionItem = {
  /** The item's id, for before and after. Absent while its text is being written. */
  id?: number;
  /** The turn's number, such as 12.3. */
  turn: string;
  turn_uuid: string;
  turn_state: State;
  /** Number of the event that changed it last. */
  seq?: number;
  created_at: string;
  updated_at: string;
  type: ItemType;
  /** Its id. That of a tool call is the agent's, unique in its turn, and the tool_use_id of its approval. An item replaces an earlier one with the same key. */
  key: string;
  /** Message: user or assistant. */
  role?: string;
  text?: string;
  /** What a notice is about, such as worktree. */
  subtype?: string;
  /** What the tool call does, for people. */
  title?: string;
  tool_name?: string;
  /** read, edit, delete, move, search, execute, think, fetch or other. */
  tool_kind?: string;
  /** Of a tool call. */
  status?: ToolStatus;
  /** Absent in an event: as before. */
  tool_input?: unknown;
  /** Absent in an event: as before. */
  details?: ToolDetails;
  /** Of a tool call that has ended. */
  result?: string;
  /** What refused the tool call, as decided_by of an approval. Absent if the call failed for another reason. */
  refused_by?: string;
  /** The reason, for people. */
  refusal?: string;
  /** The key of the tool call that contains it, such as that of a sub-agent. */
  parent_tool_use_id?: string;
  /** The agent's id of its session. */
  agent_session_id?: string;
  /** A text is cut; session.items has the whole text. */
  truncated?: boolean;
  /** Content of a message or thought that is not text. attachment.get returns its bytes. */
  attachments?: Array<Attachment>;
  /** Of a message or thought: the agent's own, at most 8 KiB. */
  _meta?: unknown;
  /** Of a tool call: its approval, for approval.get. */
  approval?: string;
  approval_status?: ApprovalStatus;
  /** Its text is being written, or the tool call has not ended. */
  open?: boolean;
  /** A prompt that was cancelled while it was queued: the agent never gets it. */
  withdrawn?: boolean;
  /** Of a plan. */
  entries?: Array<PlanEntry>;
  /** Of a change: a file that the turn has changed. */
  change?: FileNote;
  /** Of an answer. */
  answer?: AnswerNote;
};

export type SessionListParams = {
  /** Absent or empty: all sessions. */
  filter?: LeafFilter;
  /** Default 500, at most 1000. */
  limit?: number;
  /** Only sessions whose last turn is older than this turn, for paging. */
  before?: string | number;
};

export type SessionRefParams = {
  /** The session, such as 12. */
  session: string | number;
};

export type SessionsResult = {
  /** Each by its last turn. */
  sessions: Array<Turn>;
  /** Present if there may be more: pass it as before. */
  next_before?: string;
};

export type SetLogLevelParams = {
  level: Level;
};

export type SetLogLevelResult = {
  level: Level;
  success: boolean;
};

export type SetSessionParams = {
  /** The session. */
  session: string | number;
  /** Another configured agent, which continues the session from the next prompt on. */
  agent?: string;
  /** A mode of the agent, or default, acceptEdits, bypassPermissions or plan ("Modes"). */
  mode?: string;
  /** A model of the agent. Empty ends the request for a model. */
  model?: string;
  /** Values of the agent's options, by option id. An empty value ends the request for that option. */
  options?: Record<string, string>;
  /** Edits of files need no approval. */
  auto_accept_edits?: boolean;
  /** Nothing needs approval. */
  skip_permissions?: boolean;
  /** For how long, in milliseconds. Absent or 0: unlimited. */
  skip_permissions_ms?: number;
  /** Directories in addition to working_dir that the agent may use from its next start on. */
  additional_directories?: Array<string>;
  /** Default true: wait until a working agent has accepted its mode, model and options, and change nothing if it refuses one. false: return at once. If the agent then refuses one, its turn gets the error SETTING_REFUSED. */
  wait?: boolean;
};

export type SetSessionResult = {
  /** true: the agent is working and has accepted the change. false: it gets the change with the next prompt, or the request did not wait. */
  live: boolean;
  /** As in turn.get. */
  turn: Turn;
};

export type ShutdownParams = {
  /** The reason, for the log. */
  reason?: string;
  /** Time for running requests, in milliseconds; at most 60000. */
  timeout_ms?: number;
};

export type ShutdownResult = {
  /** With reason or timeout_ms: idle (no request was running), completed (all requests ended) or interrupted (some did not). */
  status?: string;
  message: string;
};

export type SignInMethod = {
  id: string;
  name: string;
  description?: string;
  /** agent: the agent does it itself, usually in a browser. terminal: a program in a terminal does it. env_var: variables of the agent's environment do it. */
  type: string;
  /** env_var: the required variables. */
  variables?: Array<string>;
  /** env_var: the variables that the agent does not have. */
  missing?: Array<string>;
  /** terminal: the command that duet-rpc agents login runs. */
  command?: Array<string>;
};

export type SignInStatus = {
  /** The agent's name in the configuration. */
  agent: string;
  report: AgentReport;
  /** Configured keys that Duet could not get, for people. The agent was started without them. */
  missing_keys?: Array<string>;
};

export type SilentEvent = {
  /** The agent's last sign of life. */
  since: string;
  /** What the agent has written to its stderr since then. */
  note?: string;
  /** The running tool call. */
  tool_use_id?: string;
  tool_title?: string;
  /** The agent works again. */
  ended: boolean;
};

export type StartAttemptsParams = {
  /** The prompt. */
  prompt: string;
  /** 2 to 10 agents. An agent may be in it several times. */
  agents: Array<AttemptAgent>;
  /** The title of each session. */
  title?: string;
  /** As in session.start; in a git repository with a commit. */
  working_dir?: string;
  /** Replaces the agent's system prompt, if the agent has one. */
  system_prompt?: string;
  /** Appended to the system prompt. */
  append_system_prompt?: string;
  /** Further instructions for the agent. */
  custom_instructions?: string;
  /** {mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}, or a string that contains this JSON. */
  mcp_config?: unknown;
  /** Kept for old clients. Duet asks for permission with approvals. */
  permission_prompt_tool?: string;
  /** The only tools that the agent may use; they need no approval. Empty: all tools, or those of the previous session. */
  allowed_tools?: Array<string>;
  /** Tools that the agent may not use. */
  disallowed_tools?: Array<string>;
  /** Directories in addition to working_dir that the agent may use. */
  additional_directories?: Array<string>;
  /** The client may have unsaved changes in files. When the agent reads a text file through Duet, the daemon asks this connection for it ("Files"). */
  reads_files?: boolean;
  /** Rounds of tool calls after which the daemon interrupts the agent. 0: as configured. */
  max_turns?: number;
  /** The sandbox in which the agent and its programs run: workspace, or offline, without a network. Only on Linux with bubblewrap; elsewhere the request fails (sandbox_unavailable). The stronger level of the agent's configuration, the session and this applies. Absent: that of the session. */
  sandbox?: Sandbox;
  /** Limits of each turn of the session, in place of the configured ones ([budget.turn]). Absent: those of the previous turn. */
  budget?: TurnBudget;
  /** Content blocks of the Agent Client Protocol: images, audio, resources and resource links. Text blocks are appended to the prompt. Limits: 10 MiB for each image, audio or resource, 20 MiB in total. If the agent does not accept images or audio, the session fails and lists what it accepts; a resource becomes a link. */
  content?: Array<ContentBlock>;
  /** Higher runs first. */
  priority?: number;
  /** Time limit of each turn in milliseconds. Absent or 0: as configured. */
  timeout_ms?: number;
  /** Commands that must succeed ("Gates"): names of [[gates]], or shell command lines. They run in the agent's directory after each completed turn. The failures are the session's next prompt. */
  gates?: Array<string>;
  /** With gates: the maximum number of turns. Default 5, at most 100. */
  max_iterations?: number;
  /** A JSON object that is stored with each turn. */
  metadata?: unknown;
};

export type StartAttemptsResult = {
  /** In the order of agents. */
  turns: Array<Started>;
};

export type StartParams = {
  /** The prompt. */
  prompt: string;
  /** The session's title. */
  title?: string;
  /** The agent's name in the configuration. Default: the default agent. */
  agent?: string;
  /** A model of the agent. A model that the agent is known not to have is refused. If the agent does not list its models, it keeps its own. */
  model?: string;
  /** What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent ("Modes"). A mode that the agent is known not to have is refused, and so is plan for a plain command. */
  mode?: string;
  /** Values of the agent's options, by option id. A value that the agent is known not to have is refused. */
  options?: Record<string, string>;
  /** The agent's working directory; ~ is expanded. Default: the project's root. */
  working_dir?: string;
  /** Replaces the agent's system prompt, if the agent has one. */
  system_prompt?: string;
  /** Appended to the system prompt. */
  append_system_prompt?: string;
  /** Further instructions for the agent. */
  custom_instructions?: string;
  /** {mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}, or a string that contains this JSON. */
  mcp_config?: unknown;
  /** Kept for old clients. Duet asks for permission with approvals. */
  permission_prompt_tool?: string;
  /** The only tools that the agent may use; they need no approval. Empty: all tools, or those of the previous session. */
  allowed_tools?: Array<string>;
  /** Tools that the agent may not use. */
  disallowed_tools?: Array<string>;
  /** Directories in addition to working_dir that the agent may use. */
  additional_directories?: Array<string>;
  /** The client may have unsaved changes in files. When the agent reads a text file through Duet, the daemon asks this connection for it ("Files"). */
  reads_files?: boolean;
  /** Rounds of tool calls after which the daemon interrupts the agent. 0: as configured. */
  max_turns?: number;
  /** The sandbox in which the agent and its programs run: workspace, or offline, without a network. Only on Linux with bubblewrap; elsewhere the request fails (sandbox_unavailable). The stronger level of the agent's configuration, the session and this applies. Absent: that of the session. */
  sandbox?: Sandbox;
  /** Limits of each turn of the session, in place of the configured ones ([budget.turn]). Absent: those of the previous turn. */
  budget?: TurnBudget;
  /** Content blocks of the Agent Client Protocol: images, audio, resources and resource links. Text blocks are appended to the prompt. Limits: 10 MiB for each image, audio or resource, 20 MiB in total. If the agent does not accept images or audio, the session fails and lists what it accepts; a resource becomes a link. */
  content?: Array<ContentBlock>;
  /** File edits need no approval. */
  auto_accept_edits?: boolean;
  /** No tool call needs approval. */
  skip_permissions?: boolean;
  /** For how long, in milliseconds. Absent or 0: unlimited. */
  skip_permissions_ms?: number;
  /** Higher runs first. */
  priority?: number;
  /** Time limit in milliseconds. Absent or 0: as configured. */
  timeout_ms?: number;
  /** A UUID that the client chooses for the session. If a session with it exists, the prompt continues it. */
  session_uuid?: string;
  /** A UUID that the client chooses for this start. A start that is sent again with the same id and prompt, for example after an error, returns the turn of the first one and starts nothing. */
  start_id?: string;
  /** Commands that must succeed ("Gates"): names of [[gates]], or shell command lines. They run in the agent's directory after each completed turn. The failures are the session's next prompt. */
  gates?: Array<string>;
  /** With gates: the maximum number of turns. Default 5, at most 100. */
  max_iterations?: number;
  /** Absent: as worktree in the configuration says. true: the agent works in a git worktree of its own, outside of the project's directory: session.land brings the result to the branch that is checked out now, session.discard deletes it. Only for a new session. Uncommitted files of the user are not in it. */
  worktree?: boolean;
  /** With worktree: the commit or branch that the worktree begins with. Absent: the commit that is checked out. */
  worktree_base?: string;
  /** With worktree: a UUID that the client chooses for several attempts at the same prompt, which it starts one by one, perhaps on several hosts. attempt.list compares those with the same one. */
  attempts?: string;
  /** Of an editor's process with --host alone: sends the commit and the files of the project on this machine to the host first, and the agent works in a worktree there that begins with them. session.land and session.discard bring its work here. */
  send?: boolean;
  /** Only store the prompt. session.prompt sends it. */
  draft?: boolean;
  /** A JSON object that is stored with the turn. */
  metadata?: unknown;
  /** Subscribers get the turn's messages when they are complete, and no text.delta or thought.delta. */
  quiet?: boolean;
  /** Send the prompt to the project's chat: one session that continues from prompt to prompt, with the default agent or with agent. If the agent changes, the chat continues in a fork, and the new agent gets the transcript. */
  chat?: boolean;
};

export type StartTerminalParams = {
  /** The working directory. Default: the project's root. */
  cwd?: string;
  /** The program. Default: the user's shell. */
  program?: string;
  /** The program's arguments. */
  args?: Array<string>;
  /** Variables in addition to those that every terminal gets. */
  env?: Record<string, string>;
  /** Run tmux, so that the terminal outlives the daemon. */
  use_tmux?: boolean;
  /** The tmux session. An existing one is joined; program and args, if any, then get a window of their own. tmux allows no : and . in a name; they become _. */
  tmux_session_name?: string;
  /** The tmux window. */
  tmux_window_name?: string;
  /** Columns. Default 80, also for 0. */
  cols?: number;
  /** Rows. Default 24, also for 0. */
  rows?: number;
  /** Pass the terminal's file descriptor with the reply (SCM_RIGHTS, only on a Unix socket). The client then reads and writes it, and gets no terminal.output. */
  descriptor?: boolean;
};

export type StartTerminalResult = {
  terminal_id: string;
  /** Process id of the program in the terminal. */
  pty_pid: number;
};

export type Started = {
  /** The turn's number, such as 12.3. */
  turn: string;
  /** The session's number in the project. */
  session: number;
  turn_uuid: string;
  session_uuid: string;
  /** The agent that runs the prompt. */
  agent: string;
  state: State;
  /** injected: the working agent has the prompt, and turn is its turn. */
  delivered: Delivery;
  /** Turns of other sessions that work in the same directory and may change the same files. */
  beside?: Array<string>;
  /** With send: files that did not go to the host. They are not committed, and above 50 MB or in a nested repository. Absent: none. */
  not_sent?: Listing;
};

export type State = "cancelled" | "completed" | "discarded" | "draft" | "failed" | "interrupted" | "interrupting" | "queued" | "running" | "starting" | "timed_out" | "waiting_input";

export type StopDaemonParams = {
  /** End running turns immediately. */
  force?: boolean;
};

export type StopDaemonResult = {
  stopping: boolean;
};

export type StoreStatus = {
  /** The database file. */
  path?: string;
  /** Number of the last event. */
  last_seq: number;
};

export type SubscribeParams = {
  /** Only these kinds. Absent or empty: all. */
  kinds?: Array<string>;
  /** Only events of this session, such as 12, or of this turn, such as 12.3. */
  session?: string | number;
  /** The id for this subscription, such as that of an earlier connection. Absent: a new id. It must be unique within the connection. */
  subscription_id?: string;
  /** First replay the events after this seq. 0: all. */
  since?: number;
  /** The client shows the notice in the result to its user. */
  notices?: boolean;
  /** Interval between text.delta or thought.delta events of one message, in milliseconds: 16 to 1000, default 50. The first delta of a message is sent at once; later text is joined. */
  delta_interval_ms?: number;
};

export type SubscribeResult = {
  subscription_id: string;
  /** The seq after which the events begin; use it as since later. */
  seq: number;
  /** Of kinds: those that this daemon does not have. It sends no such events. */
  unknown_kinds?: Array<string>;
  /** With notices: says that sessions continued while no client followed events. Each user gets it once. */
  notice?: string;
};

export type Subsystems = {
  ipc: IPCStatus;
  supervisor: SupervisorStatus;
  automation: AutomationStatus;
  file_watcher: WatcherStatus;
  scheduler: SchedulerStatus;
  messaging: MessagingStatus;
  store: StoreStatus;
  executors: ExecutorsStatus;
  approvals: ApprovalsStatus;
};

export type Success = {
  success: boolean;
};

export type SupervisedTasks = {
  running: Array<RunningTask>;
  /** In the order in which they start. */
  queued: Array<QueuedTask>;
};

export type SupervisorStatus = {
  running: number;
  queued: number;
  maxConcurrency: number;
  tasks: SupervisedTasks;
};

export type Terminal = {
  terminal_id: string;
  /** Process id of the program in the terminal; 0 if unknown. */
  pty_pid: number;
  program: string;
  args: Array<string>;
  cwd: string;
  /** Absent for an agent's terminal, which has no size. */
  cols?: number;
  rows?: number;
  /** The tmux session that it shows. */
  tmux_session?: string;
  /** The turn whose agent runs the terminal, such as 12.3. */
  turn?: string;
  turn_uuid?: string;
  /** An agent's terminal: clients can only watch it. */
  read_only: boolean;
  /** Number of connections that watch it. */
  attached: number;
  /** A connection has its descriptor, so others cannot watch it. */
  taken: boolean;
  started_at: string;
};

export type TerminalExitedEvent = {
  terminal_id: string;
  exit_code: number;
  /** The signal that ended the program. */
  signal?: string;
};

export type TerminalLaggedEvent = {
  terminal_id: string;
  dropped_bytes: number;
};

export type TerminalList = {
  terminals: Array<Terminal>;
};

export type TerminalOutputEvent = {
  terminal_id: string;
  data: string;
  /** Of data: utf-8 or base64. */
  encoding: string;
};

export type TextEvent = {
  /** Of the message or thought. */
  key: string;
  /** What follows the text so far. */
  text: string;
  /** The length of the whole text so far, in UTF-16 code units, as JavaScript counts. Absent if the daemon reads the text from the store again. */
  length?: number;
  /** The tool call of the sub-agent that writes it. */
  parent_tool_use_id?: string;
  /** The agent's own. */
  _meta?: unknown;
};

export type ToolDetails = {
  paths?: Array<string>;
  diffs?: Array<Diff>;
  terminal?: string;
  attachments?: Array<Attachment>;
  _meta?: unknown;
};

export type ToolStatus = "pending" | "in_progress" | "completed" | "failed";

export type Trigger = {
  /** Its id in the configuration. */
  trigger: string;
  enabled: boolean;
  /** The events that it reacts to, for people. */
  when: string;
  /** The events that it reacts to. */
  event: TriggerEvent;
  conditions?: Array<TriggerCondition>;
  action: TriggerAction;
  /** The shortest time between two actions, in milliseconds. */
  cooldown_ms: number;
  /** A person must approve the action first. */
  requires_approval: boolean;
  description?: string;
  /** When it acted last. */
  last_fired?: string;
  /** The next scheduled time. */
  next_fire?: string;
  /** The configuration that defines it: user or project. */
  from: string;
  file?: string;
  line?: number;
};

export type TriggerAction = {
  type: string;
  prompt?: string;
  agent?: string;
  priority?: number;
  message?: string;
  channel?: string;
  url?: string;
};

export type TriggerCondition = {
  field: string;
  operator: string;
  value?: unknown;
};

export type TriggerEvent = {
  type?: string;
  source?: string;
  pattern?: string;
  cron?: string;
  time_zone?: string;
  paths?: Array<string>;
  extensions?: Array<string>;
  ignore?: Array<string>;
};

export type TriggerExecution = {
  execution_id: number;
  trigger: string;
  event_type: string;
  /** submitted, notified, webhook_sent, denied, skipped_no_approver, unknown_action_type, error, waiting_approval, sending, depth_limited or rate_limited. */
  status: string;
  time: string;
  action: string;
  /** The turn that it started, or that has the question. */
  turn?: string;
  turn_uuid?: string;
  /** The question that it waits for. */
  approval?: string;
  error?: string;
  /** Number of executions in a row that led to this one. */
  depth?: number;
  /** The action, with values of the event in place of its templates. */
  does?: unknown;
  event?: unknown;
};

export type TriggerFiredEvent = {
  execution_id: number;
  trigger: string;
  event_type: string;
  action: string;
  status: string;
  /** The text of a notification. */
  message?: string;
  channel?: string;
  /** The question that the trigger waits for. */
  approval?: string;
  error?: string;
};

export type TriggerList = {
  /** Whether triggers are enabled as a whole. */
  enabled: boolean;
  triggers: Array<Trigger>;
  /** The last 10 executions, the newest first. */
  recent: Array<TriggerExecution>;
  /** Why no trigger works. */
  problem?: string;
  /** Changes that triggers cannot see because the system allows no more watches, and the remedy. */
  issues?: Array<string>;
};

export type TriggerLog = {
  /** The newest first. */
  executions: Array<TriggerExecution>;
};

export type TriggerLogParams = {
  /** Only this trigger. */
  trigger?: string;
  /** Default 50, at most 500. */
  limit?: number;
};

export type TriggerParams = {
  /** One trigger, by its id. Absent: all as a whole. */
  trigger?: string;
};

export type TriggerSwitched = {
  /** The state of the trigger, or of all as a whole. */
  enabled: boolean;
};

export type TriggerTestParams = {
  /** The event's type, such as turn.failed or file.modify. */
  type: string;
  /** watch, schedule, turn or approval. */
  source: string;
  /** The event's other members: an object. */
  payload?: unknown;
};

export type TriggerTrial = {
  trigger: string;
  fits: boolean;
  /** Why the trigger does not fit the event. */
  why?: string;
  /** The action that it would do. */
  does?: TriggerAction;
};

export type TriggerTrials = {
  trials: Array<TriggerTrial>;
};

export type Turn = {
  /** The turn's number in the project, such as 12.3: the third of session 12. */
  turn: string;
  /** The session's number in the project. */
  session: number;
  turn_uuid: string;
  session_uuid: string;
  /** The turn before, such as 12.2; of the first turn of a fork, one of another session. Only in turn.get and session.get. */
  parent?: string;
  /** cancelled: it had not started. */
  state: State;
  prompt: string;
  /** The first 80 characters of the prompt, or why the agent continued by itself. */
  summary: string;
  title: string;
  /** The title of the session, or the first 80 characters of its first prompt. */
  session_title: string;
  agent: string;
  /** The agent's own id of the session. */
  agent_session_id?: string;
  model?: string;
  /** The mode in force. */
  mode: string;
  working_dir: string;
  /** What started the turn: session, task, chat, execute, decision, trigger, gate, agent, adopted, question or kept_question. gate: the prompt lists the gates that failed. agent: the agent continued by itself, without a prompt. question and kept_question: a program asks, without an agent. */
  source: string;
  priority: number;
  /** The id that the client gave the turn. */
  caller_id?: string;
  created_at: string;
  /** When the agent started. */
  started_at?: string;
  /** The time of the last activity. */
  active_at: string;
  /** When the turn ended, in any state. */
  ended_at?: string;
  error?: string;
  /** In capitals, such as TIMEOUT or ORPHANED. */
  error_code?: string;
  /** The agent's stop reason. */
  stop_reason?: string;
  /** The agent's last message, when the turn has ended. */
  result?: string;
  /** The sign-in methods that the agent offers. Present if the turn failed because the user must sign in or give the agent its key. */
  auth_methods?: Array<AuthMethod>;
  cost_usd?: number;
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  /** Input plus output. */
  total_tokens?: number;
  /** Tokens in the context. */
  context_tokens?: number;
  /** Size of the context in tokens, if the agent reports it. */
  context_size?: number;
  duration_ms?: number;
  /** Number of the agent's messages. */
  messages?: number;
  auto_accept_edits: boolean;
  skip_permissions: boolean;
  skip_permissions_until?: string;
  /** The sandbox of the session: workspace or offline. Absent: none. */
  sandbox?: string;
  archived: boolean;
  additional_directories?: Array<string>;
  /** Time of the agent's last sign of life. Present while the agent is silent and the turn does not wait for a person. */
  silent_since?: string;
  /** The agent's error output since then. */
  silent_note?: string;
  /** The tool call in progress. The silence is then often normal. */
  silent_tool?: string;
  /** The agent's background work while no prompt runs in the session. turn.interrupt ends it. */
  background?: Array<BackgroundTask>;
  progress?: unknown;
  metadata?: unknown;
  /** The mode that the agent reports. */
  agent_mode?: string;
  /** The agent for the session's next prompt, if it differs from agent. */
  requested_agent?: string;
  /** The requested mode, if it is not in force. */
  requested_mode?: string;
  /** The requested model, if the agent reports another one. */
  requested_model?: string;
  /** The requested values of the agent's options. */
  requested_options?: Record<string, string>;
  /** All modes that a client can request. Only in turn.get. */
  modes?: Array<Mode>;
  /** The agent's report about its session. Only in turn.get. */
  agent_session?: AgentSession;
  /** The agent's MCP servers that Duet has tested and that have not answered yet. Only in turn.get. */
  unanswered_mcp_servers?: Array<string>;
  /** The state of the gates ("Gates"). Absent without gates. */
  gates?: Gates;
  /** The id that all attempts at the same prompt have. */
  attempts?: string;
  /** The git worktree in which the session works. */
  worktree?: WorktreeState;
};

export type TurnBudget = {
  /** Rounds of tool calls; 0: as configured. */
  turns?: number;
  /** Working time of the agent in milliseconds; waiting for people does not count. 0: as configured. */
  time_ms?: number;
  /** Tokens read and written; 0: as configured. */
  tokens?: number;
  /** US dollars; 0: as configured. */
  cost_usd?: number;
  /** Identical tool calls in a row; 0: as configured. */
  repeats?: number;
};

export type TurnCounts = {
  total: number;
  /** The number of turns in each state; absent: 0. */
  states: Record<string, number>;
};

export type TurnList = {
  turns: Array<Turn>;
  /** Present if there may be more: pass it as before. */
  next_before?: string;
};

export type TurnParams = {
  /** The turn, such as 12.3; a session means its last turn. */
  turn: string | number;
};

export type TurnResult = {
  turn: Turn;
};

export type TurnStateEvent = {
  session_uuid: string;
  /** The state before. Absent: the turn is new. */
  old_state?: State;
  state: State;
  /** The turn before, by its uuid. */
  parent_uuid?: string;
  title?: string;
  agent?: string;
  /** Why the state changed, such as timeout. */
  reason?: string;
  /** Why the turn ended badly, for people. */
  error?: string;
  error_code?: string;
  /** The agent's reason to end the turn. */
  stop_reason?: string;
  /** With AGENT_AUTH_REQUIRED: the ways to sign in. */
  auth_methods?: Array<AuthMethod>;
};

export type UnsubscribeParams = {
  /** The subscription_id from event.subscribe. */
  subscription_id: string;
};

export type Usage = {
  turns: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_usd: number;
  /** Working time of the agents in milliseconds; waiting for people does not count. */
  time_ms: number;
};

export type UsageEvent = {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  /** Tokens in the context. */
  context_used?: number;
  /** Tokens that fit into the context. */
  context_size?: number;
  cost_usd?: number;
  /** The agent's own. */
  _meta?: unknown;
};

export type UsageParams = {
  /** day, agent, session or model. rows then has one entry for each. */
  by?: string;
  /** Only turns created at or after this time: RFC 3339, or a date, which starts at midnight in the daemon's time zone. */
  since?: string;
  /** Only turns created before this time. */
  until?: string;
  /** Only turns of this session. */
  session?: string | number;
};

export type UsageResult = {
  total: Usage;
  /** With by: the newest day first, or the highest cost first. */
  rows?: Array<UsageRow>;
};

export type UsageRow = {
  /** The day, agent, number of the session or model. Empty if unknown. */
  key: string;
  /** The session's title, or the first 80 characters of its first prompt. */
  title?: string;
  turns: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_usd: number;
  /** Working time of the agents in milliseconds; waiting for people does not count. */
  time_ms: number;
};

export type Verdict = "approve" | "deny" | "respond" | "cancel";

export type VersionResult = {
  version: string;
};

export type WaitingPrompt = {
  turn: string;
  turn_uuid: string;
  prompt: string;
  /** The prompt is cut so that the list fits into a message. turn.get has all of it. */
  truncated?: boolean;
  created_at: string;
  /** false: no client wrote the prompt, such as one that reports failed gates. It can be cancelled, but not edited or moved. */
  editable: boolean;
};

export type WatcherStatus = {
  enabled: boolean;
  /** Watched paths, relative to the project. */
  paths: Array<string>;
  events_received: number;
  /** Number of watched directories. */
  directories: number;
  /** Why some paths are not watched, and the remedy. */
  problem?: string;
};

export type WorktreeState = {
  /** The branch that it began with. */
  branch: string;
  /** The top of its files. */
  dir: string;
  /** It was discarded or deleted. The session can only be forked, which continues it in the project's directory. */
  gone?: boolean;
};

export type WriteTerminalParams = {
  /** The terminal. */
  terminal_id: string;
  /** The input. */
  data: string;
  /** Encoding of data. Default utf-8. */
  encoding?: Encoding;
};

/** The parameters and the result of each method, by its name on the wire. */
export interface Methods {
  /** Returns the server's name and version. No handshake is needed. A client that sends its capabilities gets those of duet-rpc. */
  initialize: { params: InitializeParams; result: InitializeResult };
  /** Returns the current time. */
  ping: { params: Record<string, never>; result: PingResult };
  /** Returns whether everything works. */
  health: { params: Record<string, never>; result: Health };
  /** Returns its params unchanged; null if there are none. */
  echo: { params: unknown; result: unknown };
  /** Returns the version of duet-rpc. */
  version: { params: Record<string, never>; result: VersionResult };
  /** Lists the methods. */
  listMethods: { params: Record<string, never>; result: Array<MethodListed> };
  /** Lists the methods with their parameters and results as text. */
  describeMethods: { params: Record<string, never>; result: Array<MethodDescribed> };
  /** Describes the methods as an OpenRPC document with JSON Schemas. */
  "rpc.discover": { params: Record<string, never>; result: OpenRPCDocument };
  /** Sets the log level until the process ends. */
  setLogLevel: { params: SetLogLevelParams; result: SetLogLevelResult };
  /** Ends the connection, and the process that an editor started for it. Later input is dropped, and running requests get time to end. With reason or timeout_ms, it waits for them first and reports the outcome. The project's daemon and its work continue. */
  shutdown: { params: ShutdownParams; result: ShutdownResult };
  /** Sets the client's environment for the agents, builds, gates and terminals that it starts on this connection. Another call replaces it. The daemon keeps it only in memory. Without it, they get the daemon's environment. */
  "client.environment": { params: ClientEnvironmentParams; result: Success };
  /** Sends the build of a client that could start a daemon itself. A daemon of another build ends if it is idle and has no client of its own build. Otherwise it continues until then, and health reports it. */
  "client.build": { params: ClientBuildParams; result: DaemonBuild };
  /** Ends the connection, and the process if an editor started it. */
  exit: { params: unknown; result: unknown };
  /** Returns the tokens, cost and time that turns used, as their agents report them. */
  "usage.get": { params: UsageParams; result: UsageResult };
  /** Counts the turns of all sessions by state. */
  "turn.count": { params: Record<string, never>; result: TurnCounts };
  /** Returns the state of the daemon and its problems. */
  "daemon.status": { params: Record<string, never>; result: DaemonStatus };
  /** Opens another socket for clients, as --listen does, unless the daemon listens there already. It stays open until the daemon ends. If it cannot be opened, health and daemon.status report that, too, until a later call opens it. */
  "daemon.listen": { params: ListenParams; result: Success };
  /** Answers the event secret.requested. The daemon passes the secret on, and never stores or logs it. */
  "secret.provide": { params: ProvideSecretParams; result: Success };
  /** Ends the daemon after this reply. Running turns get 15 s. Turns that wait for a person are interrupted at once, and their questions stay. Queued turns stay queued. With force, it does not wait. */
  "daemon.stop": { params: StopDaemonParams; result: StopDaemonResult };
  /** Lists the projects with sessions on this machine, the last used first. */
  "project.list": { params: Record<string, never>; result: ProjectList };
  /** Lists the working directories of the sessions of the daemon's project, the last used first. */
  "project.directories": { params: DirectoriesParams; result: DirectoryList };
  /** Restores the rules, trust and answers from before the project's directory was deleted and created again (replaced of project.list). Its sessions are kept in any case. data.kind is `project_not_found` if the project has no sessions. */
  "project.keep": { params: KeepProjectParams; result: KeptProject };
  /** Gives the sessions of a project to another directory, for example after a move to another disk. Refused if that directory has sessions (`bad_state`). An idle daemon of that project is ended first. Refused while it works or has clients, and for the project of the daemon that is asked (`bad_state`). Another value of data.kind: `project_not_found`. */
  "project.move": { params: MoveProjectParams; result: MovedProject };
  /** Deletes all sessions, rules and logs of a project, and the git worktrees of its sessions. This cannot be undone. The files of the project are left alone. If a worktree has work that is not landed, nothing is deleted (`would_lose_work`, with data.losses as for session.discard). An idle daemon of that project is ended first. Refused while it works or has clients, and for the project of the daemon that is asked (`bad_state`). Another value of data.kind: `project_not_found`. */
  "project.forget": { params: ForgetProjectParams; result: ForgottenProject };
  /** Lists the configured triggers and their last executions. Triggers start sessions or notify clients when an event happens; see docs/automation.md. */
  "trigger.list": { params: Record<string, never>; result: TriggerList };
  /** Enables one trigger, or all as a whole. That holds until it is changed again. */
  "trigger.enable": { params: TriggerParams; result: TriggerSwitched };
  /** Disables one trigger, or all as a whole. That holds until it is changed again. */
  "trigger.disable": { params: TriggerParams; result: TriggerSwitched };
  /** Lists executions of triggers, the newest first. The last 500 are kept. */
  "trigger.log": { params: TriggerLogParams; result: TriggerLog };
  /** Returns what each trigger would do for an event, and does nothing. Ignores whether a trigger is enabled, its cooldown and its limits. */
  "trigger.test": { params: TriggerTestParams; result: TriggerTrials };
  /** Offers tools of the editor to agents. The daemon then sends requests editor.TOOL on this connection, for sessions in which it sent the last prompt. */
  "editor.offer": { params: EditorOfferParams; result: Success };
  /** Notes that the user has saved files in an editor. While an agent's command runs, these files are then no changes of the command, unless they change again. */
  "editor.saved": { params: EditorSavedParams; result: Success };
  /** Calls a tool of a session's editor and returns its result. The duet-rpc mcp --session of an agent calls it. If no editor offers the tool, the error is not_offered, at once. */
  "editor.call": { params: EditorCallParams; result: EditorCallResult };
  /** Lists turns of all sessions or of one, the newest first. If not all fit, pass next_before as before to get more. */
  "turn.list": { params: ListTurnsParams; result: TurnList };
  /** Returns a turn, without the items of the session. */
  "turn.get": { params: TurnParams; result: TurnResult };
  /** Waits until the work on a turn has ended, and returns the turn. With gates this is the last turn that worked for them. $/cancelRequest ends only the waiting. */
  "turn.wait": { params: TurnParams; result: TurnResult };
  /** Interrupts a turn, also while it waits for input; a queued one is cancelled. The session can be continued. For a turn that has ended, this stops the background work of its agent. With background, it stops only that task, whether or not the turn has ended. */
  "turn.interrupt": { params: InterruptTurnParams; result: InterruptTurnResult };
  /** Changes the text of a queued prompt; its content blocks stay. A prompt that has started is refused (`bad_state`). All clients get the event queue.changed. */
  "turn.edit": { params: EditTurnParams; result: QueuedTurns };
  /** Moves a queued prompt within the queue of its session. A prompt that has started is refused (`bad_state`). All clients get the event queue.changed. */
  "turn.move": { params: MoveTurnParams; result: QueuedTurns };
  /** Starts a session with the same prompt for each of several agents, all of them or none. Each has a git worktree of its own, and all start from the commit that is checked out. attempt.list compares them, attempt.choose lands one and discards the others. */
  "attempt.start": { params: StartAttemptsParams; result: StartAttemptsResult };
  /** Compares the attempts at the same prompt: their state, gates, changes, time and cost. data.kind is `no_attempts` if the session is not one of several. */
  "attempt.list": { params: AttemptsParams; result: AttemptsResult };
  /** Lands the session's worktree as session.land does, and then discards the worktrees of the other attempts at the same prompt as session.discard does with force. If landing fails, nothing is discarded. */
  "attempt.choose": { params: ChooseAttemptParams; result: ChooseAttemptResult };
  /** Starts a session with its first prompt. */
  "session.start": { params: StartParams; result: Started };
  /** Continues a session with another prompt. While the session works, the prompt waits, or reaches the agent during the turn (deliver). From a turn that has ended and is not the last of its session, it starts a fork. A draft is sent: it keeps its number, and the parameters replace its own. The new turn has the permissions of the turn before, but a fork never keeps a mode in which tools run without approval. */
  "session.prompt": { params: PromptParams; result: Started };
  /** Starts a session that shares the history of another one up to a turn, and continues it with a prompt. */
  "session.fork": { params: ForkParams; result: Started };
  /** Lists sessions by their last turns, the newest first. If not all fit, pass next_before as before to get more. */
  "session.list": { params: SessionListParams; result: SessionsResult };
  /** Returns a session by its last turn, and its queued prompts, the next one first. */
  "session.get": { params: SessionRefParams; result: GetSessionResult };
  /** Sets the mode, model or options of a session's agent, its permissions or directories. A working agent gets a mode, model or options at once; if it refuses, nothing changes. Otherwise it gets them with the next prompt. With agent, another agent continues the session: it gets the transcript, starts in default or plan with its own model, and has no permissions of the previous agent. Pending questions of the previous agent are closed. Changing the agent is refused while a turn of the session runs or is queued (`bad_state`). */
  "session.set": { params: SetSessionParams; result: SetSessionResult };
  /** Sets the title of a session. */
  "session.rename": { params: RenameSessionParams; result: Record<string, never> };
  /** Archives sessions, or restores them. Those whose agent works in the background or goes on by itself are not archived. A prompt also restores its session. */
  "session.archive": { params: ArchiveSessionsParams; result: ArchiveSessionsResult };
  /** Deletes a session with everything that only it uses. This cannot be undone. All clients get the event session.deleted. Refused while a turn of the session runs or its agent works in the background (`bad_state`). Turns from which other sessions were forked stay, archived. The session's worktree is deleted, too; if it has work that is not landed, nothing is deleted (`would_lose_work`, as for session.discard). The log keeps its numbers, without the deleted events. */
  "session.delete": { params: SessionRefParams; result: DeleteSessionResult };
  /** Brings the changes in the session's worktree to a branch. Files that are not committed become a commit. If it fails, nothing is changed. data.kind: `conflict` (both sides have changed the files in data.paths), `overlap` (uncommitted files of the user are in the way, in data.paths), `bad_state` (a session works there, or another git operation is in progress), `no_worktree`, `worktree_failed`. data.more counts the paths that do not fit. */
  "session.land": { params: LandParams; result: LandResult };
  /** Makes a commit of all files in the session's worktree, also of those that are not committed, for a git fetch from another machine. The worktree and its branch stay as they are. Values of data.kind: `bad_state` (a session works there), `no_worktree`, `worktree_failed`. */
  "session.save": { params: SaveParams; result: SaveResult };
  /** Deletes the session's worktree and its branch. The session stays; a fork continues it in the project's directory. Without force, work that is not landed is an error (`would_lose_work`), and data.losses lists it: commits, uncommitted, untracked, nested and ignored, each with count and first. Other values of data.kind: `bad_state` (a session works there), `no_worktree`, `worktree_failed`. */
  "session.discard": { params: DiscardParams; result: DiscardResult };
  /** Lists the modes that a client can request of an agent, and the agent's last report from any session: its modes, models, options and slash commands. */
  "agent.describe": { params: DescribeAgentParams; result: AgentDescription };
  /** Lists the configured and known agents, their versions, their last known sign-in state, and how to install missing ones. Starts nothing. */
  "agent.list": { params: Record<string, never>; result: AgentList };
  /** Starts an agent in an empty directory, and returns its version, its sign-in methods and whether the user is signed in, if it reports that. The agent gets no prompt, and ends within about a minute. */
  "agent.check": { params: AgentParams; result: SignInStatus };
  /** Signs in to an agent within ten minutes; the agent does it itself, usually in the user's browser. A method of type terminal is refused (`needs_terminal`): run its command in a terminal, or `duet-rpc agents login`. A method of type env_var is refused if variables are missing (`no_api_key`). */
  "agent.login": { params: AuthenticateParams; result: Success };
  /** Signs out of an agent, if agent.check reports that it can (logout). */
  "agent.logout": { params: AgentParams; result: Success };
  /** Lists the agent's own sessions, however they were started, in the agent's order, usually the newest first. Starts and ends the agent for this. An agent without this feature is refused (`not_offered`). */
  "agent.sessions": { params: NativeSessionListParams; result: NativeSessionList };
  /** Imports one of the agent's own sessions as a session with a completed turn, which has its messages. session.prompt continues the agent's own session. A session that was imported before is not changed (`adopted`). If the agent can continue the session but not replay it, the turn has no history (`history`). An agent that can do neither is refused (`not_offered`). */
  "session.adopt": { params: AdoptParams; result: AdoptResult };
  /** Asks the agent to delete one of its own sessions. This cannot be undone. Refused while a session here works in it (`bad_state`), and if the agent has no such feature (`not_offered`). The session here stays. Continuing it starts a new session of the agent, which gets the transcript. */
  "agent.forget": { params: NativeSessionDeleteParams; result: Success };
  /** Builds the project and waits for the end. The command is that of [[builds]] in the configuration, or one that the project's files suggest. Meanwhile the caller gets notifications: buildProgress {build_id, name, stage, ...}, whose stage is waiting (for another build of that name), started (with command and directory), output (with output, in whole lines), and finally succeeded or failed; and buildWarning, a diagnostic of any severity with build_id and name. A failed build is the error -32053 with data.kind `build_failed`, whose data has the diagnostics and details. $/cancelRequest or the end of the connection ends the build and all processes that it started. */
  "build.run": { params: RunBuildParams; result: BuildResult };
  /** Lists the builds of the project; build.run runs the first one by default. build.run runs nothing in a project whose configuration waits for trust. */
  "build.list": { params: Record<string, never>; result: BuildList };
  /** Lists the configured gates ([[gates]]), whose names session.start accepts, and the names of those that wait for trust. */
  "gate.list": { params: Record<string, never>; result: GateList };
  /** Runs a gate in the project's directory and waits for its end, independently of agents. The notification gateProgress {gate, output} sends its output to the caller, in whole lines. A gate that does not pass is a result. $/cancelRequest or the end of the connection ends the gate and all processes that it started. */
  "gate.check": { params: CheckGateParams; result: GateResult };
  /** Returns the last items of a session, or those before or after another one: what was said and done. Pass next_before as before to get earlier ones. */
  "session.items": { params: ItemsParams; result: ItemList };
  /** Searches all sessions for words; the last word may be a prefix. The best hits come first. */
  "session.search": { params: SearchParams; result: SearchResult };
  /** Returns the transcript of a session or a turn as a document, part by part: Markdown, or the JSON of docs/export.md. If there is more, pass next as after, with the same other parameters. The document ends at the items that exist at the first request. Refused if the place at which a part was cut has changed since (`changed_since`): start again without after. */
  "session.export": { params: ExportParams; result: Exported };
  /** Returns the files that a turn changed, their diffs, and the decision about each change. */
  "change.list": { params: TurnParams; result: ChangeList };
  /** Accepts a change of a turn, one hunk or a whole file: the user has seen it and keeps it. A hunk that was reverted is refused (`bad_state`). All clients get the event change_decided. Other values of data.kind: `change_not_found`, `not_kept` (a binary file can only be accepted), `outside_workspace`, `not_writable`. */
  "change.accept": { params: ChangeParams; result: DecidedChange };
  /** Reverts a change of a turn on the disk, one hunk or a whole file. This deletes a file that the turn created, and restores one that it deleted. Duet searches for the hunk's lines in the current file; if they are gone or not unique, it changes nothing (`changed_since`). Other edits of the file stay. All clients get the event change_decided. Other values of data.kind: `change_not_found`, `not_kept` (a binary file can only be accepted), `outside_workspace`, `not_writable`. */
  "change.revert": { params: ChangeParams; result: DecidedChange };
  /** Withdraws the decision about a change of a turn, one hunk or a whole file. A reverted change is made again on the disk. All clients get the event change_decided. Other values of data.kind: `change_not_found`, `not_kept` (a binary file can only be accepted), `outside_workspace`, `not_writable`. */
  "change.reopen": { params: ChangeParams; result: DecidedChange };
  /** Restores the files that a turn and the later turns of its session have changed, shell commands included, to their state before the turn. Files that others have changed since are left alone, unless all is set. The session stays as it is; fork_turn and prompt are for a fork that continues it from there. Refused while the session works, with all also while another one works in its directory, and undo if nothing was rewound (`bad_state`). */
  "session.rewind": { params: RewindParams; result: RewindResult };
  /** Returns the bytes of an image, audio or resource, by the attachment_id in an event or item. If not all fits, pass next_offset as offset to get more. */
  "attachment.get": { params: AttachmentParams; result: AttachmentResult };
  /** Lists what waits for a person's answer, the oldest first. */
  "approval.list": { params: ApprovalListParams; result: ApprovalList };
  /** Returns an approval. */
  "approval.get": { params: ApprovalParams; result: ApprovalResult };
  /** Asks whether a tool may run, or asks the user a question, and returns the approval at once. The turn waits for the answer, which comes as the event approval.closed, or from approval.get. Rules and modes may decide before the user. Refused (`bad_state`) if the turn has ended. */
  "approval.create": { params: CreateApprovalParams; result: ApprovalResult };
  /** Answers an approval. The first answer wins: for a later one, success is false and error has the decision. */
  "approval.decide": { params: DecisionParams; result: DecisionResult };
  /** Lists the rules that decisions with a scope have made, the oldest first. */
  "rule.list": { params: Record<string, never>; result: RuleList };
  /** Deletes a rule that a decision has made. Later calls need approval again. */
  "rule.delete": { params: DeleteRuleParams; result: DeleteRuleResult };
  /** Asks the user a question and waits for the answer. Cancelling the request withdraws the question, and so does the end of the connection unless keep is set. */
  "approval.ask": { params: AskParams; result: Answer };
  /** Asks whether a tool may run, and waits for the decision. Rules and modes decide first, then the user; a denial is the error `permission_denied`. The question is withdrawn as with approval.ask. */
  "approval.request": { params: RequestParams; result: Permission };
  /** Lists the MCP servers of an agent: those of the configuration and those of the session. Starts none. */
  "mcp.servers": { params: MCPServerOwner; result: MCPServerList };
  /** Lists the tools of an MCP server. Starts it or connects to it if necessary, and keeps it for a minute after its last use. */
  "mcp.tools": { params: MCPServerName; result: MCPToolList };
  /** Calls a tool of an MCP server. As with approval.request, rules and modes decide about the tool mcp__SERVER__TOOL first, then the user. Cancelling the request cancels the call and the question. An error response of the server is the error -32053 with data.kind `mcp_server_error`. */
  "mcp.call": { params: CallToolParams; result: CallToolResult };
  /** Returns the content of a preview address: a file of the [preview] directory, or the index.html of a directory in it. An address without extension that matches no file gets the first index.html. A missing file has the status 404. If there is nothing to show, the error is `preview_load_failed`. An address is a path, such as /index.html, or a URL that begins with origin. Any other address is the error `navigation_failed`. The caller then counts as showing the preview, and gets the notifications navigate {url} and refresh {}. */
  "preview.fetch": { params: PreviewParams; result: PreviewFile };
  /** Sends all clients that show the preview to an address, if the address exists. An address is a path, such as /index.html, or a URL that begins with origin. Any other address is the error `navigation_failed`. */
  "preview.navigate": { params: PreviewParams; result: PreviewShown };
  /** Makes all clients that show the preview reload it. */
  "preview.refresh": { params: Record<string, never>; result: PreviewShown };
  /** Reports a console message of a page; a notification or a request. Duet stores the message with a session, so that agents can read it (preview.messages). It stores the last 1,000 messages. After the first 100, it stores at most 20 a second, and only counts the others. */
  "preview.console": { params: ConsoleParams; result: PreviewKept };
  /** Reports an error in a page; a notification or a request. Duet stores the message with a session, so that agents can read it (preview.messages). It stores the last 1,000 messages. After the first 100, it stores at most 20 a second, and only counts the others. */
  "preview.error": { params: PageErrorParams; result: PreviewKept };
  /** Reports the current address of a page; a notification or a request. As with preview.fetch, the caller then counts as showing the preview. Duet stores the message with a session, so that agents can read it (preview.messages). It stores the last 1,000 messages. After the first 100, it stores at most 20 a second, and only counts the others. */
  "preview.navigated": { params: NavigationParams; result: PreviewKept };
  /** Lists messages of the preview's pages, the oldest first. */
  "preview.messages": { params: PageMessagesParams; result: PageMessages };
  /** Sends events to this connection, as notifications event. With since, it first replays the stored events after that seq. Pending approvals come first. After 30 s without an event, the notification heartbeat is sent. The connection still serves requests. A connection has at most 64 subscriptions. */
  "event.subscribe": { params: SubscribeParams; result: SubscribeResult };
  /** Ends a subscription of this connection. */
  "event.unsubscribe": { params: UnsubscribeParams; result: Success };
  /** Starts a program in a terminal, and watches it as terminal.attach does. The terminal ends with the daemon, unless it is one of tmux. */
  "terminal.start": { params: StartTerminalParams; result: StartTerminalResult };
  /** Lists the running terminals, also those of agents, the oldest first. */
  "terminal.list": { params: Record<string, never>; result: TerminalList };
  /** Watches a terminal: this connection gets its recent output, further output and its end as events. Any number of connections can watch a terminal. An agent's terminal can only be watched. */
  "terminal.attach": { params: AttachTerminalParams; result: AttachTerminalResult };
  /** Ends the watch that terminal.start or terminal.attach started for this connection. The program continues. If the client has the descriptor, it must stop reading it before this call. */
  "terminal.detach": { params: CloseTerminalParams; result: DetachTerminalResult };
  /** Sends input to a terminal. The connection need not watch it. */
  "terminal.write": { params: WriteTerminalParams; result: Success };
  /** Changes a terminal's size for all connections that watch it. */
  "terminal.resize": { params: ResizeTerminalParams; result: Success };
  /** Closes a terminal and ends its program. */
  "terminal.close": { params: CloseTerminalParams; result: CloseTerminalResult };
}

/** The name of a method. */
export type Method = keyof Methods;

/** The parameters of a method. */
export type Params<M extends Method> = Methods[M]["params"];

/** The result of a method. */
export type Result<M extends Method> = Methods[M]["result"];

/** The methods that may take as long as a person or an agent does; $/cancelRequest cancels them. */
export const longRunning: ReadonlySet<Method> = new Set<Method>([
  "daemon.listen",
  "project.list",
  "project.keep",
  "project.move",
  "project.forget",
  "editor.call",
  "turn.wait",
  "attempt.start",
  "attempt.list",
  "attempt.choose",
  "session.start",
  "session.set",
  "session.delete",
  "session.land",
  "session.save",
  "session.discard",
  "agent.check",
  "agent.login",
  "agent.logout",
  "agent.sessions",
  "session.adopt",
  "agent.forget",
  "build.run",
  "gate.check",
  "session.search",
  "session.export",
  "change.list",
  "change.accept",
  "change.revert",
  "change.reopen",
  "session.rewind",
  "approval.list",
  "approval.get",
  "approval.ask",
  "approval.request",
  "mcp.tools",
  "mcp.call",
  "preview.fetch",
  "preview.navigate",
  "terminal.start",
  "terminal.attach",
  "terminal.detach",
]);

/** The data of each kind of event, by its name on the wire. */
export interface Events {
  /** When: every change of a turn's state. Without `seq`: the disk is full, and the daemon stores the end of the turn when there is space. */
  "turn.state": TurnStateEvent;
  /** When: a message, thought or notice is complete. A message comes again if the agent adds text after its turn. */
  "item.added": Item;
  /** When: a tool call starts, changes or ends. */
  "item.changed": Item;
  /** When: text of a message in progress: the first of a message at once, then at most 20 a second, or as `delta_interval_ms` of `event.subscribe` says. */
  "text.delta": TextEvent;
  /** When: text of a thought in progress, at the pace of `text.delta`. */
  "thought.delta": TextEvent;
  /** When: a question. */
  "approval.opened": ApprovalOpenedEvent;
  /** When: the end of a question. */
  "approval.closed": ApprovalClosedEvent;
  /** When: settings, title, mode, or the agent's own session changed; absent members did not. */
  "session.changed": SessionEvent;
  /** When: turns of a session were deleted (`session.delete`). The log keeps the numbers of deleted events and sends them to no client: a client that resumes after one of them misses nothing else. */
  "session.deleted": SessionDeletedEvent;
  /** When: a client edited a queued prompt, or moved it within the queue of its session. */
  "queue.changed": QueueEvent;
  /** When: the agent's plan, whole. */
  plan: PlanEvent;
  /** When: tokens, context, cost. */
  usage: UsageEvent;
  /** When: an agent's report of its progress. */
  progress: ProgressEvent;
  /** When: the turn has changed a file. */
  "change.made": ChangeEvent;
  /** When: a client accepted or reverted a change of the turn, or withdrew that decision. */
  "change.decided": ChangeDecidedEvent;
  /** When: the agent's report about its session changed; the event has the changed parts, each whole. */
  "agent.session": AgentSessionEvent;
  /** When: an error that an agent reports, or one about it. `CONTENT_REFUSED`: an image or another file of the agent was broken or too long (10 MiB; 64 MiB in a turn), and was omitted. `MCP_SERVER_FAILED`: an MCP server of the agent does not work. `SETTING_IGNORED`: the agent has no way to apply a setting, such as a model if it lists none. `RULES_NOT_ASKED`: the agent may act without asking in its current mode. These also come as a notice, which the session keeps. */
  "agent.error": AgentErrorEvent;
  /** When: an agent has given no sign of life for 5 s, or for 30 s during a tool call, and does not wait for a person; it writes to its stderr meanwhile; with `ended`, it works again. The silence also ends when the turn ends, is interrupted or waits for input. Its error output, or a silence of a minute or longer, then comes as a notice, which the session keeps. */
  "agent.silent": SilentEvent;
  /** When: an agent's update of an unknown kind. */
  "agent.update": AgentUpdateEvent;
  /** When: a turn of work that has gates starts ([gates.md](gates.md)). */
  "gate.iteration": GateIterationEvent;
  /** When: a gate starts after that turn. */
  "gate.started": GateStartedEvent;
  /** When: the result of a gate. */
  "gate.result": GateResultEvent;
  /** When: the work with gates has ended. */
  "gate.ended": GatesEndedEvent;
  /** When: a trigger has acted, waits for a person, or has reached a limit ([automation.md](automation.md)). If a turn started, the event names it. */
  "trigger.fired": TriggerFiredEvent;
  /** When: a build of the project (`build.run`) has started or ended; its caller gets more. It belongs to no turn. */
  "build.progress": BuildEvent;
  /** When: output of a terminal of an agent, or of one of yours. */
  "terminal.output": TerminalOutputEvent;
  /** When: the end of a terminal's program. */
  "terminal.exited": TerminalExitedEvent;
  /** When: you did not keep up: output of a terminal was omitted. */
  "terminal.lagged": TerminalLaggedEvent;
  /** When: a key is needed; answer with `secret.provide`. It is not in the log; a client that subscribes while it is pending gets it, too. */
  "secret.requested": SecretEvent;
  /** When: you did not keep up: deltas were omitted, and nothing else. */
  lagged: LaggedEvent;
  /** When: the database is damaged and these events cannot be read, whatever you subscribed to; the events after them follow. */
  "log.damaged": LogDamagedEvent;
  /** When: the daemon does not answer (the editor's process sends this). */
  "daemon.silent": DaemonEvent;
  /** When: the daemon answers again. */
  "daemon.answers": DaemonEvent;
}

/** The name of a kind of event. */
export type EventKind = keyof Events;

/** The params of a notification "event". */
export type HubEvent = { [K in EventKind]: Omit<Event, "kind" | "data"> & { kind: K; data: Events[K] } }[EventKind];

/** The words for each state of a turn. */
export const turnStateWords: Readonly<Record<string, string>> = {
  cancelled: "interrupted",
  completed: "completed",
  discarded: "discarded",
  draft: "draft",
  failed: "failed",
  interrupted: "interrupted",
  interrupting: "interrupting",
  queued: "queued",
  running: "running",
  starting: "starting",
  timed_out: "timed out",
  waiting_input: "waiting for you",
};

/** The words for each status of an approval. */
export const approvalStatusWords: Readonly<Record<string, string>> = {
  pending: "open",
  approved: "allowed",
  denied: "denied",
  responded: "answered",
  expired: "expired",
  cancelled: "withdrawn",
};

/** The ways to answer a question about a tool: the key, the words and the meaning, the same in each client. */
export const answers = {
  allow: { key: "y", words: "Allow", meaning: "The tool runs this once." },
  deny: { key: "n", words: "Deny", meaning: "The tool does not run." },
  tell: { key: "t", words: "Deny and say why", meaning: "The agent gets your reason." },
  session: { key: "s", words: "Always in this session", meaning: "Such calls run without a question in this session." },
  project: { key: "p", words: "Always in this project", meaning: "Such calls run without a question in this project." },
  edit: { key: "e", words: "Edit", meaning: "You change what the tool gets, and then allow it." },
  keys: { key: "?", words: "Keys", meaning: "Shows what the keys do." },
} as const;
