-- Format 103: the tables say session and turn, and a turn has a number in its session.
ALTER TABLE threads RENAME TO sessions;
ALTER TABLE runs RENAME TO turns;
ALTER TABLE gate_runs RENAME TO gate_turns;
ALTER TABLE sessions RENAME COLUMN fork_run TO fork_turn;
ALTER TABLE turns RENAME COLUMN session_id TO humanlayer_session;
ALTER TABLE turns RENAME COLUMN run_id TO humanlayer_run;
ALTER TABLE turns RENAME COLUMN thread TO session;
ALTER TABLE agent_sessions RENAME COLUMN session TO report;
ALTER TABLE agent_sessions RENAME COLUMN thread TO session;
ALTER TABLE aliases RENAME COLUMN thread TO session;
ALTER TABLE aliases RENAME COLUMN run TO turn;
ALTER TABLE events RENAME COLUMN thread TO session;
ALTER TABLE events RENAME COLUMN run TO turn;
ALTER TABLE items RENAME COLUMN thread TO session;
ALTER TABLE items RENAME COLUMN run TO turn;
ALTER TABLE approvals RENAME COLUMN thread TO session;
ALTER TABLE approvals RENAME COLUMN run TO turn;
ALTER TABLE rules RENAME COLUMN thread TO session;
ALTER TABLE changes RENAME COLUMN run TO turn;
ALTER TABLE change_decisions RENAME COLUMN run TO turn;
ALTER TABLE processes RENAME COLUMN run TO turn;
ALTER TABLE key_access RENAME COLUMN run TO turn;
ALTER TABLE gate_loops RENAME COLUMN thread TO session;
ALTER TABLE gate_loops RENAME COLUMN run TO turn;
ALTER TABLE gate_turns RENAME COLUMN run TO turn;
ALTER TABLE trigger_executions RENAME COLUMN run TO turn;
ALTER TABLE page_messages RENAME COLUMN thread TO session;
ALTER TABLE page_messages RENAME COLUMN run TO turn;

ALTER TABLE turns ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
UPDATE turns SET number = numbered.n
	FROM (SELECT id, row_number() OVER (PARTITION BY session ORDER BY id) AS n FROM turns) numbered WHERE numbered.id = turns.id;
UPDATE sessions SET turns = coalesce((SELECT max(number) FROM turns WHERE session = sessions.id), 0);

UPDATE events SET type = CASE type
	WHEN 'run.state' THEN 'turn.state'
	WHEN 'run.plan' THEN 'turn.plan'
	WHEN 'run.usage' THEN 'turn.usage'
	WHEN 'run.progress' THEN 'turn.progress'
	WHEN 'run.error' THEN 'agent.error'
	WHEN 'run.update' THEN 'agent.update'
	WHEN 'run.silent' THEN 'agent.silent'
	WHEN 'run.file' THEN 'change.made'
	WHEN 'run.file_decided' THEN 'change.decided'
	WHEN 'run.queue' THEN 'queue.changed'
	WHEN 'delta.message' THEN 'text.delta'
	WHEN 'delta.thought' THEN 'thought.delta'
	WHEN 'approval.requested' THEN 'approval.opened'
	WHEN 'approval.resolved' THEN 'approval.closed'
	WHEN 'trigger.executed' THEN 'trigger.fired'
	WHEN 'thread.settings' THEN 'session.settings'
	WHEN 'thread.native' THEN 'session.native'
	WHEN 'thread.agent_mode' THEN 'session.agent_mode'
	WHEN 'thread.agent_session' THEN 'session.agent_session'
	WHEN 'thread.deleted' THEN 'session.deleted'
	ELSE type END,
	data = CASE WHEN data LIKE '{"run":{%' THEN '{"turn"' || substr(data, 7) ELSE data END;
UPDATE events SET data = replace(replace(data, '"payload":{"thread":', '"payload":{"session":'), '"runs":[', '"turns":[')
	WHERE type IN ('turn.state', 'session.deleted');
-- As text: raw JSON in a payload stays as it came.
UPDATE events SET data = replace(substr(data, 1, instr(data, '},"payload":')), '}', ',"number":' || (SELECT number FROM turns WHERE id = events.turn) || '}')
		|| substr(data, instr(data, '},"payload":') + 1)
	WHERE data LIKE '{"turn":{%},"payload":%' AND turn IN (SELECT id FROM turns);
UPDATE sessions SET settings = replace(settings, '"mode_run":', '"mode_turn":') WHERE settings LIKE '%"mode_run":%';
