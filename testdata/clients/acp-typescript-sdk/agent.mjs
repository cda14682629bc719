// Starts `duet-rpc acp` for a test in a project of its own, keeps each line that it writes,
// and judges them by the schema when the test ends.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { faultsOf } from './schema.mjs';

// How many milliseconds anything may take; only a broken program takes them.
const DEADLINE = Number(process.env.DUET_TEST_DEADLINE ?? 120_000);

function program() {
	const path = process.env.DUET_RPC_BIN;
	assert.ok(path, 'DUET_RPC_BIN must name the duet-rpc binary');
	accessSync(path, constants.X_OK);
	return resolve(path);
}

// within fails if a promise is not settled in time, and says what was awaited.
export async function within(promise, what) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`waited ${DEADLINE} ms for ${what}`)), DEADLINE);
	});
	try {
		return await Promise.race([promise, late]);
	} finally {
		clearTimeout(timer);
	}
}

// A Project is a folder with a hub, which ends with the test.
export class Project {
	constructor(t) {
		this.t = t;
		this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'duet-acp-')));
		this.home = join(this.folder, 'home');
		this.root = join(this.folder, 'project');
		mkdirSync(join(this.root, '.git'), { recursive: true });
		mkdirSync(this.home);
		const { DUET_ROOT, DUET_SOCKET, XDG_RUNTIME_DIR, ...rest } = process.env;
		this.env = {
			...rest,
			HOME: this.home,
			XDG_CONFIG_HOME: join(this.home, 'config'),
			XDG_STATE_HOME: join(this.home, 'state'),
			DUET_DEMO_DELAY: '0',
		};
		this.agents = [];
		t.after(async () => {
			for (const agent of this.agents) agent.kill();
			for (const agent of this.agents) await within(agent.closed, 'the agent to be gone');
			try {
				this.duet('daemon', 'stop', '--force');
			} catch {
				// none ran
			}
			rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
			assert.deepEqual(this.agents.flatMap((agent) => agent.faults), [], 'what is against the schema');
		});
	}

	// duet runs a command of the shell, and returns what it printed.
	duet(...args) {
		return execFileSync(program(), args, { cwd: this.root, env: this.env, encoding: 'utf8', timeout: DEADLINE, stdio: ['ignore', 'pipe', 'pipe'] });
	}

	// call calls a method of the hub.
	call(method, params = {}) {
		return JSON.parse(this.duet('call', method, JSON.stringify(params)));
	}

	// crashHub kills the process that is the hub.
	crashHub() {
		process.kill(this.call('daemon.status').pid, 'SIGKILL');
	}

	// approve allows the one question that is open, in the inbox.
	approve() {
		const open = this.call('fetchApprovals', { status: 'pending' }).approvals;
		assert.equal(open.length, 1, JSON.stringify(open));
		this.duet('approvals', 'approve', open[0].id);
	}

	// start starts an agent process.
	start(...args) {
		const agent = new Agent(this, ['acp', '--agent', 'demo', ...args]);
		this.agents.push(agent);
		return agent;
	}
}

// An Agent is a process of duet-rpc acp, and its lines.
class Agent {
	constructor(project, args) {
		this.child = spawn(program(), ['--answer-within=1m', ...args], { cwd: project.root, env: project.env, stdio: 'pipe' });
		this.received = []; // each message
		this.faults = [];
		this.version = 1; // of the protocol
		this.asked = new Map(); // id → method of each request to the agent
		this.waiting = new Set();
		this.stderr = '';
		this.child.stderr.setEncoding('utf8').on('data', (text) => (this.stderr += text));
		this.child.stdin.on('error', () => {}); // one that was killed does not read
		this.closed = new Promise((done) => this.child.on('close', (code, signal) => done({ code, signal })));
		createInterface({ input: this.child.stdout, crlfDelay: Infinity }).on('line', (line) => this.take(line));
	}

	take(line) {
		let message;
		try {
			message = JSON.parse(line);
		} catch {
			this.faults.push(`no JSON: ${line.slice(0, 200)}`);
			return;
		}
		for (const m of Array.isArray(message) ? message : [message]) {
			const asked = this.asked.get(JSON.stringify(m.id ?? null));
			if (asked === 'initialize' && m.result?.protocolVersion === 2) this.version = 2;
			this.faults.push(...faultsOf(m, asked, this.version));
			this.received.push(m);
		}
		for (const look of [...this.waiting]) look();
	}

	kill() {
		this.child.kill('SIGKILL');
	}

	// write writes text as it is.
	write(text) {
		this.child.stdin.write(text);
	}

	// note notes a message to the agent, by which its answer is judged.
	note(message) {
		if (message.id !== undefined && message.method !== undefined) this.asked.set(JSON.stringify(message.id), message.method);
	}

	send(message) {
		this.note(message);
		this.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
	}

	// saw is the first message, of those from a place on, of which a condition holds. It is
	// waited for.
	async saw(condition, what, from = 0) {
		return within(
			new Promise((done, reject) => {
				let next = from;
				const look = () => {
					for (; next < this.received.length; next++) {
						if (condition(this.received[next])) {
							this.waiting.delete(look);
							done(this.received[next]);
							return;
						}
					}
				};
				this.waiting.add(look);
				this.closed.then(() => reject(new Error(`the agent has gone before ${what}: ${this.stderr}`)));
				look();
			}),
			`${what}; ${this.stderr}`,
		);
	}

	// ask sends a request and waits for its response, whatever that is.
	ask(method, params) {
		const id = `ask-${(this.last = (this.last ?? 0) + 1)}`;
		const response = this.saw((m) => m.id === id && m.method === undefined, `the answer to ${method}`);
		this.send({ id, method, params });
		return response;
	}

	async result(method, params) {
		const response = await this.ask(method, params);
		assert.equal(response.error, undefined, `${method}: ${JSON.stringify(response.error)}`);
		return response.result;
	}

	// logged waits until the program has logged words.
	logged(words) {
		return within(
			new Promise((done) => {
				const look = () => this.stderr.includes(words) && done();
				this.child.stderr.on('data', look);
				look();
			}),
			`${words} in the log`,
		);
	}

	// heard waits until the agent has said a text, which may come in pieces.
	heard(sessionId, words, from = 0) {
		return this.saw(() => this.text(sessionId, from).includes(words), JSON.stringify(words), from);
	}

	// text is all that the agent has said in a session, from a message on.
	text(sessionId, from = 0, kind = 'agent_message_chunk') {
		return this.received
			.slice(from)
			.filter((m) => m.method === 'session/update' && m.params.sessionId === sessionId && m.params.update.sessionUpdate === kind)
			.map((m) => m.params.update.content.text ?? '')
			.join('');
	}
}

export const permission = (m) => m.method === 'session/request_permission';

// once is the option that allows a tool once.
export const once = (question) => question.params.options.find((o) => o.kind === 'allow_once').optionId;

// chosen is an answer to a question.
export const chosen = (question, optionId = once(question)) => ({ id: question.id, result: { outcome: { outcome: 'selected', optionId } } });
