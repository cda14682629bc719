package turn

import (
	"os"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// The tests are of a terminal that shows UTF-8, whatever the machine's locale is.
func TestMain(m *testing.M) {
	term.Marks = visible.Brackets
	os.Exit(m.Run())
}
