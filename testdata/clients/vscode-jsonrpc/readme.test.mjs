// Runs the Node example of docs/clients.md unchanged, in a folder with vscode-jsonrpc installed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DEADLINE, program } from './server.mjs';

const page = readFileSync(new URL('../../../docs/clients.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, text]) => text);

describe('the Node example of docs/clients.md', () => {
	it('exists once', () => assert.equal(examples.length, 1));

	for (const major of ['8', '10']) {
		it(`prints its events and ends, with vscode-jsonrpc ${major}`, { timeout: 2 * DEADLINE }, (t) => {
			const folder = mkdtempSync(join(tmpdir(), 'duet-readme-'));
			const project = join(folder, 'project');
			mkdirSync(join(project, 'bin'), { recursive: true });
			mkdirSync(join(project, 'node_modules'));
			symlinkSync(program(), join(project, 'bin', 'duet-rpc'));
			symlinkSync(fileURLToPath(new URL(`node_modules/vscode-jsonrpc-${major}`, import.meta.url)), join(project, 'node_modules', 'vscode-jsonrpc'));
			writeFileSync(join(project, 'hello.js'), examples[0]);
			const env = { PATH: '/usr/bin:/bin', HOME: folder, DUET_DEMO_DELAY: '0' };
			t.after(() => {
				spawnSync(program(), ['daemon', 'stop', '--force'], { cwd: project, env, timeout: DEADLINE });
				rmSync(folder, { recursive: true, force: true });
			});
			const { status, stdout, stderr, error } = spawnSync(process.execPath, ['hello.js'], {
				cwd: project, encoding: 'utf8', timeout: DEADLINE, env,
			});
			assert.equal(status, 0, `${error ?? ''}\n${stdout}\n${stderr}`);
			assert.match(stdout, /^\d+ approval\.opened /m);
			assert.match(stdout, /^\d+ text\.delta /m);
			assert.match(stdout, /  state: 'completed'/);
			assert.equal(readFileSync(join(project, 'demo.txt'), 'utf8'), 'Turn 1: Say hello\n');
		});
	}
});
