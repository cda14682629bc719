// Tests of duet-rpc with vscode-jsonrpc, the library under every extension of
// VS Code that talks with a server of its own. Both versions do the same.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connect, DEADLINE, FOREVER, frame, isGone, program, Project, SOON, start, until, within } from './server.mjs';

const require = createRequire(import.meta.url);
const limit = { timeout: 2 * DEADLINE };

// failure is the error that a request is answered with.
async function failure(rpc, request) {
	const error = await within(request.then((result) => assert.fail(`answered ${JSON.stringify(result)}`), (e) => e), 'an error');
	assert.ok(error instanceof rpc.ResponseError, String(error?.stack ?? error));
	return error;
}

// longText is a text of at least so many characters, some of which JSON has to
// escape.
function longText(length) {
	const line = 'All work "and" no play\\ makes\tJack ein tüchtiger Bursche; 日本語 🎉\n';
	return line.repeat(Math.ceil(length / line.length));
}

for (const version of ['8.2.1', '10.0.0']) {
	const library = `vscode-jsonrpc-${version.split('.')[0]}`;
	const rpc = require(`${library}/node`);

	describe(`vscode-jsonrpc ${version}`, () => {
		it('is the version that it should be', () => {
			const manifest = fileURLToPath(new URL(`node_modules/${library}/package.json`, import.meta.url));
			assert.equal(require(manifest).version, version);
		});

		it('is answered by the core methods', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const ask = (...request) => within(connection.sendRequest(...request), request[0]);
			const { version: own } = await ask('version');
			assert.equal(typeof own, 'string');
			assert.deepEqual(await ask('initialize'), { serverInfo: { name: 'duet-rpc', version: own }, protocolVersion: '2.0' });
			assert.deepEqual(await ask('health'), { status: 'ok', version: own });
			const { pong, timestamp } = await ask('ping');
			assert.equal(pong, true);
			assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
			assert.deepEqual(await ask('setLogLevel', { level: 'WARN' }), { level: 'warn', success: true });
			const names = (await ask('listMethods')).map(({ name }) => name);
			assert.ok(names.includes('ping') && names.includes('test.sleep'));
			assert.deepEqual((await ask('describeMethods')).map(({ name }) => name), names);
			assert.deepEqual((await ask('rpc.discover')).methods.map(({ name }) => name), names);
		});

		it('may introduce itself as an editor does', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const { capabilities } = await within(connection.sendRequest('initialize', {
				processId: process.pid, clientInfo: { name: 'test' }, locale: 'de', rootUri: null,
				capabilities: { workspace: { applyEdit: true } }, trace: 'off', workspaceFolders: null,
			}), 'initialize');
			assert.equal(capabilities.cancellation, true);
			await connection.sendNotification('initialized', {});
			await connection.trace(rpc.Trace.Verbose, { log() {} }, { sendNotification: true });
			assert.ok(await within(connection.sendRequest('ping'), 'ping'));
		});

		it('numbers its requests from 0', limit, async (t) => {
			const { server, connection } = connect(t, rpc);
			for (const n of [0, 1, 2]) assert.deepEqual(await within(connection.sendRequest('echo', { n }), 'echo'), { n });
			assert.deepEqual(server.messages(), [0, 1, 2].map((n) => ({ jsonrpc: '2.0', id: n, result: { n } })));
		});

		it('may send no params, null, an object or an array', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const ask = (...request) => within(connection.sendRequest(...request), request[0]);
			const { byName, byPosition } = rpc.ParameterStructures;
			for (const params of [[], [null], [undefined], [{}], [byPosition], [byPosition, null], [byPosition, {}], [byName, {}]]) {
				assert.equal((await ask('ping', ...params)).pong, true);
			}
			assert.equal((await within(connection.sendRequest(new rpc.RequestType0('ping')), 'ping')).pong, true);
			for (const [params, echoed] of [
				[[], null],
				[[null], [null]],
				[[{ a: 1 }], { a: 1 }],
				[['text'], ['text']],
				[[1, 'two', { three: 3 }], [1, 'two', { three: 3 }]],
				[[[1, 2]], [[1, 2]]],
				[[byPosition, { a: 1 }], [{ a: 1 }]],
				[[{ a: null, b: false, c: [], d: {}, e: 1e300, f: -0.5, '': '' }], { a: null, b: false, c: [], d: {}, e: 1e300, f: -0.5, '': '' }],
			]) {
				assert.deepEqual(await ask('echo', ...params), echoed);
			}
			// One object in an array stands for the named params.
			assert.deepEqual(await ask('setLogLevel', byPosition, { level: 'info' }), { level: 'info', success: true });
		});

		it('is told what is wrong', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const unknown = await failure(rpc, connection.sendRequest('no.such.method', { x: 1 }));
			assert.equal(unknown.code, rpc.ErrorCodes.MethodNotFound);
			assert.deepEqual(unknown.data, { method: 'no.such.method' });
			assert.match(unknown.message, /^Method not found.*no\.such\.method/);

			const wrong = await failure(rpc, connection.sendRequest('setLogLevel', { level: 'loud' }));
			assert.equal(wrong.code, rpc.ErrorCodes.InvalidParams);
			assert.equal(wrong.data.param, 'level');
			assert.deepEqual(wrong.data.accepted, ['debug', 'info', 'warn', 'error']);
			assert.match(wrong.data.received, /loud/);
			assert.equal(typeof wrong.data.expected, 'string');

			for (const params of [['text'], [1, 2], [[1]], [true]]) {
				assert.equal((await failure(rpc, connection.sendRequest('setLogLevel', ...params))).code, rpc.ErrorCodes.InvalidParams);
			}

			const inside = await failure(rpc, connection.sendRequest('test.fail'));
			assert.equal(inside.code, rpc.ErrorCodes.InternalError);
			assert.doesNotMatch(JSON.stringify(inside), /must not reach/);
		});

		it('gets no answer to notifications', limit, async (t) => {
			const { server, connection } = connect(t, rpc, '--log-level', 'error');
			await connection.sendNotification('no.such.notification', { x: 1 });
			await connection.sendNotification('no.such.notification');
			await connection.sendNotification('$/no.such.notification', { x: 1 });
			await connection.sendNotification('$/cancelRequest', { id: 12345 });
			await connection.sendNotification('$/cancelRequest');
			await connection.sendNotification('ping');
			await connection.sendNotification('setLogLevel', { level: 'loud' });
			await connection.sendProgress(new rpc.ProgressType(), 'token', { percentage: 50 });
			await connection.sendProgress(new rpc.ProgressType(), 7, 'half');
			assert.deepEqual(await within(connection.sendRequest('echo', { n: 1 }), 'echo'), { n: 1 });
			assert.deepEqual(server.messages(), [{ jsonrpc: '2.0', id: 0, result: { n: 1 } }]);
			// A notification does what its method does: this one makes the log talk.
			await connection.sendNotification('setLogLevel', { level: 'debug' });
			await within(connection.sendRequest('ping'), 'ping');
			await until(() => /ping/.test(server.stderr), 'the log to talk');
		});

		it('sends and receives a million characters', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const text = longText(1_000_000);
			const { text: echoed } = await within(connection.sendRequest('echo', { text }), 'echo');
			assert.ok(echoed === text, 'another text came back');
		});

		it('sends and receives long texts at once', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const text = longText(1_000_000);
			const answers = await within(Promise.all(
				Array.from({ length: 8 }, (_, n) => connection.sendRequest('echo', { n, text }))), 'all answers');
			answers.forEach((answer, n) => assert.ok(answer.n === n && answer.text === text, `answer ${n} is wrong`));
		});

		it('sends and receives text of any script', limit, async (t) => {
			const { connection } = connect(t, rpc);
			for (const text of [
				'äöüß ÄÖÜ é', '日本語 한국어 中文', '🎉👩‍👩‍👧‍👦🏳️‍🌈', 'שלום عربي', 'e\u0301', '\u2028\u2029\ufeff',
				'\0', 'a\0b', '\x01\x1f\x7f\x85', '"\\/\b\f\n\r\t', '\u{10ffff}\ufffd\ud7ff\ue000', '__proto__',
			]) {
				assert.deepEqual(await within(connection.sendRequest('echo', [text, { [text]: 1 }]), 'echo'), [[text, { [text]: 1 }]]);
				const error = await failure(rpc, connection.sendRequest(`none.${text}`));
				assert.deepEqual(error.data, { method: `none.${text}` });
			}
		});

		it('sends a thousand requests at once and is answered in order', limit, async (t) => {
			const { server, connection } = connect(t, rpc);
			const settled = [];
			await within(Promise.all(Array.from({ length: 1000 }, (_, n) =>
				connection.sendRequest(n % 7 ? 'echo' : 'no.such.method', { n }).then(
					(result) => settled.push(result.n),
					(error) => settled.push(error.code === rpc.ErrorCodes.MethodNotFound ? n : error)))), 'all answers');
			const inOrder = Array.from({ length: 1000 }, (_, n) => n);
			assert.deepEqual(settled, inOrder);
			assert.deepEqual(server.messages().map(({ id }) => id), inOrder);
		});

		it('is answered while a long-running request goes on', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const settled = [];
			const slow = connection.sendRequest('test.sleep', { ms: 300 }).then((result) => settled.push(result));
			await within(connection.sendRequest('echo', { n: 1 }), 'echo').then((result) => settled.push(result));
			await within(slow, 'test.sleep');
			assert.deepEqual(settled, [{ n: 1 }, { slept_ms: 300 }]);
		});

		it('can cancel a request', limit, async (t) => {
			const { server, connection } = connect(t, rpc);
			const source = new rpc.CancellationTokenSource();
			let otherIsSettled = false;
			connection.sendRequest('test.sleep', FOREVER).catch(() => {}).then(() => (otherIsSettled = true));
			const request = failure(rpc, connection.sendRequest('test.sleep', FOREVER, source.token));
			await within(connection.sendRequest('ping'), 'ping');
			source.cancel();
			const error = await request;
			assert.equal(error.code, -32800);
			source.cancel();
			await within(connection.sendRequest('ping'), 'ping');
			assert.equal(otherIsSettled, false);
			assert.deepEqual(server.messages().map(({ id }) => id), [2, 1, 3]);
		});

		it('can send a request that is cancelled already', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const source = new rpc.CancellationTokenSource();
			source.cancel();
			if (version === '8.2.1') {
				// It sends the request and never cancels it.
				const request = connection.sendRequest('test.sleep', { ms: 1 }, source.token);
				assert.deepEqual(await within(request, 'test.sleep'), { slept_ms: 1 });
			} else {
				const error = await failure(rpc, connection.sendRequest('test.sleep', FOREVER, source.token));
				assert.equal(error.code, -32800);
			}
			assert.equal((await within(connection.sendRequest('ping'), 'ping')).pong, true);
		});

		it('cannot cancel what answers at once, and is not harmed', limit, async (t) => {
			const { connection } = connect(t, rpc);
			for (let n = 0; n < 50; n++) {
				const source = new rpc.CancellationTokenSource();
				const request = connection.sendRequest('echo', { n }, source.token);
				source.cancel();
				assert.deepEqual(await within(request, 'echo'), { n });
			}
		});

		it('is told when too much is going on', limit, async (t) => {
			const { connection } = connect(t, rpc);
			const source = new rpc.CancellationTokenSource();
			const running = Array.from({ length: 64 }, () => failure(rpc, connection.sendRequest('test.sleep', FOREVER, source.token)));
			const error = await failure(rpc, connection.sendRequest('test.sleep', FOREVER));
			assert.equal(error.code, -32040);
			assert.equal(error.data.kind, 'overloaded');
			assert.equal((await within(connection.sendRequest('ping'), 'ping')).pong, true);
			source.cancel();
			for (const request of running) assert.equal((await request).code, -32800);
			assert.deepEqual(await within(connection.sendRequest('test.sleep', { ms: 1 }), 'test.sleep'), { slept_ms: 1 });
		});

		it('survives a panic of the server', limit, async (t) => {
			const { server, connection } = connect(t, rpc);
			let slowIsSettled = false;
			connection.sendRequest('test.sleep', FOREVER).catch(() => {}).then(() => (slowIsSettled = true));
			for (let n = 0; n < 5; n++) {
				const error = await failure(rpc, connection.sendRequest('test.panic'));
				assert.equal(error.code, rpc.ErrorCodes.InternalError);
				assert.doesNotMatch(JSON.stringify([error.message, error.data]), /must not reach|goroutine|\.go/);
				assert.deepEqual(await within(connection.sendRequest('echo', { n }), 'echo'), { n });
			}
			assert.equal(slowIsSettled, false);
			await until(() => /test\.panic/.test(server.project.daemonLog()), 'the daemon\'s log to tell of the panic');
		});

		it('sees only frames, however much there is to log', limit, async (t) => {
			const { server, connection } = connect(t, rpc, '--log-level', 'debug');
			for (const method of ['ping', 'test.panic', 'test.fail', 'no.such.method', 'health']) {
				await within(connection.sendRequest(method).catch(() => {}), method);
				await connection.sendNotification(method);
			}
			connection.end();
			assert.deepEqual(await within(server.closed, 'the server to end', SOON), { code: 0, signal: null });
			assert.deepEqual(server.messages().map(({ id }) => id), [0, 1, 2, 3, 4]);
			assert.match(server.stderr, /test\.panic/);
			assert.match(server.stderr, /health/);
		});

		it('ends the server by a request', limit, async (t) => {
			const { server, connection } = connect(t, rpc);
			assert.deepEqual(await within(connection.sendRequest('shutdown'), 'shutdown'), { message: 'Shutting down gracefully' });
			assert.deepEqual(await within(server.closed, 'the server to end', SOON), { code: 0, signal: null });
			await within(server.connectionClosed, 'the connection to be closed');
		});

		for (const method of ['shutdown', 'exit']) {
			it(`ends the server by the notification ${method}`, limit, async (t) => {
				const { server, connection } = connect(t, rpc);
				await within(connection.sendRequest('ping'), 'ping');
				await connection.sendNotification(method);
				assert.deepEqual(await within(server.closed, 'the server to end', SOON), { code: 0, signal: null });
			});
		}

		it('ends the server by the end of input, and all requests are answered', limit, async (t) => {
			const { server, connection } = connect(t, rpc);
			const running = [1, 2, 3].map(() => failure(rpc, connection.sendRequest('test.sleep', FOREVER)));
			await within(connection.sendRequest('ping'), 'ping');
			connection.end();
			for (const request of running) assert.equal((await request).code, -32800);
			assert.deepEqual(await within(server.closed, 'the server to end', SOON), { code: 0, signal: null });
		});

		it('notices that the server was killed', limit, async (t) => {
			const { server, connection } = connect(t, rpc);
			const pending = connection.sendRequest('test.sleep', FOREVER);
			await within(connection.sendRequest('ping'), 'ping');
			server.child.kill('SIGKILL');
			await within(server.connectionClosed, 'the connection to be closed');
			assert.throws(() => connection.sendRequest('ping'), rpc.ConnectionError);
			// The library leaves what is pending to the disposal.
			connection.dispose();
			assert.equal((await failure(rpc, pending)).code, rpc.ErrorCodes.PendingResponseRejected);
		});
	});
}

describe('any client', () => {
	it('sees only frames, whatever it sends', limit, async (t) => {
		const server = start(t, '--log-level', 'debug');
		server.child.stdin.write([
			frame({ jsonrpc: '2.0', id: 'a', method: 'ping' }),
			frame('this is not JSON'),
			frame({ jsonrpc: '2.0', id: 2, method: 'test.panic' }),
			frame({ jsonrpc: '1.0', id: 3, method: 'ping' }),
			frame({ jsonrpc: '2.0', id: [4], method: 'ping' }),
			frame({ jsonrpc: '2.0', method: 'no.such.notification' }),
			frame({ jsonrpc: '2.0', id: 99, result: 'to nothing' }),
			frame([{ jsonrpc: '2.0', id: 5, method: 'ping' }, { jsonrpc: '2.0', method: 'ping' }]),
			'a stray print of the client\n',
			frame({ jsonrpc: '2.0', id: 6, method: 'echo', params: ['still here'] }),
		].join(''));
		server.child.stdin.end();
		assert.deepEqual(await within(server.closed, 'the server to end', SOON), { code: 0, signal: null });
		const messages = server.messages();
		const codes = Object.fromEntries(messages.flat().filter(({ id }) => id !== null).map(({ id, error }) => [id, error?.code ?? 0]));
		assert.deepEqual(codes, { a: 0, 2: -32603, 3: -32600, 5: 0, 6: 0 });
		assert.deepEqual(messages.filter(({ id }) => id === null).map(({ error }) => error.data.reason).sort(),
			['invalid-id-type', 'invalid-json', 'length-mismatch']);
		assert.match(server.stderr, /test\.panic/);
	});

	it('that is killed leaves no server behind', limit, async (t) => {
		for (const first of ['', frame({ jsonrpc: '2.0', id: 1, method: 'test.sleep', params: FOREVER })]) {
			const project = new Project();
			const host = spawn(process.execPath, ['--input-type=module', '--eval', `
				import { spawn } from 'node:child_process';
				const server = spawn(process.argv[1], ['--test-methods'], { stdio: ['pipe', 'pipe', 'ignore'] });
				server.stdin.write(process.argv[2]);
				console.log(server.pid);
			`, '--', program(), first + frame({ jsonrpc: '2.0', id: 2, method: 'ping' })], { cwd: project.root, env: project.env, stdio: ['ignore', 'pipe', 'inherit'] });
			t.after(() => {
				host.kill('SIGKILL');
				project.end();
			});
			const pid = Number(await within(new Promise((done) => host.stdout.once('data', done)), 'the host to start a server'));
			assert.equal(isGone(pid), false);
			host.kill('SIGKILL');
			await until(() => isGone(pid), 'the server to be gone', SOON);
		}
	});
});
