package term

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// The tests assume a UTF-8 terminal, independent of the locale.
func TestMain(m *testing.M) {
	Marks = visible.Brackets
	goleak.VerifyTestMain(m)
}
