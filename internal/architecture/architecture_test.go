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
		"client", "frame", "handlers", "server", "internal/catalog", "internal/config", "internal/demoagent", "internal/domain", "internal/executor", "internal/history", "internal/hub",
		"internal/logging", "internal/origin", "internal/project", "internal/question", "internal/relay", "internal/socket", "internal/store", "internal/store/sqlite", "internal/supervisor",
		"internal/visible",
	},
	"client":                   {"frame", "server", "internal/socket"},
	"frame":                    {},
	"handlers":                 {"frame", "server", "internal/catalog", "internal/domain", "internal/history", "internal/hub", "internal/logging", "internal/openrpc", "internal/trust"},
	"server":                   {"frame"},
	"internal/architecture":    {},
	"internal/catalog":         {},
	"internal/catalogrpc":      {"server", "internal/catalog"},
	"internal/chaos":           {}, // tests alone
	"internal/config":          {"internal/catalog", "internal/project"},
	"internal/demoagent":       {},
	"internal/executor":        {"frame", "server", "internal/catalog", "internal/catalogrpc", "internal/socket", "internal/toolinput"},
	"internal/golden":          {},
	"internal/domain":          {}, // values: everybody else speaks them
	"internal/history":         {"internal/domain", "internal/store"},
	"internal/hub":             {"internal/catalog", "internal/config", "internal/domain", "internal/history", "internal/policy", "internal/redact", "internal/store", "internal/toolinput", "internal/trust"}, // no transport: it knows nothing of connections
	"internal/logging":         {},
	"internal/openrpc":         {"server"},
	"internal/origin":          {"internal/project"},                                                                               // a database is known before anything of it is read
	"internal/policy":          {"internal/catalog", "internal/config", "internal/domain", "internal/toolinput", "internal/trust"}, // it asks nobody and keeps nothing
	"internal/project":         {},
	"internal/question":        {"internal/visible"},
	"internal/redact":          {},
	"internal/relay":           {"frame", "server"},
	"internal/socket":          {},
	"internal/store":           {"internal/domain"}, // what is asked of a store; no SQL
	"internal/store/sqlite":    {"internal/domain", "internal/store"},
	"internal/store/storetest": {"internal/domain", "internal/store"},
	"internal/toolinput":       {},
	"internal/trust":           {"internal/domain"},
	"internal/visible":         {},
	"internal/supervisor":      {"frame", "server", "internal/catalog", "internal/catalogrpc", "internal/domain", "internal/hub", "internal/socket"},
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
