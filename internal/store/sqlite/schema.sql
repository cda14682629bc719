-- table meta meta
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- table sessions sessions
CREATE TABLE sessions (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid TEXT NOT NULL UNIQUE,
	title TEXT NOT NULL, cwd TEXT NOT NULL, agent TEXT NOT NULL, native_session TEXT NOT NULL,
	mode TEXT NOT NULL, model TEXT NOT NULL, settings TEXT NOT NULL,
	parent INTEGER NOT NULL, fork_turn INTEGER NOT NULL,
	archived INTEGER NOT NULL, created INTEGER NOT NULL, active INTEGER NOT NULL, turns INTEGER NOT NULL DEFAULT 0
);

-- implicit index sqlite_autoindex_sessions_1 sessions

-- implicit table sqlite_sequence sqlite_sequence
CREATE TABLE sqlite_sequence(name,seq);

-- index sessions_active sessions
CREATE INDEX sessions_active ON sessions (archived, active);

-- index sessions_native sessions
CREATE INDEX sessions_native ON sessions (native_session) WHERE native_session != '';

-- index sessions_cwd sessions
CREATE INDEX sessions_cwd ON sessions (cwd, active);

-- table turns turns
CREATE TABLE turns (
	id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, and so neither are task numbers
	uuid TEXT NOT NULL, task INTEGER NOT NULL UNIQUE, humanlayer_session TEXT NOT NULL, humanlayer_run TEXT NOT NULL, caller_id TEXT NOT NULL,
	session INTEGER NOT NULL REFERENCES sessions (id), place INTEGER NOT NULL, parent INTEGER NOT NULL,
	prompt TEXT NOT NULL, content TEXT NOT NULL, title TEXT NOT NULL, agent TEXT NOT NULL, source TEXT NOT NULL,
	state TEXT NOT NULL, priority INTEGER NOT NULL,
	mode TEXT NOT NULL, agent_mode TEXT NOT NULL, agent_model TEXT NOT NULL,
	tools TEXT NOT NULL, timeout INTEGER NOT NULL, quiet INTEGER NOT NULL, restricted INTEGER NOT NULL,
	created INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, active INTEGER NOT NULL,
	error TEXT NOT NULL, error_code TEXT NOT NULL, stop TEXT NOT NULL, sign_in TEXT NOT NULL,
	result TEXT NOT NULL, messages INTEGER NOT NULL, tokens TEXT NOT NULL, progress TEXT NOT NULL, metadata TEXT NOT NULL, clock_off INTEGER NOT NULL DEFAULT 0, number INTEGER NOT NULL DEFAULT 0
);

-- implicit index sqlite_autoindex_turns_1 turns

-- index turns_session turns
CREATE INDEX turns_session ON turns (session, place);

-- index turns_number turns
CREATE UNIQUE INDEX turns_number ON turns (session, number);

-- index turns_state turns
CREATE INDEX turns_state ON turns (state, priority DESC, id);

-- index turns_listed turns
CREATE INDEX turns_listed ON turns (state, id, agent, source, session /* all that lists choose by */);

-- index turns_unfinished turns
CREATE INDEX turns_unfinished ON turns (session, state, priority, id) WHERE state IN ('draft', 'queued', 'starting', 'running', 'waiting_input', 'interrupting');

-- index turns_created turns
CREATE INDEX turns_created ON turns (created);

-- table aliases aliases
CREATE TABLE aliases (alias TEXT PRIMARY KEY, turn INTEGER NOT NULL, session INTEGER NOT NULL) WITHOUT ROWID;

-- table events events
CREATE TABLE events (
	seq INTEGER PRIMARY KEY,
	at INTEGER NOT NULL, type TEXT NOT NULL, session INTEGER NOT NULL, turn INTEGER NOT NULL,
	key TEXT, text TEXT, data TEXT -- see events.go
);

-- index events_turn events
CREATE INDEX events_turn ON events (turn, seq);

-- table items items
CREATE TABLE items (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	session INTEGER NOT NULL, turn INTEGER NOT NULL, seq INTEGER NOT NULL,
	kind TEXT NOT NULL, key TEXT NOT NULL, role TEXT NOT NULL, content TEXT NOT NULL,
	tool TEXT NOT NULL, title TEXT NOT NULL, tool_kind TEXT NOT NULL,
	input TEXT NOT NULL, status TEXT NOT NULL, result TEXT NOT NULL,
	parent_id TEXT NOT NULL, data TEXT NOT NULL, approval TEXT NOT NULL,
	created INTEGER NOT NULL, updated INTEGER NOT NULL,
	indexed INTEGER NOT NULL -- see items.go
);

-- index items_to_index items
CREATE INDEX items_to_index ON items (indexed, id) WHERE indexed != 1;

-- index items_tool items
CREATE INDEX items_tool ON items (turn, key) WHERE kind = 'tool_call';

-- index items_noted items
CREATE INDEX items_noted ON items (turn, key) WHERE kind IN ('plan', 'diff', 'approval');

-- index items_turn items
CREATE INDEX items_turn ON items (turn, id, kind, (CASE WHEN kind = 'tool_call' AND (status IN ('completed', 'failed') OR result != '') THEN 2 ELSE 1 END) /* see places.go */);

-- table items_text items_text
CREATE VIRTUAL TABLE items_text USING fts5 (content, title, result, content = 'items', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');

-- implicit table items_text_data items_text_data
CREATE TABLE 'items_text_data'(id INTEGER PRIMARY KEY, block BLOB);

-- implicit table items_text_idx items_text_idx
CREATE TABLE 'items_text_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

-- implicit table items_text_docsize items_text_docsize
CREATE TABLE 'items_text_docsize'(id INTEGER PRIMARY KEY, sz BLOB);

-- implicit table items_text_config items_text_config
CREATE TABLE 'items_text_config'(k PRIMARY KEY, v) WITHOUT ROWID;

-- table approvals approvals
CREATE TABLE approvals (
	n INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE, session INTEGER NOT NULL, turn INTEGER NOT NULL, type TEXT NOT NULL, call_id TEXT NOT NULL,
	tool TEXT NOT NULL, input TEXT NOT NULL, title TEXT NOT NULL, subject TEXT NOT NULL, tool_kind TEXT NOT NULL,
	paths TEXT NOT NULL, diffs TEXT NOT NULL, details TEXT NOT NULL, plan TEXT NOT NULL, options TEXT NOT NULL, channel TEXT NOT NULL,
	elicitation TEXT NOT NULL, input_fixed INTEGER NOT NULL, name_by_kind INTEGER NOT NULL,
	status TEXT NOT NULL, stale INTEGER NOT NULL, carried INTEGER NOT NULL, question TEXT NOT NULL,
	created INTEGER NOT NULL, deadline INTEGER NOT NULL, decided INTEGER NOT NULL, decided_by TEXT NOT NULL, explanation TEXT NOT NULL,
	comment TEXT NOT NULL, response TEXT NOT NULL, option TEXT NOT NULL, updated_input TEXT NOT NULL, content TEXT NOT NULL,
	awaited_by INTEGER NOT NULL, taken INTEGER NOT NULL, reopened_as TEXT NOT NULL, reopens TEXT NOT NULL, reopened TEXT NOT NULL
);

-- implicit index sqlite_autoindex_approvals_1 approvals

-- index approvals_pending approvals
CREATE INDEX approvals_pending ON approvals (n) WHERE status = 'pending';

-- index approvals_waiting approvals
CREATE INDEX approvals_waiting ON approvals (session) WHERE status = 'pending';

-- index approvals_turn approvals
CREATE INDEX approvals_turn ON approvals (turn, status);

-- index approvals_call approvals
CREATE UNIQUE INDEX approvals_call ON approvals (call_id);

-- index approvals_carried approvals
CREATE INDEX approvals_carried ON approvals (session, question) WHERE carried = 1;

-- index approvals_awaited approvals
CREATE INDEX approvals_awaited ON approvals (awaited_by) WHERE awaited_by != 0;

-- index approvals_overtaken approvals
CREATE INDEX approvals_overtaken ON approvals (session, question) WHERE decided_by = 'overtaken' AND reopens != '';

-- table rules rules
CREATE TABLE rules (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	session INTEGER NOT NULL, effect TEXT NOT NULL, tool TEXT NOT NULL, command TEXT NOT NULL, pattern INTEGER NOT NULL,
	path TEXT NOT NULL, created INTEGER NOT NULL,
	UNIQUE (session, effect, tool, command, pattern, path)
);

-- implicit index sqlite_autoindex_rules_1 rules

-- table changes changes
CREATE TABLE changes (
	turn INTEGER NOT NULL, path TEXT NOT NULL,
	before TEXT, after TEXT, binary INTEGER NOT NULL, seq INTEGER NOT NULL, updated INTEGER NOT NULL, old_mode INTEGER NOT NULL DEFAULT 0, new_mode INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (turn, path)
) WITHOUT ROWID;

-- table change_decisions change_decisions
CREATE TABLE change_decisions (turn INTEGER NOT NULL, part TEXT NOT NULL, state TEXT NOT NULL, mode INTEGER NOT NULL, PRIMARY KEY (turn, part)) WITHOUT ROWID;

-- table attachments attachments
CREATE TABLE attachments (id TEXT PRIMARY KEY, mime TEXT NOT NULL, created INTEGER NOT NULL, data BLOB NOT NULL);

-- implicit index sqlite_autoindex_attachments_1 attachments

-- table agent_sessions agent_sessions
CREATE TABLE agent_sessions (session INTEGER PRIMARY KEY, agent TEXT NOT NULL, seen INTEGER NOT NULL, report TEXT NOT NULL);

-- index agent_sessions_agent agent_sessions
CREATE INDEX agent_sessions_agent ON agent_sessions (agent, seen);

-- table processes processes
CREATE TABLE processes (mark TEXT PRIMARY KEY, pid INTEGER NOT NULL, turn INTEGER NOT NULL) WITHOUT ROWID;

-- table key_access key_access
CREATE TABLE key_access (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, turn INTEGER NOT NULL, service TEXT NOT NULL, outcome TEXT NOT NULL);

-- table gate_loops gate_loops
CREATE TABLE gate_loops (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	session INTEGER NOT NULL, turn INTEGER NOT NULL, gates TEXT NOT NULL, max_iterations INTEGER NOT NULL,
	iteration INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, results TEXT NOT NULL
);

-- index gate_loops_session gate_loops
CREATE INDEX gate_loops_session ON gate_loops (session);

-- index gate_loops_checked gate_loops
CREATE INDEX gate_loops_checked ON gate_loops (session) WHERE state = 'checking';

-- table gate_turns gate_turns
CREATE TABLE gate_turns (turn INTEGER PRIMARY KEY, loop INTEGER NOT NULL);

-- table trigger_executions trigger_executions
CREATE TABLE trigger_executions (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL, event_key TEXT NOT NULL, event_type TEXT NOT NULL, event_source TEXT NOT NULL, event TEXT NOT NULL, at INTEGER NOT NULL,
	status TEXT NOT NULL, action TEXT NOT NULL, does TEXT NOT NULL, turn INTEGER NOT NULL, approval TEXT NOT NULL,
	depth INTEGER NOT NULL, error TEXT NOT NULL,
	UNIQUE (name, event_key)
);

-- implicit index sqlite_autoindex_trigger_executions_1 trigger_executions

-- index trigger_executions_open trigger_executions
CREATE INDEX trigger_executions_open ON trigger_executions (id) WHERE status IN ('waiting_approval', 'sending');

-- table trigger_states trigger_states
CREATE TABLE trigger_states (
	name TEXT PRIMARY KEY, enabled INTEGER, fired INTEGER NOT NULL, looked INTEGER NOT NULL,
	window INTEGER NOT NULL, count INTEGER NOT NULL, limited TEXT NOT NULL
) WITHOUT ROWID;

-- table page_messages page_messages
CREATE TABLE page_messages (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	kind TEXT NOT NULL, level TEXT NOT NULL, text TEXT NOT NULL, url TEXT NOT NULL, line INTEGER NOT NULL, col INTEGER NOT NULL, stack TEXT NOT NULL,
	session INTEGER NOT NULL, turn INTEGER NOT NULL, count INTEGER NOT NULL, at INTEGER NOT NULL
);

-- index page_messages_turn page_messages
CREATE INDEX page_messages_turn ON page_messages (turn);
