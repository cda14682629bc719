// What clients do that are wrong, old, in a hurry, or gone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Project, chosen, permission } from './agent.mjs';

const text = (words) => [{ type: 'text', text: words }];

// opened is an agent with a session.
async function opened(t, capabilities = {}) {
	const project = new Project(t);
	const agent = project.start();
	await agent.result('initialize', { protocolVersion: 1, clientCapabilities: capabilities });
	const { sessionId } = await agent.result('session/new', { cwd: project.root, mcpServers: [] });
	return { project, agent, sessionId };
}

// works has a turn.
async function works(agent, sessionId, words = 'quiet') {
	const { stopReason } = await agent.result('session/prompt', { sessionId, prompt: text(words) });
	assert.equal(stopReason, 'end_turn');
}

for (const [version, ours] of [[0, 1], [1, 1], [2, 2], [99, 2], [65535, 2]]) {
	test(`protocolVersion ${version} is answered with ${ours}`, async (t) => {
		const agent = new Project(t).start();
		const { protocolVersion } = await agent.result('initialize', { protocolVersion: version });
		assert.equal(protocolVersion, ours);
	});
}

test('a client without capabilities has a conversation', async (t) => {
	const project = new Project(t);
	const agent = project.start();
	await agent.result('initialize', { protocolVersion: 1 });
	const { sessionId } = await agent.result('session/new', { cwd: project.root, mcpServers: [] });
	await works(agent, sessionId);
});

test('unknown methods are refused, unknown notifications are not answered', async (t) => {
	const { agent, sessionId } = await opened(t);
	assert.equal((await agent.ask('session/nonsense', { sessionId })).error.code, -32601);
	assert.equal((await agent.ask('_vendor.example/x', {})).error.code, -32601);
	agent.send({ method: 'session/nonsense', params: {} });
	agent.send({ method: '_vendor.example/x', params: {} });
	agent.send({ method: '$/nonsense', params: {} });
	await works(agent, sessionId);
});

test('sessions that nobody has made are refused by every method', async (t) => {
	const { project, agent } = await opened(t);
	const sessionId = '01890000-0000-7000-8000-000000000000';
	for (const [method, params] of [
		['session/prompt', { sessionId, prompt: text('hello') }],
		['session/prompt', { sessionId: 'nonsense', prompt: text('hello') }],
		['session/load', { sessionId, cwd: project.root, mcpServers: [] }],
		['session/load', { sessionId: '../../etc/passwd', cwd: project.root, mcpServers: [] }],
		['session/resume', { sessionId, cwd: project.root, mcpServers: [] }],
		['session/fork', { sessionId, cwd: project.root, mcpServers: [] }],
		['session/set_mode', { sessionId, modeId: 'plan' }],
		['session/set_config_option', { sessionId, configId: 'mode', value: 'plan' }],
		['session/close', { sessionId }],
	]) {
		const { error } = await agent.ask(method, params);
		assert.equal(error?.code, -32002, `${method}: ${JSON.stringify(error)}`);
	}
	agent.send({ method: 'session/cancel', params: { sessionId } });
	agent.send({ method: 'session/cancel', params: {} });
	agent.send({ method: 'session/cancel' });
});

test('wrong params are refused, and the session goes on', async (t) => {
	const { project, agent, sessionId } = await opened(t);
	for (const [method, params] of [
		['initialize', { protocolVersion: 'one' }],
		['session/new', {}],
		['session/new', { cwd: 'relative', mcpServers: [] }],
		['session/new', { cwd: 7, mcpServers: [] }],
		['session/prompt', {}],
		['session/prompt', { sessionId }],
		['session/prompt', { sessionId, prompt: 'hello' }],
		['session/prompt', { sessionId, prompt: [] }],
		['session/prompt', { sessionId, prompt: [7] }],
		['session/prompt', { sessionId, prompt: [{ type: 'nonsense' }] }],
		['session/prompt', { sessionId, prompt: [{ type: 'image', mimeType: 'image/png', data: '***' }] }],
		['session/load', { cwd: project.root, mcpServers: [] }],
		['session/set_mode', { sessionId }],
		['session/set_mode', { sessionId, modeId: 'nonsense' }],
		['session/set_mode', { sessionId, modeId: '' }],
		['session/set_config_option', { sessionId, configId: 'nonsense', value: 'x' }],
		['session/set_config_option', { sessionId, configId: 'mode', value: 'nonsense' }],
		['session/set_config_option', { sessionId, configId: 'mode', value: 7 }],
		['session/set_config_option', { sessionId, configId: 'agent', value: 'nobody' }],
	]) {
		const { error } = await agent.ask(method, params);
		assert.equal(error?.code, -32602, `${method} ${JSON.stringify(params)}: ${JSON.stringify(error)}`);
	}
	await works(agent, sessionId);
});

test('MCP servers of every kind are taken', async (t) => {
	const project = new Project(t);
	const agent = project.start();
	await agent.result('initialize', { protocolVersion: 1 });
	const mcpServers = [
		{ name: 'of stdio', command: '/bin/true', args: ['-x'], env: [{ name: 'A', value: 'b' }] },
		{ type: 'http', name: 'of http', url: 'http://127.0.0.1:9/mcp', headers: [{ name: 'A', value: 'b' }] },
		{ type: 'sse', name: 'of sse', url: 'http://127.0.0.1:9/sse', headers: [] },
		{ type: 'acp', name: 'of a kind that is to come', id: 'x' },
	];
	const { sessionId } = await agent.result('session/new', { cwd: project.root, mcpServers });
	await works(agent, sessionId);
	await agent.result('session/load', { sessionId, cwd: project.root, mcpServers });
	await works(agent, sessionId);
});

test('two prompts at once are both answered, the second after the first', async (t) => {
	const { agent, sessionId } = await opened(t);
	const answered = [];
	const ask = (words) => agent.result('session/prompt', { sessionId, prompt: text(words) }).then((r) => answered.push([words, r.stopReason]));
	await Promise.all([ask('quiet stream:50 first'), ask('quiet second')]);
	assert.deepEqual(answered, [
		['quiet stream:50 first', 'end_turn'],
		['quiet second', 'end_turn'],
	]);
});

test('many prompts at once begin in the order in which they came', async (t) => {
	const { agent, sessionId } = await opened(t);
	const count = 20;
	const answers = [];
	for (let i = 0; i < count; i++) answers.push(agent.result('session/prompt', { sessionId, prompt: text(`quiet number-${i}.`) }));
	for (const { stopReason } of await Promise.all(answers)) assert.equal(stopReason, 'end_turn');
	assert.deepEqual(
		[...agent.text(sessionId).matchAll(/number-(\d+)\./g)].map((m) => Number(m[1])),
		[...Array(count).keys()],
	);
});

test('a prompt that was refused is not in the way of a cancel', async (t) => {
	const { agent, sessionId, project } = await opened(t);
	await works(agent, sessionId);
	assert.equal((await agent.ask('session/prompt', { sessionId, prompt: 'no list' })).error?.code, -32602);
	project.call('continueSession', { session_id: sessionId, query: 'ask' }); // somebody else's turn
	const from = agent.received.length;
	await agent.saw(permission, 'the question', 0);
	agent.send({ method: 'session/cancel', params: { sessionId } });
	await agent.saw((m) => m.method === '$/cancel_request', 'the withdrawal', from);
	await works(agent, sessionId);
});

test('a cancel ends all that was prompted, and nothing that comes after', async (t) => {
	const { agent, sessionId } = await opened(t);
	agent.send({ method: 'session/cancel', params: { sessionId } }); // without a prompt
	const first = agent.result('session/prompt', { sessionId, prompt: text('ask') });
	await agent.saw(permission, 'the question');
	const second = agent.result('session/prompt', { sessionId, prompt: text('ask') });
	agent.send({ method: 'session/cancel', params: { sessionId } });
	assert.equal((await first).stopReason, 'cancelled');
	assert.equal((await second).stopReason, 'cancelled');
	await works(agent, sessionId);
});

test('a prompt whose cancel comes right behind it ends cancelled', async (t) => {
	const { agent, sessionId } = await opened(t);
	const prompt = agent.result('session/prompt', { sessionId, prompt: text('ask') });
	agent.send({ method: 'session/cancel', params: { sessionId } });
	assert.equal((await prompt).stopReason, 'cancelled');
	await works(agent, sessionId);
});

test('a prompt is taken back by $/cancel_request', async (t) => {
	const { agent, sessionId } = await opened(t);
	const answer = agent.saw((m) => m.id === 77, 'an answer');
	agent.send({ id: 77, method: 'session/prompt', params: { sessionId, prompt: text('ask') } });
	await agent.saw(permission, 'the question');
	agent.send({ method: '$/cancel_request', params: { requestId: 77 } });
	const { result, error } = await answer;
	assert.ok(error?.code === -32800 || result?.stopReason === 'cancelled', JSON.stringify({ result, error }));
	agent.send({ method: '$/cancel_request', params: { requestId: 77 } }); // which is no more
	agent.send({ method: '$/cancel_request', params: {} });
	await works(agent, sessionId);
});

test('an option that was not offered is no answer', async (t) => {
	const { agent, sessionId, project } = await opened(t);
	const prompt = agent.result('session/prompt', { sessionId, prompt: text('hello') });
	const question = await agent.saw(permission, 'the question');
	agent.send({ id: question.id, result: { outcome: { outcome: 'selected', optionId: 'nonsense' } } });
	await agent.logged('the option \\"nonsense\\", which was not offered');
	project.approve();
	assert.equal((await prompt).stopReason, 'end_turn');
	assert.match(agent.text(sessionId), /I wrote demo.txt/);
});

test('answers of every wrong kind leave the question in the inbox', async (t) => {
	for (const answer of [
		{ error: { code: -32601, message: 'Method not found' } },
		{ result: null },
		{ result: {} },
		{ result: { outcome: { outcome: 'nonsense' } } },
		{ result: { outcome: 'selected' } },
	]) {
		const { agent, sessionId, project } = await opened(t);
		const prompt = agent.result('session/prompt', { sessionId, prompt: text('hello') });
		const question = await agent.saw(permission, 'the question');
		agent.send({ id: question.id, ...answer });
		project.approve();
		assert.equal((await prompt).stopReason, 'end_turn', JSON.stringify(answer));
		agent.kill();
	}
});

test('a question that the inbox answers is taken back from the client', async (t) => {
	const { agent, sessionId, project } = await opened(t);
	const prompt = agent.result('session/prompt', { sessionId, prompt: text('hello') });
	const question = await agent.saw(permission, 'the question');
	project.approve();
	const taken = await agent.saw((m) => m.method === '$/cancel_request', 'the withdrawal');
	assert.equal(taken.params.requestId, question.id);
	assert.equal((await prompt).stopReason, 'end_turn'); // though the client has never answered
	agent.send(chosen(question)); // too late
	await works(agent, sessionId);
});

test('a prompt of 9 MB is taken, and one of 11 MB refused with the limit', async (t) => {
	const { agent, sessionId } = await opened(t);
	await works(agent, sessionId, 'quiet ' + 'é'.repeat(9 << 19));
	const { error } = await agent.ask('session/prompt', { sessionId, prompt: text('quiet ' + 'é'.repeat(11 << 19)) });
	assert.equal(error?.code, -32602, JSON.stringify(error));
	assert.match(error.message, /too long.*limit/);
	await works(agent, sessionId);
});

test('a line of 40 MB is refused, and what follows is read', async (t) => {
	const { agent, sessionId } = await opened(t);
	const refused = () => agent.received.filter((m) => m.error && (m.id ?? null) === null);
	const prompt = { jsonrpc: '2.0', id: 'long', method: 'session/prompt', params: { sessionId, prompt: text('x'.repeat(40 << 20)) } };
	agent.write(`${JSON.stringify(prompt)}\n`);
	await agent.saw(() => refused().length > 0, 'the refusal');
	assert.equal(refused()[0].error.code, -32600); // the line is not looked into, so the refusal has no id
	assert.ok(!agent.received.some((m) => m.id === 'long'), 'it was taken');
	await works(agent, sessionId);
});

test('bytes that are no UTF-8, no JSON and no object are answered, and harm nothing', async (t) => {
	const { agent, sessionId } = await opened(t);
	const codes = () => agent.received.filter((m) => m.error && (m.id ?? null) === null).map((m) => m.error.code);
	for (const [bytes, code] of [
		[Buffer.from('{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/\xff\xfe"}}\n', 'latin1'), -32700],
		[Buffer.from('nonsense\n'), -32700],
		[Buffer.from('{"jsonrpc":"2.0",\n'), -32700],
		[Buffer.from('7\n'), -32600],
		[Buffer.from('[]\n'), -32600],
	]) {
		const before = codes().length;
		agent.write(bytes);
		await agent.saw(() => codes().length > before, `an answer to ${bytes}`);
		assert.equal(codes().at(-1), code, bytes.toString());
	}
	agent.write('\n\r\n  \n'); // blank lines are nothing
	await works(agent, sessionId);
});

test('a batch is answered by a batch', async (t) => {
	const { agent, sessionId } = await opened(t);
	agent.asked.set('"b1"', 'session/list');
	agent.asked.set('"b2"', 'session/set_mode');
	agent.write(
		JSON.stringify([
			{ jsonrpc: '2.0', id: 'b1', method: 'session/list', params: {} },
			{ jsonrpc: '2.0', method: 'session/cancel', params: { sessionId } },
			{ jsonrpc: '2.0', id: 'b2', method: 'session/set_mode', params: { sessionId, modeId: 'plan' } },
		]) + '\n',
	);
	for (const id of ['b1', 'b2']) assert.equal((await agent.saw((m) => m.id === id, id)).error, undefined);
});

test('a client that vanishes in the middle of a prompt leaves it going', async (t) => {
	for (const vanish of [(agent) => agent.kill(), (agent) => agent.child.stdin.end(), (agent) => agent.child.stdout.destroy()]) {
		const { agent, sessionId, project } = await opened(t);
		agent.send({ id: 1, method: 'session/prompt', params: { sessionId, prompt: text('hello') } });
		await agent.saw(permission, 'the question');
		vanish(agent);
		const other = project.start();
		await other.result('initialize', { protocolVersion: 1 });
		await other.result('session/load', { sessionId, cwd: project.root, mcpServers: [] });
		const question = await other.saw(permission, 'the question again');
		other.send(chosen(question));
		await other.heard(sessionId, 'I wrote demo.txt');
		await works(other, sessionId);
	}
});

test('a session can be loaded while its turn is under way, by its own client too', async (t) => {
	const { agent, sessionId, project } = await opened(t);
	const prompt = agent.result('session/prompt', { sessionId, prompt: text('hello') });
	const first = await agent.saw(permission, 'the question');
	const from = agent.received.length;
	await agent.result('session/load', { sessionId, cwd: project.root, mcpServers: [] });
	const again = await agent.saw((m) => permission(m) && m.id !== first.id, 'the question again', from);
	agent.send(chosen(again));
	await agent.heard(sessionId, 'I wrote demo.txt', from);
	await prompt;
});

test('a session of another project is not there', async (t) => {
	const { agent, sessionId } = await opened(t);
	await works(agent, sessionId);
	const elsewhere = new Project(t);
	const other = elsewhere.start();
	await other.result('initialize', { protocolVersion: 1 });
	assert.equal((await other.ask('session/load', { sessionId, cwd: elsewhere.root, mcpServers: [] })).error?.code, -32002);
	assert.deepEqual((await other.result('session/list', {})).sessions, []);
});

test('a cwd outside of the project is taken as it is', async (t) => {
	const { agent } = await opened(t);
	const answer = await agent.ask('session/new', { cwd: '/', mcpServers: [] });
	assert.ok(answer.result || answer.error.code === -32602, JSON.stringify(answer));
});
