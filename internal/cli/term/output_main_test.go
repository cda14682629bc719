package term

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// The tests are of a terminal that shows UTF-8, whatever the machine's locale is.
func TestMain(m *testing.M) {
	Marks = visible.Brackets
	goleak.VerifyTestMain(m)
}
