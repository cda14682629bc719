package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

func TestNothingSaid(t *testing.T) {
	c := newWorld(t).load()
	assert.Equal(t, config.Limits{MaxTurns: 3, QueueCap: 1000, TurnTimeout: 2 * time.Hour}, c.Limits)
	assert.Empty(t, c.DefaultAgent)
	assert.Empty(t, c.Keys)
	assert.Empty(t, c.Rules)
	assert.Empty(t, c.Untrusted)
	assert.Len(t, c.Agents, 9)
}

func TestPrecedence(t *testing.T) {
	w := newWorld(t)
	limits := func(n int) string {
		return fmt.Sprintf("default_agent = \"agent%d\"\n[limits]\nmax_turns = %d\nqueue_cap = %d\nturn_timeout = \"%dm\"\n",
			n, n, n, n)
	}
	for n, step := range []struct {
		source string
		take   func(n int)
	}{
		{config.SourceUser, func(n int) { w.write(w.user, limits(n)) }},
		{config.SourceProject, func(n int) { w.write(w.project, limits(n)); w.trusted() }},
		{config.SourceEnvironment, func(n int) {
			w.env["DUET_AGENT"] = fmt.Sprintf("agent%d", n)
			w.env["DUET_MAX_TURNS"] = fmt.Sprint(n)
			w.env["DUET_QUEUE_CAP"] = fmt.Sprint(n)
			w.env["DUET_TURN_TIMEOUT"] = fmt.Sprintf("%dm", n)
		}},
	} {
		n += 11
		step.take(n)
		c := w.load()
		assert.Equal(t, fmt.Sprintf("agent%d", n), c.DefaultAgent, step.source)
		assert.Equal(t, config.Limits{MaxTurns: n, QueueCap: n, TurnTimeout: time.Duration(n) * time.Minute}, c.Limits, step.source)
		sources := map[string]string{}
		for _, v := range c.Values() {
			sources[v.Key] = v.Source
		}
		for _, key := range []string{"default_agent", "limits.max_turns", "limits.queue_cap", "limits.turn_timeout"} {
			assert.Equal(t, step.source, sources[key], key)
		}
	}
}

// The user's own file and the environment set the lifetime of daemons.
func TestDaemonIdle(t *testing.T) {
	w := newWorld(t)
	assert.Equal(t, 15*time.Minute, w.load().DaemonIdle)
	w.write(w.user, "[daemon]\nidle = '1h'")
	assert.Equal(t, time.Hour, w.load().DaemonIdle)
	w.env["DUET_DAEMON_IDLE"] = "0s"
	assert.Zero(t, w.load().DaemonIdle)
	assert.Equal(t, config.AloneContinue, w.load().WhenAlone)
	w.write(w.user, "[daemon]\nwhen_alone = 'interrupt'")
	assert.Equal(t, config.AloneInterrupt, w.load().WhenAlone)
	w.write(w.user, "[daemon]\nwhen_alone = 'stop'")
	_, err := config.Load(w.sources())
	require.ErrorContains(t, err, `when_alone in [daemon]: expected "continue" or "interrupt"`)
	w.write(w.user, "")
	for _, wrong := range []string{"-1s", "169h", "5"} {
		w.env["DUET_DAEMON_IDLE"] = wrong
		_, err := config.Load(w.sources())
		require.ErrorContains(t, err, "DUET_DAEMON_IDLE: expected a time from 0s to 168h")
	}
	delete(w.env, "DUET_DAEMON_IDLE")
	w.write(w.project, "[daemon]\nidle = '1s'")
	_, err = config.Load(w.sources())
	require.ErrorContains(t, err, ".duet.toml:1:2: [daemon] decides when daemons end, so it belongs only in your own configuration")
}

// The files and the environment set how duet-rpc acp handles files.
func TestSavedFiles(t *testing.T) {
	w := newWorld(t)
	value := func() config.Value {
		for _, v := range w.load().Values() {
			if v.Key == "acp.saved_files" {
				return v
			}
		}
		return config.Value{}
	}
	assert.Equal(t, config.Value{Key: "acp.saved_files", Value: false, Source: config.SourceDefault}, value())
	w.write(w.user, "[acp]\nsaved_files = true\n")
	assert.True(t, w.load().ACP.SavedFiles)
	w.write(w.project, "[acp]\nsaved_files = false\n")
	assert.Equal(t, config.Value{Key: "acp.saved_files", Value: false, Source: config.SourceProject}, value())
	assert.Empty(t, w.load().Untrusted)
	w.env["DUET_ACP_SAVED_FILES"] = "1"
	assert.Equal(t, config.Value{Key: "acp.saved_files", Value: true, Source: config.SourceEnvironment}, value())
	for _, wrong := range []string{"[acp]\nsaved_files = 1\n", "[acp]\nsaved = true\n", "acp = true\n"} {
		w.write(w.user, wrong)
		_, err := config.Load(w.sources())
		assert.Error(t, err, wrong)
	}
}

func TestLimitsOnBothSides(t *testing.T) {
	for key, test := range map[string]struct{ good, bad []string }{
		"max_turns":    {[]string{"1", "100"}, []string{"0", "101", "-1", "1.5", `"3"`, "99999999999"}},
		"idle_agents":  {[]string{"0", "1000"}, []string{"-1", "1001", `"3"`}},
		"queue_cap":    {[]string{"1", "100000"}, []string{"0", "100001", "true"}},
		"turn_timeout": {[]string{`"1s"`, `"168h"`}, []string{`"999ms"`, `"168h0m1s"`, `"2"`, "7200", `"-1h"`, `""`}},
	} {
		for _, value := range test.good {
			w := newWorld(t)
			w.write(w.user, fmt.Sprintf("[limits]\n%s = %s\n", key, value))
			_, err := config.Load(w.sources())
			assert.NoError(t, err, "%s = %s", key, value)
		}
		for _, value := range test.bad {
			w := newWorld(t)
			w.write(w.user, fmt.Sprintf("[limits]\n%s = %s\n", key, value))
			_, err := config.Load(w.sources())
			var wrong *config.Error
			if assert.ErrorAs(t, err, &wrong, "%s = %s", key, value) {
				require.Len(t, wrong.Problems, 1)
				assert.Equal(t, 2, wrong.Problems[0].Line)
				assert.Equal(t, len(key)+4, wrong.Problems[0].Column)
				assert.Contains(t, wrong.Problems[0].Message, key+" in [limits]: expected")
			}
		}
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"silent too soon", "[agents.a]\ncommand = ['a']\nsilent_after = '99ms'", `:3:16: silent_after in [agents.a]: expected`},
		{"silent too late", "[agents.a]\ncommand = ['a']\nsilent_tool_after = '61m'", `:3:21: silent_tool_after in [agents.a]: expected`},
		{"too long to start", "[agents.a]\ncommand = ['a']\nstart_timeout = '61m'", `:3:17: start_timeout in [agents.a]: expected`},
		{"unknown at the top", `max_turns = 3`, `:1:1: unknown key "max_turns"`},
		{"unknown and near", "[limits]\n  max_turn = 3", `:2:3: unknown key "max_turn" in [limits] (did you mean max_turns?)`},
		{"unknown in an agent", "[agents.a]\ncommand = ['a']\nenviron = {}", `:3:1: unknown key "environ" in [agents.a]`},
		{"unknown in an inline table", `agents.a = { command = ["a"], drivr = "acp" }`, `:1:31: unknown key "drivr" in [agents.a] (did you mean driver?)`},
		{"unknown in the second rule", "[[rules]]\neffect='deny'\ntool='*'\n[[rules]]\neffect='deny'\ntool='*'\nx=1", `:7:1: unknown key "x" in [[rules]]`},
		{"unknown in a server", "[agents.a]\ncommand=['a']\n[[agents.a.mcp_servers]]\nname='m'\ncommand='m'\nx=1", `:6:1: unknown key "x" in [[agents.a.mcp_servers]]`},
		{"not TOML", "hub = ", `this is not TOML`},
		{"twice", "default_agent = 'a'\ndefault_agent = 'a'", `:2:1: this is not TOML: key default_agent is already defined`},
		{"a table that is none", "limits = 3", `:1:10: limits: expected a table, [limits], found a whole number`},
		{"tables that are none", "agents = 3", `:1:10: agents: expected tables such as [agents.NAME], found a whole number`},
		{"a table among them that is none", "agents.a = 3", `:1:12: a in [agents]: expected a table, [agents.a], found a whole number`},
		{"an array of tables that is none", "[rules]", `:1:2: rules: expected tables, each begun with [[rules]], found a table`},
		{"driver", "[agents.a]\ncommand=['a']\ndriver='ACP'", `:3:8: driver in [agents.a]: expected "acp", "command" or "executor", found "ACP"`},
		{"no program", "[agents.a]\ndriver='acp'", `:1:9: command is missing in [agents.a]`},
		{"an empty program", "[agents.a]\ncommand=[]", `:2:1: command in [agents.a]: expected a program and its arguments`},
		{"a command line", "[agents.a]\ncommand='a b'", `:2:9: command in [agents.a]: expected an array of strings, such as ["one", "two"], found a string`},
		{"an argument", "[agents.a]\ncommand=['a', 3]", `:2:15: value 2 of command in [agents.a]: expected a string, found a whole number`},
		{"the name of an agent", "[agents.'a b']\ncommand=['a']", `:1:9: the name of [agents.NAME]: expected a name`},
		{"demo", "[agents.demo]\ncommand=['a']", `:1:9: demo is the built-in demonstration agent and cannot be changed`},
		{"a variable's name", "[agents.a]\ncommand=['a']\nenv={'A B'='c'}", `:3:6: a key of env in [agents.a]: expected the name of an environment variable`},
		{"a variable's value", "[agents.a]\ncommand=['a']\nenv={A=3}", `:3:8: A of env in [agents.a]: expected a string, found a whole number`},
		{"a server of no kind", "[agents.a]\ncommand=['a']\n[[agents.a.mcp_servers]]\nname='m'", `:3:12: command is missing in [[agents.a.mcp_servers]]`},
		{"a server of both kinds", "[agents.a]\ncommand=['a']\n[[agents.a.mcp_servers]]\nname='m'\nurl='http://m'\ncommand='m'", `:6:9: command in [[agents.a.mcp_servers]]: expected nothing`},
		{"a server with the name of Duet's own", "[agents.a]\ncommand=['a']\n[[agents.a.mcp_servers]]\nname='duet-editor'\ncommand='m'", `:4:6: name in [[agents.a.mcp_servers]]: expected another name, found "duet-editor", the server that gives agents your editor's tools`},
		{"two servers of a name", "[agents.a]\ncommand=['a']\nmcp_servers=[{name='m',command='m'},{name='m',command='m'}]", `expected a name that no other server of the agent has, found "m"`},
		{"a key that is nowhere", "[keys.a]", `:1:7: [keys.a]: expected one of env, command and file, found 0`},
		{"a key in two places", "[keys.a]\nenv='A'\nfile='a'", `:1:7: [keys.a]: expected one of env, command and file, found 2`},
		{"no effect", "[[rules]]\ntool='*'", `:1:3: effect is missing in [[rules]]`},
		{"no tool", "[[rules]]\neffect='deny'", `:1:3: tool is missing in [[rules]]`},
		{"effect", "[[rules]]\neffect='ask'\ntool='*'", `:2:8: effect in [[rules]]: expected "allow" or "deny", found "ask"`},
		{"a pattern", "[[rules]]\neffect='deny'\ntool='[a'", `:3:6: tool in [[rules]]: expected a pattern`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, file := range []string{"project", "user"} {
				w := newWorld(t)
				path, name := w.project, ".duet.toml"
				if file == "user" {
					path, name = w.user, w.user
				}
				w.write(path, test.file)
				c, err := config.Load(w.sources())
				require.Error(t, err)
				assert.Nil(t, c)
				assert.ErrorContains(t, err, test.want)
				assert.True(t, strings.HasPrefix(err.Error(), name+":"), "%v begins with the name of the file", err)
				var wrong *config.Error
				require.ErrorAs(t, err, &wrong)
				assert.Len(t, wrong.Problems, 1, "%v", err)
				assert.Equal(t, path, wrong.Problems[0].File)
				assert.ErrorContains(t, err, "duet-rpc config --defaults", "it says what to do")
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.write(w.project, "default_agent = 1\n[limits]\nmax_turns = 0\nx = 1\n")
	w.write(w.user, "y = 1\n")
	w.env["DUET_MAX_TURNS"] = "many"
	w.env["DUET_TURN_TIMEOUT"] = "soon"
	_, err := config.Load(w.sources())
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 7)
	for i, begin := range []string{".duet.toml:1:17:", ".duet.toml:3:13:", ".duet.toml:4:1:", w.user + ":1:1:", "DUET_MAX_TURNS: expected a whole number from 1 to 100, found \"many\"", "DUET_TURN_TIMEOUT: expected a time"} {
		assert.True(t, strings.HasPrefix(lines[i], begin), "%s begins with %s", lines[i], begin)
	}
}

func TestByteOrderMarkIsSkipped(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "\ufeffdefault_agent = 'a'\n[agents.a]\ncommand = ['a']")
	w.write(w.project, "\ufeff[limits]\nmax_turns = 3")
	c, err := config.Load(w.sources())
	require.NoError(t, err)
	assert.Equal(t, "a", c.DefaultAgent)
	w.write(w.user, "\ufeffmax_turns = 3")
	_, err = config.Load(w.sources())
	assert.ErrorContains(t, err, `:1:1: unknown key "max_turns"`)
}

func TestProblemsKeepSecrets(t *testing.T) {
	const secret = "sk-very secret" // part of no name
	for _, file := range []string{
		"[keys.a]\nenv = '" + secret + "'",
		"[agents.a]\ncommand = ['a']\nenv_from = ['" + secret + "']",
		"[agents.a]\ncommand = ['a']\nkeys = { A = '" + secret + "' }",
		"[agents.a]\ncommand = ['a']\nenv = { A = ['" + secret + "'] }",
	} {
		w := newWorld(t)
		w.write(w.user, file)
		_, err := config.Load(w.sources())
		require.Error(t, err)
		assert.NotContains(t, err.Error(), secret)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, os.Mkdir(w.user, 0o700))
	_, err := config.Load(w.sources())
	assert.ErrorContains(t, err, "it cannot be read: it is no regular file")

	w = newWorld(t)
	const most = 1 << 20
	w.write(w.user, strings.Repeat("#", most))
	_, err = config.Load(w.sources())
	assert.NoError(t, err)
	w.write(w.user, strings.Repeat("#", most+1))
	_, err = config.Load(w.sources())
	assert.ErrorContains(t, err, "it is longer than 1048576 bytes")
}

func TestDefaultsDescribeEveryKey(t *testing.T) {
	var uncommented strings.Builder
	for line := range strings.Lines(config.Defaults()) {
		if toml, ok := strings.CutPrefix(line, "#"); ok && !strings.HasPrefix(toml, " ") {
			line = toml
		}
		uncommented.WriteString(line)
	}
	w := newWorld(t)
	w.write(w.user, uncommented.String())
	c := w.load()
	limits := newWorld(t).load().Limits
	limits.IdleAgents = new(limits.MostIdle())
	assert.Equal(t, limits, c.Limits)
	assert.Len(t, c.Agents["example"].MCPServers, 2)
	assert.Len(t, c.Keys, 3)
	assert.Len(t, c.Rules, 2)

	w.write(w.user, config.Defaults())
	assert.Equal(t, newWorld(t).load().Limits, w.load().Limits, "as it is printed it sets nothing")
}

// A higher limit of turns also keeps more agents, unless another limit is set.
func TestAsManyAgentsAreKeptAsTurnsAreAllowed(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "[limits]\nmax_turns = 7\n")
	assert.Equal(t, 7, w.load().Limits.MostIdle())
	w.env["DUET_IDLE_AGENTS"] = "0"
	assert.Equal(t, 0, w.load().Limits.MostIdle())
}

func TestValuesHideSecrets(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, `
[agents.a]
command = ["a"]
env = { TOKEN = "secret1" }
[[agents.a.mcp_servers]]
name = "m"
command = "m"
env = { TOKEN = "secret2" }
[[agents.a.mcp_servers]]
name = "n"
url = "http://n"
headers = { Authorization = "secret3" }
`)
	var all strings.Builder
	for _, v := range w.load().Values() {
		fmt.Fprintln(&all, v.Key, config.ValueText(v.Value), v.Source)
	}
	assert.NotContains(t, all.String(), "secret")
	assert.Contains(t, all.String(), `agents.a.env { TOKEN = "…" } user`)
	assert.Contains(t, all.String(), `agents.a.mcp_servers.n http "http://n" headers { Authorization = "…" } user`)
}
