package config

import (
	"context"
	"slices"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"
)

// KnownKeys are all keys of all tables.
func KnownKeys() []string {
	return slices.Concat(topKeys, limitKeys, agentKeys, serverKeys, keyKeys, ruleKeys)
}

// RunFor runs the key's command with another limit than 10 s.
func (k Key) RunFor(ctx context.Context, limit time.Duration) (string, error) {
	return k.run(ctx, limit)
}

// CheckBounds says which of the bounds a document crosses, or nothing.
func CheckBounds(text []byte, keys, values, parts, nesting int) string {
	if c := (bounds{keys: keys, values: values, parts: parts, nesting: nesting}).check(text); c != nil {
		return c.text
	}
	return ""
}

// Counted is what a document that the parser takes has of what is bounded;
// commas are those that there are at least between its values.
func Counted(text []byte) (keys, values, commas, parts, nesting int) {
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
