//go:build unix

package known

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who can write there could have anything asked in any directory.
func TestAListOfOthersIsNotUsed(t *testing.T) {
	l, place := listIn(t)
	p := makeDirs(t, place, "a")
	require.NoError(t, l.Add(p[0]))
	require.NoError(t, os.Chmod(l.dir, 0o777))
	_, err := l.Roots()
	assert.ErrorContains(t, err, "can be written by other users")
	assert.ErrorContains(t, l.Add(p[0]), "can be written by other users")
}
