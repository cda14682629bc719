// Made by `make generate`. The methods of duet-rpc, as rpc.discover describes them.

export type AdoptParams = {
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
  /** The agent's own id of the session, as agent.sessions lists it. */
  native_session_id: string;
  /** The directory in which it is to go on; ~ is expanded; absent: as the agent says, or else the project's root. */
  working_dir?: string;
  /** What to call the session; absent: as the agent does. */
  title?: string;
};

export type AdoptResult = {
  session_id: string;
  run_id: string;
  /** The same under its name as a task. */
  task_id: string;
  /** The conversation. */
  thread_id: string;
  /** The agent that was taken. */
  agent: string;
  status: string;
  native_session_id: string;
  /** False: it had a conversation here already, which was left as it is. */
  adopted: boolean;
  /** Whether its agent has told what was said and done in it. Of one that was here already: true. */
  history: boolean;
  /** What is to be known about that, in words. */
  note?: string;
};

export type Agent = {
  name: string;
  title: string;
  /** acp, command or executor. */
  driver: string;
  /** It is used where no agent is named. */
  default: boolean;
  /** Its program was found. */
  available: boolean;
  /** Where its program is. */
  path?: string;
  /** How to get it, where it is not available. */
  install?: string;
  /** Where the agent's own command line is, if its adapter for the Agent Client Protocol is missing. */
  cli?: string;
  /** Which configuration defined it last: built-in, user or project. */
  source: string;
  /** False: it is defined in a project's file that the user has not trusted, so it is not started. */
  trusted: boolean;
  /** Of its program or its adapter; absent: not known without starting it. */
  version?: string;
  /** What it reported last: yes, no, not_needed or opens_sessions (see agent.check); answered: it has answered a prompt; unknown: agent.check asks it. Absent: it cannot be asked. */
  signed_in?: string;
  /** The account, in its words; or why there is none. */
  account?: string;
  /** When it reported that. */
  signed_in_at?: string;
  /** Where that is not known: the evidence that the user is signed in, in words. */
  signed_in_hint?: string;
};

export type AgentCommand = {
  /** Without the slash. */
  name: string;
  description?: string;
  /** What may follow it, in words. */
  input_hint?: string;
  /** What else the agent says of it, as it says it. */
  extra?: unknown;
};

export type AgentDescription = {
  agent: string;
  /** All that can be asked for. */
  modes: Array<Mode>;
  /** Absent: it has told nothing yet. */
  agent_session?: AgentSession;
};

export type AgentInfo = {
  name?: string;
  title?: string;
  version?: string;
};

export type AgentList = {
  /** The default one first, then those that are available. */
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
  /** The id of a value; true or false of a boolean; empty of a type that is not known. */
  current: string;
  /** Those that there are; empty of a type that is not known. */
  values: Array<Choice>;
  /** What else the agent says of it, as it says it. */
  extra?: unknown;
};

export type AgentParams = {
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
};

export type AgentReport = {
  /** The name that the program gives itself. */
  agent?: string;
  version?: string;
  /** yes, no, not_needed, or opens_sessions: it opens sessions and has not reported whether the user is signed in; some agents check that only at a prompt. */
  signed_in: string;
  /** The account, in the agent's words; or why there is none. */
  account?: string;
  /** The ways to sign in that it offers. */
  methods: Array<SignInMethod>;
  /** Whether it can sign out on request. */
  logout: boolean;
};

export type AgentSession = {
  /** Which program it is, in its own words. */
  agent?: AgentInfo;
  /** The mode that it is in, and those that it has; none is available of an agent without modes. */
  mode?: Selection;
  /** The model that it works with, and those that it has; none is available of an agent that does not say. */
  model?: Selection;
  /** What else it can be set to, in its order; those that choose its mode and its model are among them. */
  options?: Array<AgentOption>;
  /** Its slash commands: a prompt may begin with / and the name of one. */
  commands?: Array<AgentCommand>;
  /** What it calls the session. */
  info?: SessionInfo;
  /** What it does in the background, while no prompt runs. */
  background?: Array<BackgroundTask>;
};

export type Approval = {
  id: string;
  /** The same as id. */
  approval_id: string;
  /** The same as tool_use_id, or where another approval has that already, made of it: no two have the same. */
  call_id: string;
  run_id: string;
  session_id: string;
  task_id?: string;
  thread_id?: string;
  agent?: string;
  /** pending, approved, denied, responded, expired or cancelled. */
  status: string;
  /** The process that asked is gone: approving resumes the session. */
  stale: boolean;
  /** The approval that this one asks again: it was answered, and the agent is not known to have acted on that. */
  reopens?: string;
  /** Why it is asked again, in words for people; show it. */
  reopened?: string;
  /** The approval that asks this one again. */
  reopened_as?: string;
  /** When the agent was seen to go on from the answer. */
  taken_at?: string;
  created_at: string;
  /** When it expires. */
  deadline?: string;
  tool_name: string;
  tool_input: unknown;
  /** Whether a decision may have an updated_input: most agents would run the tool with their own input all the same. */
  input_editable: boolean;
  /** Why programs may read tool_input differently, such as a member that stands there twice; the title says so too. No rule allows such a call, and it can be approved once alone. */
  input_ambiguity?: string;
  /** The agent's own id of the tool call that waits, as in events and conversations; agents use one again in another session. */
  tool_use_id?: string;
  /** read, edit, delete, move, search, execute, think, fetch or other. */
  tool_kind?: string;
  /** What is asked, in words. */
  title: string;
  subject?: string;
  /** The answers that the agent offers: [{option_id,name,kind}]. */
  options?: Array<unknown>;
  /** Of a human_contact: it is answered with one of its options alone, since whoever asks can be told nothing else. Other words are refused. */
  options_only?: boolean;
  /** Of a human_contact: it can be denied too, which says that nothing was chosen, filled in or opened. */
  declinable?: boolean;
  /** The files that it touches. */
  paths?: Array<string>;
  /** What it would change, as a unified diff. */
  diff?: string;
  /** What the agent says about the tool call beside its title and input: a text for people. Of an agent that sends no input it is all that is known of the call. */
  details?: string;
  /** What the agent would do next, where it asks to leave its plan mode: a text, mostly Markdown. No rule is made of the answer. */
  plan?: string;
  /** What a decision with a scope would hold for, by scope: session and project. Absent: no rule can be made of it. It is Duet's rule; what an option of the kind allow_always makes the agent remember is the agent's, and its name says it. */
  rule_preview?: Record<string, RulePreview>;
  /** Whether the agent is told the comment with the decision. Else a decision with tell gives it as the next prompt. */
  takes_comment: boolean;
  channel?: unknown;
  responded_at?: string;
  /** user, rule=…, mode=…, timeout, end, overtaken (the conversation went on without it), or changed (the agent changed the tool call, and another approval asks again). */
  decided_by?: string;
  /** What the rule or mode that decided is, in words: of a rule of a file, which one and where it stands. */
  explanation?: string;
  comment?: string;
  response?: string;
  /** The option that was chosen. */
  option?: string;
  /** The input as a human changed it. */
  updated_input?: unknown;
  /** Parts of the input were left out, to fit into a message. */
  truncated?: boolean;
  /** form or url: of a question that asks a person to fill in a form or to open an address. It is answered with respond, deny (declined) or cancel. */
  mode?: string;
  /** Of a form: a flat object of JSON Schema, as of ACP's elicitation. The answer's content has to fit it. */
  schema?: unknown;
  /** The address to open. It is opened by nobody unless a person says so; responding says that a person agrees to open it. */
  url?: string;
  /** The host that url leads to: show it beside. */
  url_host?: string;
  /** What to look at before url is opened, in words for people; show them. */
  url_warnings?: Array<string>;
  /** The values of the form as a human filled them in. */
  content?: unknown;
  type: ApprovalType;
  function_call?: FunctionCallRequest;
  human_contact?: HumanContactRequest;
};

export type ApprovalIDs = {
  /** The call_id of the approval, or its id. This or approval_id is needed. */
  call_id?: string;
  /** The approval. */
  approval_id?: string;
};

export type ApprovalList = {
  approvals: Array<Approval>;
};

export type ApprovalResult = {
  approval: Approval;
};

export type ApprovalType = "function_call" | "human_contact";

export type ApprovalsStatus = {
  pending: number;
};

export type ArchiveManyParams = {
  /** The sessions. */
  session_ids: Array<string>;
  /** False takes them back; absent: true. */
  archived?: boolean;
};

export type ArchiveManyResult = {
  /** All were changed. */
  success: boolean;
  /** Those that could not be changed. */
  failed_sessions?: Array<string>;
};

export type ArchiveParams = {
  /** The session; every id of the run will do. */
  session_id: string;
  /** False takes it back; absent: true. */
  archived?: boolean;
};

export type AskUserParams = {
  /** What to ask. */
  message: string;
  /** What it is about, in a few words. */
  subject?: string;
  /** Answers to choose from: strings, or {option_id,name,kind}. Absent: any words will do. */
  options?: unknown;
  /** A session that works, by any id: the question is its own, and it waits too. Another name is that of a conversation of questions, which is made where there is none; absent: the project's. */
  thread?: string;
  /** The directory that paths and rules are read in, where the question is not a session's; absent: the project's root. */
  cwd?: string;
  /** The question stays open when the connection ends, or the hub: who asks the same again in the same thread gets the answer, for an hour. Has no effect on a question of a session. */
  keep?: boolean;
};

export type AskUserResult = {
  /** The answer in words: what was written, or the name of the option. */
  response: string;
  /** The option_id of the option that was chosen. */
  option?: string;
  /** The question, as getApproval has it. */
  approval_id: string;
};

export type AttachTerminalParams = {
  /** The terminal. */
  terminal_id: string;
  /** With rows: the size that the terminal gets, for all who watch it; absent or 0: it stays. */
  cols?: number;
  /** See cols. */
  rows?: number;
  /** Pass the terminal's descriptor with the reply (SCM_RIGHTS, on a Unix socket alone): until terminal.detach, or its end, this connection reads and writes it, and no terminal_output comes. Refused while others watch. */
  descriptor?: boolean;
};

export type AttachTerminalResult = {
  terminal_id: string;
  /** The process in the terminal; 0 if that is not known. */
  pty_pid: number;
  program: string;
  args: Array<string>;
  cwd: string;
  /** Absent for an agent's terminal, which has no size. */
  cols?: number;
  rows?: number;
  /** The tmux session that it shows. */
  tmux_session?: string;
  /** The task whose agent runs it. */
  task_id?: string;
  /** The same, as a session. */
  session_id?: string;
  /** It is an agent's: it can be watched, and no more. */
  read_only: boolean;
  /** How many connections watch it. */
  attached: number;
  /** A connection has its descriptor; nobody else can watch it. */
  taken: boolean;
  started_at: string;
  /** With the descriptor: what was printed lately, before it was handed over. */
  recent?: string;
  /** Of recent. */
  recent_encoding?: Encoding;
};

export type AttachmentParams = {
  /** The attachment_id. */
  id: string;
  /** How many bytes to leave out at the beginning. */
  offset?: number;
  /** How many bytes; absent or 0: all that fit. */
  limit?: number;
};

export type AttachmentResult = {
  id: string;
  /** As it was said first; absent: nobody said. */
  mime_type?: string;
  /** Of all of it, in bytes. */
  size: number;
  /** In base64. */
  data: string;
  /** There is more: pass this as offset. */
  next_offset?: number;
};

export type AuthMethod = {
  /** For agent.authenticate, and for duet-rpc agents login --method. */
  id: string;
  name: string;
  description?: string;
  /** agent: it does that itself, in a browser mostly; terminal: a program in a terminal does; env_var: variables of its environment do. */
  type: string;
};

export type AuthenticateParams = {
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
  /** The id of a way to sign in, as agent.check lists them; absent: the only one. */
  method?: string;
};

export type AutomationLogParams = {
  /** One trigger; absent: all. */
  ruleId?: string;
  /** How many; 50 unless told, 500 at most. */
  limit?: number;
};

export type AutomationLogResult = {
  executions: Array<TriggerExecution>;
};

export type AutomationParams = {
  /** One trigger; absent: all as a whole. */
  ruleId?: string;
};

export type AutomationStatus = {
  /** As a whole. */
  enabled: boolean;
  ruleCount: number;
  rules: Array<Trigger>;
  /** The last 10, the newest last. */
  recentExecutions: Array<TriggerExecution>;
  /** Why no trigger does anything. */
  problem?: string;
  /** What triggers are not told, and what to do: the system lets no more directories be watched. */
  issues?: Array<string>;
};

export type AutomationSwitched = {
  /** The trigger, or all as a whole. */
  enabled: boolean;
  /** False: there is no such trigger. */
  success: boolean;
  ruleId?: string;
};

export type AutomationTestParams = {
  /** Such as run.failed or file.modify. */
  type: string;
  /** watch, schedule, run or approval. */
  source: string;
  /** An object: what the event has besides. */
  payload?: unknown;
};

export type AutomationTestResult = {
  rules: Array<AutomationTrial>;
};

export type AutomationTrial = {
  ruleId: string;
  fits: boolean;
  /** It is not for the event. */
  why?: string;
  /** What it would do. */
  does?: TriggerAction;
};

export type BackgroundTask = {
  id: string;
  /** tool_call, terminal or process. */
  kind: string;
  /** A tool call's title, or a command. */
  title?: string;
  /** It can be stopped alone. */
  stoppable?: boolean;
};

export type BuildList = {
  builds: Array<BuildTarget>;
};

export type BuildParams = {
  /** One of listBuilds; absent: the first one. */
  name?: string;
};

export type BuildResult = {
  success: boolean;
  build_id: string;
  name: string;
  command: Array<string>;
  duration_ms: number;
  /** What was said to be wrong; at most a thousand. */
  warnings: Array<Diagnostic>;
};

export type BuildTarget = {
  name: string;
  /** The program and its arguments. */
  command: Array<string>;
  /** In which it runs, relative to the project's; absent: that. */
  directory?: string;
  /** buildBackend builds it. */
  backend: boolean;
  /** The project's files suggest it; it is not configured. */
  detected: boolean;
};

export type CallToolParams = {
  /** The server, as mcp.listServers has it. */
  server: string;
  /** The agent that gets them; absent: the default one, or that of the thread. */
  agent?: string;
  /** A conversation, by any id: its own servers, too, and its directory. */
  thread?: string;
  /** The tool, as mcp.listTools has it. */
  tool: string;
  /** An object that fits the tool's inputSchema. */
  arguments?: unknown;
  /** A human has just said here that it may run: nobody is asked. Deny rules, and plan mode, hold nevertheless. */
  confirmed?: boolean;
};

export type CallToolResult = {
  /** As the Model Context Protocol has it: an array of texts, images, … */
  content: unknown;
  /** The same as a value, where the tool gives one. */
  structuredContent?: unknown;
  /** The tool failed, and content says why. */
  isError?: boolean;
};

export type CancelTaskResult = {
  /** The task was cancelled, or its end has begun. False: it has ended before. */
  cancelled: boolean;
};

export type Capabilities = {
  /** Batches are answered. */
  batch: boolean;
  /** $/cancelRequest cancels a long-running request. */
  cancellation: boolean;
  /** The longest body that is accepted. */
  maxFrameBytes: number;
  /** The longest header section that is accepted. */
  maxHeaderBytes: number;
  /** The charset of messages. */
  charset: string;
  /** The methods whose requests run beside others and can be cancelled. */
  longRunning: Array<string>;
  /** Which families of methods are served: core, task, session, executor, terminal. */
  methodFamilies: Array<string>;
  /** The types of events that Subscribe can choose. */
  eventTypes?: Array<string>;
};

export type ChangeDecision = "accept" | "revert" | "reopen";

export type ChatParams = {
  /** What to say. */
  message: string;
  /** Higher first; 5 unless told. */
  priority?: number;
};

export type CheckGateParams = {
  /** The name of a gate of the configuration, or a line for the shell. */
  gate: string;
};

export type Choice = {
  id: string;
  name?: string;
  description?: string;
  /** The heading under which the agent lists it. */
  group?: string;
  /** What else the agent says of it, as it says it. */
  extra?: unknown;
};

export type ClientBuildParams = {
  /** The build id of the program that the client would start as a daemon. */
  build?: string;
  /** Its version. */
  version?: string;
  /** The client shows its user the notice of the result. */
  notices?: boolean;
};

export type ClientEnvironmentParams = {
  /** Variables, at most 256 and 64 KiB. docs/configuration.md says which of them reach what. */
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
  /** log, debug, info, warn or error; absent: log. */
  level?: string;
  /** What was written, as one text. */
  message?: string;
  /** What was written, where there is no message: texts as they are, other values as JSON. */
  args?: Array<unknown>;
  /** Of the page. */
  url?: string;
  /** Of the script; 1 is the first. */
  line?: number;
  /** Within the line; 1 is the first. */
  column?: number;
  /** A session that it is kept with, by any id; absent: the one that was begun last. */
  session_id?: string;
};

export type ContentBlock = {
  /** text, image, audio, resource or resource_link. */
  type: string;
  /** Of a text. */
  text?: string;
  /** Such as image/png. An image and a sound need one. */
  mimeType?: string;
  /** Of an image and a sound: the bytes, in base64. */
  data?: string;
  /** Of a link: where it can be had. Of an image: where it came from. */
  uri?: string;
  /** Of a link: what it is called. */
  name?: string;
  title?: string;
  description?: string;
  /** Of a link: in bytes. */
  size?: number;
  /** Of a resource. */
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

export type ContinueParams = {
  /** The session to go on from; every id of the run will do. */
  session_id: string;
  /** What the agent is to do. Needed, unless the session is a draft, which has its own. */
  query?: string;
  /** Replaces the agent's system prompt, where it has one. */
  system_prompt?: string;
  /** Follows the system prompt. */
  append_system_prompt?: string;
  /** Further instructions. */
  custom_instructions?: string;
  /** {mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}; also as a string that holds this JSON. */
  mcp_config?: unknown;
  /** Kept for old clients; permissions are asked by approvals. */
  permission_prompt_tool?: string;
  /** The only tools the agent may use, and without being asked for; empty: all, or as the session before might. */
  allowed_tools?: Array<string>;
  /** Tools the agent may not use. */
  disallowed_tools?: Array<string>;
  /** Directories beside working_dir that the agent may use. */
  additional_directories?: Array<string>;
  /** This connection has files otherwise than the disk: where the agent reads a text file through Duet, the connection is asked for it ("Files"). */
  reads_files?: boolean;
  /** How many turns the agent may take: rounds of tool calls; 0: as configured. Then it is interrupted. */
  max_turns?: number;
  /** How much each run of the conversation may use, in the place of what is configured ([budget.run]); absent: as the session before. */
  budget?: RunBudget;
  /** What goes with it, as the content blocks of the Agent Client Protocol: images, audio, resources and links to some. Texts are added to it. Images, audio and resources have at most 10 MiB each, all together 20 MiB. A session whose agent does not take them fails, and says what the agent takes; a resource becomes a link instead. */
  content?: Array<ContentBlock>;
  /** Begins another conversation there, also behind the last session of one. */
  fork?: boolean;
  /** With fork: a UUID that the caller has chosen to be the thread_id of the new conversation. */
  conversation_id?: string;
  /** Higher first. */
  priority?: number;
  /** An object to keep with the session. */
  metadata?: unknown;
  /** queue (the default): the prompt waits until the turn that is under way has ended. steer: the agent gets it while it works, if it can take it; else it waits, too. A prompt with content, other settings or gates waits in any case. */
  deliver?: string;
  /** How long it may run, in milliseconds; absent or 0: as the session before. */
  timeout_ms?: number;
  /** Commands that have to succeed ("Gates"): names of [[gates]] of the configuration, or lines for the shell. They run where the agent works after each turn that completes; what fails is the next prompt of the conversation. */
  gates?: Array<string>;
  /** With gates: how many turns there may be, 5 unless told, 100 at most. */
  max_iterations?: number;
};

export type ContinueResult = {
  session_id: string;
  run_id: string;
  /** The same under its name as a task. */
  task_id: string;
  /** The conversation. */
  thread_id: string;
  /** The agent that was taken. */
  agent: string;
  status: string;
  /** The agent's own id of the conversation; empty before its first turn. */
  claude_session_id: string;
  parent_session_id: string;
  /** injected: the agent that works has the prompt, and session_id is its session; started; or queued. */
  delivered: string;
};

export type ConversationEvent = {
  id: number;
  /** Of the session in which it happened. */
  session_id: string;
  claude_session_id: string;
  /** From 1, over the whole conversation. */
  sequence: number;
  /** message, thinking, tool_call, tool_result or system; with LSP framing also plan, diff for a file that the session has changed, and approval for what a human has answered. */
  event_type: string;
  created_at: string;
  /** user or assistant. */
  role?: string;
  content?: string;
  tool_id?: string;
  tool_name?: string;
  /** The input, as a string that holds JSON. */
  tool_input_json?: string;
  parent_tool_use_id?: string;
  tool_result_for_id?: string;
  tool_result_content?: string;
  /** Of a tool call: it has ended. Of anything else: it is whole. */
  is_completed: boolean;
  /** pending, approved, denied, responded, expired or cancelled. */
  approval_status?: string;
  approval_id?: string;
  /** Of a tool call and its result: who did not let it run, as an approval's decided_by. One that failed otherwise has none. */
  refused_by?: string;
  /** Why, in words. */
  refusal?: string;
  /** Of the event in the log that changed it last. */
  seq?: number;
  /** By which message_delta and thinking_delta name it. */
  key?: string;
  /** Of a tool call: what it does, in words. */
  title?: string;
  /** read, edit, delete, move, search, execute, think, fetch or other. */
  tool_kind?: string;
  /** Of a tool call: pending, in_progress, completed or failed. Of a message: cancelled, if it was taken back before the agent was given it; the agent is not told of it later. */
  status?: string;
  /** Of a tool call: paths, diffs, terminal, attachments, _meta. Of a message or a thought: attachments, _meta: the agent's own, at most 8 KiB. Of a plan: entries. Of a diff: path, added, removed, binary. Of an approval: approval_id, type, decision, title, response_text, input_was_edited, decided_by, explanation. */
  data?: unknown;
};

export type ConversationParams = {
  /** The session; every id of the run will do. This or claude_session_id is needed. */
  session_id?: string;
  /** The agent's own id of the conversation. */
  claude_session_id?: string;
  /** How many events to leave out at the beginning. */
  offset?: number;
  /** How many events; absent or 0: all that fit, 10,000 at most. */
  limit?: number;
};

export type ConversationResult = {
  events: Array<ConversationEvent>;
  /** How many events there are. */
  total: number;
  /** There are more: pass this as offset. */
  next_offset?: number;
};

export type CreateApprovalParams = {
  /** The run that waits; every id of it will do. This or session_id is needed. */
  run_id?: string;
  /** Another name for run_id. */
  session_id?: string;
  /** Absent: function_call. */
  type?: ApprovalType;
  /** Of a function_call: the tool. */
  tool_name?: string;
  /** Of a function_call: its input. */
  tool_input?: unknown;
  /** The agent's own id of the tool call. */
  tool_use_id?: string;
  /** Of a human_contact: what to ask. */
  message?: string;
  /** Of a human_contact: what it is about. */
  subject?: string;
  /** Answers to choose from: [{option_id,name,kind}]. */
  options?: unknown;
  /** Kept, and given back. */
  channel?: unknown;
  /** Of a human_contact: a form to fill in, a flat object of JSON Schema as of ACP's elicitation. */
  schema?: unknown;
  /** Of a human_contact: an address to open, once a person agrees. */
  url?: string;
};

export type CreateApprovalResult = {
  approval_id: string;
  call_id: string;
  /** pending, unless a rule or a mode has answered already. */
  status: string;
};

export type CreateMessageParams = {
  /** Optional; one that is wrong, or of another conversation, is refused. */
  session_token?: string;
  /** The task; every id of the run will do. */
  task_id: string;
  /** The message. */
  message: Message;
};

export type CreateMessageResult = {
  message_id: string;
  created_at: string;
};

export type DaemonBuild = {
  /** Of the daemon. */
  version: string;
  /** The version of the protocol between clients and the daemon. A client of another build uses the daemon only if it has the same one. */
  protocol: number;
  /** With notices: as in the result of Subscribe. */
  notice?: string;
  /** True: the daemon closes the connection and ends, so that the client can start another one. */
  ends: boolean;
};

export type DaemonStatus = {
  pid: number;
  uptime_seconds: number;
  started_at: string;
  /** healthy or degraded. */
  health: string;
  /** What is wrong, and what to do. */
  issues?: Array<string>;
  version: string;
  /** daemon. */
  hub?: string;
  subsystems: Subsystems;
};

export type DecideChangeParams = {
  /** The session that has made the change; every id of the run will do. */
  session_id: string;
  /** A file_path of getSessionSnapshots; one that is relative is so to the session's directory. */
  path: string;
  /** The id of one hunk; absent: all of the file, all or nothing. */
  hunk?: string;
  /** accept: it was seen, and stays. revert: it is taken back in the file on the disk; a file that the session made is deleted, one that it deleted is there again. reopen: nothing is decided any more; what was reverted is in the file again. */
  decision: ChangeDecision;
};

export type DecideChangeResult = {
  path: string;
  /** Of all of the file, as of getSessionSnapshots. */
  state: string;
  /** All of the file, as they are now. */
  hunks: Array<Hunk>;
};

export type DecisionParams = {
  /** The call_id of the approval, or its id. This or approval_id is needed. */
  call_id?: string;
  /** The approval. */
  approval_id?: string;
  /** What it is thought to be; absent: whatever it is. */
  type?: ApprovalType;
  /** A function_call is approved or denied, a human_contact is responded to; one in which an agent offers options can be denied too. One with a mode is responded to, denied (declined), or cancelled. */
  decision: Verdict;
  /** Why, or the response. Needed to deny and to respond (unless option is the response). */
  comment?: string;
  /** The tool runs with this input instead. Only where the approval is input_editable; else deny, and say in the comment what to run. */
  updated_input?: unknown;
  /** once, or a rule for the session or the project, which answers what waits there too. */
  scope?: DecisionScope;
  /** One of the approval's options: its option_id or name. It has to say what the decision says. */
  option?: string;
  /** The values of a form, an object that fits the approval's schema. An error names the field, such as content.port. */
  content?: unknown;
  /** With a scope: of the commands or files that the rule is to hold for, instead of what rule_preview says. Of commands as in the configuration; of files * stands for no slash, and src/** for all below src. It has to fit what is asked. */
  pattern?: string;
  /** The comment is to reach the agent: where it takes none with the decision, as the next prompt of its conversation. */
  tell?: boolean;
};

export type DecisionResult = {
  success: boolean;
  /** Why not. */
  error?: string;
  /** The approval's status now. */
  status?: string;
  /** The session whose prompt gives the comment to the agent, where tell made one. */
  told_session_id?: string;
  /** The same as a task. */
  told_task_id?: string;
};

export type DecisionScope = "once" | "session" | "project";

export type DeleteRuleParams = {
  /** The rule, as getRules lists it. */
  rule_id: number;
};

export type DeleteRuleResult = {
  /** true */
  success: boolean;
};

export type DeleteSessionResult = {
  thread_id: string;
  /** How many sessions are no more. */
  deleted: number;
  /** How many are left, since others were forked from there. */
  kept: number;
};

export type DescribeAgentParams = {
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
};

export type DetachTerminalResult = {
  /** False if this connection did not watch it. */
  detached: boolean;
};

export type Diagnostic = {
  /** Relative to the project's directory, or absolute if it is outside. */
  file: string;
  /** From 1; absent: not known. */
  line?: number;
  /** From 1, in the tool's own units; absent: not known. */
  column?: number;
  /** error, warning or note. */
  severity: string;
  message: string;
  /** What says it: go, gcc, typescript, rust, eslint, pytest, make, ... */
  source?: string;
};

export type EditQueuedParams = {
  /** The queued session; every id of the run will do. */
  session_id: string;
  /** What the agent is to do instead. */
  query: string;
};

export type Encoding = "utf-8" | "base64";

export type ExecuteParams = {
  /** Optional; one that is wrong, or of another conversation, is refused. */
  session_token?: string;
  /** The caller's own id of the conversation, or any id of one that there is. Prompts with the same one follow each other. */
  session_id?: string;
  /** The caller's own id of this prompt; it must be new, and not of the form task-0001, which is ours. */
  task_id?: string;
  /** What the agent is to do. */
  prompt: string;
  /** The directory in which the agent works; absent: the project's root. */
  cwd?: string;
  /** The tools that are allowed; absent or empty: all. */
  tools?: Array<string>;
  /** What the agent may do without asking; absent: as in the conversation so far. A plain command cannot be held to plan, which is refused. */
  permission_mode?: PermissionMode;
  /** How long it may run, in milliseconds; 300000 unless above 0. */
  timeout_ms?: number;
  /** False: subscribers get whole messages, no deltas. Default true. */
  stream?: boolean;
  /** Another name for agent; claude-code means claude. */
  agentic_tool?: string;
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
  /** What goes with it, as the content blocks of the Agent Client Protocol: images, audio, resources and links to some. Texts are added to it. Images, audio and resources have at most 10 MiB each, all together 20 MiB. A session whose agent does not take them fails, and says what the agent takes; a resource becomes a link instead. */
  content?: Array<ContentBlock>;
};

export type ExecuteResult = {
  /** completed, failed or cancelled. */
  status: string;
  /** How many messages the agent sent. */
  message_count: number;
  token_usage?: TokenUsage;
  error?: ExecutionError;
  /** The agent's own. */
  stop_reason?: string;
  /** The agent that was taken. */
  agent: string;
  /** The caller's, else ours. */
  session_id: string;
  /** The caller's, else ours. */
  task_id: string;
};

export type ExecutionError = {
  message: string;
  /** In capitals, such as EXECUTOR_ERROR or TIMEOUT. */
  code: string;
  /** Somebody has to sign in first: the ways that the agent offers. */
  auth_methods?: Array<AuthMethod>;
};

export type ExecutorsStatus = {
  running: number;
};

export type FetchApprovalsParams = {
  /** Only those of this session; every id of the run will do. */
  session_id?: string;
  /** Another name for session_id. */
  run_id?: string;
};

export type FunctionCallRequest = {
  run_id: string;
  call_id: string;
  spec: FunctionCallSpec;
  status: FunctionCallStatus;
};

export type FunctionCallSpec = {
  fn: string;
  kwargs: unknown;
  channel?: unknown;
  reject_options?: unknown;
};

export type FunctionCallStatus = {
  requested_at: string;
  responded_at?: string;
  approved?: boolean;
  comment?: string;
};

export type GateDefinition = {
  name: string;
  /** The program and its arguments. */
  command: Array<string>;
  /** In which it runs, relative to where the agent works; absent: that. */
  directory?: string;
};

export type GateList = {
  gates: Array<GateDefinition>;
  /** Those of a project's file that its user does not trust yet: duet-rpc trust. */
  waiting: Array<string>;
};

export type GateResult = {
  /** The command line, or the name of [[gates]]. */
  gate: string;
  passed: boolean;
  /** Why it did not pass, such as: exit status 2. */
  reason?: string;
  /** What its output says is wrong where; at most 50. */
  findings: Array<Diagnostic>;
  /** How many of the findings are errors, in all. */
  errors?: number;
  warnings?: number;
  /** Where it has failed: the first and the last lines that it printed. */
  output?: string;
  duration_ms: number;
};

export type Gates = {
  /** working, checking (the gates run), passed, failed, or stopped: a turn failed or somebody ended it. */
  state: string;
  /** Why it failed or was stopped. */
  reason?: string;
  /** Which turn it is, or was the last, from 1. */
  iteration: number;
  max_iterations: number;
  gates: Array<string>;
  /** Those that did not pass when they were checked last. */
  failing: Array<string>;
  /** What came of each when they were checked last. Not in lists. */
  results?: Array<GateResult>;
  /** The session of that turn. */
  session_id: string;
  /** The same under its name as a task. */
  task_id: string;
};

export type Health = {
  /** ok or degraded. */
  status: string;
  version: string;
  /** What is wrong, and what to do. */
  issues?: Array<string>;
};

export type HumanContactRequest = {
  run_id: string;
  call_id: string;
  spec: HumanContactSpec;
  status: HumanContactStatus;
};

export type HumanContactSpec = {
  msg: string;
  subject?: string;
  channel?: unknown;
  response_options?: Array<ResponseOption>;
};

export type HumanContactStatus = {
  requested_at: string;
  responded_at?: string;
  response?: string;
  response_option_name?: string;
};

export type Hunk = {
  /** The same as long as the change is. */
  id: string;
  /** As in its head in diff: of no lines 0. */
  old_start: number;
  old_lines: number;
  /** In the file as the session left it; what was reverted is not reckoned in. */
  new_start: number;
  new_lines: number;
  /** How many lines. */
  added: number;
  removed: number;
  /** open, accepted or reverted. */
  state: string;
};

export type IPCStatus = {
  clients: number;
  /** Where it listens. */
  sockets?: Array<string>;
  /** Who looks for a daemon and cannot reach this one, and why: AIWG's command line, where a daemon of AIWG runs. */
  unserved?: Array<string>;
};

export type InitializeParams = {
  /** What the caller can do. If it is there, the result tells what duet-rpc can do. */
  capabilities?: unknown;
  /** True: the user trusts this workspace in the editor, so what the project's .duet.toml runs, as it is now, may run, as after duet-rpc trust. False: nothing of that runs for what this connection launches, even where it was trusted before; others are not concerned. Absent: as duet-rpc trust has it. */
  workspaceTrusted?: boolean;
};

export type InitializeResult = {
  serverInfo: ServerInfo;
  protocolVersion: string;
  capabilities?: Capabilities;
};

export type InterruptParams = {
  /** The session; every id of the run will do. */
  session_id: string;
  /** Why, for the record. */
  reason?: string;
  /** Stop this task of the agent's background work alone, by its id in background of getSessionState. Agents of version 2 of the Agent Client Protocol may offer that; others stop all of it or none, and the error not_offered says so. */
  background?: string;
};

export type InterruptResult = {
  success: boolean;
  session_id: string;
  /** interrupting; interrupted if it had not been started. */
  status: string;
};

export type LaunchParams = {
  /** What the agent is to do. */
  query: string;
  /** What to call the session. */
  title?: string;
  /** A model that the agent has. One that it is known not to have is refused; an agent that does not say which it has is left alone. */
  model?: string;
  /** The directory in which the agent works; ~ is expanded; absent: the project's root. */
  working_dir?: string;
  /** Replaces the agent's system prompt, where it has one. */
  system_prompt?: string;
  /** Follows the system prompt. */
  append_system_prompt?: string;
  /** Further instructions. */
  custom_instructions?: string;
  /** {mcpServers:{name:{command,args?,env?}}} or {…:{type,url,headers?}}; also as a string that holds this JSON. */
  mcp_config?: unknown;
  /** Kept for old clients; permissions are asked by approvals. */
  permission_prompt_tool?: string;
  /** The only tools the agent may use, and without being asked for; empty: all, or as the session before might. */
  allowed_tools?: Array<string>;
  /** Tools the agent may not use. */
  disallowed_tools?: Array<string>;
  /** Directories beside working_dir that the agent may use. */
  additional_directories?: Array<string>;
  /** This connection has files otherwise than the disk: where the agent reads a text file through Duet, the connection is asked for it ("Files"). */
  reads_files?: boolean;
  /** How many turns the agent may take: rounds of tool calls; 0: as configured. Then it is interrupted. */
  max_turns?: number;
  /** How much each run of the conversation may use, in the place of what is configured ([budget.run]); absent: as the session before. */
  budget?: RunBudget;
  /** What goes with it, as the content blocks of the Agent Client Protocol: images, audio, resources and links to some. Texts are added to it. Images, audio and resources have at most 10 MiB each, all together 20 MiB. A session whose agent does not take them fails, and says what the agent takes; a resource becomes a link instead. */
  content?: Array<ContentBlock>;
  /** Kept for old clients. */
  verbose?: boolean;
  /** Edits need no approval. */
  auto_accept_edits?: boolean;
  /** Nothing needs approval. */
  dangerously_skip_permissions?: boolean;
  /** For how long, in milliseconds; absent or 0: without end. */
  dangerously_skip_permissions_timeout?: number;
  /** Another name for dangerously_skip_permissions_timeout. */
  dangerously_skip_permissions_timeout_ms?: number;
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
  /** What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent's own ("Modes"). One that it is known not to have is refused; a plain command cannot be held to plan, which is refused. */
  permission_mode?: string;
  /** Values of the agent's own options, by their ids. What it is known not to have is refused. */
  options?: Record<string, string>;
  /** Higher first. */
  priority?: number;
  /** How long it may run, in milliseconds; absent or 0: as configured. */
  timeout_ms?: number;
  /** A UUID that the caller has chosen to be the thread_id of the conversation. Where there is one with that id the session follows in it. */
  conversation_id?: string;
  /** Commands that have to succeed ("Gates"): names of [[gates]] of the configuration, or lines for the shell. They run where the agent works after each turn that completes; what fails is the next prompt of the conversation. */
  gates?: Array<string>;
  /** With gates: how many turns there may be, 5 unless told, 100 at most. */
  max_iterations?: number;
  /** Only keep it; continueSession launches it. */
  draft?: boolean;
  /** An object to keep with the session. */
  metadata?: unknown;
};

export type LaunchResult = {
  session_id: string;
  run_id: string;
  /** The same under its name as a task. */
  task_id: string;
  /** The conversation. */
  thread_id: string;
  /** The agent that was taken. */
  agent: string;
  status: string;
};

export type LeafFilter = "" | "normal" | "archived" | "draft";

export type Level = "debug" | "info" | "warn" | "error";

export type ListSessionsParams = {
  /** How many; 500 unless told, 1000 at most. */
  limit?: number;
  /** Only sessions older than this one, for paging. */
  before?: string;
  /** Only sessions with this status; absent: all that were not discarded. */
  status?: SessionStatus;
  /** Only archived sessions, or only others. */
  archived?: boolean;
  /** Only sessions of this agent. */
  agent?: string;
};

export type ListTasksParams = {
  /** Only tasks in this state. */
  state?: TaskState;
  /** How many; 20 unless told, 1000 at most. */
  limit?: number;
  /** Only tasks of this agent. */
  agent?: string;
  /** Only tasks older than this one, for paging. */
  before?: string;
};

export type MCPServer = {
  name: string;
  /** stdio, http or sse. */
  type: string;
  /** The program of one that is stdio, without its arguments: these may hold secrets. */
  command?: string;
  /** The address of another one, without what may be secret in it. */
  url?: string;
  /** It was started, or connected to, for mcp.listTools or mcp.callTool. */
  connected: boolean;
};

export type MCPServerList = {
  /** The agent that gets them. */
  agent: string;
  servers: Array<MCPServer>;
};

export type MCPServerName = {
  /** The server, as mcp.listServers has it. */
  server: string;
  /** The agent that gets them; absent: the default one, or that of the thread. */
  agent?: string;
  /** A conversation, by any id: its own servers, too, and its directory. */
  thread?: string;
};

export type MCPServerOwner = {
  /** The agent that gets them; absent: the default one, or that of the thread. */
  agent?: string;
  /** A conversation, by any id: its own servers, too, and its directory. */
  thread?: string;
};

export type MCPToolList = {
  /** As the server calls itself; may be empty. */
  server: string;
  version?: string;
  /** As the Model Context Protocol has them: name, title, description, inputSchema, … */
  tools: Array<unknown>;
};

export type Message = {
  /** Who says it. */
  role: MessageRole;
  /** A string, or whatever the type asks for. */
  content: unknown;
  /** What kind of message it is; absent: message. */
  type?: string;
};

export type MessageRole = "user" | "assistant";

export type MessagingStatus = {
  enabled: boolean;
};

export type MethodDescribed = {
  name: string;
  description: string;
  /** name: type, or name?: type where it may be left out. */
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
  /** agent, or duet: whatever the agent is in, Duet answers its questions like that. */
  by: string;
};

export type MoveQueuedParams = {
  /** The queued session; every id of the run will do. */
  session_id: string;
  /** The queued session of the same conversation before which it is to run; absent: it runs last. */
  before?: string;
};

export type NativeSession = {
  /** The agent's own id of it. */
  native_session_id: string;
  /** In the agent's words. */
  title?: string;
  /** When something happened in it last. */
  updated_at?: string;
  /** The directory in which it works. */
  working_dir?: string;
  /** The last session of the conversation here that has it. */
  session_id?: string;
  /** The same under its name as a task. */
  task_id?: string;
};

export type NativeSessionDeleteParams = {
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
  /** The agent's own id of the session. */
  native_session_id: string;
};

export type NativeSessionList = {
  /** Its name in the configuration. */
  agent: string;
  sessions: Array<NativeSession>;
  /** There may be more: pass this as cursor. */
  next_cursor?: string;
};

export type NativeSessionListParams = {
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
  /** Only sessions that work in this directory; ~ is expanded; absent: all. */
  working_dir?: string;
  /** As next_cursor, to go on. */
  cursor?: string;
  /** How many; 50 unless told, 1000 at most. */
  limit?: number;
};

export type NavigationParams = {
  /** Where the page is now. */
  url: string;
  /** Of the page. */
  title?: string;
  /** A session that it is kept with, by any id; absent: the one that was begun last. */
  session_id?: string;
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
  /** What is wrong. */
  message: string;
  /** Where it was, line by line. */
  stack?: string;
  /** Of the script, or the page. */
  url?: string;
  /** The same under another name. */
  source?: string;
  /** 1 is the first. */
  line?: number;
  /** Within the line; 1 is the first. */
  column?: number;
  /** A session that it is kept with, by any id; absent: the one that was begun last. */
  session_id?: string;
};

export type PageMessage = {
  id: number;
  /** console, error or navigation. */
  kind: string;
  /** Of console: log, debug, info, warn or error. */
  level?: string;
  /** Of navigation: the title of the page. */
  message: string;
  url?: string;
  line?: number;
  column?: number;
  stack?: string;
  session_id?: string;
  /** How often it was said, one after the other. */
  count: number;
  /** When it was said last. */
  time: string;
};

export type PageMessages = {
  messages: Array<PageMessage>;
};

export type PageMessagesParams = {
  /** Only what is kept with a session, or with a conversation, by any id. */
  session_id?: string;
  /** Only errors, and what was written to the console at the levels warn and error. */
  problems?: boolean;
  /** Only messages with a higher id. */
  after_id?: number;
  /** The last ones; absent: 100, 1000 at most. */
  limit?: number;
  /** Whether the connection is told what pages say from now on, by notifications pageMessage, which are as the messages here; absent: as before. One that was told already comes again when it was said again. */
  follow?: boolean;
};

export type PermissionMode = "default" | "acceptEdits" | "bypassPermissions" | "plan";

export type PingResult = {
  pong: boolean;
  /** The time, ISO 8601 in UTC with milliseconds. */
  timestamp: string;
};

export type PreviewFile = {
  status: number;
  headers: Record<string, string>;
  /** In base64. What does not fit into a message is the error -32005: of frames files of 6 MiB fit, of lines those of 700 KiB. */
  body: string;
};

export type PreviewKept = {
  /** Not, where pages say too much. */
  kept: boolean;
};

export type PreviewParams = {
  /** A path, with a query if need be. */
  url: string;
  /** Where the client shows the preview, such as http://127.0.0.1:8080: whole URLs that begin so are paths, too. */
  origin?: string;
};

export type PreviewShown = {
  /** As clients are told it. */
  url?: string;
  /** How many clients were told. */
  shown: number;
};

export type ProvideSecretParams = {
  /** What the event secret_requested named. */
  request_id: string;
  /** The service that the secret is for. */
  service?: string;
  /** The secret; empty: there is none. */
  secret: string;
};

export type QueueResult = {
  /** The next one first. */
  queued: Array<QueuedPrompt>;
};

export type QueuedPrompt = {
  session_id: string;
  task_id: string;
  query: string;
  /** The query is cut, so that the list fits into a message; getConversation has all of it. */
  truncated?: boolean;
  created_at: string;
  /** False: no client has written it, such as what gates complain of. It can be cancelled, but neither edited nor moved. */
  editable: boolean;
};

export type QueuedTask = {
  id: string;
  /** Its first 80 characters. */
  prompt: string;
  agent: string | null;
  priority: number;
  session_id: string;
};

export type RecentPath = {
  path: string;
  last_used: string;
  usage_count: number;
};

export type RecentPathsParams = {
  /** How many; 20 unless told, 1000 at most. */
  limit?: number;
};

export type RecentPathsResult = {
  paths: Array<RecentPath>;
};

export type RequestPermissionParams = {
  /** The tool. */
  tool_name: string;
  /** Its input. */
  tool_input?: unknown;
  /** The caller's own id of the tool call. */
  tool_use_id?: string;
  /** A session that works, by any id: the question is its own, and it waits too. Another name is that of a conversation of questions, which is made where there is none; absent: the project's. */
  thread?: string;
  /** The directory that paths and rules are read in, where the question is not a session's; absent: the project's root. */
  cwd?: string;
  /** The question stays open when the connection ends, or the hub: who asks the same again in the same thread gets the answer, for an hour. Has no effect on a question of a session. */
  keep?: boolean;
};

export type RequestPermissionResult = {
  /** true */
  approved: boolean;
  /** user_approved, or the rule=… or mode=… that has answered. */
  reason?: string;
  /** What the human said with it. */
  comment?: string;
  /** The tool is to run with this input instead. */
  updated_input?: unknown;
  /** The question, as getApproval has it, where a human was asked. */
  approval_id?: string;
};

export type ResizeTerminalParams = {
  /** The terminal. */
  terminal_id: string;
  /** Columns, from 1 on. */
  cols: number;
  /** Rows, from 1 on. */
  rows: number;
};

export type Resource = {
  uri: string;
  mimeType?: string;
  /** This or blob. */
  text?: string;
  /** The bytes, in base64. */
  blob?: string;
};

export type ResponseOption = {
  name: string;
  title?: string;
};

export type Rule = {
  rule_id: number;
  /** allow or deny. */
  effect: string;
  tool_name: string;
  /** Only for this command; absent: for any input. */
  command?: string;
  /** The command is a pattern, as in the configuration. */
  pattern?: boolean;
  /** Only for these files: a pattern, in which * stands for no slash. */
  path?: string;
  /** Only for the very input that was asked about. */
  same_input?: boolean;
  /** session or project. */
  scope: string;
  /** The conversation, if the scope is session. */
  thread_id?: string;
  /** Of that conversation. */
  title?: string;
  created_at: string;
};

export type RuleList = {
  rules: Array<Rule>;
};

export type RulePreview = {
  tool_name: string;
  /** command, files, input (the same one), or tool (whatever it does). */
  covers: string;
  /** Of the command or the files; sendDecision takes another one. */
  pattern?: string;
  /** All of it in words, for people. */
  text: string;
};

export type RunBudget = {
  /** Rounds of tool calls; 0: as configured. */
  turns?: number;
  /** How long its agent may work, in milliseconds, without what it waits for people; 0: as configured. */
  time_ms?: number;
  /** Tokens, read and written; 0: as configured. */
  tokens?: number;
  /** US dollars; 0: as configured. */
  cost_usd?: number;
  /** The same tool call, one after the other; 0: as configured. */
  repeats?: number;
};

export type RunningTask = {
  id: string;
  /** Its first 80 characters. */
  prompt: string;
  agent: string | null;
  startedAt: string | null;
  pid: number | null;
  session_id: string;
  status: string;
};

export type SchedulerStatus = {
  enabled: boolean;
  /** How many triggers have a time. */
  jobs: number;
  /** When the time of each has come last, since the start. */
  last_fires: Record<string, string>;
};

export type SearchHit = {
  session_id: string;
  run_id: string;
  thread_id: string;
  /** Of the session. */
  title: string;
  agent: string;
  /** The id of the event in getConversation, which has plans, diffs and approvals with LSP framing only. */
  event_id: number;
  event_type: string;
  role?: string;
  tool_name?: string;
  /** What was found, marked by « and ». */
  snippet: string;
  /** Lower is better. */
  rank: number;
  created_at: string;
};

export type SearchParams = {
  /** The words: 64 at most, each counted once. */
  query: string;
  /** How many; 20 unless told, 200 at most. */
  limit?: number;
  /** How many to leave out at the beginning. */
  offset?: number;
};

export type SearchResult = {
  hits: Array<SearchHit>;
  /** There may be more: pass this as offset. */
  next_offset?: number;
};

export type Selection = {
  /** An id; empty where the agent does not say. */
  current: string;
  available: Array<Choice>;
};

export type SendTaskParams = {
  /** What the agent is to do. This or task is needed. */
  prompt?: string;
  /** Another name for prompt. */
  task?: string;
  /** The agent's name in the configuration; absent: the default one, or that of the thread. */
  agent?: string;
  /** The directory in which the agent works; absent: the project's root. */
  cwd?: string;
  /** What to call it. */
  title?: string;
  /** Higher first; 0 unless told. */
  priority?: number;
  /** The caller's own id of the conversation, or any id of one that there is. Tasks with the same one follow each other; absent: a new one. */
  thread?: string;
  /** The caller's own id of the task, by which cancelTask finds it; it must be new, and not of the form task-0001, which is ours. */
  taskId?: string;
  /** Commands that have to succeed ("Gates"): names of [[gates]] of the configuration, or lines for the shell. They run where the agent works after each turn that completes; what fails is the next prompt of the conversation. */
  gates?: Array<string>;
  /** With gates: how many turns there may be, 5 unless told, 100 at most. */
  max_iterations?: number;
};

export type SendTaskResult = {
  taskId: string;
  /** The same under its name as a session. */
  session_id: string;
  /** completed or failed. */
  state: string;
  /** What the agent said last. */
  result: string;
  /** Why it failed. */
  error?: string;
  /** The same for programs. */
  error_code?: string;
  /** The agent's own. */
  stop_reason?: string;
  /** The agent that was taken. */
  agent: string;
  /** Of a task that has gates: where they stand. */
  gates?: Gates;
};

export type ServerInfo = {
  name: string;
  version: string;
};

export type Session = {
  id: string;
  run_id: string;
  /** The agent's own id of the conversation, whatever the agent is. */
  claude_session_id?: string;
  parent_session_id?: string;
  /** draft, starting, running, waiting_input, interrupting, interrupted, completed, failed or discarded. */
  status: string;
  query: string;
  /** The query's first 80 characters. */
  summary: string;
  title: string;
  /** What the conversation is called: its title, or the first 80 characters of its first query. */
  conversation_title: string;
  model?: string;
  working_dir: string;
  created_at: string;
  /** The same as created_at. */
  start_time: string;
  /** When the agent began. */
  started_at?: string;
  last_activity_at: string;
  /** When it ended, however it ended. */
  completed_at?: string;
  /** The same as completed_at. */
  end_time?: string;
  error?: string;
  /** The same as error. */
  error_message?: string;
  /** In capitals: TIMEOUT, ORPHANED, ... */
  error_code?: string;
  /** It failed because somebody has to sign in, or to give the agent its key: the ways that the agent offers. */
  auth_methods?: Array<AuthMethod>;
  /** The agent's own. */
  stop_reason?: string;
  cost_usd?: number;
  input_tokens?: number;
  output_tokens?: number;
  cache_read_input_tokens?: number;
  cache_creation_input_tokens?: number;
  /** Input and output. */
  total_tokens?: number;
  /** Tokens in the context. */
  effective_context_tokens?: number;
  /** Tokens that fit into the context, where the agent tells. */
  context_limit?: number;
  duration_ms?: number;
  /** Messages of the agent. */
  num_turns?: number;
  /** Once it has ended. */
  result?: SessionResult;
  auto_accept_edits: boolean;
  dangerously_skip_permissions: boolean;
  dangerously_skip_permissions_expires_at?: string;
  archived: boolean;
  proxy_enabled: boolean;
  additional_directories?: Array<string>;
  agent: string;
  /** The conversation. */
  thread_id: string;
  /** The same run under its name as a task. */
  task_id: string;
  /** The id that the caller of execute_prompt gave it. */
  caller_task_id?: string;
  /** The one in force. */
  permission_mode: string;
  /** What asked for it: task, chat, session, execute or decision; trigger; gate, where gates that failed are the query; agent, where the agent went on by itself, without a query; adopted; question or kept_question of a program that asks by askUser or requestPermission. */
  source: string;
  priority: number;
  /** The run's own state, which tells queued from starting and timed_out from failed. */
  state: string;
  /** The agent gives no sign of life, and nobody else has to do something first: when its last one was. */
  silent_since?: string;
  /** What it has complained of since then. */
  silent_note?: string;
  /** The tool call that it is in the middle of. Then it need not be trouble. */
  silent_tool?: string;
  /** What the agent of the conversation does in the background, while no prompt runs there. interruptSession ends it. */
  background?: Array<BackgroundTask>;
  progress?: unknown;
  metadata?: unknown;
  /** The mode that the agent says it is in. */
  agent_mode?: string;
  /** The agent that the conversation goes on with, if it is not the one of this session. */
  requested_agent?: string;
  /** The mode that was asked for, if it is not the one in force. */
  requested_mode?: string;
  /** The model that was asked for, if the agent says that it works with another one. */
  requested_model?: string;
  /** Values of the agent's options that were asked for. */
  requested_options?: Record<string, string>;
  /** All modes that can be asked for. Of getSessionState alone. */
  modes?: Array<Mode>;
  /** What the agent tells of its session. Of getSessionState alone. */
  agent_session?: AgentSession;
  /** MCP servers of the agent that were tried when it got them and have not answered yet. Of getSessionState alone. */
  unanswered_mcp_servers?: Array<string>;
  /** Of work that has gates ("Gates"): where it stands. */
  gates?: Gates;
};

export type SessionInfo = {
  title?: string;
  /** As the agent writes it. */
  updated_at?: string;
};

export type SessionLeavesParams = {
  /** Only some conversations; absent or empty: all. */
  filter?: LeafFilter;
  /** How many; 500 unless told, 1000 at most. */
  limit?: number;
  /** Only sessions older than this one, for paging. */
  before?: string;
};

export type SessionList = {
  sessions: Array<Session>;
  /** There may be more: pass this as before. */
  next_before?: string;
};

export type SessionParams = {
  /** The session; every id of the run will do. */
  session_id: string;
};

export type SessionResult = {
  /** result */
  type: string;
  /** session_completed, session_failed or session_interrupted. */
  subtype: string;
  total_cost_usd: number;
  is_error: boolean;
  duration_ms: number;
  duration_api_ms: number;
  num_turns: number;
  /** The agent's last message. */
  result: string;
  /** The agent's own id of the conversation. */
  session_id: string;
  error?: string;
};

export type SessionStateResult = {
  session: Session;
};

export type SessionStatus = "draft" | "starting" | "running" | "waiting_input" | "interrupting" | "interrupted" | "completed" | "failed" | "discarded";

export type SetLogLevelParams = {
  level: Level;
};

export type SetLogLevelResult = {
  level: Level;
  success: boolean;
};

export type SetSessionParams = {
  /** The session; every id of the run will do. */
  session_id: string;
  /** Another agent of the configuration, which goes on with the conversation from the next prompt on. */
  agent?: string;
  /** A mode of the agent's, or default, acceptEdits, bypassPermissions or plan ("Modes"). */
  mode?: string;
  /** A model of the agent's; empty: none is asked for any more. */
  model?: string;
  /** Values of the agent's options, by their ids; an empty one is not asked for any more. */
  options?: Record<string, string>;
};

export type SetSessionResult = {
  /** The agent works, and has taken it; else it gets it with the next prompt. */
  live: boolean;
  /** As of getSessionState. */
  session: Session;
};

export type ShutdownParams = {
  /** Why, for the log. */
  reason?: string;
  /** How long running requests may take, in milliseconds; 60000 at most. */
  timeout_ms?: number;
};

export type ShutdownResult = {
  /** With reason or timeout_ms: idle (nothing ran), completed (what ran has ended) or interrupted (it has not). */
  status?: string;
  message: string;
};

export type SignInMethod = {
  id: string;
  name: string;
  description?: string;
  /** agent: it does that itself, mostly in a browser; terminal: a program in a terminal does; env_var: variables of its environment do. */
  type: string;
  /** Of type env_var: those that are needed. */
  variables?: Array<string>;
  /** Of type env_var: those that the agent does not have. */
  missing?: Array<string>;
  /** Of type terminal: what duet-rpc agents login runs. */
  command?: Array<string>;
};

export type SignInStatus = {
  /** Its name in the configuration. */
  agent: string;
  report: AgentReport;
  /** Keys that are configured for it and could not be had, in words; it was started without them. */
  missing_keys?: Array<string>;
};

export type Snapshot = {
  session_id: string;
  /** Always empty: what counts is what the session made of the file. */
  tool_id: string;
  file_path: string;
  /** The file before the session; empty if there was none. */
  content: string;
  /** The file before the session; null if there was none, or it is binary. */
  before: string | null;
  /** The file as it was left; null if it is gone, or binary. */
  after: string | null;
  binary: boolean;
  /** The change as a unified diff. */
  diff: string;
  /** The hunks of diff, in order; session.decideChange decides about each. None where it is binary, an empty file, or too much to be told. */
  hunks: Array<Hunk>;
  /** open, accepted or reverted: what was decided about all of it; open, too, where its hunks differ. */
  state: string;
  created_at: string;
};

export type SnapshotsResult = {
  snapshots: Array<Snapshot>;
  /** All changes as one unified diff, to be applied in the session's directory. */
  diff: string;
};

export type SpawnTerminalParams = {
  /** Optional; one that is wrong is refused. */
  session_token?: string;
  /** The directory in which it starts; absent: the project's root. */
  cwd?: string;
  /** The program; absent: the user's shell. */
  shell?: string;
  /** Arguments of the program. */
  args?: Array<string>;
  /** Its environment, beyond what every terminal gets. */
  env?: Record<string, string>;
  /** Run tmux, so that the terminal outlives us. */
  use_tmux?: boolean;
  /** The tmux session: joined if it is there, with shell and args in a window of their own if there are any. tmux has no : and no . in a name; they become _. */
  tmux_session_name?: string;
  /** The tmux window. */
  tmux_window_name?: string;
  /** Columns; 80 unless above 0. */
  cols?: number;
  /** Rows; 24 unless above 0. */
  rows?: number;
  /** Pass the terminal's descriptor with the reply (SCM_RIGHTS, on a Unix socket alone): this connection reads and writes it, and no terminal_output comes. */
  descriptor?: boolean;
};

export type SpawnTerminalResult = {
  terminal_id: string;
  /** The process in the terminal. */
  pty_pid: number;
};

export type StopDaemonParams = {
  /** End running tasks at once. */
  force?: boolean;
};

export type StopDaemonResult = {
  stopping: boolean;
};

export type StopTaskParams = {
  /** Optional; one that is wrong, or of another conversation, is refused. */
  session_token?: string;
  /** The task; every id of the run will do. */
  task_id: string;
  /** Why: user_cancelled, timeout, ... */
  reason?: string;
};

export type StopTaskResult = {
  /** Its end has begun. */
  stopped: boolean;
  /** Why not. */
  message?: string;
};

export type StoreStatus = {
  /** The database. */
  path?: string;
  /** The last event's number. */
  last_seq: number;
};

export type SubmitTaskParams = {
  /** What the agent is to do. */
  prompt: string;
  /** The agent's name in the configuration; absent: the default one. */
  agent?: string;
  /** Higher first; 0 unless told. */
  priority?: number;
  /** The directory in which the agent works; absent: the project's root. */
  cwd?: string;
  /** What to call it. */
  title?: string;
  /** What goes with it, as the content blocks of the Agent Client Protocol: images, audio, resources and links to some. Texts are added to it. Images, audio and resources have at most 10 MiB each, all together 20 MiB. A session whose agent does not take them fails, and says what the agent takes; a resource becomes a link instead. */
  content?: Array<ContentBlock>;
  /** How much it may use, in the place of what is configured ([budget.run]). */
  budget?: RunBudget;
  /** Commands that have to succeed ("Gates"): names of [[gates]] of the configuration, or lines for the shell. They run where the agent works after each turn that completes; what fails is the next prompt of the conversation. */
  gates?: Array<string>;
  /** With gates: how many turns there may be, 5 unless told, 100 at most. */
  max_iterations?: number;
};

export type SubmitTaskResult = {
  taskId: string;
  /** running or queued. */
  state: string;
  /** The agent that was taken. */
  agent: string;
  /** The same under its name as a session. */
  session_id: string;
};

export type SubscribeParams = {
  /** Only these; absent or empty: all. approval_requested, approval_responded and session_updated are other names of new_approval, approval_resolved and session_status_changed. A type that is not known here is ignored: if no other is named, nothing comes but heartbeats. */
  event_types?: Array<string>;
  /** Only events of this session; every id of the run will do. */
  session_id?: string;
  /** Another name for session_id; with both, only events of this run, which must be one of the session's conversation. */
  run_id?: string;
  /** The id that it gets, as one on an earlier connection had; absent: a new one. A connection has each id once. */
  subscription_id?: string;
  /** First what the log has after this seq; 0: all of it. */
  since?: number;
  /** The client shows its user the notice of the result. */
  notices?: boolean;
  /** How far apart message_delta and thinking_delta of a message come, in milliseconds: 16 to 1000; absent: 50. The first of a message comes at once. What is written meanwhile is joined. */
  delta_interval_ms?: number;
};

export type SubscribeResult = {
  subscription_id: string;
  message: string;
  /** With notices: says in words that sessions went on while no client followed events. Each user gets it once. */
  notice?: string;
  /** LSP framing: the seq after which the events begin, for a since of later. */
  seq?: number;
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
  /** In the order in which they will start. */
  queued: Array<QueuedTask>;
};

export type SupervisorStatus = {
  running: number;
  queued: number;
  maxConcurrency: number;
  tasks: SupervisedTasks;
};

export type Task = {
  id: string;
  prompt: string;
  agent: string | null;
  priority: number;
  /** queued, running, completed, failed or cancelled. */
  state: string;
  createdAt: string;
  startedAt: string | null;
  /** When it ended, however it ended. */
  completedAt: string | null;
  /** Always null: agents are none of the caller's processes. */
  pid: number | null;
  /** The agent's last message, once the task is completed. */
  result: string | null;
  error: string | null;
  /** What the agent said so far. In task.list: its last message. */
  output: string;
  metadata: unknown;
  session_id: string;
  run_id: string;
  thread_id: string;
  cwd: string;
  title: string;
  /** The beginning of what a human asked for, or why the agent went on by itself. */
  summary: string;
  /** In capitals: TIMEOUT, ORPHANED, ... */
  error_code?: string;
  /** The state as sessions have it. */
  status: string;
  /** It failed because somebody has to sign in, or to give the agent its key: the ways that the agent offers. */
  auth_methods?: Array<AuthMethod>;
  /** Of work that has gates ("Gates"): where it stands. */
  gates?: Gates;
};

export type TaskCancelParams = {
  /** The task; every id of the run will do. */
  taskId: string;
  /** Why, for the record. */
  reason?: string;
};

export type TaskCancelResult = {
  /** The task was cancelled, or its end has begun. */
  cancelled: boolean;
};

export type TaskParams = {
  /** The task; every id of the run will do. */
  taskId: string;
};

export type TaskState = "queued" | "running" | "completed" | "failed" | "cancelled";

export type TaskStats = {
  total: number;
  running: number;
  queued: number;
  completed: number;
  failed: number;
  cancelled: number;
};

export type TaskStatsParams = {
  /** If this connection was not told of tasks before: first what became of them after this seq, the last that an event.task… notification had; -1: after the end of the hub before this one. */
  since?: number;
};

export type Terminal = {
  terminal_id: string;
  /** The process in the terminal; 0 if that is not known. */
  pty_pid: number;
  program: string;
  args: Array<string>;
  cwd: string;
  /** Absent for an agent's terminal, which has no size. */
  cols?: number;
  rows?: number;
  /** The tmux session that it shows. */
  tmux_session?: string;
  /** The task whose agent runs it. */
  task_id?: string;
  /** The same, as a session. */
  session_id?: string;
  /** It is an agent's: it can be watched, and no more. */
  read_only: boolean;
  /** How many connections watch it. */
  attached: number;
  /** A connection has its descriptor; nobody else can watch it. */
  taken: boolean;
  started_at: string;
};

export type TerminalList = {
  terminals: Array<Terminal>;
};

export type TokenUsage = {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
};

export type Trigger = {
  id: string;
  /** What it is for. */
  trigger: TriggerEvent;
  /** What it does. */
  action: TriggerAction;
  enabled: boolean;
  cooldownMs: number;
  /** A person is asked first. */
  requiresApproval: boolean;
  description?: string;
  conditions?: Array<TriggerCondition>;
  /** What it is for, in words. */
  when: string;
  /** When it did something last. */
  lastFired?: string;
  /** When its time comes. */
  nextFire?: string;
  /** Whose configuration it stands in: user or project. */
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
  id: number;
  ruleId: string;
  eventType: string;
  /** submitted, notified, webhook_sent, denied, skipped_no_approver, unknown_action_type, error, waiting_approval, sending, depth_limited or rate_limited. */
  status: string;
  timestamp: string;
  action: string;
  /** Of the session that was begun, or that has the question. */
  taskId?: string;
  session_id?: string;
  approval_id?: string;
  error?: string;
  /** How many sessions in a row triggers had begun before. */
  depth?: number;
  /** The action with what the event has in the place of its templates. */
  does?: unknown;
  event?: unknown;
};

export type UnsubscribeParams = {
  /** What Subscribe returned. */
  subscription_id: string;
};

export type UpdateSettingsParams = {
  /** The session; every id of the run will do. */
  session_id: string;
  /** Edits need no approval. */
  auto_accept_edits?: boolean;
  /** Nothing needs approval. True also approves what is pending. */
  dangerously_skip_permissions?: boolean;
  /** For how long, in milliseconds; 0: without end. */
  dangerously_skip_permissions_timeout_ms?: number;
  /** What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent's own ("Modes"). One that it is known not to have is refused; a plain command cannot be held to plan, which is refused. */
  permission_mode?: string;
  /** A model that the agent has; one that it is known not to have is refused. */
  model?: string;
  /** Values of the agent's own options, by their ids; an empty one is not asked for any more. What it is known not to have is refused. */
  options?: Record<string, string>;
  /** What to call the session. */
  title?: string;
  /** Whether it is put away. */
  archived?: boolean;
  /** Directories beside working_dir that the agent may use. */
  additional_directories?: Array<string>;
};

export type UpdateTitleParams = {
  /** The session; every id of the run will do. */
  session_id: string;
  /** What to call it; empty: nothing. */
  title: string;
};

export type Usage = {
  runs: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_usd: number;
  /** How long agents worked, without what they waited for people. */
  time_ms: number;
};

export type UsageParams = {
  /** day, agent, session (a conversation) or model: rows has one entry for each. */
  by?: string;
  /** Only what was asked for at this time or later: as RFC 3339 has it, or a date, which begins at midnight where the hub is. */
  since?: string;
  /** Only what was asked for before. */
  until?: string;
  /** Only the conversation of this session; every id of one will do. */
  session_id?: string;
};

export type UsageResult = {
  total: Usage;
  /** With by: the last day first, or what cost most. */
  rows?: Array<UsageRow>;
};

export type UsageRow = {
  /** The day, agent, conversation (its thread_id) or model; empty where it is not known. */
  key: string;
  /** Of a conversation. */
  title?: string;
  runs: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  cost_usd: number;
  /** How long agents worked, without what they waited for people. */
  time_ms: number;
};

export type Verdict = "approve" | "deny" | "respond" | "cancel";

export type VersionResult = {
  version: string;
};

export type WatcherStatus = {
  enabled: boolean;
  /** What is watched, relative to the project. */
  paths: Array<string>;
  events_received: number;
  /** How many are watched. */
  directories: number;
  /** Why not all is watched, and what to do. */
  problem?: string;
};

export type WriteTerminalParams = {
  /** The terminal. */
  terminal_id: string;
  /** What to type. */
  data: string;
  /** Of data; utf-8 unless told. */
  encoding?: Encoding;
};

/** The parameters and the result of each method, by its name on the wire. */
export interface Methods {
  /** Says who is here. No handshake is needed; a caller that sends its capabilities is told ours. */
  initialize: { params: InitializeParams; result: InitializeResult };
  /** Answers at once, with the time. */
  ping: { params: Record<string, never>; result: PingResult };
  /** Says whether everything works. */
  health: { params: Record<string, never>; result: Health };
  /** Returns its params untouched, whatever they are; null if there are none. */
  echo: { params: unknown; result: unknown };
  /** Tells the version of duet-rpc. */
  version: { params: Record<string, never>; result: VersionResult };
  /** Lists the methods. */
  listMethods: { params: Record<string, never>; result: Array<MethodListed> };
  /** Lists the methods with their parameters and results, in words. */
  describeMethods: { params: Record<string, never>; result: Array<MethodDescribed> };
  /** Describes the methods as an OpenRPC document, with JSON Schemas. */
  "rpc.discover": { params: Record<string, never>; result: OpenRPCDocument };
  /** Sets how much is logged, until the process ends. */
  setLogLevel: { params: SetLogLevelParams; result: SetLogLevelResult };
  /** Ends the connection, and the process that an editor started for it: what arrives later is dropped, running requests are given time. With reason or timeout_ms it first waits for them, and says how that went. The project's daemon, and what runs there, goes on. */
  shutdown: { params: ShutdownParams; result: ShutdownResult };
  /** Gives the environment of the client to the agents, builds, gates and terminals that it starts on this connection, until it gives another one. The hub keeps it in memory alone. Those of a client that gives none get the hub's own. */
  "client.environment": { params: ClientEnvironmentParams; result: Success };
  /** Gives the daemon the build of a client that could start a daemon itself. A daemon of another build ends if it has nothing to do and no client of its own build; else it goes on until then, and health says so. */
  "client.build": { params: ClientBuildParams; result: DaemonBuild };
  /** Ends the connection, and the process if an editor started it. */
  exit: { params: unknown; result: unknown };
  /** Starts a task, or queues it if no place is free. event.task… notifications tell what becomes of it. */
  "task.submit": { params: SubmitTaskParams; result: SubmitTaskResult };
  /** Cancels a queued task, or begins to end a running one. */
  "task.cancel": { params: TaskCancelParams; result: TaskCancelResult };
  /** Lists tasks, the newest first. */
  "task.list": { params: ListTasksParams; result: Array<Task> };
  /** Tells everything about a task, with its output so far. */
  "task.get": { params: TaskParams; result: Task };
  /** Counts tasks by state. Its since is for who was told of tasks by a hub that has gone. */
  "task.stats": { params: TaskStatsParams; result: TaskStats };
  /** Tells what tasks have used, as far as their agents say: tokens, cost and time. */
  "task.usage": { params: UsageParams; result: UsageResult };
  /** Sends a message to the project's chat, a conversation that goes on from task to task. It is with the default agent: when that is another one than before, the chat goes on with it in a new conversation, and it is told what was said. */
  "chat.send": { params: ChatParams; result: SubmitTaskResult };
  /** Tells what the process is doing, and whether anything is wrong. */
  "daemon.status": { params: Record<string, never>; result: DaemonStatus };
  /** Ends the process that runs the agents, after this reply. Running tasks are given 15 s, but those that wait for a human, whose questions stay, are interrupted at once; queued ones stay queued; with force nothing is waited for. */
  "daemon.stop": { params: StopDaemonParams; result: StopDaemonResult };
  /** Tells the triggers of the configuration, which begin sessions and tell people by themselves, and what they have done last. See docs/automation.md. */
  "automation.status": { params: Record<string, never>; result: AutomationStatus };
  /** Switches triggers on: one, or all as a whole. That holds until it is switched again. */
  "automation.enable": { params: AutomationParams; result: AutomationSwitched };
  /** Switches triggers off: one, or all as a whole. That holds until it is switched again. */
  "automation.disable": { params: AutomationParams; result: AutomationSwitched };
  /** Tells what triggers have done, the newest first. The last 500 are kept. */
  "automation.log": { params: AutomationLogParams; result: AutomationLogResult };
  /** Tells what each trigger would do for an event, and does none of it. Whether one is switched on, its cooldown and its limits do not count. */
  "automation.test": { params: AutomationTestParams; result: AutomationTestResult };
  /** Starts a session: an agent works on a query in a new conversation. */
  launchSession: { params: LaunchParams; result: LaunchResult };
  /** Lists sessions, the newest first. If not all fit, next_before says how to go on. */
  listSessions: { params: ListSessionsParams; result: SessionList };
  /** Tells everything about a session but its conversation. */
  getSessionState: { params: SessionParams; result: SessionStateResult };
  /** Lists the last session of each conversation, the newest first. */
  getSessionLeaves: { params: SessionLeavesParams; result: SessionList };
  /** Continues a session's conversation with another query. If the session is the last one there, or has not ended, the query waits its turn in the same conversation; else, or with fork, it begins a new one, which shares all up to that session. A draft is launched: it keeps its ids, and what is given here replaces what it had. The new session may do what the one before might, but a fork never keeps a mode in which tools run unasked. */
  continueSession: { params: ContinueParams; result: ContinueResult };
  /** Begins to end a session, also while it waits for input. It can be continued. Of a session that has ended it ends what its agent does in the background; with background, that task alone, whether or not the session has ended. */
  interruptSession: { params: InterruptParams; result: InterruptResult };
  /** Changes settings of a session's conversation. An agent that works on it is told its mode, its model and its options beside; what it does not take is told by the event task_error. session.set waits for it. */
  updateSessionSettings: { params: UpdateSettingsParams; result: Success };
  /** Gives a session's conversation a title. */
  updateSessionTitle: { params: UpdateTitleParams; result: Success };
  /** Puts a session's conversation away, or takes it back. To continue one takes it back, too. */
  archiveSession: { params: ArchiveParams; result: Success };
  /** Puts many sessions' conversations away, or takes them back. */
  bulkArchiveSessions: { params: ArchiveManyParams; result: ArchiveManyResult };
  /** Deletes a session's conversation with all that only it has, for good; everybody is told by the event session_deleted. It is refused while something of it runs. What others were forked from stays, in the archive. The log keeps its numbers: those of events that are no more are left out. */
  "session.delete": { params: SessionParams; result: DeleteSessionResult };
  /** Lists directories in which sessions worked, the last used first. */
  getRecentPaths: { params: RecentPathsParams; result: RecentPathsResult };
  /** Lists the prompts that wait for their turn in a session's conversation, the next one first. */
  "session.queue": { params: SessionParams; result: QueueResult };
  /** Changes the text of a prompt that waits for its turn; what goes with it stays. One that has begun is refused (`bad_state`). All clients get the event queue_changed. */
  "session.editQueued": { params: EditQueuedParams; result: QueueResult };
  /** Moves a prompt that waits for its turn to another place in the queue of its conversation. One that has begun is refused (`bad_state`). All clients get the event queue_changed. */
  "session.moveQueued": { params: MoveQueuedParams; result: QueueResult };
  /** Sets the agent of a session's conversation to a mode, a model, or values of its options. If it works just now it takes them at once, or refuses them, and then nothing is changed; else it gets them with the next prompt. With agent, another agent goes on with the conversation: it is told what was said, begins in default or plan, with a model of its own, and nothing that the one before might do unasked; what that one asked and nobody has answered is closed. While a session of the conversation runs, or waits to, that is refused. */
  "session.set": { params: SetSessionParams; result: SetSessionResult };
  /** Tells which modes can be asked of an agent, and what it has told of its session last, in any conversation: its modes, models, options and slash commands. */
  "agent.describe": { params: DescribeAgentParams; result: AgentDescription };
  /** Lists the agents that are configured or known, how to get those that are not installed, their versions, and who was signed in when they told that last. Nothing is started. */
  "agent.list": { params: Record<string, never>; result: AgentList };
  /** Starts an agent in an empty directory, and tells its version, the ways to sign in that it offers, and whether somebody is signed in, as far as it says. It gets no prompt, and is ended within about a minute. */
  "agent.check": { params: AgentParams; result: SignInStatus };
  /** Signs in to an agent: it does that itself, mostly in the user's browser, within ten minutes. A way of type terminal is refused (`needs_terminal`): run its command in a terminal, or `duet-rpc agents login`. So is one of type env_var whose variables are missing (`no_api_key`). */
  "agent.authenticate": { params: AuthenticateParams; result: Success };
  /** Signs out of an agent, if agent.check says that it can be told to. */
  "agent.logout": { params: AgentParams; result: Success };
  /** Lists the sessions that an agent keeps itself, however they were begun, in the agent's order, mostly the newest first. The agent is started for that, and ended. One that does not offer it is refused (`not_offered`). */
  "agent.sessions": { params: NativeSessionListParams; result: NativeSessionList };
  /** Makes a session of one that an agent keeps itself: a conversation with all that was said and done in it, which has completed. continueSession goes on with the agent's own session. One that has a conversation here already is left as it is, which `adopted` tells. An agent that can go on with its session and not tell its history is adopted without (`history`); one that can do neither is refused (`not_offered`). */
  "agent.adopt": { params: AdoptParams; result: AdoptResult };
  /** Has an agent delete a session that it keeps itself, for good. While a conversation here works in it that is refused (`bad_state`), as it is where the agent does not offer it (`not_offered`). A conversation here stays; to continue it begins another session of the agent's, which is told what was said. */
  "agent.deleteSession": { params: NativeSessionDeleteParams; result: Success };
  /** Builds the project, with the command that [[builds]] of the configuration has for that, or that its files suggest, and waits for the end. Notifications tell the caller meanwhile: buildProgress {build_id, name, stage, ...}, whose stage is waiting (another build of that name has to end first), started (with command and directory) output (with output, whole lines), and at last succeeded or failed; and buildWarning, a diagnostic with build_id and name, whatever its severity. The error -32001 says that it has failed; its data has diagnostics, and what belongs to them. $/cancelRequest, and the end of the connection, end the build with everything that it has started. */
  build: { params: BuildParams; result: BuildResult };
  /** The same for what is the backend: the first of [[builds]] with backend = true, or what is found beside a package.json or tsconfig.json. */
  buildBackend: { params: BuildParams; result: BuildResult };
  /** Lists what build can build; the first one is built where no name is given. Of a project whose configuration waits for trust nothing is. */
  listBuilds: { params: Record<string, never>; result: BuildList };
  /** Lists the gates of the configuration ([[gates]]), which launchSession takes by their names, and the names of those that wait for trust. */
  listGates: { params: Record<string, never>; result: GateList };
  /** Runs a gate in the project's directory and waits for its end, whatever agents do meanwhile. The notification gateProgress {gate, output} tells the caller what it prints, in whole lines. One that does not pass is a result. $/cancelRequest, and the end of the connection, end the gate with everything that it has started. */
  checkGate: { params: CheckGateParams; result: GateResult };
  /** Tells what was said up to a session, with its tool calls, the oldest first. If not all fits, next_offset says how to go on; texts that were cut say so. */
  getConversation: { params: ConversationParams; result: ConversationResult };
  /** Tells which files a session changed, and how, and what was decided about each change. */
  getSessionSnapshots: { params: SessionParams; result: SnapshotsResult };
  /** Accepts or reverts a change of a session, a hunk or all of a file, or takes that back; everybody is told by the event change_decided. It is done by what stands in the file: where the lines of a hunk are not there any more, or several times so that it is not clear which are meant, nothing is changed (`changed_since`). What somebody else has changed elsewhere in the file stays. Others of data.kind: `change_not_found`, `bad_state` (a hunk that is reverted is to be accepted), `not_kept` (of a binary file, which can only be accepted), `outside_workspace`, `not_writable`. */
  "session.decideChange": { params: DecideChangeParams; result: DecideChangeResult };
  /** Finds what was said in any conversation by words; the last may be the beginning of one. The best come first. */
  searchConversations: { params: SearchParams; result: SearchResult };
  /** Has the bytes of an image, a sound or a resource that an event or a conversation names by its attachment_id. If not all fits, next_offset says how to go on. */
  getAttachment: { params: AttachmentParams; result: AttachmentResult };
  /** Asks a human whether a tool may run, or something else; the answer comes as the event approval_resolved, or by getApproval. */
  createApproval: { params: CreateApprovalParams; result: CreateApprovalResult };
  /** Lists what waits for a human's answer, the oldest first. */
  fetchApprovals: { params: FetchApprovalsParams; result: ApprovalList };
  /** Tells everything about an approval. */
  getApproval: { params: ApprovalIDs; result: ApprovalResult };
  /** Answers an approval. The first answer counts: for a later one success is false, and error says what was decided. */
  sendDecision: { params: DecisionParams; result: DecisionResult };
  /** Lists what was decided for good, by sendDecision with a scope, the oldest first. */
  getRules: { params: Record<string, never>; result: RuleList };
  /** Takes back what was decided for good: from now on it is asked again. */
  deleteRule: { params: DeleteRuleParams; result: DeleteRuleResult };
  /** Asks a human something, and waits for the answer. Cancelling the request takes the question back, and so does the end of the connection, unless keep is set. */
  askUser: { params: AskUserParams; result: AskUserResult };
  /** Asks whether a tool may run, by rules and modes first and then a human, and waits for the answer; a denial is the error -32003. Its end is as that of askUser. */
  requestPermission: { params: RequestPermissionParams; result: RequestPermissionResult };
  /** Starts a task and waits until the work on it has ended. One that somebody else ends is the error -32004, one whose gates still fail is -32002. Cancelling the request ends the task; at the end of the connection it goes on. Notifications tell the caller meanwhile: progress {taskId, session_id, state, gate?}, whose state is one of a session or checking; with gates iterationStart {taskId, session_id, iteration, max_iterations, gates} and gateResult {taskId, session_id, iteration, max_iterations, gate, passed, findings, duration_ms, ...}; and at last complete {taskId, session_id, state, gates?}. */
  sendTask: { params: SendTaskParams; result: SendTaskResult };
  /** Cancels a queued task, or begins to end a running one. One that has ended is no error. */
  cancelTask: { params: TaskCancelParams; result: CancelTaskResult };
  /** Lists the MCP servers that an agent gets, by the configuration and by its conversation. None is started. */
  "mcp.listServers": { params: MCPServerOwner; result: MCPServerList };
  /** Lists the tools of an MCP server, which is started or connected to where it is not, and kept for a minute after its last use. */
  "mcp.listTools": { params: MCPServerName; result: MCPToolList };
  /** Calls a tool of an MCP server. Rules and modes are asked first and then a human, as by requestPermission, for the tool mcp__SERVER__TOOL. Cancelling the request cancels the call, and the question. What the server answers in the place of a result is the error -32007. */
  "mcp.callTool": { params: CallToolParams; result: CallToolResult };
  /** Reads what an address of the preview has: a file of the directory of [preview], the index.html of a directory in it, or the first index.html for an address without extension that no file has. What is not there has the status 404; where nothing can be shown, the error is -32005. An address is a path, such as /index.html, or a whole URL of origin; what leads elsewhere is the error -32006. Whoever calls it shows the preview, and is told where to go: notifications navigate {url} and refresh {}. */
  fetch: { params: PreviewParams; result: PreviewFile };
  /** Has all clients that show the preview go to an address, once it is known that there is something. An address is a path, such as /index.html, or a whole URL of origin; what leads elsewhere is the error -32006. */
  navigate: { params: PreviewParams; result: PreviewShown };
  /** Has all clients that show the preview load it again. */
  refresh: { params: Record<string, never>; result: PreviewShown };
  /** Tells what a page has written to its console; a notification or a request. It is kept with a session, so that an agent can be asked about it (listPageMessages). The last thousand messages are; of those that come faster than 20 a second, beyond the first hundred, only how many they were. */
  console: { params: ConsoleParams; result: PreviewKept };
  /** Tells what has gone wrong in a page; a notification or a request. It is kept with a session, so that an agent can be asked about it (listPageMessages). The last thousand messages are; of those that come faster than 20 a second, beyond the first hundred, only how many they were. */
  error: { params: PageErrorParams; result: PreviewKept };
  /** Tells where a page is now; a notification or a request. Whoever calls it shows the preview, as with fetch. It is kept with a session, so that an agent can be asked about it (listPageMessages). The last thousand messages are; of those that come faster than 20 a second, beyond the first hundred, only how many they were. */
  updateNavigationState: { params: NavigationParams; result: PreviewKept };
  /** Lists what pages of the preview have said, the oldest first. */
  listPageMessages: { params: PageMessagesParams; result: PageMessages };
  /** Sends events from now on, and first those after since, if that is given. With LSP framing they are notifications of the method event; as NDJSON they are results without an id. Pending approvals come first; after 30 s without an event comes a heartbeat. The connection goes on to serve requests. It has 64 subscriptions at most. */
  Subscribe: { params: SubscribeParams; result: SubscribeResult };
  /** Ends a subscription of this connection. */
  Unsubscribe: { params: UnsubscribeParams; result: Success };
  /** Runs a prompt to its end. An agent that fails is a result with status failed. Cancelling the request ends the run. */
  execute_prompt: { params: ExecuteParams; result: ExecuteResult };
  /** Begins to end a task. One that is not known, or has ended, is no error. */
  stop_task: { params: StopTaskParams; result: StopTaskResult };
  /** Does what stop_task does; mostly sent as a notification. */
  cancel_task: { params: StopTaskParams; result: StopTaskResult };
  /** Puts a message into a task's conversation. */
  create_message: { params: CreateMessageParams; result: CreateMessageResult };
  /** Answers the event secret_requested. The secret is passed on, never kept and never logged. */
  "secret.provide": { params: ProvideSecretParams; result: Success };
  /** Starts a program in a terminal, which lives on when this connection has gone. What it prints comes as events terminal_output, its end as terminal_exit, to this connection without a subscription. */
  spawn_terminal: { params: SpawnTerminalParams; result: SpawnTerminalResult };
  /** Lists the terminals that run, the oldest first; those of agents, too. */
  "terminal.list": { params: Record<string, never>; result: TerminalList };
  /** Watches a terminal: what it printed lately, what it prints and its end come as events to this connection, as to who started it. Any number of connections may watch one. An agent's terminal can be watched, and no more. */
  "terminal.attach": { params: AttachTerminalParams; result: AttachTerminalResult };
  /** Ends what spawn_terminal or terminal.attach began for this connection; the program goes on. A descriptor is given back: it must not be read any more when this is called. */
  "terminal.detach": { params: CloseTerminalParams; result: DetachTerminalResult };
  /** Types into a terminal; one need not watch it. */
  "terminal.write": { params: WriteTerminalParams; result: Success };
  /** Changes a terminal's size, for all who watch it. */
  "terminal.resize": { params: ResizeTerminalParams; result: Success };
  /** Closes a terminal and ends what runs in it. */
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
  "session.set",
  "agent.check",
  "agent.authenticate",
  "agent.logout",
  "agent.sessions",
  "agent.adopt",
  "agent.deleteSession",
  "build",
  "buildBackend",
  "checkGate",
  "session.decideChange",
  "searchConversations",
  "askUser",
  "requestPermission",
  "sendTask",
  "mcp.listTools",
  "mcp.callTool",
  "fetch",
  "navigate",
  "execute_prompt",
  "spawn_terminal",
  "terminal.attach",
  "terminal.detach",
]);
