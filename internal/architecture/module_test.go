//go:build lint

package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// go.mod calls no module indirect that a package imports, and README.md asks for the
// same version of Go.
func TestTheModuleSaysWhatItNeeds(t *testing.T) {
	mod, err := os.ReadFile(root + "/go.mod")
	require.NoError(t, err)
	imported := make(map[string]bool)
	for _, s := range sources(t) {
		for _, path := range s.imports() {
			imported[path] = true
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^\t(\S+) \S+ // indirect$`).FindAllStringSubmatch(string(mod), -1) {
		for path := range imported {
			assert.False(t, path == line[1] || strings.HasPrefix(path, line[1]+"/"), "%s is imported, so %s is not indirect", path, line[1])
		}
	}

	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	require.NotNil(t, version)
	readme, err := os.ReadFile(root + "/README.md")
	require.NoError(t, err)
	assert.Contains(t, string(readme), "Go "+string(version[1])+" or later")
}

// A comment cites only documents that a reader of the repository can open.
func TestCitedDocumentsArePublished(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	require.NoError(t, err)
	unpublished := regexp.MustCompile(`\bseed 00\d|\bDESIGN(\.md)?\b`)
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if name == "internal/architecture/module_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		require.NoError(t, err)
		assert.Nil(t, unpublished.Find(text), name)
	}
}
