//go:build unix && clients

package agents

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A dayAgent is an agent of TestAgentDay, with its peculiarities.
type dayAgent struct {
	name     string
	folder   string // of testdata/agents
	packaged string // the package that the table names with its version
	site     func(testing.TB) *agentSite
	briefly  bool // the client tier plays only the brief scenarios with it

	// leaves lists the options of its question about leaving plan mode. nil: it never asks, for the
	// reason in planless. telling: the question contains the plan.
	leaves   []string
	planless string
	telling  bool
	absolute bool // its file tools take absolute paths

	model     string // one of its models
	modelless bool   // it reports no models

	denialEnds bool   // a denial ends its turn
	denialSays string // its own text about that; empty: Duet's
	forgets    bool   // it drops the prompt of an interrupted turn
	mutters    bool   // it reports an error 500, over the protocol or on its stderr
	withholds  bool   // it writes its stderr only at its end
	retells    string // its text about each retry

	command      string // a slash command that it reports
	commandless  string // why command is not the project's own
	prompt, says string // a prompt with a command, and a part of the answer

	keyless  bool   // it starts without a key
	unsigned string // its error without a key

	todoless string   // why it reports no plan from the model's list
	start    []string // its command without Duet
	unlisted bool     // it does not list its sessions
	deletes  bool     // it deletes a session that it has loaded
	forks    bool     // it forks its own sessions

	goalless string // why it takes no /goal; empty: it does

	foreground string // why it runs nothing in the background here; empty: it does
	holds      bool   // its turn lasts until the end of its background command
	mute       bool   // it sends only the questions of an agent-initiated turn

	untried []string // scenarios that the test skips

	sub      string // why it does not ask about a sub-agent's command; empty: it asks
	subFlat  bool   // it asks, without the sub-agent as the parent of the call
	subHangs bool   // a sub-agent's command blocks it until an interruption
	subSays  string // its text if the sub-agent's command is refused
}

// dayAgents returns the agents, one for each column of the table.
func dayAgents() []dayAgent {
	return []dayAgent{
		{
			name: "Claude Code", folder: claudeFolder, packaged: "@agentclientprotocol/claude-agent-acp", site: newClaudeSite, telling: true, model: "sonnet",
			leaves:  []string{"Yes, manually approve edits", "Yes, clear context (0% used) and use auto mode", "Yes, and use auto mode", "No, keep planning"},
			command: "greet", prompt: "/greet you", says: "hello you", unsigned: "Authentication required",
			start: []string{"claude-agent-acp"}, forks: true,
			goalless: "not tried",
		},
		{
			name: "Claude Code", folder: oldClaudeFolder, packaged: "@agentclientprotocol/claude-agent-acp", site: newOldClaudeSite, telling: true, model: "sonnet", briefly: true,
			leaves:  []string{"Yes, and use \"auto\" mode", "Yes, and auto-accept edits", "Yes, and manually approve edits", "No, keep planning"},
			command: "greet", prompt: "/greet you", says: "hello you", unsigned: "Authentication required",
			start: []string{"claude-agent-acp"}, forks: true,
			goalless: "not tried",
		},
		{
			name: "Codex", folder: "codex-acp", packaged: "@agentclientprotocol/codex-acp", site: newCodexSite, telling: true, mutters: true,
			leaves: []string{"Yes, implement this plan", "No, and tell Codex what to do differently"}, model: "gpt-5.5", denialEnds: true, unsigned: "Authentication required",
			command: "review", commandless: "the user's own are not reported", prompt: "/review say: looks good", says: "looks good",
			sub: "it does not pass the question on, and does not wait", subSays: "task_name",
			todoless: "it offers its model no tool for that",
			start:    []string{"codex-acp"}, forks: true,
			foreground: "not tried",
		},
		{
			name: "Gemini CLI", folder: "gemini-cli", packaged: "@google/gemini-cli", site: newGeminiSite,
			leaves: []string{"Allow", "Reject"}, model: "gemini-2.5-pro", forgets: true, unsigned: "Gemini API key is missing",
			command: "about", commandless: "the project's own are not reported", prompt: "/about", says: "0.61.0",
			todoless: "it offers its model no tool for that", withholds: true,
			start: []string{"gemini", "--experimental-acp"}, unlisted: true, deletes: true,
			foreground: "not tried", goalless: "not tried",
			sub: "its own policy refuses the sub-agent that could run one", subSays: "denied by policy",
		},
		{
			name: "opencode", folder: "opencode", packaged: "opencode-linux-x64", site: newOpencodeSite,
			planless: "no tool of it leaves plan mode", model: "ours/model", denialEnds: true, keyless: true, unsigned: "invalid x-api-key",
			command: "greet", prompt: "/greet you", says: "hello you",
			sub: "it does not pass the question on, and waits until it is interrupted or its time is over; Duet shows that it is silent", subHangs: true,
			start: []string{"opencode", "acp"}, forks: true,
			foreground: "its shell tool has no way to do that", goalless: "not tried",
		},
		{
			name: "Qwen Code", folder: "qwen-code", packaged: "@qwen-code/qwen-code", site: newQwenSite, briefly: true, model: "gpt-4o",
			leaves: []string{"Yes, restore previous mode (auto)", "Yes, and auto-accept edits", "Yes, and manually approve edits", "No, keep planning (esc)"}, telling: true, absolute: true, denialEnds: true,
			command: "status", commandless: "the user's own are not reported", prompt: "/status", says: "0.24.4", unsigned: "Authentication required",
			todoless: "it offers its model no tool for that",
			start:    []string{"qwen", "--acp"}, untried: []string{subAgentScenario}, goalless: "not tried",
		},
		{
			name: "Kimi Code", folder: "kimi-code", packaged: "@moonshot-ai/kimi-code", site: newKimiSite, briefly: true, model: "__kimi_env_model__",
			command: "compact", commandless: "the project's own are not reported", prompt: "/help", says: "compact", unsigned: "Authentication required",
			start: []string{"kimi", "acp"}, forks: true, goalless: "not tried", mute: true, subFlat: true,
			untried: []string{planScenario, adoptedScenario},
		},
		{
			name: "GitHub Copilot", folder: "copilot", packaged: "@github/copilot-linux-x64", site: newCopilotSite, briefly: true, modelless: true,
			planless: "no tool of it leaves plan mode", denialEnds: true, denialSays: "Operation cancelled by user", subFlat: true, retells: "transient API error",
			command: "greet", prompt: "/greet you", says: "hello you", unsigned: "Authentication required",
			todoless: "it offers its model no tool for that",
			start:    []string{"copilot", "--acp"}, goalless: "not tried", holds: true,
		},
	}
}

// version returns the agent's version from its lock file.
func (a dayAgent) version(t testing.TB) string {
	t.Helper()
	text := e2e.ReadFile(t, filepath.Join(e2e.Root+"/testdata/agents", a.folder, "package-lock.json"))
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &lock))
	return lock.Packages["node_modules/"+a.packaged].Version
}

// A dayScenario is a situation in the use of an agent. play requires the expected outcome and
// returns its table cell: "yes", or "no:" with the agent's limitation. It requires the limitation
// too.
type dayScenario struct {
	name string
	play func(*testing.T, dayAgent) string
	// core marks the scenarios that the client tier plays with all agents but the brief ones.
	// `make agents` plays all scenarios. The others take minutes, and tests of lower layers cover
	// their common parts.
	core bool
	// brief marks the scenarios that the client tier plays with the brief agents.
	brief bool
}

// Scenarios that some agents skip.
const (
	planScenario     = "Plan mode is left by an answer, and then a file is written"
	subAgentScenario = "A sub-agent wants to run a command"
	adoptedScenario  = "A session that was begun without Duet is adopted"
)

var dayScenarios = []dayScenario{
	{name: "A whole day: a question in a worktree, a kill, the answer, the change, the landing", play: playDay, core: true, brief: true},
	{name: planScenario, play: playPlan, core: true},
	{name: "A command is denied, with a reason", play: playDenial, core: true},
	{name: "A rule denies a command", play: playRule, brief: true},
	{name: "A rule allows a command", play: playAllowRule},
	{name: "A command is allowed for good", play: playAlways, core: true},
	{name: "A model that it does not have", play: playUnknownModel},
	{name: "A slash command", play: playSlashCommand},
	{name: "An image in the prompt", play: playImage},
	{name: "Interrupted while it talks", play: playInterrupt, core: true},
	{name: "The daemon is killed (`kill -9`) while a question is open", play: playKill, core: true},
	{name: "The API says once that it is too much (429)", play: playTooMuch},
	{name: "The API fails again and again (500)", play: playOutage},
	{name: "The user is not signed in", play: playSignIn},
	{name: subAgentScenario, play: playSubAgent},
	{name: "A list of things to do", play: playTodos},
	{name: "A command in the background ends after the turn, and the agent goes on by itself", play: playBackground, core: true, brief: true},
	{name: "The daemon is killed while an agent that goes on by itself asks", play: playBackgroundKill, core: true, brief: true},
	{name: "It is given a goal (`/goal`)", play: playGoal, core: true},
	{name: "A person says something while it works", play: playSteer, core: true},
	{name: "The time that a turn may take is over", play: playTimeout},
	{name: adoptedScenario, play: playAdopted},
	{name: "It is ended and started again, twice, in a session", play: playRestarts, core: true},
	{name: "A session is forked at its end", play: playFork},
}

// TestAgentDay plays the scenarios with real agents and a model that follows its prompts.
// docs/agents-tested.md holds the outcomes.
func TestAgentDay(t *testing.T) {
	t.Parallel()
	agents := dayAgents()
	var mu sync.Mutex
	reported := keptDay(t, agents) // by scenario and agent
	t.Run("agents", func(t *testing.T) {
		for _, a := range agents {
			t.Run(a.folder, func(t *testing.T) {
				t.Parallel() // only the agents: each of them is too large for parallel scenarios
				for _, s := range dayScenarios {
					if played := a.briefly && s.brief || !a.briefly && s.core; !testkit.Soak && !played {
						continue
					}
					t.Run(s.name, func(t *testing.T) {
						cell := "no: not tried"
						if !slices.Contains(a.untried, s.name) {
							cell = s.play(t, a)
						}
						t.Log(cell)
						mu.Lock()
						defer mu.Unlock()
						reported[s.name+a.folder] = cell
					})
				}
			})
		}
	})
	if t.Failed() || len(reported) < len(agents)*len(dayScenarios) {
		t.Log("a scenario failed or has no outcome, so the test does not compare the table")
		return
	}
	testkit.GoldenBytes(t, e2e.Root+"/docs/agents-tested.md", dayTable(t, agents, reported))
}

// keptDay reads the outcomes in docs/agents-tested.md. A run of this test keeps the outcomes of the scenarios
// that it does not play.
func keptDay(t testing.TB, agents []dayAgent) map[string]string {
	t.Helper()
	text := e2e.ReadFile(t, e2e.Root+"/docs/agents-tested.md")
	reported := make(map[string]string)
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(cells) != len(agents)+3 {
			continue
		}
		for i, a := range agents {
			reported[strings.TrimSpace(cells[1])+a.folder] = strings.TrimSpace(cells[i+2])
		}
	}
	return reported
}

func dayTable(t testing.TB, agents []dayAgent, reported map[string]string) []byte {
	var b strings.Builder
	b.WriteString(`# Agents that are tested

` + "`TestAgentDay`" + ` (internal/e2e/agents) runs each of these agents, as its package registry has it, through the scenarios below. The model is on a
loopback address and follows its prompts. ` + "`DUET_UPDATE_GOLDEN=1 make agents`" + ` writes this page, and the test fails if the page is out of
date. ` + "`make test-clients`" + ` runs a few of the scenarios. With Claude Code 0.49, Qwen Code, Kimi Code and GitHub Copilot it runs only these: a
whole day, a rule that denies, a command in the background, and that with the daemon killed. "no" means that the agent itself cannot do it. The
test checks that, too, to notice a newer version that can. CI runs the whole day with each agent.

Claude Code 0.101, Qwen Code and Kimi Code need Node 22. npm installs Claude Code 0.49 with an older Node.

Kimi Code (2.1) sends the input of a tool call only when the tool runs. In a prompted turn Duet reads it from the arguments that Kimi Code
shows as text. In an agent-initiated turn Kimi Code sends only the question, with the first 50 characters of the command. No rule can allow
such a call, and neither the text nor the tool call of that turn reaches Duet.

Gemini CLI holds back its stderr until it ends, because its program holds all output back while it speaks the protocol. While it works, Duet
cannot show its notices of retries, only that it is silent.

Gemini CLI (0.61) does not list its sessions over the protocol. Adopt one by its id (` + "`duet-rpc session adopt ID --agent gemini`" + `), in the
directory in which it was started (` + "`--dir`" + `). The id is in the first line of each of its files in ~/.gemini/tmp.

A session of Gemini CLI (0.61) does not survive being loaded, by any client. Its file is named after the minute and the first eight
characters of the session's id (chats/session-MINUTE-ID.jsonl). For session/load, Gemini CLI starts a session of the same id before it reads
the requested one:

- Within the minute of its start both sessions have the same file. The whole history is lost at once, and the session is refused.
- Later an empty file remains. At its next start in that directory, Gemini CLI takes the empty file for a damaged one and deletes it with all
  other files of that id, unless its cleanup is turned off (general.sessionRetention.enabled false in its settings).

After the first restart of the agent, a session therefore continues with Gemini CLI's own session, and after the next one with a new
one. Duet gives the new one the transcript with the names of the tools, but without their results. The transcript says so at that
place. To adopt one of its sessions, Duet waits for the next minute before the agent loads it. With the cleanup turned off a session survives being
loaded, but not within its minute.

| |`)
	for _, a := range agents {
		fmt.Fprintf(&b, " %s (%s %s) |", a.name, a.packaged, a.version(t))
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(agents)) + "\n")
	for _, s := range dayScenarios {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, a := range agents {
			fmt.Fprintf(&b, " %s |", reported[s.name+a.folder])
		}
		b.WriteString("\n")
	}
	return []byte(b.String())
}
