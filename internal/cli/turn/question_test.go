package turn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

func text(lines []turn.QuestionLine) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line.Text + "\n")
	}
	return b.String()
}

func whole(q turn.Question) string { return text(turn.Lay(q, visible.Brackets).Whole()) }

func TestInput(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"short", `{"command":"make test","n":1.50}`, "  {\"command\":\"make test\",\"n\":1.50}\n"},
		{"none", ``, ""},
		{"null", `null`, ""},
		{"escapes are read", `{"command":"\u0072m \u202e"}`, "  {\"command\":\"rm ⟨U+202E⟩\"}\n"},
		{"twins and doubles", `{"command":"a","Command":"b","command":"c"}`, "  {\"command\":\"a\",\"Command\":\"b\",\"command\":\"c\"}\n"},
		{"lines", `{"command":"a\nb\n"}`, "  \"command\":\n    | a\n    | b\n    | \n"},
		{"a line that looks like a member", `{"a":"x\n  \"b\": 1"}`, "  \"a\":\n    | x\n    |   \"b\": 1\n"},
		{"deep", `{"edits":[{"old":"a\nb"},{"x":[1,2]}],"ok":true}`, "  \"edits\": [\n    - {\n      \"old\":\n        | a\n        | b\n    }\n    - {\"x\":[1,2]}\n  ]\n  \"ok\": true\n"},
		{"a script", `{"command":["/bin/bash","-lc","touch \"a\"\nrm \u202eb"],"cwd":"/p"}`, "  \"command\": /bin/bash -lc\n    | touch \"a\"\n    | rm ⟨U+202E⟩b\n  \"cwd\": \"/p\"\n"},
		{"a script and more words", `{"command":["bash","-c","x","y"]}`, "  {\"command\":[\"bash\",\"-c\",\"x\",\"y\"]}\n"},
		{"words", `{"command":["rm","-rf"]}`, "  {\"command\":[\"rm\",\"-rf\"]}\n"},
		{"a list of others", `{"command":["bash","-c",["x"]]}`, "  {\"command\":[\"bash\",\"-c\",[\"x\"]]}\n"},
		{"no object", `["rm","-rf"]`, "  [\"rm\",\"-rf\"]\n"},
		{"no JSON", "{\x1b", "  {⟨U+001B⟩\n"},
	} {
		assert.Equal(t, "? Run\n"+c.want, whole(turn.Question{Tool: "Run", Title: "Run", Input: json.RawMessage(c.input)}), c.name)
	}
}

// An input of 8 MB that nests 9,900 levels takes less than a second: a level does not copy the levels
// inside it.
func TestADeepInputTakesLinearTime(t *testing.T) {
	nested := strings.Repeat(`{"a":`, 9900) + `"x\n` + strings.Repeat("y", 8<<20) + `"` + strings.Repeat(`}`, 9900)
	assert.Contains(t, whole(turn.Question{Tool: "Bash", Input: json.RawMessage(nested)}), `"x\nyyy`)
}

// A question shows a command once, and the other parts of its title and input.
func TestCommand(t *testing.T) {
	for _, c := range []struct{ name, title, input, want string }{
		{"alone", "Bash", `{"command":"make test"}`, "? $ make test\n"},
		{"its title is the command", "`make  test`", `{"command":"make test"}`, "? $ make test\n"},
		{"its title is the tool and the command", "Bash: make test", `{"command":"make test"}`, "? $ make test\n"},
		{"its title is the beginning", "make t…", `{"command":"make test"}`, "? $ make test\n"},
		{"its title says more", "Run the tests", `{"command":"make test"}`, "? $ make test\n  Run the tests\n"},
		{"a description", "make test", `{"command":"make test","description":"Run the tests"}`, "? $ make test\n  Run the tests\n"},
		{"a title and a description", "Tests", `{"command":"make test","description":"Run the tests"}`, "? $ make test\n  Tests\n  Run the tests\n"},
		{"a description twice", "", `{"command":"a","description":"b","description":"c\nd"}`, "? $ a\n  c d\n  {\"description\":\"b\"}\n"},
		{"a description that is the title", "Run the tests", `{"command":"make test","description":"Run the tests"}`, "? $ make test\n  Run the tests\n"},
		{"ids and times", "", `{"command":["bash","-lc","ls"],"call_id":"1","turn_id":"2","started_at_ms":3,"parsed_cmd":[{"cmd":"ls"}],"reason":"to look"}`, "? $ ls\n  {\"reason\":\"to look\"}\n"},
		{"where the session works", "", `{"command":"ls","cwd":"/p"}`, "? $ ls\n"},
		{"elsewhere", "", `{"command":"ls","cwd":"/etc","n":1}`, "? $ ls\n  {\"cwd\":\"/etc\",\"n\":1}\n"},
		{"lines", "", `{"command":"cat <<E\na\u202e\nE\n"}`, "? $ cat <<E\n  | a⟨U+202E⟩\n  | E\n"},
		{"a script", "", `{"command":["/bin/bash","-lc","touch a b"]}`, "? $ touch a b\n"},
		{"a script for a program that is called like a shell", "", `{"command":["./bash","-lc","touch a b"]}`, "? $ ./bash -lc 'touch a b'\n"},
		{"words", "", `{"command":["rm","-rf","a b"]}`, "? $ rm -rf 'a b'\n"},
		{"twins", "", `{"command":"a","Command":"b"}`, "? Bash\n  {\"command\":\"a\",\"Command\":\"b\"}\n"},
		{"doubles", "", `{"command":"a","command":"b"}`, "? Bash\n  {\"command\":\"a\",\"command\":\"b\"}\n"},
		{"none", "", `{"command":""}`, "? Bash\n  {\"command\":\"\"}\n"},
		{"no text", "", `{"command":[1]}`, "? Bash\n  {\"command\":[1]}\n"},
	} {
		assert.Equal(t, c.want, whole(turn.Question{Tool: "Bash", Title: c.title, Input: json.RawMessage(c.input), Dir: "/p"}), c.name)
	}
	sheet := turn.Lay(turn.Question{Tool: "Bash", Input: json.RawMessage(`{"command":"ls","n":1}`)}, visible.Brackets)
	assert.Equal(t, "? $ ls\n", text(sheet.Heading()))
	assert.Equal(t, "? $ ls\n  {\"n\":1}\n", text(sheet.Details()), "the details repeat no command")
}

func TestInputBesideADiff(t *testing.T) {
	diff := "--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-old\n+new\n"
	q := turn.Question{Tool: "Write", Title: "Write", Diff: diff, Dir: "/p"}
	for input, want := range map[string]string{
		`{"file_path":"/p/x.txt","old_string":"old\n","new_string":"new\n"}`: "",
		`{"file_path":"x.txt","content":"new\n"}`:                            "",
		`{"file_path":"/q/x.txt","content":"new\n"}`:                         "  {\"file_path\":\"/q/x.txt\"}\n",
		`{"file_path":"/p/x.txt","content":"new"}`:                           "  {\"content\":\"new\"}\n",
		`{"content":"new\n","Content":"other","command":"new"}`:              "  {\"Content\":\"other\",\"command\":\"new\"}\n",
		`{"content":"new\n","mode":"0777","n":""}`:                           "  {\"mode\":\"0777\",\"n\":\"\"}\n",
	} {
		q.Input = json.RawMessage(input)
		assert.Equal(t, "? Write\n"+want+diff, whole(q), input)
	}
	// A text without a final newline is a different text.
	q.Diff = "--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n"
	q.Input = json.RawMessage(`{"content":"new","text":"new\n"}`)
	assert.Contains(t, whole(q), "  \"text\":\n    | new\n    | \n---")
	// A line of a file that looks like a file header does not begin another file.
	q.Diff = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n same\n"
	q.Input = json.RawMessage(`{"file_path":"/p/y"}`)
	assert.Contains(t, whole(q), "/p/y")
}

func TestQuestionsToHumans(t *testing.T) {
	q := turn.Question{Title: "Which?\n— allowed\x1b[2J", Subject: "colour", Options: []string{"red\u202e", "blue\n? Bash"}}
	assert.Equal(t, "? Which?\n  — allowed⟨U+001B⟩[2J\n  colour\n  1  red⟨U+202E⟩\n  2  blue ? Bash\n", whole(q))
	assert.Equal(t, "? Bash: a ⟨U+200B⟩\n", whole(turn.Question{Tool: "Bash", Title: "a\n\u200b"}))
	assert.Equal(t, "? Bash\n", whole(turn.Question{Tool: "Bash"}))
}

// The excerpt of a long question fits on a screen. It counts the hidden lines, and has the first
// and the last lines.
func TestExcerptFitsOnAScreen(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	var many, files strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	for i := range 300 {
		fmt.Fprintf(&files, "--- /dev/null\n+++ b/f%d\n@@ -0,0 +1,2 @@\n+a\n+b\n", i)
	}
	input := func(v any) json.RawMessage {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return raw
	}
	for name, q := range map[string]turn.Question{
		"a long line":    {Tool: "Bash", Input: input(map[string]string{"command": "begin" + long + "end"})},
		"many lines":     {Tool: "Bash", Input: input(map[string]string{"command": "begin\n" + many.String() + "end"})},
		"many members":   {Tool: "Bash", Input: input(map[string][]string{"a": strings.Split(many.String(), "\n")})},
		"a long title":   {Tool: "Bash", Title: long},
		"a long diff":    {Tool: "Bash", Diff: "--- a/x\n+++ b/x\n@@ -1 +1,10000 @@\n+" + strings.ReplaceAll(strings.TrimSpace(many.String()), "\n", "\n+") + "\n"},
		"many files":     {Tool: "Bash", Diff: files.String()},
		"many options":   {Title: "Which?", Options: strings.Split(many.String(), "\n")},
		"a long message": {Title: many.String()},
		"all at once":    {Tool: "Bash", Title: long, Diff: files.String(), Input: input(map[string]string{"a": many.String(), "b": long})},
	} {
		sheet := turn.Lay(q, visible.Brackets)
		lines, hidden := sheet.Excerpt(": v shows all")
		shown := text(lines)
		assert.True(t, hidden, name)
		assert.Regexp(t, `hidden: v shows all`, shown, name)
		rows := 0
		for _, line := range lines {
			rows += 1 + len([]rune(line.Text))/60
		}
		assert.LessOrEqual(t, rows, 70, "%s: %s", name, shown)
		assert.Greater(t, len(text(sheet.Whole())), len(shown), name)
	}
	lines, hidden := turn.Lay(turn.Question{Tool: "Bash", Input: input(map[string]string{"command": "begin" + long + "end"})}, visible.Brackets).Excerpt("!")
	assert.True(t, hidden)
	assert.Contains(t, text(lines), "begin")
	assert.Contains(t, text(lines), "end")
	assert.Regexp(t, `… 99,4\d\d bytes hidden! …`, text(lines))
	lines, hidden = turn.Lay(turn.Question{Tool: "Bash", Input: input(map[string]string{"command": strings.Repeat("a\n", 15)})}, visible.Brackets).Excerpt("!")
	assert.False(t, hidden, text(lines))
}

// The shown and hidden lines add up to all lines.
func TestExcerptCounts(t *testing.T) {
	for _, n := range []int{18, 19, 20, 21, 22, 100, 1234} {
		raw, err := json.Marshal(map[string]string{"command": strings.TrimSuffix(strings.Repeat("a\n", n), "\n")})
		require.NoError(t, err)
		sheet := turn.Lay(turn.Question{Tool: "Bash", Input: raw}, visible.Brackets)
		lines, hidden := sheet.Excerpt("")
		all := len(sheet.Whole())
		if !hidden {
			assert.Len(t, lines, all)
			continue
		}
		said := 0
		for _, line := range lines {
			if line.Kind == turn.Remark {
				_, err := fmt.Sscanf(strings.ReplaceAll(line.Text, ",", ""), "… %d", &said)
				require.NoError(t, err, line.Text)
			}
		}
		assert.Equal(t, all, len(lines)-1+said, "%d", n)
	}
}

// A diff of 15 MB takes seconds and not hours: a line does not copy all lines before it.
func TestLongDiffTakesLinearTime(t *testing.T) {
	diff := "--- a/x\n+++ b/x\n@@ -1,5000000 +0,0 @@\n" + strings.Repeat("-a\n", 5_000_000)
	assert.Greater(t, len(turn.Diff(diff, visible.Marks{})), 5_000_000)
}

// The excerpt of a change has whole hunks with their line numbers, and counts those that do not fit on a
// screen of 24 rows beside three rows of keys.
func TestExcerptOfAChangeHasWholeHunks(t *testing.T) {
	hunk := func(at, n int) string {
		return fmt.Sprintf("@@ -%d,0 +%d,%d @@\n", at, at+1, n) + strings.Repeat("+line\n", n)
	}
	file := func(name string, hunks ...string) string {
		return "--- a/" + name + "\n+++ b/" + name + "\n" + strings.Join(hunks, "")
	}
	for name, c := range map[string]struct{ diff, want string }{
		"all fit":           {file("x", hunk(10, 6), hunk(500, 8)), file("x", hunk(10, 6), hunk(500, 8))},
		"the last does not": {file("x", hunk(10, 6), hunk(500, 10)), file("x", hunk(10, 6)) + "… 1 more change of this file, 11 lines hidden: v\n"},
		"the first alone":   {file("x", hunk(1, 9), hunk(30, 9), hunk(60, 1)), file("x", hunk(1, 9)) + "… 2 more changes of this file, 12 lines hidden: v\n"},
		"two files":         {file("x", hunk(1, 4)) + file("y", hunk(8, 7)), file("x", hunk(1, 4)) + file("y", hunk(8, 7))},
		"the second is long": {
			file("x", hunk(1, 1)) + file("y", hunk(8, 5), hunk(80, 9)),
			file("x", hunk(1, 1)) + file("y", hunk(8, 5)) + "… 1 more change of this file, 10 lines hidden: v\n",
		},
	} {
		lines, hidden := turn.Lay(turn.Question{Tool: "Write", Title: "Write", Diff: c.diff}, visible.Brackets).Excerpt(": v")
		assert.Equal(t, "? Write\n"+c.want, text(lines), name)
		assert.Equal(t, strings.Contains(c.want, "hidden"), hidden, name)
		assert.LessOrEqual(t, len(lines), 21, name)
	}
	// A hunk that does not fit alone is cut, and the others are counted. Options stay below the change.
	q := turn.Question{Tool: "Write", Title: "Write", Diff: file("x", hunk(1, 40), hunk(90, 2)), Options: []string{"One", "Two"}}
	lines, _ := turn.Lay(q, visible.Brackets).Excerpt(": v")
	assert.Regexp(t, `^\? Write\n--- a/x\n\+\+\+ b/x\n@@ -1,0 \+2,40 @@\n(\+line\n)+… \d+ more lines, \d+ bytes hidden: v\n(\+line\n)+`+
		`… 1 more change of this file, 3 lines hidden: v\n  1  One\n  2  Two\n$`, text(lines))
	assert.LessOrEqual(t, len(lines), 21)
	var many strings.Builder
	for i := range 7 {
		many.WriteString(file(fmt.Sprint(i), hunk(1, 1)))
	}
	q.Diff = many.String()
	lines, _ = turn.Lay(q, visible.Brackets).Excerpt(": v")
	assert.Regexp(t, `… 3 more files: 12 more lines, \d+ bytes hidden: v\n  1  One\n  2  Two\n$`, text(lines))
}
