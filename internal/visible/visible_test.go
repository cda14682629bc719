package visible_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// hostile are characters that control a terminal, reorder text, or are invisible, and their
// written-out form.
var hostile = map[string]string{
	"\x00": "⟨U+0000⟩", "\a": "⟨U+0007⟩", "\b": "⟨U+0008⟩", "\v": "⟨U+000B⟩", "\f": "⟨U+000C⟩", "\r": "⟨U+000D⟩", "\x1b": "⟨U+001B⟩", "\x7f": "⟨U+007F⟩",
	"\u0080": "⟨U+0080⟩", "\u0085": "⟨U+0085⟩", "\u009b": "⟨U+009B⟩",
	"\u202a": "⟨U+202A⟩", "\u202b": "⟨U+202B⟩", "\u202c": "⟨U+202C⟩", "\u202d": "⟨U+202D⟩", "\u202e": "⟨U+202E⟩",
	"\u2066": "⟨U+2066⟩", "\u2067": "⟨U+2067⟩", "\u2068": "⟨U+2068⟩", "\u2069": "⟨U+2069⟩", "\u200e": "⟨U+200E⟩", "\u200f": "⟨U+200F⟩", "\u061c": "⟨U+061C⟩",
	"\u200b": "⟨U+200B⟩", "\u200c": "⟨U+200C⟩", "\u200d": "⟨U+200D⟩", "\u2060": "⟨U+2060⟩", "\u2064": "⟨U+2064⟩", "\ufeff": "⟨U+FEFF⟩",
	"\u00ad": "⟨U+00AD⟩", "\u180e": "⟨U+180E⟩", "\u115f": "⟨U+115F⟩", "\u1160": "⟨U+1160⟩", "\u3164": "⟨U+3164⟩", "\uffa0": "⟨U+FFA0⟩", "\u034f": "⟨U+034F⟩",
	"\u2800": "⟨U+2800⟩", "\U000e0041": "⟨U+E0041⟩", "\U000e007f": "⟨U+E007F⟩", "\U000e0001": "⟨U+E0001⟩", "\ufe0f": "⟨U+FE0F⟩", "\U000e0100": "⟨U+E0100⟩", "\u180b": "⟨U+180B⟩",
	"\u2028": "⟨U+2028⟩", "\u2029": "⟨U+2029⟩", "\ufff9": "⟨U+FFF9⟩", "\ufffb": "⟨U+FFFB⟩",
	"\ue000": "⟨U+E000⟩", "\U000f0000": "⟨U+F0000⟩", "\u0378": "⟨U+0378⟩", "\uffff": "⟨U+FFFF⟩", "\xff": "⟨0xFF⟩", "\xed\xa0\x80": "⟨0xED⟩⟨0xA0⟩⟨0x80⟩", "\xe2\x80": "⟨0xE2⟩⟨0x80⟩",
}

// spaces look like a space, but a shell does not treat them as one.
var spaces = map[string]string{"\u00a0": "⟨U+00A0⟩", "\u2003": "⟨U+2003⟩", "\u202f": "⟨U+202F⟩", "\u3000": "⟨U+3000⟩"}

func TestWhatIsNotSeenIsWrittenOut(t *testing.T) {
	m := visible.Brackets
	for raw, want := range hostile {
		assert.Equal(t, "a"+want+"b", m.Exact("a"+raw+"b"), "%+q", raw)
		assert.Equal(t, "a"+want+"b", m.Prose("a"+raw+"b"), "%+q", raw)
		assert.Equal(t, want, m.Exact(raw), "%+q alone", raw)
		assert.Equal(t, strings.NewReplacer("⟨", "<", "⟩", ">").Replace(want), visible.ASCII.Exact(raw), "%+q", raw)
	}
	for raw, want := range spaces {
		assert.Equal(t, "rm"+want+"x", m.Exact("rm"+raw+"x"), "%+q", raw)
		assert.Equal(t, "rm"+raw+"x", m.Prose("rm"+raw+"x"), "%+q", raw)
	}
	for _, same := range []string{"", "a\n\tb", "größer ✓ 二重奏", "שלום world", "مرحبا", "é e\u0301", "สวัสดีครับที่นี่", "हिन्दी", "👍🏽 🇩🇪 →"} {
		assert.Equal(t, same, m.Exact(same))
		assert.Equal(t, same, m.Prose(same))
	}
	assert.Equal(t, "a b c ⟨U+00A0⟩ d", m.Line(" a\r\n\tb  c \u00a0 d\n"))
}

// All characters that Unicode classifies as control, format, unassigned or ignorable, over all
// planes: the test names the exceptions.
func TestNothingUnseenPasses(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || r == '\n' || r == '\t' {
			continue
		}
		unseen := unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
			!unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z)
		if unicode.Is(unicode.Prepended_Concatenation_Mark, r) {
			unseen = false // signs drawn over the digits after them
		}
		shown := visible.Brackets.Exact("a"+string(r)+"b") == "a"+string(r)+"b"
		if unseen && shown {
			t.Errorf("%U passes", r)
		}
		if !shown && unicode.In(r, unicode.L, unicode.N, unicode.P) && !unseen {
			t.Errorf("%U is readable", r)
		}
	}
}

func TestMarksNeedALetter(t *testing.T) {
	m := visible.Brackets
	assert.Equal(t, "⟨U+0338⟩a", m.Exact("\u0338a"))
	assert.Equal(t, "a ⟨U+0338⟩", m.Exact("a \u0338"))
	assert.Equal(t, "a\n⟨U+0338⟩", m.Exact("a\n\u0338"))
	assert.Equal(t, "⟨U+200B⟩⟨U+0338⟩", m.Prose("\u200b\u0338"))
	pile := strings.Repeat("\u0301", 50)
	assert.Equal(t, "a"+strings.Repeat("\u0301", 6)+strings.Repeat("⟨U+0301⟩", 44), m.Prose("a"+pile))
}

// Go, TypeScript and Emacs Lisp have this rule; each is tested with the same table.
func TestSharedTable(t *testing.T) {
	raw, err := os.ReadFile("../../testdata/visible.json")
	require.NoError(t, err)
	var table []struct{ Text, Exact, Prose string }
	require.NoError(t, json.Unmarshal(raw, &table))
	for _, c := range table {
		assert.Equal(t, c.Exact, visible.ASCII.Exact(c.Text), "%+q", c.Text)
		assert.Equal(t, c.Prose, visible.ASCII.Prose(c.Text), "%+q", c.Text)
	}
}

func TestProseEndsAndRepeats(t *testing.T) {
	for raw, want := range map[string]string{
		"👩\u200d": "👩⟨U+200D⟩", "❤\ufe0f\ufe0f": "❤\ufe0f⟨U+FE0F⟩", "👩\u200d\u200d💻": "👩⟨U+200D⟩⟨U+200D⟩💻",
	} {
		assert.Equal(t, want, visible.Brackets.Prose(raw), "%+q", raw)
	}
}

// However a text is cut, the result is the same and entirely visible.
func TestStreamOfAnyPieces(t *testing.T) {
	var all strings.Builder
	for raw := range hostile {
		all.WriteString("a" + raw + "ö")
	}
	all.WriteString("👩\u200d💻 a\r\nb\x1b[31m می\u200cخواهم ❤\ufe0f\xe2\x80")
	whole := all.String()
	want := visible.Brackets.Prose(whole)
	for size := 1; size < 9; size++ {
		s, got := visible.Brackets.Stream(), ""
		for i := 0; i < len(whole); i += size {
			got += s.Next(whole[i:min(i+size, len(whole))])
		}
		assert.Equal(t, want, got+s.End(), "pieces of %d", size)
	}
	s := visible.Brackets.Stream()
	assert.Equal(t, "a", s.Next("a\xe2"))
	assert.Equal(t, "⟨U+202E⟩b", s.Next("\x80\xaeb"))
	assert.Equal(t, "", s.Next("\r"))
	assert.Equal(t, "⟨U+000D⟩", s.End())
	assert.Equal(t, "", s.End())
}

func TestForLocale(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want visible.Marks
	}{
		{nil, visible.ASCII},
		{map[string]string{"LANG": "de_DE.UTF-8"}, visible.Brackets},
		{map[string]string{"LANG": "C.utf8"}, visible.Brackets},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, visible.ASCII},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_CTYPE": "de_DE.ISO-8859-1"}, visible.ASCII},
		{map[string]string{"LANG": "C", "LC_ALL": "", "LC_CTYPE": "en_GB.UTF-8"}, visible.Brackets},
	} {
		assert.Equal(t, c.want, visible.ForLocale(func(name string) string { return c.env[name] }), "%v", c.env)
	}
}

func FuzzExact(f *testing.F) {
	for raw := range hostile {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := visible.Brackets.Exact(text)
		assert.Equal(t, shown, visible.Brackets.Exact(shown), "what is shown is seen")
		assert.Equal(t, strings.Count(text, "\n"), strings.Count(shown, "\n"))
		assert.True(t, utf8.ValidString(shown))
	})
}
