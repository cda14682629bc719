package config_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// many repeats a text, with its number for each %d.
func many(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// nested returns a value in so many brackets.
func nested(n int, open, end string) string {
	return strings.Repeat(open, n) + "1" + strings.Repeat(end, n)
}

// The limits of a project's file, and one more than each.
func TestBoundsOfAProjectsFile(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(n int) string
		most int
		says string
	}{
		"its size":                 {func(n int) string { return strings.Repeat("#", n) }, 256 << 10, `.duet.toml: it cannot be read: it is longer than 262144 bytes`},
		"parts of a key":           {func(n int) string { return strings.Repeat("a.", n-1) + "a = 1" }, 16, `.duet.toml:1:32: a key has more than 16 parts`},
		"parts of a table's name":  {func(n int) string { return "# a\n[" + strings.Repeat("a.", n-1) + "a]" }, 16, `.duet.toml:2:33: a key has more than 16 parts`},
		"parts of an array's name": {func(n int) string { return "[[" + strings.Repeat("a . ", n-1) + "a]]" }, 16, `a key has more than 16 parts`},
		"parts that are quoted":    {func(n int) string { return strings.Repeat(`"a.a" . 'b'.`, (n-1)/2) + many(1-n%2, "a.") + "a = 1" }, 16, `a key has more than 16 parts`},
		"parts in an inline table": {func(n int) string { return "a = { b = 1.5, " + strings.Repeat("a.", n-1) + "a = 1 }" }, 16, `a key has more than 16 parts`},
		"arrays in each other":     {func(n int) string { return "a = " + nested(n, "[", "]") }, 16, `.duet.toml:1:21: arrays and tables are nested more than 16 deep`},
		"tables in each other":     {func(n int) string { return "a = " + nested(n, "{a=", "}") }, 16, `nested more than 16 deep`},
		"both, over lines":         {func(n int) string { return "a = " + nested(n/2, "[ # [[[\n{a=", "}\n]") + "\n" }, 16, `nested more than 16 deep`},
		"keys":                     {func(n int) string { return many(n, "k%d = 1\n") }, 5000, `.duet.toml:5001:1: there are more than 5000 keys and tables`},
		"tables":                   {func(n int) string { return many(n, "[t%d]\n") }, 5000, `there are more than 5000 keys and tables`},
		"keys of inline tables":    {func(n int) string { return "a = {" + many(n-1, "k%d=1,") + "}" }, 5000, `there are more than 5000`},
		"values":                   {func(n int) string { return "a = [" + many(n, "1,") + "]" }, 5000, `there are more than 5000 values in arrays`},
		"agents":                   {func(n int) string { return many(n, "[agents.a%d]\ncommand = ['a']\n") }, 100, `.duet.toml:1:2: there are more than 100 tables [agents.NAME]`},
		"keys of services":         {func(n int) string { return many(n, "[keys.a%d]\nenv = 'A'\n") }, 100, `there are more than 100 tables [keys.NAME]`},
		"rules":                    {func(n int) string { return many(n, "[[rules]]\neffect = 'deny'\ntool = 'a'\n") }, 1000, `.duet.toml:3001:3: there are more than 1000 tables [[rules]]`},
		"servers": {func(n int) string {
			return "[agents.a]\ncommand = ['a']\n" + many(n, "[[agents.a.mcp_servers]]\nname = 'a%d'\ncommand = 'a'\n")
		}, 100, `there are more than 100 tables [[agents.a.mcp_servers]]`},
		"the length of a pattern": {func(n int) string { return "[[rules]]\neffect = 'deny'\ntool = '" + strings.Repeat("a", n) + "'" }, 1024, `expected a pattern of at most 1024 bytes`},
		"parts behind long strings": {func(n int) string {
			return "x = \"\"\"\"a\\\"\"\"\"\"\ny = '''a.b'c''''\n" + strings.Repeat("a.", n-1) + "a = 1"
		}, 16, `.duet.toml:3:32: a key has more than 16 parts`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write(w.project, c.of(c.most))
			_, err := config.Load(w.sources())
			if err != nil {
				for _, says := range []string{"there are more", "nested more", "a key has more", "longer", "at most"} {
					assert.NotContains(t, err.Error(), says, "it is not crossed")
				}
				assert.NotContains(t, err.Error(), "no TOML")
			}
			more := 1
			if name == "both, over lines" {
				more = 2
			}
			w.write(w.project, c.of(c.most+more))
			_, err = config.Load(w.sources())
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.says)
			_, err = config.Inspect(w.project, w.getenv)
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.says)
		})
	}
}

// hostile returns texts with which a project's file may attack the parser.
func hostile() map[string]string {
	return map[string]string{
		"one key of 40,000 parts":      strings.Repeat("a.", 40_000) + "a = 1",
		"one table of 40,000 parts":    "[" + strings.Repeat("a.", 40_000) + "a]",
		"an inline table of that":      "a = { " + strings.Repeat("a.", 40_000) + "a = 1 }",
		"40,000 arrays in each other":  "a = " + nested(40_000, "[", "]"),
		"20,000 tables in each other":  "a = " + nested(20_000, "{a=", "}"),
		"brackets that are not closed": "a = " + strings.Repeat("[{", 40_000),
		"10,000 agents":                many(10_000, "[agents.a%d]\ncommand=['a']\n"),
		"20,000 keys":                  many(20_000, "k%d=1\n"),
		"100,000 values":               "a = [" + many(100_000, "1,") + "]",
		"a long string":                "default_agent = '" + strings.Repeat("a", 250_000) + "'",
		"a long key":                   strings.Repeat("a", 250_000) + " = 1",
		"the same long key twice":      strings.Repeat("a", 100_000) + " = 1\n" + strings.Repeat("a", 100_000) + " = 1",
		"all that is wrong":            many(5_000, "k%d=1\n"),
		"wide tables":                  many(16, "[a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.a%d]\n"+many(300, "k%d = 1\n")),
		"dots in strings":              "a = '" + strings.Repeat("a.", 100_000) + "'",
		"nothing but line ends":        strings.Repeat("\n", 256<<10),
		"nothing but quotes":           strings.Repeat("'", 200_000),
	}
}

// An error message about a hostile file is short.
func TestAHostileFileIsRefusedInAFewWords(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.project, text)
			if _, err := config.Load(w.sources()); err != nil {
				assert.Less(t, len(err.Error()), 20_000)
			}
		})
	}
}

// Devices and pipes are not read.
func TestWhatIsNoFileIsNotRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such files")
	}
	for _, target := range []string{"/dev/zero", "/dev/tty", "/"} {
		w := newWorld(t)
		require.NoError(t, os.Symlink(target, w.project))
		_, err := config.Load(w.sources())
		var wrong *config.Error
		require.ErrorAs(t, err, &wrong, target)
		assert.True(t, wrong.Unread, target)
		assert.ErrorContains(t, err, "it cannot be read", target)
		_, err = config.Inspect(w.project, w.getenv)
		assert.ErrorContains(t, err, "it cannot be read", target)
	}
}
