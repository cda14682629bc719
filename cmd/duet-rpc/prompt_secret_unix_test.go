//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who sits at the terminal of a prompt is asked for the key that its agent needs, and it is
// not shown.
func TestAPromptAsksForTheKeyOfItsAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents(`
[agents.keyed]
driver = "command"
command = ["sh", "-c", "printf %s \"$MY_KEY\" >got; cat >/dev/null"]
keys = { MY_KEY = "myservice" }
`)
	const asks = "Key of myservice (it is not shown; Return for none): "
	p := s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	p.types("s3cret")
	_, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
	got, err := os.ReadFile(filepath.Join(s.root, "got"))
	require.NoError(t, err)
	assert.Equal(t, "s3cret", string(got))
	assert.NotContains(t, p.tty.printed.String(), "s3cret")

	p = s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	p.types("")
	p.sees("the client that was asked gave none")
	p.ends()

	p = s.prompt(t, "--agent", "keyed", "hello")
	p.sees(asks)
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	p.sees("interrupted")
	p.ends()
	assert.NotContains(t, p.tty.printed.String(), "has ended already", "the question was answered before the interrupt")

	// Without a terminal, no question waits for long.
	_, err = s.command("prompt", "--agent", "keyed", "hello")
	assert.ErrorContains(t, err, "the client that was asked gave none")
}
