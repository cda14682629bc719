// A client that is made with the SDK, for tests.
import { Readable, Writable } from 'node:stream';
import { within } from './agent.mjs';

export const text = (words) => [{ type: 'text', text: words }];

// An Editor is a client of the SDK, of one version of the protocol, at a process of its own.
export class Editor {
	constructor(sdk, project, ...flags) {
		this.sdk = sdk;
		this.process = project.start(...flags);
		this.updates = [];
		this.questions = [];
		this.always = undefined; // what answers each question at once
		this.looks = new Set();
		const changed = () => [...this.looks].forEach((look) => look());
		const answer = ({ params, signal }) =>
			new Promise((resolve, reject) => {
				const question = { params, resolve, withdrawn: false };
				signal?.addEventListener('abort', () => {
					question.withdrawn = true;
					changed();
					reject(sdk.RequestError.requestCancelled());
				});
				this.questions.push(question);
				this.always?.(question);
				changed();
			});
		const app = sdk
			.client({ name: 'test-editor' })
			.onRequest('session/request_permission', answer)
			.onRequest('elicitation/create', answer)
			.onNotification('session/update', ({ params }) => {
				this.updates.push(params);
				changed();
			});
		// Beside the lines that the project keeps, to judge them.
		const { child } = this.process;
		this.agent = app.connect(sdk.ndJsonStream(this.noting(Writable.toWeb(child.stdin)), Readable.toWeb(child.stdout))).agent;
	}

	// noting passes bytes on, and notes which requests are asked in them.
	noting(writable) {
		const writer = writable.getWriter();
		let rest = '';
		return new WritableStream({
			write: (bytes) => {
				const lines = (rest + Buffer.from(bytes).toString('utf8')).split('\n');
				rest = lines.pop();
				for (const line of lines) this.process.note(JSON.parse(line));
				return writer.write(bytes);
			},
		});
	}

	until(condition, what) {
		return within(
			new Promise((done) => {
				const look = () => {
					const found = condition();
					if (!found) return;
					this.looks.delete(look);
					done(found);
				};
				this.looks.add(look);
				look();
			}),
			what,
		);
	}

	question(n = 0) {
		return this.until(() => this.questions[n], `question ${n}`);
	}

	of(kind, sessionId) {
		return this.updates.filter((u) => u.update.sessionUpdate === kind && (!sessionId || u.sessionId === sessionId)).map((u) => u.update);
	}

	text(kind = 'agent_message_chunk') {
		return this.of(kind)
			.map((u) => u.content.text ?? '')
			.join('');
	}

	initialize(clientCapabilities = {}) {
		const { PROTOCOL_VERSION: protocolVersion } = this.sdk;
		const info = { name: 'test-editor', version: '1' };
		return this.agent.request('initialize', protocolVersion === 1 ? { protocolVersion, clientCapabilities, clientInfo: info } : { protocolVersion, capabilities: clientCapabilities, info });
	}

	prompt(sessionId, words) {
		return this.agent.request('session/prompt', { sessionId, prompt: text(words) });
	}
}
