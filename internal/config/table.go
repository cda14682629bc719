package config

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file is the table of all keys. Reading, merging, trust, `duet-rpc config`, `config --defaults`
// and the reference in docs/configuration.md follow it. CONTRIBUTING.md has the recipe for a new
// key.

const week = 168 * time.Hour

// keys returns the keys of a configuration file.
var keys = sync.OnceValue(func() *schema {
	return &schema{rows: []row{
		{
			key: "default_agent", kind: name(), to: at(func(c *Config) *string { return &c.DefaultAgent }), env: "DUET_AGENT", trust: always,
			current: func(c *Config) any { return c.Default() }, example: []string{`"claude"`},
			unset: "the first of claude, codex, gemini, opencode, goose, qwen, kimi and copilot that is installed, else another agent of yours, " +
				"else demo",
			doc: "The agent of clients that name none. `duet-rpc agents` lists the agents.",
		},
		{
			key: "safe_directories", kind: directories().adding(), to: at(func(c *Config) *[]string { return &c.SafeDirectories }),
			env: "DUET_SAFE_DIRECTORIES",
			own: "which users' files Duet accepts", example: []string{`["/srv/team/project", "/workspaces/*"]`},
			doc: "Directories in which Duet accepts the files of other users. Elsewhere it ignores a configuration or a project that another user " +
				"owns, except root. A path with /* at its end means all directories below it, \"*\" means every directory. The variable is a list " +
				"like PATH, and adds to the key.",
		},
		{
			key: "worktree", kind: choice(WorktreeNever, WorktreeSession, WorktreeTurn), to: at(func(c *Config) *string { return &c.Worktrees.Use }),
			trust: always,
			doc: "Which new sessions get a git worktree of their own if their client does not choose (--worktree). \"session\": every session, " +
				"also those of triggers, but not those of editors that start duet-rpc acp, and only in a git repository with a commit. \"turn\": the " +
				"same, and before each later prompt Duet brings a worktree whose work is all landed to the commit that you have checked out.",
		},
		{key: "daemon", kind: in(daemonKeys()), own: "when daemons end", doc: "The daemon of a project."},
		{key: "limits", kind: in(limitKeys()), trust: toRaise, doc: "Limits of the daemon. A running daemon keeps the limits that it started " +
			"with."},
		{
			key: "budget", kind: in(&schema{rows: []row{
				{
					key: "turn", kind: in(budgetKeys(func(b *Budget) *BudgetLimits { return &b.Turn }, turnBudget)),
					doc: "What one turn may use.",
				},
				{key: "session", kind: in(budgetKeys(func(b *Budget) *BudgetLimits { return &b.Session }, sumBudget)), doc: "What all turns of a session may use together."},
				{key: "day", kind: in(budgetKeys(func(b *Budget) *BudgetLimits { return &b.Day }, sumBudget)), doc: "What all turns that start on " +
					"one day may use together, in the time zone of this machine. After that no turn starts until the next day."},
			}}), trust: toRaise,
			doc: "What agents may use before Duet interrupts them. A limit that is not set does not apply. You can continue an interrupted turn, " +
				"which starts a new account for the turn and its session. Duet warns at 80 %. Usage is what the agent reports: most agents report it " +
				"at the end of a turn, some never.",
		},
		{key: "acp", kind: in(&schema{rows: []row{{
			key: "saved_files", kind: flag(), to: at(func(c *Config) *bool { return &c.ACP.SavedFiles }), env: "DUET_ACP_SAVED_FILES",
			doc: "true: agents read files from the disk even if the editor offers unsaved text (--saved-files).",
		}}}), doc: "How `duet-rpc acp` serves editors that speak the Agent Client Protocol."},
		{
			key: "agents", kind: kind{form: entries, schema: agentKeys()}, to: at(func(c *Config) *map[string]Agent { return &c.Agents }),
			trust: always,
			doc: "An agent of any name but demo. A table with the name of a built-in agent changes that agent. A project's table changes yours of " +
				"the same name. Then env_from, env, keys and mcp_servers are added to, and other keys are replaced.",
		},
		{key: "mcp", kind: in(&schema{rows: []row{
			{
				key: "probe", kind: flag(), to: at(func(c *Config) *bool { return &c.ProbeServers }),
				doc: "Duet tries an MCP server when an agent gets it, and tells the session if it does not work. It starts the server, asks it to " +
					"initialize and ends it, once for each definition that works. Set false for servers that run only once at a time, or that cost " +
					"something.",
			},
			{
				key: "editor", kind: flag(), to: at(func(c *Config) *bool { return &c.EditorTools }),
				doc: "Agents get the tools of your editor (docs/mcp.md): its diagnostics, definitions, references, open files and selection. Agents " +
					"that run already keep what they have.",
			},
		}}), own: "which servers agents get and whether these are tried", doc: "MCP servers of agents."},
		{key: "checkpoints", kind: in(&schema{rows: []row{{
			key: "enabled", kind: flag(), to: at(func(c *Config) *bool { return &c.Checkpoints }),
			doc: "Duet records the files of a project before and after each turn, as git objects; this needs git 2.39. Then files that an agent's " +
				"shell commands change are changes of the session, and `duet-rpc rewind` takes files back to before a turn. Duet does not record " +
				"ignored files, files over 10 MB, more than 1,000,000 files, more than 2 GB of new files, or a whole home directory. It keeps a " +
				"record for 7 days: in your git repository below refs/duet/, else in its state directory.",
		}}}), own: "what is stored on your disk", doc: "Records of the project's files."},
		{key: "worktrees", kind: in(worktreeKeys()), trust: always, doc: "How Duet prepares a worktree (`duet-rpc prompt --worktree`)."},
		{
			key: "keys", kind: kind{form: dictionary, schema: serviceKeys()}, to: at(func(c *Config) *map[string]Key { return &c.Keys }),
			trust: always,
			doc: "Where the API key of a service is: exactly one of env, command and file. The services of built-in agents are anthropic, openai " +
				"and gemini. Without configuration their keys are in ANTHROPIC_API_KEY, OPENAI_API_KEY and GEMINI_API_KEY.",
		},
		{
			key: "hosts", kind: kind{form: dictionary, schema: hostKeys()}, to: at(func(c *Config) *map[string]Host { return &c.Hosts }),
			own: "which commands reach other machines",
			doc: "A host is another machine, a container, or anything else that runs a command with its standard input and output " +
				"(docs/hosts.md): `duet-rpc --host NAME` works with the sessions there.",
		},
		{
			key: "web", kind: in(webKeys()), own: "who reaches your sessions",
			doc: "`duet-rpc web`, the page for a browser and a phone (docs/web.md). Flags of the command come first.",
		},
		{
			key: "notify", kind: in(notifyKeys()), own: "what leaves this machine",
			doc: "How `duet-rpc web` notifies you of questions, beside the notifications of paired browsers.",
		},
		{
			key: "builds", kind: kind{form: list, schema: buildKeys()}, to: at(func(c *Config) *[]Build { return &c.Builds }), trust: always,
			doc: "A command that `duet-rpc build` and editors run. Without any, Duet goes by the project's own files: go.mod, package.json, " +
				"Cargo.toml, Makefile and others. A build ends with the client that asked for it.",
		},
		{
			key: "gates", kind: kind{form: list, schema: gateKeys()}, to: at(func(c *Config) *[]Gate { return &c.Gates }), trust: always,
			doc: "A command that checks the work of an agent, if a prompt names it: `duet-rpc prompt --gate tests` (docs/gates.md).",
		},
		{key: "preview", kind: in(previewKeys()), doc: "The files that `duet-rpc preview` and editors show in a browser."},
		{
			key: "rules", kind: kind{form: list, schema: ruleKeys()}, to: at(func(c *Config) *[]Rule { return &c.Rules }),
			trust: &trust{"In a project's file a rule with effect \"allow\" waits for your " +
				"trust.", func(_ *row, _ *Config, v any) bool { return v.(*Rule).Effect == EffectAllow }},
			doc: "A rule decides about tool calls before Duet asks you. A deny rule wins over an allow rule.",
		},
		{key: "automation", kind: in(automationKeys()), own: "where events may be sent", doc: "What triggers may do."},
		{
			key: "triggers", kind: kind{form: list, schema: triggerKeys()}, to: at(func(c *Config) *[]Trigger { return &c.Triggers }), trust: always,
			doc: "A trigger reacts to an event (docs/automation.md).",
		},
	}}
})

// in returns the kind of a table whose keys set fields of the same record.
func in(s *schema) kind { return kind{form: section, schema: s} }

func daemonKeys() *schema {
	return &schema{rows: []row{
		{
			key: "idle", kind: duration(0, week), to: at(func(c *Config) *time.Duration { return &c.DaemonIdle }), env: "DUET_DAEMON_IDLE",
			doc: "How long after its last client a daemon ends that has nothing to do: no turn, no background work of an agent, no terminal and " +
				"no enabled trigger. \"0s\": it never ends by itself. Open questions wait without a daemon.",
		},
		{
			key: "when_alone", kind: choice(AloneContinue, AloneInterrupt), to: at(func(c *Config) *string { return &c.WhenAlone }),
			doc: "\"interrupt\": one minute after its last client a daemon interrupts the turns that clients started; they can be continued. " +
				"\"continue\": they go on.",
		},
	}}
}

func limitKeys() *schema {
	return &schema{rows: []row{
		{
			key: "max_turns", kind: whole(1, 100), to: at(func(c *Config) *int { return &c.Limits.MaxTurns }), env: "DUET_MAX_TURNS",
			doc: "How many turns run at once.",
		},
		{
			key: "queue_cap", kind: whole(1, 100_000), to: at(func(c *Config) *int { return &c.Limits.QueueCap }), env: "DUET_QUEUE_CAP",
			doc: "How many turns may wait.",
		},
		{
			key: "turn_timeout", kind: duration(time.Second, week), to: at(func(c *Config) *time.Duration { return &c.Limits.TurnTimeout }),
			env: "DUET_TURN_TIMEOUT",
			doc: "How long a turn may take, without the time that it waits for you.",
		},
		{
			key: "idle_agents", kind: whole(0, 1000), to: at(func(c *Config) **int { return &c.Limits.IdleAgents }), env: "DUET_IDLE_AGENTS",
			current: func(c *Config) any { return c.Limits.MostIdle() }, example: []string{"3"}, unset: "as many as max_turns",
			doc: "How many agents Duet keeps for the next prompt, for one minute each. It ends the one that is idle longest. A session continues " +
				"without its agent.",
		},
	}}
}

// The limits that a budget has besides those of every budget.
func turnBudget(of func(*Config) *BudgetLimits) []row {
	return []row{
		{
			key: "repeats", kind: whole(2, 1_000_000), to: at(func(c *Config) **int { return &of(c).Repeats }),
			example: []string{"50"}, unset: "50 for turns that a trigger or gates started",
			doc: "How often the agent may make the same tool call in a row.",
		},
		{
			key: "rounds", kind: whole(1, 1_000_000), to: at(func(c *Config) **int { return &of(c).Rounds }), example: []string{"200"},
			doc: "How many rounds of tool calls the agent may make.",
		},
	}
}

func sumBudget(of func(*Config) *BudgetLimits) []row {
	return []row{{
		key: "turns", kind: whole(1, 1_000_000), to: at(func(c *Config) **int { return &of(c).Turns }), example: []string{"100"},
		doc: "How many turns there may be.",
	}}
}

func budgetKeys(part func(*Budget) *BudgetLimits, own func(func(*Config) *BudgetLimits) []row) *schema {
	of := func(c *Config) *BudgetLimits { return part(&c.Budget) }
	return &schema{rows: append(
		own(of),
		row{
			key: "time", kind: duration(time.Second, week), to: at(func(c *Config) **time.Duration { return &of(c).Time }), example: []string{`"1h"`},
			doc: "How long the agent may work, without the time that it waits for you.",
		},
		row{
			key: "tokens", kind: whole(1, 1_000_000_000_000), to: at(func(c *Config) **int { return &of(c).Tokens }), example: []string{"2000000"},
			doc: "How many tokens the agent may read and write.",
		},
		row{
			key: "cost", kind: number(0.0001, 1_000_000), to: at(func(c *Config) **float64 { return &of(c).Cost }), example: []string{"5.0"},
			doc: "The cost in US dollars.",
		},
	)}
}

func agentKeys() *schema {
	const leastSilence, mostSilence = 100 * time.Millisecond, time.Hour
	return &schema{
		most:   map[string]int{SourceProject: 100, SourceUser: 1_000},
		names:  []string{"example"},
		record: func() any { a := newAgent("NAME"); return &a },
		rows: []row{
			{
				key: "title", kind: anyText(), to: at(func(a *Agent) *string { return &a.Title }), example: []string{`"An example"`}, unset: "the name",
				doc: "The name that people see.",
			},
			{
				key: "driver", kind: choice(DriverACP, DriverCommand, DriverExecutor), to: at(func(a *Agent) *string { return &a.Driver }), example: []string{`"command"`},
				doc: "\"acp\": the program speaks the Agent Client Protocol on its standard input and output. \"command\": any program; its output " +
					"is the answer. \"executor\": the program speaks the executor catalog (docs/executors.md).",
			},
			{
				key: "command", kind: program(), to: at(func(a *Agent) *[]string { return &a.Command }), example: []string{`["program", "argument", "{prompt}"]`},
				doc: "The program and its arguments; no shell runs. ~/ is your home directory, and a path with a slash is relative to this file. " +
					"With driver \"command\" the prompt replaces {prompt}, or is the last argument. Duet puts a space before a prompt that would look " +
					"like an option. Such a program asks for no approval, so permission_mode \"plan\" is refused for it.",
			},
			{
				key: "host", kind: text("a host, or AGENT@HOST", checkAgentHost), to: at(func(a *Agent) *string { return &a.Host }),
				own: "which hosts agents work on", example: []string{`"devbox"`}, unset: "this machine",
				doc: "The host on which the agent works (docs/hosts.md): `duet-rpc prompt --agent NAME` begins there with your commit and your files, " +
					"as with --on. \"claude@devbox\" is the agent claude there; \"devbox\" the one of the same name. It needs no command here.",
			},
			{
				key: "prompt", kind: choice("arg", "stdin"), to: at(func(a *Agent) *string { return &a.Prompt }), driver: DriverCommand,
				doc: "How the program gets the prompt. Prompts over 100 KiB always go to standard input.",
			},
			{
				key: "history", kind: choice("transcript", "none"), to: at(func(a *Agent) *string { return &a.History }), driver: DriverCommand,
				doc: "What precedes the prompt from the second turn on.",
			},
			{
				key: "files", kind: choice(catalog.FilesReadWrite, catalog.FilesWrite, catalog.FilesNone),
				to: at(func(a *Agent) *string { return &a.Files }), driver: DriverACP,
				doc: "The methods of the protocol for files that Duet offers to the agent. For gemini the default is \"write\".",
			},
			{
				key: "start_timeout", kind: duration(time.Second, time.Hour), to: at(func(a *Agent) *time.Duration { return &a.StartTimeout }), driver: DriverACP, example: []string{`"30s"`}, unset: `"30s"`,
				doc: "How long the agent may take to answer after its start, and to open, list or adopt its sessions (adopting: at least 2 minutes). " +
					"Large agents need long on a slow or busy machine.",
			},
			{
				key: "silent_after", kind: duration(leastSilence, mostSilence), to: at(func(a *Agent) *time.Duration { return &a.SilentAfter }), driver: DriverACP, example: []string{`"5s"`}, unset: `"5s"`,
				doc: "After this time without a message clients show the agent as silent.",
			},
			{
				key: "silent_tool_after", kind: duration(leastSilence, mostSilence), to: at(func(a *Agent) *time.Duration { return &a.SilentToolAfter }), driver: DriverACP, example: []string{`"30s"`}, unset: `"30s"`,
				doc: "The same during a tool call.",
			},
			{
				key: "quiet", kind: duration(leastSilence, mostSilence), to: at(func(a *Agent) *time.Duration { return &a.Quiet }), driver: DriverACP, example: []string{`"10s"`}, unset: `"10s"`,
				doc: "An agent may continue by itself after a turn, when a background task ends. Many agents do not report the end of such work: it " +
					"counts as done after this time without a message.",
			},
			{
				key: "protocol", kind: whole(1, 2), to: at(func(a *Agent) *int { return &a.Protocol }), driver: DriverACP, example: []string{"2"},
				unset: "2",
				doc: "The newest version of the Agent Client Protocol that Duet offers to the agent. Version 2 is a preview. claude accepts messages " +
					"during a turn in version 1 only.",
			},
			{
				key: "env", kind: textMap(checkVariable, anything).hidden(), to: at(func(a *Agent) *map[string]string { return &a.Env }), example: []string{`{ NAME = "value" }`},
				doc: "Environment variables of the agent. Besides these it gets about 100 variables, if they are set: PATH, HOME, the locale, the " +
					"desktop, proxies, and the locations of tools and of their files (docs/configuration.md lists them).",
			},
			{
				key: "env_from", kind: texts("an array of names", 0, checkVariables).adding(), to: at(func(a *Agent) *[]string { return &a.EnvFrom }), example: []string{`["MY_VENDOR_API_KEY", "OTHER_VENDOR_*"]`},
				doc: "More variables that the agent gets from the environment of its client. A * at the end matches any ending. A built-in agent " +
					"also gets the variables by which its user signs in.",
			},
			{
				key: "keys", kind: textMap(checkVariable, checkName), to: at(func(a *Agent) *map[string]string { return &a.Keys }), example: []string{`{ ANTHROPIC_API_KEY = "anthropic" }`},
				doc: "Variables that get the API key of a service when the agent starts. If a service has no [keys.SERVICE], Duet asks the editor.",
			},
			{
				key: "sandbox", kind: level(), to: at(func(a *Agent) *string { return &a.Sandbox }), example: []string{`"workspace"`}, unset: "none",
				doc: "Run the agent in a sandbox (Linux, bubblewrap; docs/security.md). \"workspace\": it may write the session's directory and its " +
					"own files only, and does not see your keys. \"offline\": it also has no network. The stronger level of your file, the project's " +
					"and the session's (--sandbox) applies. Where the sandbox does not work, the agent does not start.",
			},
			{
				key: "sandbox_write", kind: paths().adding(), to: at(func(a *Agent) *[]string { return &a.SandboxWrite }),
				own: "what agents may write in a sandbox", example: []string{`["~/.cache/go-build", "~/go/pkg/mod"]`},
				doc: "More files and directories that the agent may write in a sandbox, such as the caches of its tools. One that the sandbox hides " +
					"becomes visible. A path that does not exist is left out.",
			},
			{
				key: "mcp_servers", kind: kind{form: list, schema: serverKeys()}, to: at(func(a *Agent) *[]catalog.MCPServer { return &a.MCPServers }),
				doc: "An MCP server of the agent: a program, or a url.",
			},
		},
	}
}

func serverKeys() *schema {
	return &schema{
		most:   map[string]int{SourceProject: 100, SourceUser: 100},
		record: func() any { return &catalog.MCPServer{} },
		id:     func(v any) string { return v.(*catalog.MCPServer).Name },
		unique: "a name that no other server of the agent has",
		check:  func(t Table, v any, _ string) { checkServer(t, v.(*catalog.MCPServer)) },
		show:   func(v any, secrets bool) any { return phrase(serverText(*v.(*catalog.MCPServer), secrets)) },
		rows: []row{
			{
				key: "name", kind: name(), to: at(func(s *catalog.MCPServer) *string { return &s.Name }), required: "the server's name for the agent", example: []string{`"files"`, `"search"`},
				doc: "The name of the server.",
			},
			{
				key: "type", kind: choice("stdio", "http", "sse"), to: at(func(s *catalog.MCPServer) *string { return &s.Type }), example: []string{`"stdio"`, `"http"`}, unset: `"http" with a url, else "stdio"`,
				doc: "How the agent reaches the server.",
			},
			{
				key: "command", kind: anyText().as(fileNames.program), to: at(func(s *catalog.MCPServer) *string { return &s.Command }), example: []string{`"mcp-server"`, ""},
				doc: "The program of the server.",
			},
			{
				key: "args", kind: texts("an array of strings", 0, anything), to: at(func(s *catalog.MCPServer) *[]string { return &s.Args }), example: []string{`["--stdio"]`, ""},
				doc: "Its arguments.",
			},
			{
				key: "env", kind: textMap(checkVariable, anything).hidden(), to: at(func(s *catalog.MCPServer) *map[string]string { return &s.Env }), example: []string{`{ NAME = "value" }`, ""},
				doc: "Its environment variables.",
			},
			{
				key: "url", kind: anyText(), to: at(func(s *catalog.MCPServer) *string { return &s.URL }), example: []string{"", `"https://mcp.example.com/"`},
				doc: "The address of a server of type \"http\" or \"sse\".",
			},
			{
				key: "headers", kind: textMap(anything, anything).hidden(), to: at(func(s *catalog.MCPServer) *map[string]string { return &s.Headers }), example: []string{"", `{ Authorization = "Bearer …" }`},
				doc: "HTTP headers of each request to it.",
			},
		},
	}
}

func worktreeKeys() *schema {
	return &schema{rows: []row{
		{
			key: "copy", kind: texts("an array of patterns", 100, checkPath), to: at(func(c *Config) *[]string { return &c.Worktrees.Copy }), example: []string{`[".env", "config/*.local.json"]`},
			doc: "Files that git does not track and that a worktree gets copies of: patterns of path.Match relative to the project, up to 200 " +
				"files with 16 MB. They are not landed.",
		},
		{
			key: "setup", kind: script(), to: at(func(c *Config) *[]string { return &c.Worktrees.Setup }), example: []string{`"npm ci"`},
			doc: "A command that runs in the project's directory in the worktree before the first prompt. If it fails, the prompt fails. " +
				"DUET_PROJECT is your own directory of the project.",
		},
		{
			key: "cleanup", kind: script(), to: at(func(c *Config) *[]string { return &c.Worktrees.Cleanup }), example: []string{`"docker compose down"`},
			doc: "A command that runs before Duet deletes the worktree. If it fails, Duet deletes the worktree nevertheless.",
		},
		{
			key: "timeout", kind: commandTime(), to: at(func(c *Config) *time.Duration { return &c.Worktrees.Timeout }),
			doc: "How long each of the two commands may take.",
		},
	}}
}

func serviceKeys() *schema {
	return &schema{
		most:   map[string]int{SourceProject: 100, SourceUser: 1_000},
		names:  []string{"anthropic", "openai", "gemini"},
		record: func() any { return &Key{} },
		check:  func(t Table, _ any, _ string) { checkKey(t) },
		rows: []row{
			{
				key: "env", kind: text("the name of an environment variable", checkVariable, "something else"), to: at(func(k *Key) *string { return &k.Env }), example: []string{`"ANTHROPIC_API_KEY"`, "", ""},
				doc: "An environment variable with the key.",
			},
			{
				key: "command", kind: program(), to: at(func(k *Key) *[]string { return &k.Command }), example: []string{"", `["secret-tool", "lookup", "service", "openai"]`, ""},
				doc: "A command that prints the key and nothing else within 10 s.",
			},
			{
				key: "file", kind: anyText().as(fileNames.file), to: at(func(k *Key) *string { return &k.File }), example: []string{"", "", `"~/.config/duet/gemini.key"`},
				doc: "A file with the key. Keep it private: chmod 600.",
			},
		},
	}
}

func webKeys() *schema {
	return &schema{rows: []row{
		{
			key: "listen", kind: text("a host and a port", checkListen), to: at(func(c *Config) *string { return &c.Web.Listen }), unset: `"localhost:7311"`,
			example: []string{`"0.0.0.0:7311"`},
			doc:     "Where it listens. An address that other machines reach needs certificate and key, or origin.",
		},
		{
			key: "certificate", kind: text("the path of a file", anything), to: at(func(c *Config) *string { return &c.Web.Certificate }),
			example: []string{`"/home/me/duet.crt"`}, doc: "The TLS certificate, a PEM file.",
		},
		{
			key: "key", kind: text("the path of a file", anything), to: at(func(c *Config) *string { return &c.Web.Key }),
			example: []string{`"/home/me/duet.key"`}, doc: "The certificate's key, a PEM file.",
		},
		{
			key: "origin", kind: text("an https address without a path", checkURL), to: at(func(c *Config) *string { return &c.Web.Origin }),
			example: []string{`"https://duet.example"`},
			doc:     "The address of a proxy with TLS in front of it, as browsers see it. Requests under other names are refused.",
		},
	}}
}

func notifyKeys() *schema {
	return &schema{rows: []row{
		{
			key: "command", kind: program(), to: at(func(c *Config) *[]string { return &c.Notify.Command }),
			example: []string{`["sh", "-c", "notify-send \"$DUET_TITLE\" \"$DUET_BODY\""]`},
			doc:     "A program and its arguments. It gets DUET_TITLE, DUET_BODY and DUET_URL in its environment, and 20 seconds.",
		},
		{
			key: "webhook", kind: text("an address of https or http", checkURL), to: at(func(c *Config) *string { return &c.Notify.Webhook }),
			example: []string{`"https://ntfy.example/my-topic"`},
			doc:     "An address that gets a POST request: the text is the body, and Title, Click and Tags are headers, as ntfy has them.",
		},
		{
			key: "content", kind: choice("none", "title", "all"), to: at(func(c *Config) *string { return &c.Notify.Content }), unset: `"none"`,
			doc: "What both say: that a session needs you, also the project and the agent, or also the command or the title of the question.",
		},
	}}
}

func hostKeys() *schema {
	return &schema{
		most:   map[string]int{SourceUser: 1_000},
		names:  []string{"devbox", "box"},
		record: func() any { return &Host{Program: "duet-rpc", Per: PerProject} },
		check:  func(t Table, v any, _ string) { checkMade(t, v.(*Host)) },
		rows: []row{
			{
				key: "command", kind: program(), to: at(func(h *Host) *[]string { return &h.Command }), required: "the command that runs others there",
				example: []string{`["ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=10", "devbox"]`, `["podman", "exec", "-i", "{host}"]`},
				doc:     "The program and its arguments behind which a command line for the host stands. It must not ask anything.",
			},
			{
				key: "start", kind: program(), to: at(func(h *Host) *[]string { return &h.Start }),
				example: []string{"", `["podman", "run", "-d", "--name", "{host}", "image", "sleep", "infinity"]`},
				doc: "The program and its arguments that make the host when a session is to begin on it and it is not there (docs/hosts.md). {host} " +
					"in command, start and stop is the name of the made host, such as duet-box-1a2b3c4d. It may take 15 minutes, and runs on this machine.",
			},
			{
				key: "stop", kind: program(), to: at(func(h *Host) *[]string { return &h.Stop }), example: []string{"", `["podman", "rm", "-f", "{host}"]`},
				doc: "The program and its arguments that remove the made host: after `duet-rpc discard` of its session, and for `duet-rpc hosts stop NAME`.",
			},
			{
				key: "per", kind: choice(PerProject, PerSession), to: at(func(h *Host) *string { return &h.Per }), example: []string{"", `"session"`},
				doc: "With start: \"project\" makes one host for each project of this machine. \"session\" makes one for each session that begins " +
					"with your files (`duet-rpc prompt --on NAME`); its name is NAME-3f2a9c or similar.",
			},
			{
				key: "shell", kind: flag(), to: at(func(h *Host) *bool { return &h.Shell }), example: []string{"true", ""},
				doc: "true: a shell of the host reads the command line, as with ssh. Duet quotes each word then.",
			},
			{
				key: "directory", kind: text("a path of one line that does not begin with a dash", checkPlain), to: at(func(h *Host) *string { return &h.Directory }), example: []string{`"src"`, ""}, unset: "where a command of the host begins",
				doc: "The directory of projects on the host. Without --root, `duet-rpc --host NAME` works in the directory below it that has the " +
					"name of your project here.",
			},
			{
				key: "program", kind: text("a path of one line that does not begin with a dash", checkPlain), to: at(func(h *Host) *string { return &h.Program }), example: []string{`".local/bin/duet-rpc"`, ""},
				doc: "The program duet-rpc on the host.",
			},
			{
				key: "env_from", kind: texts("an array of names", 0, checkVariables), to: at(func(h *Host) *[]string { return &h.EnvFrom }), example: []string{`["ANTHROPIC_API_KEY"]`, ""},
				doc: "Variables of this machine that go to the host with each connection, for agents there whose env_from names them. Others " +
					"never go there.",
			},
		},
	}
}

// commandTime is the time that a command of the user may take.
func commandTime() kind { return duration(time.Second, 24*time.Hour) }

// commandKeys returns the keys of a command with a name.
func commandKeys[C any](of func(*C) *Definition, base string, more ...row) []row {
	return append([]row{
		{
			key: "name", kind: name(), to: at(func(c *C) *string { return &of(c).Name }), required: "its name",
			doc: "The name of the command.",
		},
		{
			key: "command", kind: command(), to: at(func(c *C) *[]string { return &of(c).Command }),
			doc: "The program and its arguments.",
		},
		{
			key: "shell", kind: anyText(), to: at(func(c *C) *string { return &of(c).Shell }),
			doc: "A line for the shell, in place of command.",
		},
		{
			key: "directory", kind: anyText().as(func(_ fileNames, s string) string { return filepath.FromSlash(s) }), to: at(func(c *C) *string { return &of(c).Directory }), example: []string{`"web"`, ""},
			doc: "The working directory, relative to " + base + ".",
		},
		{
			key: "timeout", kind: commandTime(), to: at(func(c *C) *time.Duration { return &of(c).Timeout }), example: []string{`"30m"`, ""},
			doc: "How long the command may take.",
		},
		{
			key: "env", kind: textMap(checkVariable, anything).hidden(), to: at(func(c *C) *map[string]string { return &of(c).Env }), example: []string{`{ NAME = "value" }`, ""},
			doc: "Its environment variables. Besides these it gets PATH, HOME, the locale, proxies, and the locations of tools and of their files.",
		},
	}, more...)
}

// commands returns the schema of named commands. examples are the names, commands and lines for the
// shell of two examples.
func commands[C any](what string, of func(*C) *Definition, rows []row, examples ...string) *schema {
	for i, r := range rows {
		switch r.key {
		case "name":
			rows[i].example = examples[:2]
		case "command":
			rows[i].example = []string{examples[2], ""}
		case "shell":
			rows[i].example = []string{"", examples[3]}
		}
	}
	return &schema{
		most: map[string]int{SourceProject: 100, SourceUser: 100},
		rows: rows,
		record: func() any {
			c := new(C)
			of(c).Timeout = DefaultTimeout
			return c
		},
		id:     func(v any) string { return of(v.(*C)).Name },
		unique: "a name that no other " + what + " of the file has",
		check: func(t Table, v any, source string) {
			of(v.(*C)).Source = source
			checkCommand(t)
		},
		show:   func(v any, secrets bool) any { return phrase(commandText(*of(v.(*C)), secrets)) },
		source: func(v any) string { return of(v.(*C)).Source },
	}
}

func buildKeys() *schema {
	of := func(b *Build) *Definition { return &b.Definition }
	return commands("build", of, commandKeys(of, "the project's directory", row{
		key: "backend", kind: flag(), to: at(func(b *Build) *bool { return &b.Backend }), example: []string{"false", ""},
		doc: "true: it is the build for clients that ask for a backend (buildBackend).",
	}), `"app"`, `"site"`, `["go", "build", "./..."]`, `"npm ci && npm run build"`)
}

func gateKeys() *schema {
	of := func(g *Gate) *Definition { return &g.Definition }
	return commands("gate", of, commandKeys(of, "the directory in which the agent works"),
		`"tests"`, `"style"`, `["go", "test", "./..."]`, `"gofmt -l . | tee /dev/stderr | (! read -r)"`)
}

func previewKeys() *schema {
	return &schema{rows: []row{
		{
			key: "directory", kind: anyText().as(fileNames.preview), to: at(func(c *Config) **string { return &c.Preview.Directory }), example: []string{`"dist"`},
			trust: &trust{"In a project's file a directory outside of the project waits for your " +
				"trust.", func(_ *row, _ *Config, v any) bool { return !filepath.IsLocal(v.(string)) }},
			unset: "the first of dist, build, out, _site and public that has an index.html",
			doc:   "The directory with the files, relative to the project's directory.",
		},
		{
			key: "fallback", kind: flag(), to: at(func(c *Config) **bool { return &c.Preview.Fallback }), example: []string{"true"}, unset: "true",
			doc: "Its index.html answers for addresses that have no file and no extension.",
		},
	}}
}

func ruleKeys() *schema {
	return &schema{
		most:   map[string]int{SourceProject: 1_000, SourceUser: 10_000},
		record: func() any { return &Rule{} },
		check: func(t Table, v any, source string) {
			r := v.(*Rule)
			r.Source, r.File, r.Line = source, t.doc.Name, t.At().Line
		},
		show:   func(v any, _ bool) any { return phrase(v.(*Rule).String()) },
		source: func(v any) string { return v.(*Rule).Source },
		rows: []row{
			{
				key: "effect", kind: choice(EffectAllow, EffectDeny), to: at(func(r *Rule) *string { return &r.Effect }), required: `"allow" or "deny"`, example: []string{`"allow"`, `"deny"`},
				doc: "What the rule does with a tool call that it matches.",
			},
			{
				key: "tool", kind: glob(), to: at(func(r *Rule) *string { return &r.Tool }), required: `a pattern for the tool's name, such as "Bash" or "*"`, example: []string{`"Read"`, `"Bash"`},
				doc: "The name of the tool.",
			},
			{
				key: "path", kind: glob(), to: at(func(r *Rule) *string { return &r.Path }), unset: "any", example: []string{`"docs/*"`, ""},
				doc: "The file that the tool touches. Duet follows links: an allow rule must match the name and its target, a deny rule one of them.",
			},
			{
				key: "command", kind: glob(), to: at(func(r *Rule) *string { return &r.Command }), unset: "any", example: []string{"", `"rm *"`},
				doc: "The command that the tool would run. Of a script each command counts: a deny rule must match one command, and each command " +
					"needs an allow rule. If no rule clearly matches, Duet asks you.",
			},
			{
				key: "agent", kind: name(), to: at(func(r *Rule) *string { return &r.Agent }), unset: "any", example: []string{"", `"example"`},
				doc: "The agent that calls the tool.",
			},
		},
	}
}

func automationKeys() *schema {
	return &schema{rows: []row{
		{
			key: "webhook_hosts", kind: texts("an array of hosts", 0, checkHost), to: at(func(c *Config) *[]string { return &c.Automation.WebhookHosts }), example: []string{`["hooks.example.com"]`},
			doc: "The hosts to which triggers may send events: HOST, or HOST:PORT. Without any, no trigger can.",
		},
		{
			key: "max_depth", kind: whole(1, 10), to: at(func(c *Config) *int { return &c.Automation.MaxDepth }),
			doc: "The longest chain of sessions in which each starts a trigger that starts the next.",
		},
		{
			key: "max_per_hour", kind: whole(1, 10_000), to: at(func(c *Config) *int { return &c.Automation.MaxPerHour }),
			doc: "How often each trigger may act within an hour.",
		},
	}}
}

func triggerKeys() *schema {
	return &schema{
		most:   map[string]int{SourceProject: 100, SourceUser: 100},
		record: func() any { return &Trigger{Enabled: true, Debounce: defaultDebounce} },
		id:     func(v any) string { return v.(*Trigger).ID },
		unique: "an id that no other trigger of the file has",
		check:  func(t Table, v any, source string) { checkTrigger(t, v.(*Trigger), source) },
		show:   func(v any, _ bool) any { return phrase(quoteControls(v.(*Trigger).String())) },
		source: func(v any) string {
			if v.(*Trigger).FromProject {
				return SourceProject
			}
			return SourceUser
		},
		rows: []row{
			{
				key: "id", kind: name(), to: at(func(t *Trigger) *string { return &t.ID }), required: "a name by which you enable and disable it", example: []string{`"tests"`, `"morning"`},
				doc: "The name by which you enable and disable it: `duet-rpc triggers disable tests`.",
			},
			{
				key: "description", kind: textUpTo(mostText), to: at(func(t *Trigger) *string { return &t.Description }), example: []string{`"Runs the tests"`, ""},
				doc: "What it is for.",
			},
			{
				key: "source", kind: choice(SourceWatch, SourceSchedule, SourceTurn, SourceApproval), to: at(func(t *Trigger) *string { return &t.Source }), unset: "any", example: []string{`"watch"`, ""},
				doc: "The source of the event. source, type and pattern must all match.",
			},
			{
				key: "type", kind: text("a type of event of docs/automation.md", checkEventType), to: at(func(t *Trigger) *string { return &t.Type }), unset: "any", example: []string{`"file.modify"`, ""},
				doc: "The type of the event, such as \"turn.failed\".",
			},
			{
				key: "pattern", kind: text("a regular expression", checkPattern), to: at(func(t *Trigger) *string { return &t.Pattern }), unset: "any", example: []string{`"^file\\."`, ""},
				doc: "A regular expression for TYPE:SOURCE.",
			},
			{
				key: "paths", kind: texts("an array of patterns", 0, checkPath), to: at(func(t *Trigger) *[]string { return &t.Paths }), unset: "all files", example: []string{`["src/", "*.md"]`, ""},
				doc: "The files that it watches, relative to the project, as in .gitignore. Duet never watches ignored files, .git, .duet and " +
					"node_modules.",
			},
			{
				key: "extensions", kind: texts("an array of extensions", 0, checkExtension), to: at(func(t *Trigger) *[]string { return &t.Extensions }), unset: "any", example: []string{`[".go"]`, ""},
				doc: "The extensions of the files.",
			},
			{
				key: "ignore", kind: texts("an array of patterns", 0, atMost(mostPattern)), to: at(func(t *Trigger) *[]string { return &t.Ignore }), example: []string{`["testdata/"]`, ""},
				doc: "Files that it does not watch, as in .gitignore.",
			},
			{
				key: "debounce", kind: duration(50*time.Millisecond, 10*time.Minute), to: at(func(t *Trigger) *time.Duration { return &t.Debounce }), example: []string{`"2s"`, ""},
				doc: "How long files must stay unchanged before the trigger acts.",
			},
			{
				key: "conditions", kind: kind{form: list, schema: conditionKeys()}, to: at(func(t *Trigger) *[]Condition { return &t.Conditions }), example: []string{`[{ field = "payload.count", operator = "gt", value = 1 }]`, ""},
				doc: "What else must be true of the event.",
			},
			{
				key: "action", kind: in(actionKeys()), required: `what is done, such as { type = "agent", prompt = "…" }`,
				example: []string{
					`{ type = "agent", prompt = "Run the tests: {{payload.path}} was changed.", agent = "example", priority = 0 }`,
					`{ type = "notify", message = "Good morning", channel = "desk" }`,
				},
				doc: "What the trigger does. {{a.b}} in a text is a member of the event.",
			},
			{
				key: "cooldown", kind: duration(0, 30*24*time.Hour), to: at(func(t *Trigger) *time.Duration { return &t.Cooldown }), example: []string{`"5m"`, ""}, unset: `"0s"`,
				doc: "The shortest time between two actions.",
			},
			{
				key: "requires_approval", kind: flag(), to: at(func(t *Trigger) *bool { return &t.RequiresApproval }), example: []string{"false", ""},
				doc: "true: a person must approve each action.",
			},
			{
				key: "enabled", kind: flag(), to: at(func(t *Trigger) *bool { return &t.Enabled }), example: []string{"true", ""},
				doc: "false: the trigger does nothing until you enable it.",
			},
			{
				key: "cron", kind: text("five fields: minute, hour, day of the month, month, day of the "+
					"week", checkSchedule), to: at(func(t *Trigger) *string { return &t.Cron }), example: []string{"", `"0 9 * * 1-5"`},
				doc: "The times at which the trigger acts.",
			},
			{
				key: "time_zone", kind: text("a time zone", checkZone), to: at(func(t *Trigger) *string { return &t.TimeZone }), unset: `"UTC"`, example: []string{"", `"Europe/Berlin"`},
				doc: "The time zone of cron: \"UTC\", \"local\", or a name such as \"Europe/Berlin\".",
			},
		},
	}
}

func conditionKeys() *schema {
	return &schema{
		most:   map[string]int{SourceProject: 50, SourceUser: 50},
		record: func() any { return &Condition{} },
		check:  func(t Table, v any, _ string) { checkCondition(t, v.(*Condition)) },
		rows: []row{
			{
				key: "field", kind: textUpTo(mostPattern), to: at(func(c *Condition) *string { return &c.Field }),
				required: "a member of the event, such as payload.path",
				doc:      "A member of the event.",
			},
			{
				key: "operator", kind: choice(Operators...), to: at(func(c *Condition) *string { return &c.Operator }),
				required: "one of " + strings.Join(Operators, ", "),
				doc:      "How it is compared. \"matches\" takes a regular expression.",
			},
			{
				key: "value", kind: anyValue(), to: at(func(c *Condition) *any { return &c.Value }),
				doc: "The value to compare the member with.",
			},
		},
	}
}

func actionKeys() *schema {
	return &schema{
		check: func(t Table, v any, _ string) { checkAction(t, v.(*Trigger).Action) },
		rows: []row{
			{
				key: "type", kind: choice(domain.ActionAgent, domain.ActionNotify, domain.ActionWebhook), to: at(func(t *Trigger) *string { return &t.Action.Type }), required: `"agent", "notify" or "webhook"`,
				doc: "\"agent\" starts a session, \"notify\" sends a message to clients, \"webhook\" sends the event to an address.",
			},
			{
				key: "prompt", kind: textUpTo(mostText), to: at(func(t *Trigger) *string { return &t.Action.Prompt }),
				doc: "The prompt of an \"agent\".",
			},
			{
				key: "agent", kind: name(), to: at(func(t *Trigger) *string { return &t.Action.Agent }), unset: "default_agent",
				doc: "Its agent.",
			},
			{
				key: "priority", kind: whole(-1000, 1000), to: at(func(t *Trigger) *int { return &t.Action.Priority }), unset: "0",
				doc: "Its place in the queue: higher starts first.",
			},
			{
				key: "message", kind: textUpTo(mostText), to: at(func(t *Trigger) *string { return &t.Action.Message }),
				doc: "The text of a \"notify\".",
			},
			{
				key: "channel", kind: textUpTo(mostPattern), to: at(func(t *Trigger) *string { return &t.Action.Channel }),
				doc: "Its channel, for the recipient.",
			},
			{
				key: "url", kind: text("an address of https or http", checkURL), to: at(func(t *Trigger) *string { return &t.Action.URL }),
				doc: "The address of a \"webhook\", on a host in webhook_hosts.",
			},
		},
	}
}
