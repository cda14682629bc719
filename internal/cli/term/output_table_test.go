package term

import (
	"bytes"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/stretchr/testify/assert"
)

// sessions returns a table of two rows for a terminal of this width.
func sessions(room int) []string {
	var out bytes.Buffer
	t := NewTable(&out, "SESSION", "TASK", "STATUS", "TITLE")
	t.Spare("SESSION")
	t.room = room
	t.Row("8b61bc08-c05f-4e65-9f6e-319535133c36", "task-0001", "completed", "日本語のテストと絵文字 👩‍👩‍👧 を直してください、それから報告")
	t.Row("8e58a1f5-7def-4e81-9fbd-1e60474b14b6", "task-0002", "waiting_input", "plain words that go on and on for quite a while")
	_ = t.Flush()
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestTableFitsTerminal(t *testing.T) {
	for _, room := range []int{40, 60, 80, 120, 200} {
		lines := sessions(room)
		for _, line := range lines {
			assert.LessOrEqual(t, displaywidth.String(line), room, "%d: %s", room, line)
		}
		assert.Contains(t, lines[1], "task-0001")
		assert.Contains(t, lines[1], "日本", "some of the title is left")
		// Titles start in the same column.
		at := func(line, text string) int { return displaywidth.String(line[:strings.Index(line, text)]) }
		assert.Equal(t, at(lines[0], "TITLE"), at(lines[1], "日本"))
		assert.Equal(t, at(lines[0], "TITLE"), at(lines[2], "plain"))
		assert.Equal(t, room >= 120, strings.Contains(lines[1], "8b61bc08-c05f-4e65-9f6e-319535133c36"), "%d", room)
	}
	whole := sessions(0)
	assert.Contains(t, whole[1], "それから報告")
	assert.Contains(t, whole[1], "8b61bc08-c05f-4e65-9f6e-319535133c36")
}

func TestCutMeasuresWidth(t *testing.T) {
	assert.Equal(t, "日本…", Cut("日本語の", 6))
	assert.Equal(t, "日本語の", Cut("日本語の", 8))
	assert.Equal(t, "abc", Cut("abc", 3))
	assert.Equal(t, "a…", Cut("a👩‍👩‍👧b", 3))
}

// rules returns a table whose columns may move below their rows.
func rules(room int) string {
	var out bytes.Buffer
	t := NewTable(&out, "ID", "RULE", "FOR", "WHERE", "AGE")
	t.Below("FOR", "WHERE")
	t.room = room
	t.Row("3", "allow", "Bash: go test ./internal/parser/... -run TestNext", "session Why does the test of the parser fail?", "5m")
	t.Row("4", "deny", "Bash: rm *", "", "2h")
	_ = t.Flush()
	return out.String()
}

func TestColumnsMoveBelowRowOnNarrowTerminal(t *testing.T) {
	assert.Equal(t, `ID  RULE   FOR                                                WHERE                                          AGE
3   allow  Bash: go test ./internal/parser/... -run TestNext  session Why does the test of the parser fail?  5m
4   deny   Bash: rm *                                                                                        2h
`, rules(120))
	assert.Equal(t, `ID  RULE   WHERE                                          AGE
3   allow  session Why does the test of the parser fail?  5m
     Bash: go test ./internal/parser/... -run TestNext
4   deny                                                  2h
     Bash: rm *
`, rules(64))
	assert.Equal(t, `ID  RULE   AGE
3   allow  5m
     Bash: go test
       ./internal/parser/...
       -run TestNext
     session Why does the test
       of the parser fail?
4   deny   2h
     Bash: rm *
`, rules(30))
	assert.Contains(t, rules(0), "fail?  5m", "a file has all in columns")
}

func TestEmptyTableIsExplained(t *testing.T) {
	nothing := func(room int) string {
		var out bytes.Buffer
		t := NewTable(&out, "TASK", "TITLE")
		t.Empty("there is no task here yet: `duet-rpc prompt` begins one")
		t.room = room
		_ = t.Flush()
		return out.String()
	}
	assert.Equal(t, "— there is no task here yet: `duet-rpc prompt` begins one\n", nothing(80))
	assert.Equal(t, "— there is no task here yet:\n  `duet-rpc prompt` begins one\n", nothing(30))
	assert.Equal(t, "TASK  TITLE\n", nothing(0), "a program reads a table of no rows")
}
