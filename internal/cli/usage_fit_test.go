package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHelpFitsTerminal(t *testing.T) {
	const help = `A paragraph of a few words that are
written on two lines.

Short one.

Flags:
  -h, --help     help for it
  -o, --out FILE to write
      --long-name words   what it is for

Environment:
  NAME           a text about it,
                 on two lines
`
	assert.Equal(t, help, fit(help, 0))
	assert.Equal(t, help, fit(help, 40))
	assert.Equal(t, `A paragraph of a few words
that are written on two lines.

Short one.

Flags:
  -h, --help     help for it
  -o, --out FILE to write
      --long-name words   what
            it is for

Environment:
  NAME           a text about
            it, on two lines
`, fit(help, 30))
}
