package wire

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What --types takes is what docs/protocol.md lists, but for the events of the
// process that relays, to which nobody subscribes.
func TestEventTypesAreThoseOfTheProtocol(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| type | when | data, besides the run's ids |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(first, -1) {
			listed = append(listed, name[1])
		}
	}
	listed = slices.DeleteFunc(listed, func(name string) bool { return strings.HasPrefix(name, "hub_") })
	assert.ElementsMatch(t, listed, EventTypes)
}
