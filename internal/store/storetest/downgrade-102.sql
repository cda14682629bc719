-- Brings a database of format 103 back to 102, for tests of the upgrade.
UPDATE sessions SET settings = replace(settings, '"mode_turn":', '"mode_run":');
UPDATE events SET data = replace(data, ',"number":' || (SELECT number FROM turns WHERE id = events.turn) || '},"payload":', '},"payload":')
	WHERE data LIKE '{"turn":{%' AND turn IN (SELECT id FROM turns);
UPDATE events SET data = '{"run"' || substr(data, 8) WHERE data LIKE '{"turn":{%';
UPDATE events SET data = replace(replace(data, '"payload":{"session":', '"payload":{"thread":'), '"turns":[', '"runs":[')
	WHERE type IN ('turn.state', 'session.deleted');
UPDATE events SET type = CASE type
	WHEN 'turn.state' THEN 'run.state'
	WHEN 'turn.plan' THEN 'run.plan'
	WHEN 'turn.usage' THEN 'run.usage'
	WHEN 'turn.progress' THEN 'run.progress'
	WHEN 'agent.error' THEN 'run.error'
	WHEN 'agent.update' THEN 'run.update'
	WHEN 'agent.silent' THEN 'run.silent'
	WHEN 'change.made' THEN 'run.file'
	WHEN 'change.decided' THEN 'run.file_decided'
	WHEN 'queue.changed' THEN 'run.queue'
	WHEN 'text.delta' THEN 'delta.message'
	WHEN 'thought.delta' THEN 'delta.thought'
	WHEN 'approval.opened' THEN 'approval.requested'
	WHEN 'approval.closed' THEN 'approval.resolved'
	WHEN 'trigger.fired' THEN 'trigger.executed'
	WHEN 'session.settings' THEN 'thread.settings'
	WHEN 'session.native' THEN 'thread.native'
	WHEN 'session.agent_mode' THEN 'thread.agent_mode'
	WHEN 'session.agent_session' THEN 'thread.agent_session'
	WHEN 'session.deleted' THEN 'thread.deleted'
	ELSE type END;
DROP INDEX turns_number;
ALTER TABLE turns DROP COLUMN number;
ALTER TABLE sessions DROP COLUMN turns;
DROP INDEX sessions_active;
DROP INDEX sessions_native;
DROP INDEX sessions_cwd;
DROP INDEX turns_session;
DROP INDEX turns_state;
DROP INDEX turns_listed;
DROP INDEX turns_unfinished;
DROP INDEX turns_created;
DROP INDEX events_turn;
DROP INDEX items_turn;
DROP INDEX approvals_turn;
DROP INDEX gate_loops_session;
DROP INDEX page_messages_turn;
ALTER TABLE page_messages RENAME COLUMN turn TO run;
ALTER TABLE page_messages RENAME COLUMN session TO thread;
ALTER TABLE trigger_executions RENAME COLUMN turn TO run;
ALTER TABLE gate_turns RENAME COLUMN turn TO run;
ALTER TABLE gate_loops RENAME COLUMN turn TO run;
ALTER TABLE gate_loops RENAME COLUMN session TO thread;
ALTER TABLE key_access RENAME COLUMN turn TO run;
ALTER TABLE processes RENAME COLUMN turn TO run;
ALTER TABLE change_decisions RENAME COLUMN turn TO run;
ALTER TABLE changes RENAME COLUMN turn TO run;
ALTER TABLE rules RENAME COLUMN session TO thread;
ALTER TABLE approvals RENAME COLUMN turn TO run;
ALTER TABLE approvals RENAME COLUMN session TO thread;
ALTER TABLE items RENAME COLUMN turn TO run;
ALTER TABLE items RENAME COLUMN session TO thread;
ALTER TABLE events RENAME COLUMN turn TO run;
ALTER TABLE events RENAME COLUMN session TO thread;
ALTER TABLE aliases RENAME COLUMN turn TO run;
ALTER TABLE aliases RENAME COLUMN session TO thread;
ALTER TABLE agent_sessions RENAME COLUMN session TO thread;
ALTER TABLE agent_sessions RENAME COLUMN report TO session;
ALTER TABLE turns RENAME COLUMN session TO thread;
ALTER TABLE turns RENAME COLUMN humanlayer_run TO run_id;
ALTER TABLE turns RENAME COLUMN humanlayer_session TO session_id;
ALTER TABLE sessions RENAME COLUMN fork_turn TO fork_run;
ALTER TABLE sessions RENAME TO threads;
ALTER TABLE turns RENAME TO runs;
ALTER TABLE gate_turns RENAME TO gate_runs;
CREATE INDEX threads_active ON threads (archived, active);
CREATE INDEX threads_native ON threads (native_session) WHERE native_session != '';
CREATE INDEX threads_cwd ON threads (cwd, active);
CREATE INDEX runs_thread ON runs (thread, place);
CREATE INDEX runs_state ON runs (state, priority DESC, id);
CREATE INDEX runs_listed ON runs (state, id, agent, source, thread /* all that lists choose by */);
CREATE INDEX runs_unfinished ON runs (thread, state, priority, id) WHERE state IN ('draft', 'queued', 'starting', 'running', 'waiting_input', 'interrupting');
CREATE INDEX runs_created ON runs (created);
CREATE INDEX events_run ON events (run, seq);
CREATE INDEX items_run ON items (run, id, kind, (CASE WHEN kind = 'tool_call' AND (status IN ('completed', 'failed') OR result != '') THEN 2 ELSE 1 END) /* see places.go */);
CREATE INDEX approvals_run ON approvals (run, status);
CREATE INDEX gate_loops_thread ON gate_loops (thread);
CREATE INDEX page_messages_run ON page_messages (run);
PRAGMA user_version = 102;
