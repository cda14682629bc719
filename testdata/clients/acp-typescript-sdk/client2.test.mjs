// Conversations of a client that is made with the SDK and speaks version 2 of the protocol.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as acp from '@agentclientprotocol/sdk/experimental/v2/unstable';
import { Project, once, within } from './agent.mjs';
import { Editor, text } from './editor.mjs';

// An Editor2 is an Editor that reads the states of a session.
class Editor2 extends Editor {
	states(sessionId) {
		return this.of('state_update', sessionId);
	}

	// idle waits until the session is idle for the nth time.
	async idle(sessionId, n = 1) {
		return this.until(() => this.states(sessionId).filter((u) => u.state === 'idle' && u.stopReason)[n - 1], `the end ${n}`);
	}

	// turn is a whole turn: its prompt's id, and the state that ends it.
	async turn(sessionId, words) {
		const before = this.states(sessionId).filter((u) => u.state === 'idle' && u.stopReason).length;
		const { messageId } = await within(this.prompt(sessionId, words), `the answer to ${words}`);
		return { messageId, end: await this.idle(sessionId, before + 1) };
	}

	// message waits for a message of the user.
	message(messageId) {
		return this.until(() => this.of('user_message').find((u) => u.messageId === messageId), `the message ${messageId}`);
	}

	// place is where something stands among all that came.
	place(condition) {
		return this.process.received.findIndex(condition);
	}
}

async function editor(project, capabilities, ...flags) {
	const e = new Editor2(acp, project, ...flags);
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

const resume = (e, sessionId, cwd, replay = true) =>
	within(e.agent.request('session/resume', { sessionId, cwd, mcpServers: [], ...(replay && { replayFrom: { type: 'start' } }) }), 'session/resume');

const isState = (state) => (m) => m.params?.update?.sessionUpdate === 'state_update' && m.params.update.state === state;

test('what the agent can do', async (t) => {
	const { e, opened } = await withSession(t);
	assert.equal(e.info.protocolVersion, 2);
	assert.equal(e.info.info.name, 'duet-rpc');
	const { session } = e.info.capabilities;
	assert.deepEqual(Object.keys(session).sort(), ['additionalDirectories', 'delete', 'fork', 'mcp', 'prompt', 'systemPrompt']);
	assert.deepEqual(Object.keys(session.prompt).sort(), ['audio', 'embeddedContext', 'image']);
	assert.deepEqual(Object.keys(session.mcp).sort(), ['http', 'stdio']);
	assert.deepEqual(e.info.authMethods.map((m) => [m.methodId, m.type]), [['agent', 'agent']]);
	assert.equal(e.info._meta.steering.supported, true);
	assert.deepEqual(opened.configOptions.map((o) => o.configId).filter((id) => id === 'agent' || id === 'mode'), ['agent', 'mode']);
	assert.ok(opened.availableCommands.some((c) => c.name === 'inbox'), JSON.stringify(opened.availableCommands));
	const inTerminals = await editor(new Project(t), { auth: { terminal: {} } });
	assert.deepEqual(inTerminals.info.authMethods.map((m) => [m.methodId, m.type, m.args]), [['terminal', 'terminal', ['--login']], ['agent', 'agent', undefined]]);
});

test('a turn: the prompt, plan, text, the question, its diff, the end', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	const prompt = e.prompt(sessionId, 'hello from the SDK');
	const q = await e.question();
	const { messageId } = await within(prompt, 'the answer to the prompt');
	assert.deepEqual((await e.message(messageId)).content, text('hello from the SDK'));
	assert.equal(q.params.sessionId, sessionId);
	assert.match(q.params.title, /demo\.txt/);
	const { toolCall } = q.params.subject;
	const diff = toolCall.content.find((c) => c.type === 'diff');
	assert.deepEqual(diff.changes, [{ operation: 'add', path: `${project.root}/demo.txt` }]);
	assert.ok(diff.patch.text.startsWith(`diff --git ${project.root}/demo.txt ${project.root}/demo.txt\nnew file mode 100644\n--- /dev/null\n+++ ${project.root}/demo.txt\n@@ `), diff.patch.text);
	assert.ok(e.place(isState('requires_action')) < e.place((m) => m.method === 'session/request_permission'), 'the question comes before the state');
	allow(q);
	const end = await e.idle(sessionId);
	assert.equal(end.stopReason, 'end_turn');
	assert.deepEqual(end.background, []);
	assert.deepEqual(e.states().map((u) => u.state), ['running', 'requires_action', 'running', 'idle']);
	assert.match(e.text(), /You asked: hello from the SDK[\s\S]*I wrote demo.txt/);
	assert.ok(e.of('plan_update').length > 0, 'no plan');
	const calls = e.of('tool_call_update').filter((u) => u.toolCallId === toolCall.toolCallId);
	assert.equal(calls[0].name, 'Write');
	assert.equal(calls.findLast((u) => u.status)?.status, 'completed');
	assert.equal(e.of('tool_call').length + e.of('user_message_chunk').length, 0);
	assert.ok(e.of('agent_message_chunk').every((u) => u.messageId), 'a message without an id');
});

test('a question that is denied, a turn that is cancelled, and its question', async (t) => {
	const { e, sessionId } = await withSession(t);
	const denied = e.turn(sessionId, 'hello');
	const q = await e.question();
	q.resolve({ outcome: { outcome: 'selected', optionId: q.params.options.find((o) => o.kind === 'reject_once').optionId } });
	assert.equal((await denied).end.stopReason, 'end_turn');
	assert.match(e.text(), /Nothing was changed/);
	const cancelled = e.turn(sessionId, 'hello again');
	const q1 = await e.question(1);
	await e.agent.notify('session/cancel', { sessionId });
	await e.until(() => q1.withdrawn, 'the withdrawal');
	assert.equal((await cancelled).end.stopReason, 'cancelled');
});

test('prompts in a row wait for their turn; those that wait can be cancelled', async (t) => {
	const { e, sessionId } = await withSession(t);
	const first = e.prompt(sessionId, 'hello');
	const q = await e.question();
	await within(first, 'the first prompt');
	const second = e.prompt(sessionId, 'quiet second');
	const abort = new AbortController();
	const third = e.agent.request('session/prompt', { sessionId, prompt: text('quiet third') }, { cancellationSignal: abort.signal });
	const fourth = e.prompt(sessionId, 'quiet fourth');
	third.catch(() => {});
	abort.abort();
	await assert.rejects(within(third, 'the third prompt'), (err) => err.code === -32800);
	assert.equal(e.of('user_message').length, 1, 'a prompt that waits is in the conversation');
	allow(q);
	const ids = [await within(second, 'the second prompt'), await within(fourth, 'the fourth prompt')].map((r) => r.messageId);
	await e.idle(sessionId, 3);
	assert.deepEqual((await Promise.all(ids.map((id) => e.message(id)))).map((m) => m.content[0].text), ['quiet second', 'quiet fourth']);
	assert.deepEqual(e.states().map((u) => u.state), ['running', 'requires_action', 'running', 'idle', 'running', 'idle', 'running', 'idle']);

	// All of a session is cancelled: what runs, and what waits.
	const runs = e.turn(sessionId, 'hello');
	await e.question(1);
	const waits = e.prompt(sessionId, 'quiet never');
	const refused = assert.rejects(waits, (err) => err.code === -32800);
	await e.agent.notify('session/cancel', { sessionId });
	await within(refused, 'the prompt that waits');
	assert.equal((await runs).end.stopReason, 'cancelled');
	assert.doesNotMatch(e.text(), /never/);
});

test('a prompt that cannot be taken is an error', async (t) => {
	const { e, sessionId } = await withSession(t);
	const code = (promise, want) => assert.rejects(within(promise, 'an error'), (err) => err.code === want || assert.fail(`${err.code} ${err.message}`));
	await code(e.prompt('nothing', 'hello'), -32002);
	await code(e.prompt(sessionId, '  '), -32602);
	assert.equal(e.updates.length, 0);
	// What version 2 does not have.
	for (const [method, params] of [['session/load', { cwd: '/' }], ['session/set_mode', { modeId: 'plan' }], ['authenticate', { methodId: 'agent' }]]) {
		const { error } = await e.process.ask(method, { sessionId, ...params });
		assert.equal(error.code, -32601, method);
	}
	await within(e.agent.request('auth/login', { methodId: 'agent' }), 'auth/login');
	await code(e.agent.request('auth/logout', {}), -32603); // the demo agent has no account
});

test('killed with an open question: another client resumes the session and answers', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	const { messageId } = await Promise.all([e.prompt(sessionId, 'hello from the first'), e.question()]).then(([r]) => r);
	e.process.kill();
	await within(e.process.closed, 'the first client to be gone');
	const second = await editor(project);
	const { sessions } = await second.agent.request('session/list', { cwd: project.root });
	assert.deepEqual(sessions.map((s) => s.sessionId), [sessionId]);
	const opened = await resume(second, sessionId, project.root);
	assert.ok(opened.configOptions.length > 0 && opened.availableCommands.length > 0);
	assert.deepEqual((await second.message(messageId)).content, text('hello from the first'));
	assert.match(second.text(), /You asked: hello from the first/);
	// The state comes behind what was, and before the answer.
	const [states, answer] = [second.place(isState('requires_action')), second.place((m) => m.result?.configOptions)];
	assert.ok(states >= 0 && states < answer, `${states} ${answer}`);
	assert.equal(second.process.received[answer - 1].params.update.sessionUpdate, 'state_update');
	allow(await second.question());
	assert.equal((await second.idle(sessionId)).stopReason, 'end_turn');
	assert.match(second.text(), /I wrote demo.txt/);

	const third = await editor(project);
	await resume(third, sessionId, project.root);
	assert.equal(third.text(), second.text());
	await third.until(() => third.states().length > 0, 'the state');
	assert.deepEqual(third.states(), [{ sessionUpdate: 'state_update', state: 'idle', background: [] }]);
	const fourth = await editor(project);
	await resume(fourth, sessionId, project.root, false);
	await fourth.until(() => fourth.states().length > 0, 'the state');
	assert.deepEqual(fourth.updates.map((u) => u.update.sessionUpdate), ['state_update']);
	assert.equal((await third.turn(sessionId, 'quiet')).end.stopReason, 'end_turn');
	// A second replay replaces what the client has.
	const places = third.updates.length;
	await resume(third, sessionId, project.root);
	await third.until(() => third.updates.slice(places).some((u) => u.update.sessionUpdate === 'state_update'), 'the state');
	const again = third.updates.slice(places).map((u) => u.update);
	for (const [i, u] of again.entries()) {
		if (u.sessionUpdate !== 'agent_message_chunk' || again.slice(0, i).some((before) => before.messageId === u.messageId && before.sessionUpdate === 'agent_message_chunk')) continue;
		assert.deepEqual(again[i - 1], { sessionUpdate: 'agent_message', messageId: u.messageId, content: [] });
	}
	for (const replayFrom of [{ type: 'message', messageId }, { type: 'end' }]) {
		const { error } = await third.process.ask('session/resume', { sessionId, cwd: project.root, replayFrom });
		assert.equal(error.code, -32602);
	}
});

test('two clients see one session: prompts, states, questions, and the first answer wins', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	await e.turn(sessionId, 'quiet');
	const second = await editor(project);
	await resume(second, sessionId, project.root);
	const turn = e.turn(sessionId, 'hello');
	const q = await e.question();
	const other = await second.question();
	// A client gets a prompt that waits when it begins, not when it resumes the session.
	const waits = second.prompt(sessionId, 'quiet afterwards');
	const third = await editor(project);
	await resume(third, sessionId, project.root);
	assert.doesNotMatch(JSON.stringify(third.of('user_message')), /afterwards/);
	allow(other);
	await e.until(() => q.withdrawn, 'the withdrawal');
	const { messageId, end } = await turn;
	assert.equal(end.stopReason, 'end_turn');
	const after = (await within(waits, 'the second client')).messageId;
	for (const client of [e, second, third]) {
		await client.until(() => client.text().includes('You asked: quiet afterwards'), 'the turn of the second client');
		assert.deepEqual((await client.message(messageId)).content, text('hello'));
		assert.deepEqual((await client.message(after)).content, text('quiet afterwards'));
	}
	project.duet('prompt', '--yes', '--continue', sessionId, 'quiet said in the shell');
	await e.until(() => e.of('user_message').some((u) => u.content[0].text === 'quiet said in the shell'), 'the prompt of the shell');
	await e.until(() => e.states(sessionId).filter((u) => u.state === 'idle').length === 4, 'its end');
	assert.deepEqual(e.states().slice(-2).map((u) => u.state), ['running', 'idle']);
});

test('an agent that continues by itself: background work, its state, its question', async (t) => {
	const { e, sessionId } = await withSession(t);
	assert.equal((await e.turn(sessionId, 'background')).end.stopReason, 'end_turn');
	const busy = await e.until(() => e.states().find((u) => u.background.length > 0), 'the work in the background');
	const [item] = busy.background;
	assert.equal(item.type, 'tool_call');
	assert.ok(e.of('tool_call_update').some((u) => u.toolCallId === item.toolCallId && u.title), 'an unknown tool call');
	allow(await e.question());
	await e.idle(sessionId, 2);
	await e.until(() => e.states().at(-1).background.length === 0 && e.states().at(-1).state === 'idle', 'the end of the work');
	const mine = (u) => u.sessionUpdate === 'state_update' || (u.toolCallId === item.toolCallId && u.status === 'completed') || u.sessionUpdate === 'notice';
	const told = e.updates.map((u) => u.update).filter(mine);
	const over = told.findIndex((u) => u.status === 'completed');
	assert.ok(over >= 0 && over < told.findIndex((u, i) => i > told.indexOf(busy) && u.background?.length === 0), JSON.stringify(told));
	assert.equal(e.of('user_message').length, 1);
	assert.match(e.of('notice')[0].title, /continued|went on|itself/i);
	assert.deepEqual(e.states().map((u) => u.state).filter((s, i, all) => s !== all[i - 1]), ['running', 'idle', 'running', 'requires_action', 'running', 'idle']);
});

test('a turn that fails, and one that is refused', async (t) => {
	const { e, sessionId } = await withSession(t);
	const { messageId, end } = await e.turn(sessionId, 'quiet fail');
	await e.message(messageId);
	assert.equal(end.stopReason, 'error');
	assert.equal(end.error.code, -32603);
	assert.match(end.error.message, /asked to fail/);
	assert.equal((await e.turn(sessionId, 'quiet crash')).end.stopReason, 'error');
	assert.equal((await e.turn(sessionId, 'quiet refuse')).end.stopReason, 'refusal');
	assert.doesNotMatch(e.text(), /\[the turn failed/);
});

test('the hub is killed with a question open: the turn ends, the question is asked again, its answer counts', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	const turn = e.turn(sessionId, 'hello before');
	const q = await e.question();
	project.crashHub();
	const { end } = await turn;
	assert.equal(end.stopReason, 'error');
	assert.match(end.error.message, /has died.*its question is still open/);
	await e.until(() => q.withdrawn, 'the question to be taken back');
	allow(await e.question(1));
	assert.equal((await e.idle(sessionId, 2)).stopReason, 'end_turn');
	assert.match(e.text(), /That is all\./);
	assert.equal((await e.turn(sessionId, 'quiet after')).end.stopReason, 'end_turn');
});

test('choices of the session', async (t) => {
	const { e, sessionId } = await withSession(t);
	const set = (params) => within(e.agent.request('session/set_config_option', { sessionId, ...params }), 'session/set_config_option');
	const { configOptions } = await set({ configId: 'mode', type: 'id', value: 'bypassPermissions' });
	assert.equal(configOptions.find((o) => o.configId === 'mode').currentValue, 'bypassPermissions');
	assert.equal((await e.turn(sessionId, 'hello')).end.stopReason, 'end_turn');
	assert.equal(e.questions.length, 0);
	await set({ configId: 'mode', type: 'id', value: 'plan' });
	await e.until(() => e.of('config_option_update').some((u) => u.configOptions.find((o) => o.configId === 'mode').currentValue === 'plan'), 'the update');
	for (const wrong of [
		{ configId: 'nothing', type: 'id', value: 'plan' },
		{ configId: 'mode', type: 'id', value: 'nothing' },
		{ configId: 'mode', type: 'id', value: true },
		{ configId: 'mode', type: 'boolean', value: true },
		{ configId: 'mode', type: 'odd', value: 'plan' },
		{ configId: 'mode', value: 'plan' },
		{ configId: 'mode', type: 'boolean', value: null },
	]) {
		const { error } = await e.process.ask('session/set_config_option', { sessionId, ...wrong });
		assert.equal(error?.code, -32602, JSON.stringify(wrong));
	}
	assert.equal((await e.turn(sessionId, '/agent')).end.stopReason, 'end_turn');
	assert.match(e.text(), /The agent behind this session is demo/);
	assert.deepEqual(e.states().slice(-2).map((u) => u.state), ['running', 'idle']);
});

test('a form is filled in by elicitation; a client without forms gets a notice', async (t) => {
	const { project, e, sessionId } = await withSession(t, { elicitation: { form: {}, url: {} } });
	const turn = e.turn(sessionId, 'quiet form');
	const q = await e.question();
	assert.equal(q.params.mode, 'form');
	assert.equal(e.states().at(-1).state, 'requires_action');
	const other = await editor(project);
	await resume(other, sessionId, project.root, false);
	await other.until(() => other.of('notice').some((u) => u.severity === 'warning' && /asks/.test(u.title)), 'the notice');
	const content = Object.fromEntries(
		Object.entries(q.params.requestedSchema.properties).map(([name, p]) => [name, p.default ?? p.enum?.[0] ?? p.oneOf?.[0]?.const ?? (p.type === 'boolean' ? true : p.type === 'string' ? 'words' : p.type === 'array' ? [] : (p.minimum ?? 1))]),
	);
	q.resolve({ action: 'accept', content });
	assert.equal((await turn).end.stopReason, 'end_turn');
});

test('a message for an agent that works', async (t) => {
	const { e, sessionId } = await withSession(t);
	const steer = (words) => e.process.result('_session/steering', { sessionId, prompt: text(words) });
	assert.deepEqual(await steer('quiet'), { outcome: 'promptRequired', reason: 'noRunningTurn' });
	const turn = e.turn(sessionId, 'slow quiet stream:20@10');
	await e.until(() => e.text().includes('chunk 2'), 'some of it');
	assert.equal((await steer('look here')).outcome, 'injected');
	await turn;
	assert.deepEqual(e.of('user_message').map((u) => u.content[0].text), ['slow quiet stream:20@10', 'look here']);
});

test('everything that the demo agent does is valid, in a turn and resumed', async (t) => {
	const { project, e, sessionId } = await withSession(t, { elicitation: { form: {}, url: {} } });
	await e.agent.request('session/set_config_option', { sessionId, configId: 'mode', type: 'id', value: 'bypassPermissions' });
	for (const words of ['hello', 'think', 'quiet think', 'quiet tools:20', 'quiet terminal', 'quiet image', 'quiet colors', 'quiet subagent', 'quiet unknown', 'quiet stream:200', 'quiet mode:default', 'quiet badutf8']) {
		assert.equal((await e.turn(sessionId, words)).end.stopReason, 'end_turn', words);
	}
	const { terminalId } = e.of('terminal_update')[0];
	const printed = e.updates
		.map((u) => u.update)
		.filter((u) => u.terminalId === terminalId)
		.map((u) => Buffer.from(u.output?.data ?? u.data ?? '', 'base64').toString());
	assert.match(printed.join(''), /demo\.txt/);
	assert.deepEqual(e.of('terminal_update').at(-1).exitStatus, { exitCode: 0 });
	assert.ok(e.of('tool_call_update').some((u) => u.content?.some((c) => c.type === 'terminal' && c.terminalId === terminalId)));
	const prompt = [
		...text('quiet content'),
		{ type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' },
		{ type: 'resource_link', uri: `file://${project.root}/demo.txt`, name: 'demo.txt' },
		{ type: 'resource', resource: { uri: 'file:///x', mimeType: 'text/plain', text: 'what is in x' } },
	];
	const { messageId } = await within(e.agent.request('session/prompt', { sessionId, prompt }), 'content');
	assert.deepEqual((await e.message(messageId)).content, prompt);
	await e.idle(sessionId, 13);
	const second = await editor(project);
	await resume(second, sessionId, project.root);
	await second.until(() => second.states().length > 0, 'the state');
	// A replay has the notices among the thoughts.
	const thoughts = (x) => x.text('agent_thought_chunk').replace(/\[[^\]]*\]\n/g, '');
	assert.equal(second.text(), e.text());
	assert.equal(thoughts(second), thoughts(e));
	for (const notice of e.of('notice')) assert.ok(second.text('agent_thought_chunk').includes(`[${notice.title}]`), notice.title);
	assert.deepEqual(second.of('user_message').map((u) => u.messageId), e.of('user_message').map((u) => u.messageId));
	const calls = (x) => new Set(x.of('tool_call_update').filter((u) => u.title).map((u) => `${u.title} ${u.kind} ${u.name}`));
	assert.deepEqual(calls(second), calls(e));
});

test('sessions are forked, closed, resumed and deleted', async (t) => {
	const { project, e, sessionId } = await withSession(t);
	await e.turn(sessionId, 'quiet one');
	const fork = await e.agent.request('session/fork', { sessionId, cwd: project.root, mcpServers: [] });
	assert.notEqual(fork.sessionId, sessionId);
	await e.turn(fork.sessionId, 'quiet two');
	// The turn ends before the session is closed, and the prompt that waits gets its response.
	const turn = e.turn(sessionId, 'hello');
	await e.question();
	const waits = assert.rejects(e.prompt(sessionId, 'quiet never'), (err) => err.code === -32800);
	await within(e.agent.request('session/close', { sessionId }), 'session/close');
	assert.equal((await turn).end.stopReason, 'cancelled');
	await within(waits, 'the prompt that waits');
	assert.equal(e.process.received.findLast((m) => m.method === 'session/update').params.update.stopReason, 'cancelled');
	await e.process.result('session/close', { sessionId });
	await assert.rejects(e.prompt(sessionId, 'quiet'), (err) => err.code === -32002 && err.data.sessionId === sessionId);
	await resume(e, sessionId, project.root, false);
	assert.equal((await e.turn(sessionId, 'quiet three')).end.stopReason, 'end_turn');
	await e.agent.request('session/delete', { sessionId: fork.sessionId });
	const { sessions } = await e.agent.request('session/list', {});
	assert.deepEqual(sessions.map((s) => s.sessionId), [sessionId]);
});
