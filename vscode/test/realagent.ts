// Claude Code with a test model on a loopback address.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestProject } from "./hub";

const agents = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "duet-rpc", "agents");
/** Node and the agent's script. The extension uses the PATH of a login shell, which may lack them. */
const command = [["node-22", "node"], ["claude-agent-acp-0.101", "claude-agent-acp"]].map(([folder, name]) => join(agents, folder!, "node_modules", ".bin", name!));

/** Whether .ci/install has installed Claude Code. */
export const hasClaude = command.every((path) => existsSync(path));

/** A model, and the settings for an agent that uses it. */
export interface ClaudeSite {
  /** Variables of the environment of the agent. */
  env: NodeJS.ProcessEnv;
  /** Puts the agent into the configuration of a project's user. */
  prepare: (project: TestProject) => void;
}

/** startModel starts a model. It passes the function that ends it to after. */
export async function startModel(after: (end: () => void) => void): Promise<ClaudeSite> {
  const model = spawn("go", ["run", "./testdata/agents/model/serve"], { cwd: "..", stdio: ["pipe", "pipe", "inherit"] });
  after(() => model.stdin.end());
  const { url, key } = await new Promise<{ url: string; key: string }>((resolve, reject) => {
    createInterface({ input: model.stdout }).on("line", (line) => resolve(JSON.parse(line) as { url: string; key: string }));
    model.on("exit", () => reject(new Error("the model has ended")));
  });
  const variables = {
    ANTHROPIC_BASE_URL: url, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", DISABLE_ERROR_REPORTING: "1", DISABLE_TELEMETRY: "1",
    // Without this, the agent starts a turn without the tools of a server that took 5 s to start.
    MCP_CONNECTION_NONBLOCKING: "0", MCP_CONNECT_TIMEOUT_MS: "600000", MCP_TIMEOUT: "600000",
  };
  return {
    env: { KEY_OF_THE_MODEL: key },
    prepare: ({ home }) => {
      const folder = join(home, ".config", "duet");
      mkdirSync(folder, { recursive: true });
      const lines = Object.entries(variables).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
      writeFileSync(join(folder, "config.toml"), `[agents.claude]\ncommand = ${JSON.stringify(command)}\nstart_timeout = "10m"\n[agents.claude.env]\n${lines.join("\n")}\n[keys.anthropic]\nenv = "KEY_OF_THE_MODEL"\n`);
    },
  };
}
