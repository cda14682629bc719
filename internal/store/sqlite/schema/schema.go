// Package schema is how a database of this program is made: its migrations, and
// whether a database has just what they make.
package schema

import (
	"context"
	"database/sql"
	"fmt"
)

// Latest is the format that this program knows and makes: how many migrations
// there are.
func Latest() int { return len(migrations) }

// Migrate brings a database from one format to another, step by step. A step is made whole
// or not at all. A new database gets the latest schema in one step. conn must be the only
// connection that writes.
func Migrate(ctx context.Context, conn *sql.Conn, from, to int) error {
	if from == 0 && to == Latest() {
		if err := step(ctx, conn, create(), to); err != nil {
			return fmt.Errorf("making the tables: %w", err)
		}
		return nil
	}
	return migrate(ctx, conn, migrations[:to], from)
}

func migrate(ctx context.Context, conn *sql.Conn, migrations []string, from int) error {
	for version := from; version < len(migrations); version++ {
		if err := step(ctx, conn, migrations[version], version+1); err != nil {
			return fmt.Errorf("migrating from format %d: %w", version, err)
		}
	}
	return nil
}

// step makes a change that leads to a format: user_version is part of the
// transaction.
func step(ctx context.Context, conn *sql.Conn, change string, to int) error {
	_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE;"+change+fmt.Sprintf("PRAGMA user_version = %d; COMMIT;", to))
	if err != nil {
		_, _ = conn.ExecContext(ctx, "ROLLBACK")
	}
	return err
}

// migrations bring a database from the version that is their index to the
// next one. Version is in user_version. A migration that was released is
// never changed.
var migrations = []string{`
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE threads (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid TEXT NOT NULL UNIQUE,
	title TEXT NOT NULL DEFAULT '', cwd TEXT NOT NULL, agent TEXT NOT NULL,
	native_session TEXT NOT NULL DEFAULT '', mode TEXT NOT NULL DEFAULT 'default', model TEXT NOT NULL DEFAULT '',
	settings TEXT NOT NULL DEFAULT '{}',
	parent INTEGER NOT NULL DEFAULT 0, fork_run INTEGER NOT NULL DEFAULT 0,
	archived INTEGER NOT NULL DEFAULT 0,
	created INTEGER NOT NULL, active INTEGER NOT NULL
);
CREATE INDEX threads_active ON threads (archived, active);
CREATE INDEX threads_native ON threads (native_session) WHERE native_session != '';
CREATE INDEX threads_cwd ON threads (cwd, active);

-- AUTOINCREMENT: ids are never used again, and so neither are task numbers.
CREATE TABLE runs (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	uuid TEXT NOT NULL, task INTEGER NOT NULL UNIQUE, session_id TEXT NOT NULL, run_id TEXT NOT NULL, caller_id TEXT NOT NULL DEFAULT '',
	thread INTEGER NOT NULL REFERENCES threads (id), parent INTEGER NOT NULL DEFAULT 0,
	prompt TEXT NOT NULL, title TEXT NOT NULL DEFAULT '', agent TEXT NOT NULL, source TEXT NOT NULL,
	state TEXT NOT NULL, priority INTEGER NOT NULL DEFAULT 0,
	mode TEXT NOT NULL DEFAULT '', tools TEXT NOT NULL DEFAULT '', timeout INTEGER NOT NULL DEFAULT 0, quiet INTEGER NOT NULL DEFAULT 0,
	created INTEGER NOT NULL, started INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0, active INTEGER NOT NULL,
	error TEXT NOT NULL DEFAULT '', error_code TEXT NOT NULL DEFAULT '', stop TEXT NOT NULL DEFAULT '',
	result TEXT NOT NULL DEFAULT '', messages INTEGER NOT NULL DEFAULT 0,
	tokens TEXT NOT NULL DEFAULT '', progress TEXT NOT NULL DEFAULT '', metadata TEXT NOT NULL DEFAULT ''
);
CREATE INDEX runs_thread ON runs (thread, id);
CREATE INDEX runs_state ON runs (state, priority DESC, id);
-- All that lists choose by, so that they look at no row that they do not show.
CREATE INDEX runs_listed ON runs (state, id, agent, source, thread);

CREATE TABLE aliases (alias TEXT PRIMARY KEY, run INTEGER NOT NULL, thread INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE events (
	seq INTEGER PRIMARY KEY,
	at INTEGER NOT NULL, type TEXT NOT NULL, thread INTEGER NOT NULL, run INTEGER NOT NULL,
	key TEXT, text TEXT, data TEXT
);
CREATE INDEX events_run ON events (run, seq);

CREATE TABLE items (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	thread INTEGER NOT NULL, run INTEGER NOT NULL, seq INTEGER NOT NULL,
	kind TEXT NOT NULL, key TEXT NOT NULL DEFAULT '', role TEXT NOT NULL DEFAULT '', content TEXT NOT NULL DEFAULT '',
	tool TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '', tool_kind TEXT NOT NULL DEFAULT '',
	input TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT '', result TEXT NOT NULL DEFAULT '',
	parent_id TEXT NOT NULL DEFAULT '', data TEXT NOT NULL DEFAULT '', approval TEXT NOT NULL DEFAULT '',
	created INTEGER NOT NULL, updated INTEGER NOT NULL,
	indexed INTEGER NOT NULL -- see textindex.go
);
CREATE INDEX items_to_index ON items (indexed, id) WHERE indexed != 1;
CREATE INDEX items_run ON items (run, id);
CREATE INDEX items_tool ON items (run, key) WHERE kind = 'tool_call';

CREATE VIRTUAL TABLE items_text USING fts5 (content, title, result, content = 'items', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE approvals (
	n INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE, thread INTEGER NOT NULL, run INTEGER NOT NULL,
	type TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL DEFAULT '', input TEXT NOT NULL DEFAULT '',
	title TEXT NOT NULL DEFAULT '', subject TEXT NOT NULL DEFAULT '', tool_kind TEXT NOT NULL DEFAULT '',
	paths TEXT NOT NULL DEFAULT '', diffs TEXT NOT NULL DEFAULT '', options TEXT NOT NULL DEFAULT '', channel TEXT NOT NULL DEFAULT '',
	status TEXT NOT NULL, stale INTEGER NOT NULL DEFAULT 0, carried INTEGER NOT NULL DEFAULT 0, question TEXT NOT NULL DEFAULT '',
	created INTEGER NOT NULL, deadline INTEGER NOT NULL DEFAULT 0, decided INTEGER NOT NULL DEFAULT 0, decided_by TEXT NOT NULL DEFAULT '',
	comment TEXT NOT NULL DEFAULT '', response TEXT NOT NULL DEFAULT '', option TEXT NOT NULL DEFAULT '', updated_input TEXT NOT NULL DEFAULT ''
);
CREATE INDEX approvals_pending ON approvals (n) WHERE status = 'pending';
CREATE INDEX approvals_run ON approvals (run, status);
CREATE INDEX approvals_call ON approvals (call_id);
CREATE INDEX approvals_carried ON approvals (thread, question) WHERE carried = 1;

CREATE TABLE changes (
	run INTEGER NOT NULL, path TEXT NOT NULL,
	before TEXT, after TEXT, binary INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL, updated INTEGER NOT NULL,
	PRIMARY KEY (run, path)
) WITHOUT ROWID;

CREATE TABLE rules (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	thread INTEGER NOT NULL, effect TEXT NOT NULL, tool TEXT NOT NULL, command TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL,
	UNIQUE (thread, effect, tool, command)
);

CREATE TABLE tokens (hash BLOB PRIMARY KEY, thread INTEGER NOT NULL, run INTEGER NOT NULL, expires INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE processes (mark TEXT PRIMARY KEY, pid INTEGER NOT NULL, run INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE key_access (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, run INTEGER NOT NULL, service TEXT NOT NULL, outcome TEXT NOT NULL);
`, `
CREATE INDEX items_noted ON items (run, key) WHERE kind IN ('plan', 'diff', 'approval');
`, `
ALTER TABLE approvals ADD COLUMN input_fixed INTEGER NOT NULL DEFAULT 0;
`, `
-- What became of an answer: the run whose agent waits for it, or has it and is not known to have acted on it; when it was
-- known to have; and where that never came, which later question asks the same again, and why.
ALTER TABLE approvals ADD COLUMN awaited_by INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN reopens TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN reopened TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN reopened_as TEXT NOT NULL DEFAULT '';
CREATE INDEX approvals_awaited ON approvals (awaited_by) WHERE awaited_by != 0;
`, `
-- All that says where in a conversation an item is, see places.go.
DROP INDEX items_run;
CREATE INDEX items_run ON items (run, id, kind, (CASE WHEN kind = 'tool_call' AND (status IN ('completed', 'failed') OR result != '') THEN 2 ELSE 1 END));
`, `
ALTER TABLE approvals ADD COLUMN name_by_kind INTEGER NOT NULL DEFAULT 0;
`, `
-- A token is good for as long as its run lasts.
ALTER TABLE tokens DROP COLUMN expires;
`, `
-- What a thread has to do, without all that it has done; see runs.go.
CREATE INDEX runs_unfinished ON runs (thread, state, priority, id) WHERE state IN ('draft', 'queued', 'starting', 'running', 'waiting_input', 'interrupting');
`, `
-- Rows of the log have types and members of their own (package eventrow), which a program up to format 8 does not know. Older rows stay.
`, `
-- What waits for a human in a thread, without all that waits elsewhere.
CREATE INDEX approvals_waiting ON approvals (thread) WHERE status = 'pending';
`, `
-- Session tokens are in memory alone: executors end with the process that started them.
DROP TABLE tokens;
`, `
-- What the agent of a run said that it is set to, and all that the agent of a thread tells of its session (package rowjson).
ALTER TABLE runs ADD COLUMN agent_mode TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN agent_model TEXT NOT NULL DEFAULT '';
CREATE TABLE agent_sessions (thread INTEGER PRIMARY KEY, agent TEXT NOT NULL, seen INTEGER NOT NULL, session TEXT NOT NULL);
CREATE INDEX agent_sessions_agent ON agent_sessions (agent, seen);
`, `
-- The plan that an agent asks to carry out, and why a rule or a mode decided as it did. Rules may be for files, and for patterns of commands.
ALTER TABLE approvals ADD COLUMN plan TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN explanation TEXT NOT NULL DEFAULT '';
ALTER TABLE rules RENAME TO former_rules;
CREATE TABLE rules (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	thread INTEGER NOT NULL, effect TEXT NOT NULL, tool TEXT NOT NULL, command TEXT NOT NULL DEFAULT '', pattern INTEGER NOT NULL DEFAULT 0,
	path TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL,
	UNIQUE (thread, effect, tool, command, pattern, path)
);
INSERT INTO rules (id, thread, effect, tool, command, created) SELECT id, thread, effect, tool, command, created FROM former_rules;
DROP TABLE former_rules;
`, `
-- What prompts, messages and tool calls have beside text: the blocks of a prompt (package rowjson), and the bytes of all of them.
ALTER TABLE runs ADD COLUMN content TEXT NOT NULL DEFAULT '';
CREATE TABLE attachments (id TEXT PRIMARY KEY, mime TEXT NOT NULL, created INTEGER NOT NULL, data BLOB NOT NULL);
`, `
-- What an agent asks a human to fill in or to open (package rowjson), and what was filled in.
ALTER TABLE approvals ADD COLUMN elicitation TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN content TEXT NOT NULL DEFAULT '';
`, `
-- The ways to sign in that an agent offers which failed because nobody is (package rowjson).
ALTER TABLE runs ADD COLUMN sign_in TEXT NOT NULL DEFAULT '';
`, `
-- What the log had of conversations that were deleted is erased in place (package eventrow), which a program up to format 16 does not know.
`, `
-- Questions that ask again what was answered, and that their conversations have left behind.
CREATE INDEX approvals_overtaken ON approvals (thread, question) WHERE decided_by = 'overtaken' AND reopens != '';
`, `
-- What was asked for since a time: what a day has used.
CREATE INDEX runs_created ON runs (created);
`, `
-- What triggers have done because of which events, and what is remembered of each (package triggerrow).
CREATE TABLE trigger_executions (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL, event_key TEXT NOT NULL, event_type TEXT NOT NULL, event_source TEXT NOT NULL, event TEXT NOT NULL, at INTEGER NOT NULL,
	status TEXT NOT NULL, action TEXT NOT NULL, does TEXT NOT NULL, run INTEGER NOT NULL DEFAULT 0, approval TEXT NOT NULL DEFAULT '',
	depth INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '',
	UNIQUE (name, event_key)
);
CREATE INDEX trigger_executions_open ON trigger_executions (id) WHERE status IN ('waiting_approval', 'sending');
CREATE TABLE trigger_states (
	name TEXT PRIMARY KEY, enabled INTEGER, fired INTEGER NOT NULL, looked INTEGER NOT NULL,
	window INTEGER NOT NULL, count INTEGER NOT NULL, limited TEXT NOT NULL
) WITHOUT ROWID;
`, `
-- Work that goes on until its gates pass, and the runs that were or are at work on it (package gaterow).
CREATE TABLE gate_loops (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	thread INTEGER NOT NULL, run INTEGER NOT NULL, gates TEXT NOT NULL, max_iterations INTEGER NOT NULL,
	iteration INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, results TEXT NOT NULL
);
CREATE INDEX gate_loops_thread ON gate_loops (thread);
CREATE INDEX gate_loops_checked ON gate_loops (thread) WHERE state = 'checking';
CREATE TABLE gate_runs (run INTEGER PRIMARY KEY, loop INTEGER NOT NULL);
`, `
-- What pages of a preview have said (package pagerow).
CREATE TABLE page_messages (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	kind TEXT NOT NULL, level TEXT NOT NULL, text TEXT NOT NULL, url TEXT NOT NULL, line INTEGER NOT NULL, col INTEGER NOT NULL, stack TEXT NOT NULL,
	thread INTEGER NOT NULL, run INTEGER NOT NULL, count INTEGER NOT NULL, at INTEGER NOT NULL
);
CREATE INDEX page_messages_run ON page_messages (run);
`, `
-- What people have decided about changes of files (package reviewrow).
CREATE TABLE change_decisions (run INTEGER NOT NULL, part TEXT NOT NULL, state TEXT NOT NULL, mode INTEGER NOT NULL, PRIMARY KEY (run, part)) WITHOUT ROWID;
`, `
-- What an agent says about a tool call beside its title and input.
ALTER TABLE approvals ADD COLUMN details TEXT NOT NULL DEFAULT '';
`, `
-- Whether the client that asked for a run did not trust the workspace. It was a member of the caller's metadata.
ALTER TABLE runs ADD COLUMN restricted INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET restricted = 1, metadata = json_remove(metadata, '$.workspace_trusted')
	WHERE CASE WHEN json_valid(metadata) THEN json_type(metadata, '$.workspace_trusted') IS 'false' ELSE 0 END;
`, `
-- The order of the runs of a conversation, in which queued ones can be moved.
ALTER TABLE runs ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET place = id;
DROP INDEX runs_thread;
CREATE INDEX runs_thread ON runs (thread, place);
`}
