package testkit

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
		GoldenBytes(v, path, []byte(got))
	}()
	<-done
	return v.failure
}

func TestBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "case.out")

	t.Setenv(updateVariable, "")
	assert.Contains(t, compare(path, "a"), "DUET_UPDATE_GOLDEN=1 to write it")
	assert.NoFileExists(t, path)

	t.Setenv(updateVariable, "1")
	assert.Empty(t, compare(path, "a\r\n"))

	t.Setenv(updateVariable, "")
	assert.Empty(t, compare(path, "a\r\n"))
	assert.Contains(t, compare(path, "a\n"), `want: "a\r\n"`)
	assert.Contains(t, compare(path, "a\r\nb"), `got:  "a\r\nb"`)
	held, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "a\r\n", string(held))
}

func TestBlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	const page = "# Page\n\n<!-- one -->\n```\nold\n```\n\n```\nanother\n```\n"
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
	block := func(marker, got string) string {
		v := &verdict{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			GoldenBlock(v, path, marker, []byte(got))
		}()
		<-done
		return v.failure
	}
	t.Setenv(updateVariable, "")
	assert.Empty(t, block("<!-- one -->", "old\n"))
	assert.Contains(t, block("<!-- one -->", "new\n"), "DUET_UPDATE_GOLDEN=1 to rewrite the file")
	assert.Contains(t, block("<!-- two -->", "old\n"), "no block")
	t.Setenv(updateVariable, "1")
	assert.Empty(t, block("<!-- one -->", "new\n"))
	held, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "# Page\n\n<!-- one -->\n```\nnew\n```\n\n```\nanother\n```\n", string(held))
}
