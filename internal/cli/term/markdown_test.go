package term

import (
	"regexp"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// tagged returns rendered text with its styles as <1>…</>.
func tagged(text string) string {
	return escapes.ReplaceAllStringFunc(text, func(code string) string {
		if code == "\x1b[0m" {
			return "</>"
		}
		return "<" + code[2:len(code)-1] + ">"
	})
}

func render(text string, columns int) string {
	r := Renderer{Columns: columns, Marks: visible.Brackets}
	return r.Text(text)
}

func TestRenderMarkdown(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		columns          int
	}{
		{"nothing", "", "", 0},
		{"prose", "Hello\nthere.\n\n\n\nBye", "Hello\nthere.\n\nBye\n", 20},
		{"headings", "# One #\ntext\n## Two `x`\nThree\n---\n#hashtag\n", "<1;4>One</>\ntext\n<1>Two </><1;36>x</>\n<1>Three</>\n#hashtag\n", 20},
		{"emphasis", "*a* **b** ***c*** _d_ __e__ ~~f~~ `g`", "<3>a</> <1>b</> <1;3>c</> <3>d</> <1>e</> <9>f</> <36>g</>\n", 20},
		{"no emphasis", "2 * 3 * 4, snake_case_name, a\\*b\\*, **open, f(*args, **kwargs) ~/.config", "2 * 3 * 4, snake_case_name, a*b*, **open, f(*args, **kwargs) ~/.config\n", 99},
		{"in one another", "**a *b* `c`** and *x **y***", "<1>a </><1;3>b</><1> </><1;36>c</> and <3>x </><1;3>y</>\n", 20},
		{"code of backticks", "`` a`b `` and `unclosed", "<36>a`b</> and `unclosed\n", 20},
		{"a link shows its address", "[the *docs*](https://evil.example/x \"Title\") ![pic](a.png) <https://x.y> [bare](", "<4>the </><3;4>docs</><2> (https://evil.example/x)</> <4>pic</><2> (a.png)</> <4>https://x.y</> [bare](\n", 99},
		{"a link that names its address", "[https://x.y](https://x.y)", "<4>https://x.y</>\n", 20},
		{"entities", "&lt;b&gt; &amp;&amp; &nope; &#27;[2J &#x202e;", "<b> && &nope; ⟨U+001B⟩[2J ⟨U+202E⟩\n", 99},
		{"lists", "- one\n- two\n  - deeper\n    more\n- [x] done\n- [ ] open\n\n3. three\n10. ten\n", "• one\n• two\n  • deeper\n    more\n☑ done\n☐ open\n\n3. three\n10. ten\n", 20},
		{"a loose list", "1. one\n\n   again\n\n2. two\n", "1. one\n\n   again\n\n2. two\n", 20},
		{"code in a list", "1. Run:\n   ```sh\n   make\n\n     test\n   ```\n2. Done\n", "1. Run:\n   <36>make</>\n\n   <36>  test</>\n2. Done\n", 20},
		{"a year is no list", "It was in\n1998. Then it was not.\n", "It was in\n1998. Then it was not.\n", 99},
		{"code", "```go\nfunc x() {\n\n\t*a*\n}\n```\nafter", "<35>func</><36> x() {</>\n\n<36>\t*a*</>\n<36>}</>\nafter\n", 20},
		{"code in a language of a list", "- x\n  ```python title=\"a\"\n  '''a\n  b'''\n  ```\n", "• x\n  <32>'''a</>\n  <32>b'''</>\n", 20},
		{"a fence in a longer one", "````\n```\nx\n```\n````\n", "<36>```</>\n<36>x</>\n<36>```</>\n", 20},
		{"a fence that does not end", "```\nx", "<36>x</>\n", 20},
		{"a diff", "```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n```\n", "<1>--- a</>\n<1>+++ b</>\n<36>@@ -1 +1 @@</>\n<31>-x</>\n<32>+y</>\n z\n", 20},
		{"indented code", "x\n\n    code\n\n    more\n\nno code\n", "x\n\n<36>code</>\n\n<36>more</>\n\nno code\n", 20},
		{"a quote", "> a **b**\n> - c\n\nd", "<2>│</> a <1>b</>\n<2>│</> • c\n\nd\n", 20},
		{"a rule", "a\n\n***\nb", "a\n\n<2>────────────────────</>\nb\n", 20},
		{"a table", "| Name | n |\n|:--|--:|\n| `a|b` | 1 |\n| 漢字 | 100 |\ntail\n\nend", "<1>Name</><2> │ </>  <1>n</>\n<2>─────┼────</>\n<36>a|b</> <2> │ </>  1\n漢字<2> │ </>100\ntail<2> │ </>   \n\nend\n", 20},
		{"long lines", "one two three four five six\n- one two three four five", "one two three four\nfive six\n• one two three four\n  five\n", 20},
		{"a word that is too long", "https://example.org/a/long/one", "https://example.org/\na/long/one\n", 20},
		{"hostile", "a\x1b[2Jb \u202e\n```\n\x1b]0;x\a\n```", "a⟨U+001B⟩[2Jb\n⟨U+202E⟩\n<36>⟨U+001B⟩]0;x⟨U+0007⟩</>\n", 20},
		{"html stays", "<b>x</b> a<br>b", "<b>x</b> a<br>b\n", 20},
		{"returns before line ends", "a\r\nb\r\n", "a\nb\n", 20},
	} {
		assert.Equal(t, c.want, tagged(render(c.text, c.columns)), c.name)
	}
}

// Secondary text is faint, and its code has no colours.
func TestDimTextIsDim(t *testing.T) {
	r := Renderer{Columns: 20, Marks: visible.Brackets, Dim: true}
	assert.Equal(t, "<1;2>Head</>\n<2>a </><1;2>b</><2> </><36;2>c</>\n\n<2>•</> <2>d</>\n\n<2>if x {</>\n", tagged(r.Text("## Head\na **b** `c`\n\n- d\n\n```go\nif x {\n```\n")))
}

func TestWideTableBecomesList(t *testing.T) {
	text := "| Option | Meaning | Default |\n|---|---|---|\n| --alpha | the first of them | none |\n| --beta | the second | 12 |\n"
	assert.Equal(t, `<1>Option</>: --alpha
<1>Meaning</>: the
first of them
<1>Default</>: none
<2>────────────────</>
<1>Option</>: --beta
<1>Meaning</>: the
second
<1>Default</>: 12
`, tagged(render(text, 16)))
	for line := range strings.Lines(escapes.ReplaceAllString(render(text, 34), "")) {
		assert.LessOrEqual(t, displaywidth.String(strings.TrimRight(line, "\n")), 34, line)
	}
}

const sample = "# A\n\nSome *text*\nin lines.\n\n- a\n- b\n\n  c\n\n```go\nx\n\ny\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\n\n1. x\n2. y\n\nSetext\n===\nend"

// The pieces in which a text arrives do not change the result.
func TestStreamRendersLikeText(t *testing.T) {
	want := render(sample, 40)
	for size := 1; size < 12; size++ {
		s := Stream{Renderer: Renderer{Columns: 40, Marks: visible.Brackets}}
		var got strings.Builder
		for i := 0; i < len(sample); i += size {
			got.WriteString(s.Next(sample[i:min(i+size, len(sample))]))
		}
		got.WriteString(s.End())
		assert.Equal(t, want, got.String(), size)
	}
}

func TestStreamReturnsCompleteBlocks(t *testing.T) {
	s := Stream{Renderer: Renderer{Columns: 40, Marks: visible.Brackets}}
	for _, step := range []struct{ piece, done, pending string }{
		{"Hel", "", "Hel"},
		{"lo\nthere", "", "Hello\nthere"},
		{"\n\n", "Hello\nthere\n", ""},
		{"# He", "", "\n# He"},
		{"ad\n", "\n<1;4>Head</>\n", ""},
		{"- a\n", "", "- a"},
		{"- b", "", "- a\n- b"},
		{"\n", "• a\n", "- b"},
		{"```\nco", "• b\n", "co"},
		{"de\n", "<36>code</>\n", ""},
		{"```\n", "", ""},
	} {
		assert.Equal(t, step.done, tagged(s.Next(step.piece)), "%q", step.piece)
		assert.Equal(t, step.pending, s.Pending(), "%q", step.piece)
	}
	assert.Empty(t, s.End())
	s.Next("```\nin it\n")
	s.End()
	assert.Equal(t, "<36>still *in* it</>\n", tagged(s.Next("still *in* it\n")), "a fence goes on after what came between")
}

// Long or deeply nested texts and many marks take linear time.
func TestHostileTextsTakeLinearTime(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("> ", 2000), strings.Repeat("- ", 2000), strings.Repeat("*a ", 5000), strings.Repeat("[", 5000), strings.Repeat("[a](", 3000),
		strings.Repeat("`a``", 3000), strings.Repeat("x", 1<<17), strings.Repeat("| a ", 500) + "\n" + strings.Repeat("|---", 500), strings.Repeat("- a\n", 2000), strings.Repeat("~", 10000) + " ~~a~~", strings.Repeat("  - x\n", 2000),
	} {
		require.NotEmpty(t, render("x "+text, 40))
		render(text, 40)
	}
}

func FuzzRender(f *testing.F) {
	f.Add(sample, 3)
	f.Add("a\x1b[2J `\x9b` [x](\u202e) &#27; &NewLine;|\n|-|", 1)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		whole := render(text, 30)
		for _, r := range escapes.ReplaceAllString(whole, "") {
			if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e {
				t.Fatalf("%U is in %q", r, whole)
			}
		}
		if n := len(text); n > 0 {
			cut = int(uint(cut) % uint(n))
			s := Stream{Renderer: Renderer{Columns: 30, Marks: visible.Brackets}}
			if got := s.Next(text[:cut]) + s.Next(text[cut:]) + s.End(); got != whole {
				t.Fatalf("cut at %d: %q, not %q", cut, got, whole)
			}
		}
	})
}
