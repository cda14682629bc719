package host

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAHomeDirectoryIsNotRecorded(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for dir, want := range map[string]bool{
		home: true, filepath.Dir(home): true, filepath.Join(home, "project"): false, filepath.Join(filepath.Dir(home), "elsewhere"): false,
	} {
		assert.Equal(t, want, holdsHome(dir), dir)
	}
}
