package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// verdict stands in for the test that calls Bytes, and keeps its failure.
type verdict struct {
	testing.TB
	failure string
}

func (v *verdict) Helper()             {}
func (v *verdict) Logf(string, ...any) {}

func (v *verdict) Fatalf(format string, args ...any) {
	v.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// compare is the failure of Bytes, or "".
func compare(path, got string) string {
	v := &verdict{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Bytes(v, path, []byte(got))
	}()
	<-done
	return v.failure
}

func TestBytes(t *testing.T) {
	defer func(before bool) { *update = before }(*update)
	path := filepath.Join(t.TempDir(), "deep", "case.out")

	*update = false
	assert.Contains(t, compare(path, "a"), "-update would write it")
	assert.NoFileExists(t, path)

	*update = true
	assert.Empty(t, compare(path, "a\r\n"))

	*update = false
	assert.Empty(t, compare(path, "a\r\n"))
	assert.Contains(t, compare(path, "a\n"), `want: "a\r\n"`)
	assert.Contains(t, compare(path, "a\r\nb"), `got:  "a\r\nb"`)
	held, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "a\r\n", string(held))
}
