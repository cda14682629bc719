package term

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// highlightTagged marks the colours of a text: k is a keyword, s a string, c a comment, n a
// constant.
func highlightTagged(text string) string {
	return strings.NewReplacer("\x1b[35m", "k⟨", "\x1b[32m", "s⟨", "\x1b[2m", "c⟨", "\x1b[33m", "n⟨", "\x1b[0m", "⟩").Replace(plainPiece.ReplaceAllString(text, "$1"))
}

var plainPiece = regexp.MustCompile("\x1b\\[36m([^\x1b]*)\x1b\\[0m")

func colored(t *testing.T, language, code string) string {
	t.Helper()
	c := For(language)
	require.NotNil(t, c, language)
	var out []string
	for line := range strings.SplitSeq(code, "\n") {
		out = append(out, c.Line(line))
	}
	return highlightTagged(strings.Join(out, "\n"))
}

func TestCodeIsColoured(t *testing.T) {
	for _, c := range []struct{ language, code, want string }{
		{"go", "func f(x int) { return `a\nb` + \"c\\\"\" // d \"e\"\n/* f\ng */ var r = '\\'' + 0x1F + nil", "k⟨func⟩ f(x int) { k⟨return⟩ s⟨`a⟩\ns⟨b`⟩ + s⟨\"c\\\"\"⟩ c⟨// d \"e\"⟩\nc⟨/* f⟩\nc⟨g */⟩ k⟨var⟩ r = s⟨'\\''⟩ + n⟨0x1F⟩ + n⟨nil⟩"},
		{"python", "def f(self): # it's\n    \"\"\"a 'b'\n    c\"\"\"\n    return f'{x}' + 1.5", "k⟨def⟩ f(n⟨self⟩): c⟨# it's⟩\n    s⟨\"\"\"a 'b'⟩\ns⟨    c\"\"\"⟩\n    k⟨return⟩ fs⟨'{x}'⟩ + n⟨1.5⟩"},
		{"ts", "const x: string = `a ${b}\nc` // d\nreturned", "k⟨const⟩ x: k⟨string⟩ = s⟨`a ${b}⟩\ns⟨c`⟩ c⟨// d⟩\nreturned"},
		{"rust", "fn f<'a>(x: &'a str) -> char { '\\n' }", "k⟨fn⟩ f<'a>(x: &'a str) -> char { s⟨'\\n'⟩ }"},
		{"c", "#include <x.h>\nint main(void) { return 'a'; /* b */ }", "#include <x.h>\nk⟨int⟩ main(k⟨void⟩) { k⟨return⟩ s⟨'a'⟩; c⟨/* b */⟩ }"},
		{"java", "public class A { String s = \"b\"; } // c", "k⟨public⟩ k⟨class⟩ A { String s = s⟨\"b\"⟩; } c⟨// c⟩"},
		{"sh", "if [ \"$a\" ]; then echo ${b} $1 a#b # c 'd'\nsed 's/x/\n/'\nfi", "k⟨if⟩ [ s⟨\"$a\"⟩ ]; k⟨then⟩ k⟨echo⟩ n⟨${b}⟩ n⟨$1⟩ a#b c⟨# c 'd'⟩\nsed s⟨'s/x/⟩\ns⟨/'⟩\nk⟨fi⟩"},
		{"console", "$ make\ndon't stop", "$ make\ndon't stop"},
		{"ruby", "def a; nil; end # b", "k⟨def⟩ a; n⟨nil⟩; k⟨end⟩ c⟨# b⟩"},
		{"sql", "SELECT a FROM b WHERE c = 'it' -- d", "k⟨SELECT⟩ a k⟨FROM⟩ b k⟨WHERE⟩ c = s⟨'it'⟩ c⟨-- d⟩"},
		{"json", "{\"a\": [1.5, true, null]}", "{s⟨\"a\"⟩: [n⟨1.5⟩, n⟨true⟩, n⟨null⟩]}"},
		{"yaml", "a-b: c # d\n- e: true\nurl: http://x", "k⟨a-b⟩: c c⟨# d⟩\n- k⟨e⟩: n⟨true⟩\nk⟨url⟩: http://x"},
		{"toml", "[a.b]\nc = \"d\" # e", "k⟨[a.b]⟩\nk⟨c⟩ = s⟨\"d\"⟩ c⟨# e⟩"},
		{"html", "<p class=\"a\">it's</p> <!-- b\nc --> d", "k⟨<p⟩ class=s⟨\"a\"⟩>it'sk⟨</p⟩> c⟨<!-- b⟩\nc⟨c -->⟩ d"},
		{"css", "a { color: red; } /* b */", "a { color: red; } c⟨/* b */⟩"},
		{"elisp", "(defun a-b () \"c\nd\" nil) ; e", "(k⟨defun⟩ a-b () s⟨\"c⟩\ns⟨d\"⟩ n⟨nil⟩) c⟨; e⟩"},
		{"dockerfile", "FROM a\nRUN b", "k⟨FROM⟩ a\nk⟨RUN⟩ b"},
		{"lua", "local a = [[b\nc]] -- d", "k⟨local⟩ a = s⟨[[b⟩\ns⟨c]]⟩ c⟨-- d⟩"},
		{"Go", "\"open\nfunc", "s⟨\"open⟩\nk⟨func⟩"}, // an unterminated string ends with its line
	} {
		assert.Equal(t, c.want, colored(t, c.language, c.code), c.language)
	}
	assert.Nil(t, For("text"))
	assert.Nil(t, For(""))
}

var escape = regexp.MustCompile("\x1b\\[[0-9]+m")

// Highlighting adds only colours to any input.
func FuzzOnlyColoursAreAdded(f *testing.F) {
	for _, language := range names {
		f.Add(language, "x = \"a\" + 'b' /* c\nd */ # e $f ${g <h i='j'> [k] \\")
	}
	f.Fuzz(func(t *testing.T, language, code string) {
		c := For(language)
		if c == nil || strings.Contains(code, "\x1b") {
			t.Skip("a language that is not known, or no line of which every character is seen")
		}
		for line := range strings.SplitSeq(code, "\n") {
			require.Equal(t, line, escape.ReplaceAllString(c.Line(line), ""))
		}
	})
}

// names has one name of each language.
var names = strings.Fields("go c cpp java kotlin scala swift csharp rust zig js php py rb sh console dockerfile make sql json yaml toml html css lua elisp haskell elixir")

func BenchmarkLine(b *testing.B) {
	c := For("go")
	for b.Loop() {
		c.Line("	for _, line := range s.render(b, s.Columns, 0, s.code) { // a comment")
	}
}

// A line of 16 MB takes a second. It took hours when the painter copied its output repeatedly.
func TestLongLineTakesLinearTime(t *testing.T) {
	for _, language := range []string{"go", "python", "sh"} {
		line := strings.Repeat("(", 16<<20)
		assert.Contains(t, For(language).Line(line), line)
	}
}
