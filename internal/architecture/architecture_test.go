// Package architecture keeps the walls of docs/architecture.md.
package architecture

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
)

const module = "github.com/duet-rpc/duet-rpc"

// mayImport says what of this module each package may import. A package that
// is missing here has not been thought about.
var mayImport = map[string][]string{
	"cmd/duet-rpc": {
		"client", "frame", "handlers", "server", "server/stdio", "internal/catalog", "internal/config", "internal/demoagent", "internal/executor", "internal/history", "internal/hub",
		"internal/logging", "internal/origin", "internal/project", "internal/question", "internal/relay", "internal/socket", "internal/store", "internal/supervisor",
		"internal/visible",
	},
	"client":                {"frame", "server", "server/passfd", "internal/pending", "internal/socket"},
	"frame":                 {},
	"handlers":              {"frame", "server", "server/passfd", "internal/catalog", "internal/history", "internal/hub", "internal/logging", "internal/openrpc"},
	"server":                {"frame", "server/schema", "internal/pending"},
	"server/passfd":         {"server"},
	"server/schema":         {"frame"},
	"server/stdio":          {"server"},
	"internal/architecture": {},
	"internal/catalog":      {},
	"internal/catalogrpc":   {"server", "server/passfd", "internal/catalog"},
	"internal/chaos":        {}, // tests alone
	"internal/config":       {"internal/catalog", "internal/project"},
	"internal/demoagent":    {},
	"internal/executor":     {"frame", "server", "internal/catalog", "internal/catalogrpc", "internal/socket", "internal/toolinput"},
	"internal/golden":       {},
	"internal/history":      {"internal/store"},
	"internal/hub":          {"internal/catalog", "internal/config", "internal/history", "internal/redact", "internal/store", "internal/toolinput"}, // no transport: it knows nothing of connections
	"internal/logging":      {},
	"internal/openrpc":      {"server", "server/schema"},
	"internal/origin":       {"internal/project"}, // a database is known before anything of it is read
	"internal/pending":      {"frame"},
	"internal/project":      {},
	"internal/question":     {"internal/visible"},
	"internal/redact":       {},
	"internal/relay":        {"frame", "server", "internal/pending"},
	"internal/socket":       {},
	"internal/store":        {},
	"internal/toolinput":    {},
	"internal/visible":      {},
	"internal/supervisor":   {"frame", "server", "internal/catalog", "internal/catalogrpc", "internal/hub", "internal/socket", "internal/store"},
}

func TestImportsRunOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}: {{join .Imports " "}}`, module+"/...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		name, imports, _ := strings.Cut(strings.TrimSpace(line), ":")
		name = strings.TrimPrefix(name, module+"/")
		allowed, known := mayImport[name]
		if !assert.True(t, known, "say in mayImport what %s may import", name) {
			continue
		}
		for _, i := range strings.Fields(imports) {
			if ours, ok := strings.CutPrefix(i, module+"/"); ok {
				assert.Contains(t, allowed, ours, "%s must not import %s", name, ours)
			}
		}
	}
}
