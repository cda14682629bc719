// Conversations of a client that is made with the SDK: what an editor does, and what happens
// when it is killed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as acp from '@agentclientprotocol/sdk/unstable';
import { Project, once, within } from './agent.mjs';
import { Editor, text } from './editor.mjs';

async function editor(project, capabilities, ...flags) {
	const e = new Editor(acp, project, ...flags);
	e.info = await within(e.initialize(capabilities), 'initialize');
	return e;
}

async function withSession(t, capabilities) {
	const project = new Project(t);
	const e = await editor(project, capabilities);
	const opened = await within(e.agent.request('session/new', { cwd: project.root, mcpServers: [] }), 'session/new');
	return { project, e, opened, sessionId: opened.sessionId };
}

const allow = (q) => q.resolve({ outcome: { outcome: 'selected', optionId: once(q) } });

test('a turn: plan, text, the diff in the question, the answer, the end', async (t) => {
	const { project, e, opened, sessionId } = await withSession(t);
	assert.equal(e.info.protocolVersion, 1);
	assert.equal(e.info.agentCapabilities.loadSession, true);
	assert.deepEqual(
		opened.configOptions.map((o) => o.id).filter((id) => id === 'agent' || id === 'mode'),
		['agent', 'mode'],
	);
	const prompt = e.prompt(sessionId, 'hello from the SDK');
	const q = await e.question();
	assert.equal(q.params.sessionId, sessionId);
	const diff = q.params.toolCall.content.find((c) => c.type === 'diff');
	assert.match(diff.newText, /hello from the SDK/);
	assert.equal(diff.path, `${project.root}/demo.txt`);
	allow(q);
	assert.equal((await within(prompt, 'the end')).stopReason, 'end_turn');
	// All of a turn is told before its end.
	assert.match(e.text(), /You asked: hello from the SDK[\s\S]*I wrote demo.txt/);
	assert.ok(e.of('plan').length > 0, 'no plan');
	assert.ok(e.of('tool_call').some((u) => u.toolCallId === q.params.toolCall.toolCallId), 'the question is about no tool call that was told');
	assert.equal(e.of('tool_call_update').findLast((u) => u.status)?.status, 'completed');
	assert.deepEqual(new Set(e.updates.map((u) => u.sessionId)), new Set([sessionId]));
});

test('nothing is told of a session before the answer to session/new', async (t) => {
	const { e, sessionId } = await withSession(t);
	await within(e.prompt(sessionId, 'quiet'), 'the end');
	const { received } = e.process;
	const answer = received.findIndex((m) => m.result?.sessionId === sessionId);
	const update = received.findIndex((m) => m.method === 'session/update');
	assert.ok(answer >= 0 && update > answer, `answer ${answer}, first update ${update}`);
});

test('a question that is denied, a turn that is cancelled', async (t) => {
	const { e, sessionId } = await withSession(t);
	const denied = e.prompt(sessionId, 'hello');
	const q = await e.question();
	q.resolve({ outcome: { outcome: 'selected', optionId: q.params.options.find((o) => o.kind === 'reject_once').optionId } });
	assert.equal((await within(denied, 'the end')).stopReason, 'end_turn');
	assert.match(e.text(), /Nothing was changed/);
	const cancelled = e.prompt(sessionId, 'hello again');
	const q1 = await e.question(1);
	await e.agent.notify('session/cancel', { sessionId });
	q1.resolve({ outcome: { outcome: 'cancelled' } });
	assert.equal((await within(cancelled, 'the end')).stopReason, 'cancelled');
});

test('killed with an open question: another client loads the session and answers', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	e.prompt(sessionId, 'hello from the first').catch(() => {});
	await e.question();
	e.process.kill();
	await within(e.process.closed, 'the first client to be gone');
	const second = await editor(project);
	const { sessions } = await second.agent.request('session/list', { cwd: project.root });
	assert.deepEqual(sessions.map((s) => s.sessionId), [sessionId]);
	await within(second.agent.request('session/load', { sessionId, cwd: project.root, mcpServers: [] }), 'session/load');
	assert.equal(second.text('user_message_chunk'), 'hello from the first');
	assert.match(second.text(), /You asked: hello from the first/);
	allow(await second.question());
	await second.until(() => second.text().includes('I wrote demo.txt'), 'the end of the turn');
	// It is one text, whoever was there.
	const third = await editor(project);
	// The end of a turn that a client has not begun is no message to it: it has to be asked for.
	while (project.call('getSessionState', { session_id: sessionId }).session.status !== 'completed') {
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
	await within(third.agent.request('session/load', { sessionId, cwd: project.root, mcpServers: [] }), 'session/load');
	assert.equal(third.text(), second.text());
	assert.equal((await within(third.prompt(sessionId, 'quiet'), 'a turn')).stopReason, 'end_turn');
});

test('a second client answers the question, and the first is not asked any more', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	const prompt = e.prompt(sessionId, 'hello');
	const q = await e.question();
	const second = await editor(project);
	await within(second.agent.request('session/load', { sessionId, cwd: project.root, mcpServers: [] }), 'session/load');
	allow(await second.question());
	await e.until(() => q.withdrawn, 'the withdrawal');
	assert.equal((await within(prompt, 'the end')).stopReason, 'end_turn');
	assert.match(e.text(), /I wrote demo.txt/);
	await second.until(() => second.text().includes('I wrote demo.txt'), 'the text in the second client');
});

test('the hub is killed with a question open: the prompt ends, the question is asked again, its answer counts', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	const prompt = e.prompt(sessionId, 'hello before');
	const q = await e.question();
	project.crashHub();
	await assert.rejects(within(prompt, 'the end'), /has died.*its question is still open/);
	await e.until(() => q.withdrawn, 'the question to be taken back');
	allow(await e.question(1));
	await e.until(() => e.text().includes('That is all.'), 'the rest of the turn');
	assert.equal(e.questions.length, 2);
	e.always = allow;
	assert.equal((await within(e.prompt(sessionId, 'hello after'), 'another turn')).stopReason, 'end_turn');
});

test('the hub is killed in a turn, and while nothing is under way', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	const prompt = e.prompt(sessionId, 'quiet stream:100000@50');
	await e.until(() => e.text().includes('chunk 3 '), 'some of it');
	project.crashHub();
	await assert.rejects(within(prompt, 'the end'), /has died/);
	assert.equal((await within(e.prompt(sessionId, 'quiet after'), 'another turn')).stopReason, 'end_turn');
	project.crashHub();
	assert.equal((await within(e.prompt(sessionId, 'quiet at last'), 'a third turn')).stopReason, 'end_turn');
	for (const words of ['after', 'at last']) assert.equal(e.text().split(`You asked: quiet ${words}`).length, 2, e.text());
	assert.equal(e.text('user_message_chunk'), '');
});

test('a turn that somebody else begins is shown', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	await within(e.prompt(sessionId, 'quiet'), 'a turn');
	project.duet('prompt', '--yes', '--continue', sessionId, 'quiet said in the shell');
	await e.until(() => e.text('user_message_chunk').includes('quiet said in the shell'), 'the prompt of the shell');
	await e.until(() => e.text().includes('You asked: quiet said in the shell'), 'the answer in the shell');
});

test('a form is filled in by elicitation', async (t) => {
	const { e, sessionId } = await withSession(t, { elicitation: { form: {}, url: {} } });
	const prompt = e.prompt(sessionId, 'quiet form');
	const q = await e.question();
	assert.equal(q.params.mode, 'form');
	const content = Object.fromEntries(
		Object.entries(q.params.requestedSchema.properties).map(([name, p]) => [name, p.default ?? p.enum?.[0] ?? p.oneOf?.[0]?.const ?? (p.type === 'boolean' ? true : p.type === 'string' ? 'words' : p.type === 'array' ? [] : (p.minimum ?? 1))]),
	);
	q.resolve({ action: 'accept', content });
	assert.equal((await within(prompt, 'the end')).stopReason, 'end_turn');
	assert.ok(!e.text().includes('could not'), e.text());
});

test('everything that the demo agent does is valid, in a turn and loaded', async (t) => {
	const { project, e, sessionId } = await withSession(t, { elicitation: { form: {}, url: {} }, fs: { readTextFile: true, writeTextFile: true }, terminal: true, session: { configOptions: { boolean: {} } } });
	await e.agent.request('session/set_mode', { sessionId, modeId: 'bypassPermissions' });
	await e.agent.request('session/set_config_option', { sessionId, configId: 'mode', value: 'bypassPermissions' });
	for (const words of ['hello', 'think', 'quiet think', 'quiet tools:20', 'quiet terminal', 'quiet image', 'quiet colors', 'quiet subagent', 'quiet unknown', 'quiet stream:200', 'quiet mode:default', 'quiet badutf8']) {
		assert.equal((await within(e.prompt(sessionId, words), words)).stopReason, 'end_turn', words);
	}
	assert.equal((await within(e.prompt(sessionId, 'quiet refuse'), 'refuse')).stopReason, 'refusal');
	await assert.rejects(within(e.prompt(sessionId, 'quiet fail'), 'fail'), /asked to fail/);
	await assert.rejects(within(e.prompt(sessionId, 'quiet crash'), 'crash'));
	const prompt = [
		...text('quiet content'),
		{ type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' },
		{ type: 'resource_link', uri: `file://${project.root}/demo.txt`, name: 'demo.txt' },
		{ type: 'resource', resource: { uri: 'file:///x', mimeType: 'text/plain', text: 'what is in x' } },
	];
	assert.equal((await within(e.agent.request('session/prompt', { sessionId, prompt }), 'content')).stopReason, 'end_turn');
	const second = await editor(project);
	await within(second.agent.request('session/load', { sessionId, cwd: project.root, mcpServers: [] }), 'session/load');
	for (const kind of ['agent_message_chunk', 'agent_thought_chunk']) assert.equal(second.text(kind), e.text(kind), kind);
	const calls = (x) => new Set(x.of('tool_call').map((u) => `${u.title} ${u.kind}`));
	assert.deepEqual(calls(second), calls(e));
});

test('sessions are forked, closed, resumed and deleted', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	await within(e.prompt(sessionId, 'quiet one'), 'a turn');
	const fork = await e.agent.request('session/fork', { sessionId, cwd: project.root, mcpServers: [] });
	assert.notEqual(fork.sessionId, sessionId);
	await within(e.prompt(fork.sessionId, 'quiet two'), 'a turn of the fork');
	await e.agent.request('session/close', { sessionId });
	const before = e.updates.length;
	await within(e.agent.request('session/resume', { sessionId, cwd: project.root, mcpServers: [] }), 'session/resume');
	await within(e.prompt(sessionId, 'quiet three'), 'a turn after that');
	const again = e.updates.slice(before).filter((u) => u.update.sessionUpdate === 'agent_message_chunk').map((u) => u.update.content.text).join('');
	assert.ok(!again.includes('one') && again.includes('three'), again);
	await e.agent.request('session/delete', { sessionId: fork.sessionId });
	const { sessions } = await e.agent.request('session/list', {});
	assert.deepEqual(sessions.map((s) => s.sessionId), [sessionId]);
});

// plain is a conversation without what differs from one to another: ids, times, folders.
function plain(value, project) {
	const ids = new Map();
	const text = JSON.stringify(value)
		.replaceAll(project.folder, 'FOLDER')
		.replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
			if (!ids.has(id)) ids.set(id, `ID-${ids.size}`);
			return ids.get(id);
		})
		.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
		.replace(/"(duration_ms|started_ms|elapsed_ms)":\d+/g, '"$1":0');
	return JSON.parse(text);
}

// What people hold in the shell and what they hold in an editor is one kind of conversation.
test('a conversation held here and one held in the shell are the same, everywhere', async (t) => {
	const words = ['hello', 'quiet think', 'quiet tools:3', 'quiet colors'];
	const held = { shell: new Project(t), editor: new Project(t) };
	for (const [i, w] of words.entries()) held.shell.duet('prompt', '--yes', ...(i > 0 ? ['--continue', 'last'] : ['--agent', 'demo']), w);
	const e = await editor(held.editor);
	e.always = allow;
	const { sessionId } = await e.agent.request('session/new', { cwd: held.editor.root, mcpServers: [] });
	for (const w of words) assert.equal((await within(e.prompt(sessionId, w), w)).stopReason, 'end_turn');

	const shown = {};
	for (const [where, project] of Object.entries(held)) {
		const loaded = await editor(project);
		const { sessions } = await loaded.agent.request('session/list', {});
		assert.equal(sessions.length, 1);
		const [session] = project.call('getSessionLeaves').sessions; // the hub runs by now
		await within(loaded.agent.request('session/load', { sessionId: sessions[0].sessionId, cwd: project.root, mcpServers: [] }), 'session/load');
		shown[where] = {
			getConversation: plain(project.call('getConversation', { session_id: session.id }), project),
			show: project
				.duet('session', 'show', 'last')
				.split('\n')
				.filter((line) => !/^(id|session|conversation|continues|started|ended|took|created|updated|source|client|directory|project)\b/i.test(line))
				.map((line) => line.replaceAll(project.folder, 'FOLDER').replace(/\d\d:\d\d(:\d\d)?|\d+(\.\d+)? m?s\b|[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\d/g, '…')),
			loaded: plain(loaded.updates.map((u) => u.update).filter((u) => u.sessionUpdate !== 'available_commands_update'), project),
		};
	}
	assert.deepEqual(shown.editor.getConversation, shown.shell.getConversation);
	assert.deepEqual(shown.editor.show, shown.shell.show);
	assert.deepEqual(shown.editor.loaded, shown.shell.loaded);
});
