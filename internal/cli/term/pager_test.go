package term

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestColoursNeedCapablePager(t *testing.T) {
	for _, c := range []struct {
		pager, less string
		want        bool
	}{
		{"", "", true}, // less with Duet's options
		{"less", "FRX", true},
		{"less", "-F --RAW-CONTROL-CHARS", true},
		{"less -R", "F", true},
		{"/usr/bin/less", "", true},
		{"less", "FX", false},
		{"less", "--ignore-case", false},
		{"cat", "", true},
		{"more", "", false},
		{"sed s/a/b/", "", false},
	} {
		t.Setenv("PAGER", c.pager)
		t.Setenv("LESS", c.less)
		assert.Equal(t, c.want, ShowsColors(), "PAGER=%q LESS=%q", c.pager, c.less)
	}
}
