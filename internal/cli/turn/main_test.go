package turn

import (
	"os"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// The tests assume a UTF-8 terminal in any locale.
func TestMain(m *testing.M) {
	term.Marks = visible.Brackets
	os.Exit(m.Run())
}
