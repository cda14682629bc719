// Judges messages of an agent by the schema that the SDK carries: a request, a notification
// and a result each by the definition of their method, which is stricter than the schema's
// own "any of them".
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Ajv from 'ajv/dist/2020.js';

const folder = join(dirname(fileURLToPath(import.meta.resolve('@agentclientprotocol/sdk'))), '../../../schema');

// A Schema is one of the two files of a version: schema.json is what is stable.
class Schema {
	constructor(version, file) {
		const document = JSON.parse(readFileSync(join(folder, `v${version}`, file), 'utf8'));
		this.kinds = new Set(document.$defs.SessionUpdate.anyOf?.map((u) => u.properties?.sessionUpdate?.const));
		const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
		ajv.addSchema(document, file);
		this.byMethod = new Map();
		this.stops = ajv.getSchema(`${file}#/$defs/Error`);
		for (const [name, definition] of Object.entries(document.$defs)) {
			const kind = /(Request|Response|Notification)$/.exec(name)?.[1];
			if (definition['x-method'] && kind) {
				this.byMethod.set(`${definition['x-method']} ${kind}`, ajv.getSchema(`${file}#/$defs/${name}`));
			}
		}
	}

	knows(method, kind) {
		return this.byMethod.has(`${method} ${kind}`);
	}

	// faults are what is wrong with a value.
	faults(method, kind, value) {
		const validate = kind === 'Error' ? this.stops : this.byMethod.get(`${method} ${kind}`);
		if (validate(value)) return [];
		return validate.errors.map((e) => `${method} ${kind}${e.instancePath}: ${e.message} ${JSON.stringify(e.params)}`);
	}
}

const schemas = new Map([1, 2].map((version) => [version, ['schema.json', 'schema.unstable.json'].map((file) => new Schema(version, file))]));

// faultsOf are what is wrong with a message of the agent's, in a version of the protocol;
// asked is the method of the request that it answers.
export function faultsOf(message, asked, version) {
	if (message.jsonrpc !== '2.0') return ['no "jsonrpc": "2.0"'];
	const [method, kind, value] =
		message.method !== undefined
			? [message.method, message.id === undefined ? 'Notification' : 'Request', message.params]
			: 'error' in message
				? [asked, 'Error', message.error]
				: [asked, 'Response', message.result];
	const [stable, unstable] = schemas.get(version);
	if (kind === 'Error') return stable.faults(method, kind, value);
	if (method === undefined) return ['an answer to nothing that was asked'];
	if (method.startsWith('_')) return []; // an extension
	const schema = stable.knows(method, kind) ? stable : unstable;
	if (!schema.knows(method, kind)) return [`no ${kind} is called ${method}`];
	const update = method === 'session/update' ? value.update?.sessionUpdate : undefined;
	if (version === 2 && update !== undefined && !update.startsWith('_') && !stable.kinds.has(update)) return [`no update is called ${update}`];
	return schema.faults(method, kind, value);
}
