// Starts the server for a test, connects a client to it and sees to it that
// both are gone afterwards.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

// How many milliseconds anything may take; only a broken server takes them.
export const DEADLINE = 60_000;

// How many milliseconds an end that is promised within 2 s may take. The rest
// is for a busy machine.
export const SOON = 5_000;

// How long a test.sleep takes that ends before a test only if it is told to.
export const FOREVER = { ms: 3_600_000 };

export function program() {
	const path = process.env.DUET_RPC_BIN;
	assert.ok(path, 'DUET_RPC_BIN must name the duet-rpc binary');
	accessSync(path, constants.X_OK);
	return resolve(path);
}

// within fails if a promise is not settled in time, and says what was awaited.
export async function within(promise, what, milliseconds = DEADLINE) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`waited ${milliseconds} ms for ${what}`)), milliseconds);
	});
	try {
		return await Promise.race([promise, late]);
	} finally {
		clearTimeout(timer);
	}
}

// until waits for a condition of the system that nothing reports.
export async function until(condition, what, milliseconds = DEADLINE) {
	for (const start = Date.now(); !condition(); ) {
		assert.ok(Date.now() - start < milliseconds, `waited ${milliseconds} ms for ${what}`);
		await new Promise((done) => setTimeout(done, 10));
	}
}

// A Project is a folder with a user of its own.
export class Project {
	constructor() {
		this.folder = mkdtempSync(join(tmpdir(), 'duet-jsonrpc-'));
		this.root = join(this.folder, 'project');
		mkdirSync(this.root);
		const { DUET_ROOT, DUET_SOCKET, DUET_STATE_HOME, XDG_RUNTIME_DIR, XDG_STATE_HOME, ...rest } = process.env;
		this.env = { ...rest, HOME: this.folder, XDG_CONFIG_HOME: join(this.folder, 'config'), DUET_DEMO_DELAY: '0' };
	}

	daemonLog() {
		return spawnSync(program(), ['daemon', 'logs'], { cwd: this.root, env: this.env, encoding: 'utf8', timeout: DEADLINE }).stdout;
	}

	// end stops the daemon, if one runs. No client may be left, which would start another.
	end() {
		spawnSync(program(), ['daemon', 'stop', '--force'], { cwd: this.root, env: this.env, timeout: DEADLINE });
		rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
	}
}

// start starts a server. All that it writes is kept.
export function start(t, ...flags) {
	const project = new Project();
	const child = spawn(program(), ['--test-methods', ...flags], { cwd: project.root, env: project.env, stdio: 'pipe' });
	const server = { child, project, stdout: [], stderr: '' };
	child.stdout.on('data', (chunk) => server.stdout.push(chunk));
	child.stderr.setEncoding('utf8').on('data', (text) => (server.stderr += text));
	child.stdin.on('error', () => {}); // a server that was killed does not read
	server.closed = new Promise((done) => child.on('close', (code, signal) => done({ code, signal })));
	server.messages = () => parseFrames(Buffer.concat(server.stdout));
	t.after(async () => {
		child.kill('SIGKILL');
		await within(server.closed, 'the server to be gone');
		project.end();
	});
	return server;
}

// connect starts a server and connects the client of a version of the library
// to it. The library must have had nothing to complain of when the test is
// over: it does where a server says something that it does not understand.
export function connect(t, rpc, ...flags) {
	const server = start(t, ...flags);
	const complaints = [];
	const complain = (text) => complaints.push(text);
	const connection = rpc.createMessageConnection(
		new rpc.StreamMessageReader(server.child.stdout),
		new rpc.StreamMessageWriter(server.child.stdin),
		{ error: complain, warn: complain, info() {}, log() {} },
	);
	connection.onError(([error]) => complaints.push(error.message));
	connection.onUnhandledNotification((message) => complaints.push(`not asked for: ${message.method}`));
	server.connectionClosed = new Promise((done) => connection.onClose(done));
	connection.listen();
	t.after(() => {
		connection.dispose();
		assert.deepEqual(complaints, []);
	});
	return { server, connection };
}

// parseFrames takes bytes apart that must be frames with one header each, since
// Emacs understands no others, and nothing else.
export function parseFrames(bytes) {
	const messages = [];
	const text = new TextDecoder('utf-8', { fatal: true });
	while (bytes.length > 0) {
		const header = /^Content-Length: (\d+)\r\n\r\n/.exec(bytes.toString('latin1', 0, 100));
		assert.ok(header, `no frame begins here: ${JSON.stringify(bytes.toString('latin1', 0, 100))}`);
		const from = header[0].length;
		const to = from + Number(header[1]);
		assert.ok(to <= bytes.length, 'the last frame is cut off');
		messages.push(JSON.parse(text.decode(bytes.subarray(from, to))));
		bytes = bytes.subarray(to);
	}
	return messages;
}

// frame makes the bytes of one message.
export function frame(message) {
	const body = typeof message === 'string' ? message : JSON.stringify(message);
	return `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

// isGone tells whether a process has ended, also where its parent, which may
// have died before it, has not asked for its exit status.
export function isGone(pid) {
	try {
		process.kill(pid, 0);
	} catch {
		return true;
	}
	try {
		return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
	} catch {
		return false;
	}
}
