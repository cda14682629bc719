package term

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func unpainted(text string) string { return text }

// typedInto types keys into a box and returns those that its owner handles.
func typedInto(b *Box, keys ...string) (forOwner []BoxKey) {
	var d Decoder
	for _, key := range keys {
		for rest := d.Keys([]byte(key)); ; {
			var k BoxKey
			if k, rest = b.Take(rest); k == NoKey {
				break
			}
			forOwner = append(forOwner, k)
		}
	}
	return forOwner
}

func TestABoxIsEditedWithTheUsualKeys(t *testing.T) {
	for _, c := range []struct{ keys, text string }{
		{"hello", "hello"},
		{"helo\x1b[Dl", "hello"},                     // left
		{"world\x01hello ", "hello world"},           // C-a
		{"hello world\x17there", "hello there"},      // C-w
		{"hello world\x1bb\x0b", "hello "},           // M-b C-k
		{"one\x1b\rtwo", "one\ntwo"},                 // M-RET
		{"one\x0atwo", "one\ntwo"},                   // C-j
		{"one\\\rtwo", "one\ntwo"},                   // \ RET
		{"one\x0atwo\x1b[A!", "one!\ntwo"},           // up, within the text
		{"日本語\x1b[D\x1b[D\x7f", "本語"},                // wide characters
		{"a\x1b[200~b\rc\x1b[201~d", "ab\ncd"},       // pasted
		{"a\x03\x1b[1;5Cb", "ab"},                    // other keys add nothing
		{"\x1b[200~\x1b[31mred\x1b[201~", "[31mred"}, // controls in pasted text
	} {
		whole, pieces := NewBox(nil), NewBox(nil)
		assert.Empty(t, typedInto(whole, c.keys), "%q", c.keys)
		assert.Equal(t, c.text, whole.Text(), "%q", c.keys)
		if !strings.Contains(c.keys, "\x1bb") && !strings.Contains(c.keys, "\x1b\r") { // ESC alone is a key
			var parts []string
			for i := range len(c.keys) {
				if c.keys[i] == 0x1b && i+1 < len(c.keys) {
					continue
				}
				from := i
				if i > 0 && c.keys[i-1] == 0x1b {
					from--
				}
				parts = append(parts, c.keys[from:i+1])
			}
			typedInto(pieces, parts...)
			assert.Equal(t, c.text, pieces.Text(), "%q, byte by byte", c.keys)
		}
	}
}

func TestKeysThatABoxLeavesToItsOwner(t *testing.T) {
	b := NewBox(nil)
	assert.Equal(t, []BoxKey{LeaveKey, StopKey, RedrawKey, EditorKey, SteerKey}, typedInto(b, "\x04", "\x1b", "\x0c", "\x18\x05", "\x13"))
	assert.Equal(t, []BoxKey{SendKey}, typedInto(b, "one\r"))
	assert.Equal(t, "one", b.Text())
	assert.Empty(t, typedInto(b, "\x04"), "C-d deletes in a text")
}

func TestABoxHasAHistory(t *testing.T) {
	b := NewBox([]string{"first", "second"})
	typedInto(b, "draft", "\x1b[A", "\x1b[A", "\x1b[A")
	assert.Equal(t, "first", b.Text())
	typedInto(b, "\x1b[B")
	assert.Equal(t, "second", b.Text())
	typedInto(b, "\x1b[B")
	assert.Equal(t, "draft", b.Text())
	b.Sent()
	assert.True(t, b.IsEmpty())
	typedInto(b, "\x10")
	assert.Equal(t, "draft", b.Text())
}

func TestABoxFindsEarlierTexts(t *testing.T) {
	b := NewBox([]string{"fix the parser", "say hello", "Fix the tests\nall of them"})
	typedInto(b, "fix", "\x12")
	rows, up, column := b.Rows(60, unpainted, unpainted)
	assert.Equal(t, []string{"› fix", "  Fix the tests all of them", "  fix the parser"}, rows)
	assert.Equal(t, []int{2, 5}, []int{up, column})
	assert.Empty(t, typedInto(b, "\x12\r"), "RET takes the found text")
	assert.Equal(t, "fix the parser", b.Text())
	assert.Equal(t, []BoxKey{SendKey}, typedInto(b, "\r"))

	b.Set("")
	typedInto(b, "\x12", "TESTS", "\t")
	assert.Equal(t, "Fix the tests\nall of them", b.Text(), "letters typed during the search narrow it")
	b.Set("")
	typedInto(b, "\x12", "nothing")
	rows, up, _ = b.Rows(60, unpainted, unpainted)
	assert.Equal(t, []string{"› nothing", "  no earlier prompt has this text"}, rows)
	assert.Equal(t, 1, up)
	assert.Empty(t, typedInto(b, "\x07"), "C-g ends the search")
	assert.Equal(t, "nothing", b.Text())
	assert.Equal(t, []BoxKey{ModeKey, StopKey}, typedInto(b, "\x1b[Z", "\x1b"))
}

func TestALongPastedTextIsShownAsAPlace(t *testing.T) {
	b := NewBox(nil)
	long := strings.Repeat("\tline\n", 2000)
	typedInto(b, "See \x1b[200~"+long+"\x1b[201~ and fix it")
	rows, _, _ := b.Rows(60, unpainted, unpainted)
	assert.Equal(t, []string{"› See [text 1: 2001 lines] and fix it"}, rows)
	assert.Equal(t, "See "+long+" and fix it", b.Text())
}

func TestABoxCompletesWords(t *testing.T) {
	b := NewBox(nil)
	b.Complete = func(line string, isFirst bool) (int, []Candidate) {
		if !strings.HasPrefix(line, "/m") || strings.Contains(line, " ") {
			return 0, nil
		}
		var list []Candidate
		for _, c := range []Candidate{{"/mode ", "sets the mode"}, {"/model ", "sets the model"}} {
			if strings.HasPrefix(c.Text, line) {
				list = append(list, c)
			}
		}
		return len(line), list
	}
	typedInto(b, "/m")
	rows, up, column := b.Rows(60, unpainted, unpainted)
	assert.Equal(t, []string{"› /m", "  /mode   sets the mode", "  /model  sets the model"}, rows)
	assert.Equal(t, []int{2, 4}, []int{up, column})
	typedInto(b, "\x1b[B\t")
	assert.Equal(t, "/model ", b.Text())
	b.Set("")
	assert.Empty(t, typedInto(b, "/mo\r"), "RET completes a word that is not complete")
	assert.Equal(t, "/mode ", b.Text())
	b.Set("")
	assert.Equal(t, []BoxKey{SendKey}, typedInto(b, "/mode\r"))
	b.Set("")
	assert.Equal(t, []BoxKey{StopKey}, typedInto(b, "/m\x1b", "\x1b"), "ESC first closes the list")
}

func TestCandidatesAreShownWithVisibleCharacters(t *testing.T) {
	b := NewBox(nil)
	b.Complete = func(line string, _ bool) (int, []Candidate) {
		return len(line), []Candidate{{"@evil\x1b[2J\u202e.go ", "a \x1b]0;note"}}
	}
	typedInto(b, "@e")
	rows, _, _ := b.Rows(60, unpainted, unpainted)
	assert.NotContains(t, strings.Join(rows, "\n"), "\x1b")
	assert.NotContains(t, strings.Join(rows, "\n"), "\u202e")
	typedInto(b, "\t")
	assert.NotContains(t, b.Text(), "\x1b")
}

func TestRowsOfABox(t *testing.T) {
	b := NewBox(nil)
	typedInto(b, "one two three four five six\x0aseven")
	rows, up, column := b.Rows(20, unpainted, unpainted)
	assert.Equal(t, []string{"› one two three", "  four five six", "  seven"}, rows)
	assert.Equal(t, []int{0, 7}, []int{up, column})
	b.Set(strings.Repeat("x\n", 11))
	rows, _, _ = b.Rows(20, unpainted, unpainted)
	assert.Len(t, rows, mostBoxRows)
	b.Set("日本")
	rows, _, column = b.Rows(20, unpainted, unpainted)
	assert.Equal(t, []string{"› 日本"}, rows)
	assert.Equal(t, 6, column)
}
