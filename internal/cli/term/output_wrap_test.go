package term

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWrappedBreaksBetweenWords(t *testing.T) {
	for _, c := range []struct {
		line, indent string
		columns      int
		want         string
	}{
		{"as it is, since nobody knows how wide", "  ", 0, "as it is, since nobody knows how wide"},
		{"one two three", "  ", 8, "one two\n  three"},
		{"  one two three", "    ", 9, "  one two\n    three"},
		{"do `duet-rpc doctor` or not", "  ", 14, "do `duet-rpc\n  doctor` or\n  not"},
		{"do `duet-rpc doctor` or not", "  ", 20, "do `duet-rpc doctor`\n  or not"},
		{"日本語 日本語", "", 8, "日本語\n日本語"},
		{"averylongword and more", "  ", 8, "averylongword\n  and\n  more"},
		{"name    kept in /a/long/path of it", "        ", 16, "name    kept in\n  /a/long/path\n        of it"},
		{"name        some text", "            ", 16, "name        some\n  text"},
	} {
		assert.Equal(t, c.want, Wrapped(c.line, c.columns, c.indent), c.line)
	}
}

func TestListingIsAlignedWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	assert.NoError(t, Listing(&out, [][]string{{"ok", "program", "found"}, {"note", "", ""}, {"", "x", "a b\nc"}}))
	assert.Equal(t, "ok    program  found\nnote\n      x        a b c\n", out.String())
	assert.True(t, Fits(&out, "anything, since it is no terminal"))
}
