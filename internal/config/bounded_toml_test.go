package config

import (
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/stretchr/testify/require"
)

// FuzzBounds compares the scan with the parser: among the documents that the parser accepts, the
// scan refuses exactly those that cross a bound.
func FuzzBounds(f *testing.F) {
	for _, seed := range []string{
		"a.b.c = 1\n[x.y]\n[[z.'a.b']]\n", `a = """x""" # y` + "\nb.c = '''\n[[[''' ", "a = { b = [1, 2.5], c.d = 1 }", "a = \"\\\"\" # [\n[ \"a\\\".b\" . c ]",
		"a = \"\"\"\"\"\"\"\"\nb.c.d.e.f=1", "a = ''''''''\n", "a = 1979-05-27T07:32:00.5Z", "a = [\n[ # ]]\n],\n]\n[b]", "\"a\" = \"b\"\r\n[c]\r\n", Defaults(),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const keys, values, parts, nesting = 4, 4, 4, 4
		crossing := Bounds{Keys: keys, Values: values, Parts: parts, Nesting: nesting}.Check([]byte(text))
		var root map[string]any
		if toml.Unmarshal([]byte(text), &root) != nil {
			return
		}
		k, v, commas, p, n := counted([]byte(text))
		if k > keys || commas > values || p > parts || n > nesting {
			require.NotNil(t, crossing, "%d keys, %d values, %d parts, %d deep", k, v, p, n)
		} else if v <= values {
			require.Nil(t, crossing, "%d keys, %d values, %d parts, %d deep", k, v, p, n)
		}
	})
}

// counted returns the bounded counts of a document that the parser accepts; commas is the
// minimum of commas between its values.
func counted(text []byte) (keys, values, commas, parts, nesting int) {
	var p unstable.Parser
	p.Reset(text)
	key := func(it unstable.Iterator) {
		keys++
		n := 0
		for it.Next() {
			n++
		}
		parts = max(parts, n)
	}
	var value func(node *unstable.Node, depth int)
	value = func(node *unstable.Node, depth int) {
		if node.Kind != unstable.Array && node.Kind != unstable.InlineTable {
			return
		}
		nesting = max(nesting, depth+1)
		children := 0
		for it := node.Children(); it.Next(); children++ {
			child := it.Node()
			if child.Kind == unstable.KeyValue {
				key(child.Key())
				child = child.Value()
			}
			value(child, depth+1)
		}
		values += children
		commas += max(children-1, 0)
	}
	for p.NextExpression() {
		node := p.Expression()
		key(node.Key())
		if node.Kind == unstable.KeyValue {
			value(node.Value(), 0)
		}
	}
	return keys, values, commas, parts, nesting
}
