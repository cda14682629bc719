package architecture

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// go.mod says what the program stands on: what is imported here is not called
// indirect there, and README.md asks for the same version of Go.
func TestTheModuleSaysWhatItNeeds(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}{{"\n"}}{{join .TestImports "\n"}}{{"\n"}}{{join .XTestImports "\n"}}`, module+"/...").Output()
	require.NoError(t, err)
	imported := strings.Fields(string(out))
	for _, line := range regexp.MustCompile(`(?m)^\t(\S+) \S+ // indirect$`).FindAllStringSubmatch(string(mod), -1) {
		for _, path := range imported {
			assert.False(t, path == line[1] || strings.HasPrefix(path, line[1]+"/"), "%s is imported, so %s is not indirect", path, line[1])
		}
	}

	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	require.NotNil(t, version)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	assert.Contains(t, string(readme), "Go "+string(version[1])+" or later")
}
