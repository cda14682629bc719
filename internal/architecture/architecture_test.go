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

// mayImport says what of this module each package may import, a line each. A
// package that is missing here has not been thought about.
const mayImport = `
client: frame server internal/socket
cmd/duet-rpc: client frame handlers server internal/catalog internal/config internal/demoagent internal/domain internal/executor internal/history internal/hub internal/logging internal/origin internal/project internal/question internal/relay internal/socket internal/store internal/store/sqlite internal/supervisor internal/visible
frame:
handlers: frame server internal/catalog internal/domain internal/history internal/hub internal/logging internal/openrpc internal/terminal
internal/architecture:
internal/background:
internal/catalog:
internal/catalogrpc: server internal/catalog
internal/chaos:  # tests alone
internal/config: internal/catalog internal/project
internal/credential: internal/catalog internal/config internal/domain internal/redact
internal/demoagent:
internal/domain:  # values: everybody else speaks them
internal/executor: frame server internal/catalog internal/catalogrpc internal/socket internal/executor/acp internal/executor/command internal/executor/process internal/executor/task internal/executor/terminal
internal/executor/acp: frame internal/catalog internal/toolinput internal/executor/process internal/executor/task internal/executor/transcript internal/executor/workspace
internal/executor/command: internal/catalog internal/executor/process internal/executor/task internal/executor/transcript
internal/executor/process:
internal/executor/task: internal/catalog internal/executor/process internal/executor/workspace
internal/executor/terminal: server internal/catalog internal/executor/process
internal/executor/transcript: internal/catalog
internal/executor/workspace: internal/catalog
internal/golden:
internal/history: internal/domain internal/store
internal/hub: internal/background internal/catalog internal/config internal/credential internal/domain internal/history internal/redact internal/store internal/terminal internal/toolinput  # no transport: it knows nothing of connections
internal/logging:
internal/openrpc: server
internal/origin: internal/project  # a database is known before anything of it is read
internal/project:
internal/question: internal/visible
internal/redact:
internal/relay: frame server
internal/socket:
internal/store: internal/domain  # what is asked of a store; no SQL
internal/store/sqlite: internal/domain internal/store
internal/store/storetest: internal/domain internal/store
internal/supervisor: frame server internal/catalog internal/catalogrpc internal/domain internal/socket  # the hub is an interface to it
internal/terminal: internal/background internal/catalog internal/domain internal/redact internal/store
internal/toolinput:
internal/visible:
server: frame
`

// table is mayImport by package.
func table() map[string][]string {
	allowed := make(map[string][]string)
	for line := range strings.Lines(mayImport) {
		line, _, _ = strings.Cut(line, "#")
		if name, imports, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			allowed[name] = strings.Fields(imports)
		}
	}
	return allowed
}

func TestImportsRunOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}: {{join .Imports " "}}`, module+"/...").Output()
	require.NoError(t, err)
	mayImport := table()
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
