//go:build clients

package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/screen"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// TestScreens compares the screens of the shell commands with testdata/screens. To change a screen,
// run it with DUET_UPDATE_GOLDEN=1 and read the difference. `make pictures` draws the screens.
//
// A narrow terminal shows everything. A wide terminal has another layout of lists and
// transcripts, and other terminals draw the same content with other characters. Their variants
// show only these scenes.
func TestScreens(t *testing.T) {
	for _, c := range []struct {
		variant string
		columns int
		env     []string
		scenes  []func(*stage)
	}{
		{"60", 60, nil, []func(*stage){newcomer, oneTurn, inbox, finding, mistakes, lists, beside, talk}},
		{"120", 120, nil, []func(*stage){newcomer, oneTurn, inbox, finding, talk}},
		{"nocolor-60", 60, []string{"NO_COLOR=1"}, []func(*stage){newcomer, oneTurn}},
		{"dumb-60", 60, []string{"TERM=dumb"}, []func(*stage){newcomer, oneTurn}},
		{"ascii-60", 60, []string{"LC_ALL=C"}, []func(*stage){newcomer, oneTurn}},
	} {
		t.Run(c.variant, func(t *testing.T) {
			t.Parallel()
			st := newStage(t, c.variant, c.columns, c.env...)
			for _, scene := range c.scenes {
				scene(st)
			}
		})
	}
}

// TestReadmeScreens compares each screen in the guides with the file that TestScreens maintains. It follows
// TestScreens, so that one update writes both.
func TestReadmeScreens(t *testing.T) {
	total := 0
	for _, guide := range guides {
		text := e2e.ReadFile(t, guide)
		markers := regexp.MustCompile(`(?m)^<!-- screen: ([a-z0-9-]+) -->$`).FindAllStringSubmatch(text, -1)
		for _, m := range markers {
			seen := e2e.ReadFile(t, e2e.Root+"/testdata/screens/"+m[1]+".txt")
			testkit.GoldenBlock(t, guide, m[0], []byte(seen))
		}
		text = e2e.ReadFile(t, guide) // GoldenBlock may have written it
		assert.Equal(t, len(markers), strings.Count(text, "\n```\n$ ")+strings.Count(text, "\n```\n— "), "%s has a screen without a marker", guide)
		total += len(markers)
	}
	assert.Equal(t, 3, total)
}

// newcomer shows the commands that the README recommends first.
func newcomer(st *stage) {
	st.shows("help", "duet-rpc --help")
	st.shows("help-prompt", "duet-rpc prompt --help")
	st.shows("help-approvals", "duet-rpc approvals --help")
	st.shows("agents", "duet-rpc agents")
	st.shows("empty", "duet-rpc session list", "duet-rpc session list --turns", "duet-rpc approvals", "duet-rpc search nothing", "duet-rpc events --no-follow", "duet-rpc daemon status")
	sc := st.scene("first", `duet-rpc prompt --agent demo "Greet the README's reader"`)
	sc.waits("[?] Keys: ")
	sc.is("first-question")
	sc.presses("y")
	sc.ends()
	sc.is("first")
}

// oneTurn shows a turn with many kinds of output, and several kinds of questions.
func oneTurn(st *stage) {
	update := func(kind string, members object) e2e.PlayedStep {
		members["sessionUpdate"] = kind
		return e2e.PlayedStep{Update: members}
	}
	text := func(s string) object { return object{"type": "content", "content": object{"type": "text", "text": s}} }
	entries := func(states ...string) (list []object) {
		for i, content := range []string{"Find out why the test fails", "Mend the parser", "Run the tests again"} {
			list = append(list, object{"content": content, "priority": "medium", "status": states[i]})
		}
		return list
	}
	parser := filepath.Join(st.root, "parser.go")
	write := e2e.WriteCall("Edit parser.go", parser, "package parser\n\nfunc next(s string) string {\n\treturn s[1:]\n}\n",
		"package parser\n\n// next is s without its first letter.\nfunc next(s string) string {\n\tif s == \"\" {\n\t\treturn \"\"\n\t}\n\treturn s[1:]\n}\n", object{"file_path": parser})
	output := "=== RUN   TestNext\n--- FAIL: TestNext (0.00s)\npanic: runtime error: slice bounds out of range [1:0]\n"
	for range 40 {
		output += "\tparser_test.go:12\n"
	}
	st.file(".config/duet/config.toml", "default_agent = \"demo\"\ncheckpoints = { enabled = false }\n"+st.plays("helper",
		e2e.PlayedStep{Update: thought("The user wants the **failing test** mended. I look at it first.")},
		update("plan", object{"entries": entries("in_progress", "pending", "pending")}),
		update("tool_call", object{"toolCallId": "read", "title": "go test ./...", "kind": "execute", "status": "in_progress", "rawInput": object{"command": "go test ./..."}}),
		update("tool_call_update", object{"toolCallId": "read", "status": "failed", "content": []object{text(output)}}),
		update("plan", object{"entries": entries("completed", "in_progress", "pending")}),
		e2e.PlayedStep{Say: "# What is wrong\n\n`next` takes the first letter of a text that has **none**. Then:\n\n"},
		e2e.PlayedStep{Say: "1. an empty text is returned as it is,\n2. and a test says so; see [the specification](https://go.dev/ref/spec#Slice_expressions).\n\n"},
		e2e.PlayedStep{Say: "| input | before | now |\n|---|---|---|\n| `\"\"` | panic | `\"\"` |\n| `\"ab\"` | `\"b\"` | `\"b\"` |\n\n"},
		e2e.PlayedStep{Say: "```go\nfunc next(s string) string {\n\tif s == \"\" {\n\t\treturn \"\"\n\t}\n\treturn s[1:] // all but the first\n}\n```\n\n"},
		write,
		update("plan", object{"entries": entries("completed", "completed", "in_progress")}),
		e2e.BashCall("go test ./...", object{"command": "go test ./...", "description": "Run the tests"}),
		update("plan", object{"entries": entries("completed", "completed", "completed")}),
		e2e.PlayedStep{Say: "\nDone: all tests pass. 日本語 and emoji 👍 stay in their columns.\n"},
	)+"[agents.broken]\ndriver = \"acp\"\ncommand = [\"no-such-agent\"]\n")
	sc := st.scene("turn", `duet-rpc prompt --agent helper "Why does the test of the parser fail?"`)
	sc.waits("[?] Keys: ")
	sc.is("turn-question")
	sc.presses("y")
	sc.waits("[?] Keys: ", "  Run the tests")
	sc.presses("n")
	sc.ends()
	sc.is("turn")

	for _, c := range []struct{ name, asks, key string }{{"ask", "Choose 1 to 3", "2"}, {"form", "Colour (one of", "C-c"}, {"link", "and agree? ", "C-c"}} {
		sc = st.scene(c.name, "duet-rpc prompt quiet "+c.name)
		sc.waits("", c.asks)
		sc.is(c.name + "-question")
		sc.presses(c.key)
		sc.ends()
		sc.is(c.name)
	}
}

// beside shows an agent that continues to work while its question is open. The prompt repeats the
// question below the new output.
func beside(st *stage) {
	update := func(kind string, members object) e2e.PlayedStep {
		members["sessionUpdate"] = kind
		return e2e.PlayedStep{Update: members}
	}
	ask := e2e.BashCall("make", object{"command": "make"})
	ask.Go = filepath.Join(st.home, "go")
	require.NoError(st.t, syscall.Mkfifo(ask.Go, 0o600))
	ask.Beside = []e2e.PlayedStep{
		update("tool_call", object{"toolCallId": "read", "title": "Read a.go", "kind": "read", "status": "in_progress"}),
		update("tool_call_update", object{"toolCallId": "read", "status": "completed"}),
		{Say: "While you think I have *read* a file.\n\nIt is "},
		{Say: "empty.\n"},
		update("plan", object{"entries": []object{{"content": "Make it", "priority": "medium", "status": "pending"}}}),
	}
	st.file(".config/duet/config.toml", "default_agent = \"demo\"\ncheckpoints = { enabled = false }\n"+st.plays("busy", e2e.PlayedStep{Say: "I ask first.\n"}, ask))
	sc := st.scene("beside", "duet-rpc prompt --agent busy go")
	sc.waits("[?] Keys: ", "$ make")
	sc.await("the agent does not wait", func([]screen.Line) bool {
		f, err := os.OpenFile(ask.Go, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil && f.Close() == nil
	})
	sc.waits("[?] Keys: ", "Make it")
	sc.is("beside-question")
	sc.presses("y")
	sc.ends()
	sc.is("beside")
}

// inbox shows the questions of sessions in the background and their answers.
func inbox(st *stage) {
	st.scene("stopped", "duet-rpc daemon stop").ends()
	st.shows("daemon-start", "duet-rpc daemon start", "duet-rpc daemon status")
	st.shows("session-launch", `duet-rpc prompt --background "Say hello"`, `duet-rpc approvals --wait --list >/dev/null`, `duet-rpc prompt --background permit:1`)
	st.scene("asking", "until test $(duet-rpc approvals --json | tr , '\\n' | grep -c '\"approval\":') = 2; do sleep 0.1; done").ends()
	st.shows("approvals-list", "duet-rpc approvals --list", "duet-rpc session list --turns")
	sc := st.scene("inbox", "duet-rpc approvals")
	sc.waits("[?] Keys: ")
	sc.is("inbox-question")
	sc.presses("y")
	sc.waits("[?] Keys: ", "echo 1")
	sc.presses("l")
	sc.waits("C-c ends")
	sc.presses("C-c")
	sc.ends()
	sc.is("inbox")
	st.scene("settled", "until duet-rpc session list --state completed | grep -q '^6.1 '; do sleep 0.1; done", "duet-rpc daemon stop").ends()
	sc = st.scene("left-open", "duet-rpc approvals")
	sc.waits("[?] Keys: ")
	sc.is("left-open-question")
	sc.presses("y")
	sc.waits("C-c ends")
	sc.presses("C-c")
	sc.ends()
	sc.is("left-open")
	st.scene("continued", "until duet-rpc session list --state completed | grep -q '^7.2 '; do sleep 0.1; done").ends()
}

// finding shows the commands that list, show and search earlier sessions.
func finding(st *stage) {
	st.shows("session-list", "duet-rpc session list")
	st.shows("session-show", "duet-rpc session show 2")
	st.shows("transcript", "PAGER=cat duet-rpc session show --transcript 2")
	st.shows("session-diff", "PAGER=cat duet-rpc session show --diff 2")
	st.shows("search", "duet-rpc search parser")
	st.shows("usage", "duet-rpc session list --turns", "duet-rpc usage")
	st.shows("doctor", "duet-rpc doctor")
	sc := st.scene("pick", "duet-rpc session pick")
	if st.variant != "dumb-60" { // a dumb terminal asks for a line
		sc.waits(" ", "7/7", "Greet the README's")
		sc.is("pick-all")
		sc.presses("pars")
		sc.waits("pars", "1/7")
		sc.is("pick")
	}
	sc.presses("Enter")
	sc.ends()
}

// talk is a session with a prompt box.
func talk(st *stage) {
	sc := st.scene("talk", "duet-rpc")
	sc.waits("C-d leaves")
	sc.presses("Say hello", "Enter")
	sc.waits("[?] Keys: ")
	sc.presses("y")
	sc.waits("C-d leaves", "tokens")
	sc.presses("/mo")
	sc.waits("C-d leaves", "/model", "/mode")
	sc.is("talk")
	sc.presses("C-u")
	sc.presses("C-d")
	sc.ends()
}

// mistakes shows wrong commands and their errors.
func mistakes(st *stage) {
	for _, c := range []struct{ name, command string }{
		{"unknown-command", "duet-rpc promt hello"},
		{"unknown-flag", "duet-rpc prompt --modle x hello"},
		{"bad-value", "duet-rpc prompt --mode soft hello"},
		{"no-words", "duet-rpc prompt </dev/null"},
		{"unknown-agent", "duet-rpc prompt --agent claud hello"},
		{"missing-agent", "duet-rpc prompt --agent broken hello"},
		{"not-installed", "duet-rpc prompt --agent claude hello"},
		{"no-adapter", "duet-rpc prompt --agent codex hello"},
		{"unknown-id", "duet-rpc session show 99"},
		{"no-question", "duet-rpc approvals allow nosuchid"},
		{"no-file", "duet-rpc prompt --attach nothing.txt hello"},
		{"agent-fails", "duet-rpc prompt quiet fail"},
		{"agent-crashes", "duet-rpc prompt quiet crash"},
	} {
		st.shows("error-"+c.name, c.command)
	}
	st.scene("stopped-again", "duet-rpc daemon stop").ends()
	st.shows("error-no-hub", "duet-rpc daemon status")
}

// lists shows empty lists, and lists with more columns than a narrow terminal can show. They belong
// to another project.
func lists(st *stage) {
	const there = "cd ../notes"
	st.scene("notes", there, "duet-rpc daemon start").ends()
	st.shows("nothing", there, "duet-rpc session list", "duet-rpc session list --archived", "duet-rpc session list --turns", "duet-rpc session list --state failed",
		"duet-rpc approvals --list", "duet-rpc approvals rules", "duet-rpc search nothing")
	st.scene("a-rule", there, "duet-rpc prompt --background --agent demo permit:1", "duet-rpc approvals --wait --list >/dev/null",
		"duet-rpc approvals | { read -r heading; read -r id rest; duet-rpc approvals allow $id --scope session; }",
		"until duet-rpc session list --state completed | grep -q '^1.1 '; do sleep 0.1; done").ends()
	st.shows("wide", there, "duet-rpc approvals rules", "duet-rpc session list --native --agent demo", "duet-rpc daemon stop")
}
