package turn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The output of a command is cut in the middle, on both sides of the limit, and no fence in it ends it.
func TestOutputIsCutInTheMiddle(t *testing.T) {
	for _, n := range []int{0, 1, keptHalf, 2 * keptHalf, 2*keptHalf + 1, 100_000} {
		var e outputExcerpt
		for left := n; left > 0; left -= 1000 {
			_, _ = e.Write([]byte(strings.Repeat("x", min(left, 1000))))
		}
		over := max(0, n-2*keptHalf)
		assert.Equal(t, over, e.missing)
		assert.Equal(t, n-over, strings.Count(e.text(), "x"))
		assert.Equal(t, over > 0, strings.Contains(e.text(), "left out …]\n"))
	}
	var e outputExcerpt
	_, _ = e.Write([]byte("\x1b[31mred\x1b[0m\xff\n"))
	assert.Equal(t, "red\uFFFD", e.text())
	assert.True(t, e.endsLine())
	assert.Equal(t, "````\na ``` b\n````", fenced("a ``` b"))
}
