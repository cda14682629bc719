// Package architecture keeps the walls of docs/architecture.md.
package architecture

import (
	"os"
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
client: frame server server/passfd internal/pending internal/socket
cmd/duet-rpc: internal/cli
frame:
handlers: server server/passfd internal/adoption internal/agentlink internal/agentsetting internal/agentstatus internal/approval internal/build internal/catalog internal/changereview internal/config internal/config/triggerconfig internal/configured internal/content internal/dialect internal/diff internal/domain internal/editorfiles internal/eventlog internal/gate internal/history internal/hub internal/jsonwalk internal/logging internal/mcpclient internal/nativesession internal/openrpc internal/preview internal/query internal/redact internal/restricted internal/signin internal/terminal internal/threadsettings internal/trigger
internal/acpagent: client frame server internal/acpagent/question internal/acpagent/schema internal/acpagent/update internal/acpagent/version2 internal/wire  # neither hub nor store: it speaks with the hub as any client does
internal/acpagent/question: internal/acpagent/schema internal/wire
internal/acpagent/schema:
internal/acpagent/update: internal/acpagent/schema internal/wire
internal/acpagent/version2: internal/acpagent/schema internal/diff
internal/adoption: internal/catalog internal/conversation internal/domain internal/history internal/intake internal/query internal/redact internal/restricted internal/store
internal/agentlink: frame internal/config internal/executor/acp/linefilter internal/executor/process
internal/agentsetting: internal/catalog internal/config internal/domain  # it asks nobody and keeps nothing
internal/agentstatus: internal/config internal/executor/process internal/lazyregexp internal/project internal/signin  # it starts no agent
internal/aiwg: internal/ownership
internal/approval: internal/catalog internal/config internal/domain internal/form internal/policy internal/restricted internal/store internal/store/health internal/toolinput  # how runs go on is an interface to it
internal/architecture:
internal/background:
internal/budget: internal/config/budgetconfig internal/domain internal/store
internal/build: internal/config/buildconfig internal/config/commandconfig internal/diagnostic internal/domain internal/restricted internal/usercommand
internal/catalog:
internal/changereview: internal/diff internal/domain internal/executor/workspace internal/store internal/store/health
internal/catalogrpc: server server/passfd internal/catalog
internal/chaos:  # tests alone
internal/cli: client internal/cli/acp internal/cli/agents internal/cli/allprojects internal/cli/answer internal/cli/ask internal/cli/attach internal/cli/attachment internal/cli/build internal/cli/candidate internal/cli/daemon internal/cli/doctor internal/cli/eventline internal/cli/flagvalue internal/cli/foreign internal/cli/gates internal/cli/inbox internal/cli/interrupt internal/cli/invocation internal/cli/leftopen internal/cli/mcp internal/cli/nativesession internal/cli/output internal/cli/pager internal/cli/preview internal/cli/prompttext internal/cli/reach internal/cli/refusal internal/cli/sessions internal/cli/sessionview internal/cli/spending internal/cli/triggers internal/cli/tty internal/cli/turn internal/cli/usage internal/config internal/config/document internal/demoagent internal/executor internal/host internal/hubprocess internal/logging internal/trust internal/wire  # neither hub nor store: what the shell knows of them goes over the wire
internal/cli/acp: client server internal/acpagent internal/host internal/hubprocess internal/logging internal/signin
internal/cli/agents: internal/agentlink internal/agentstatus internal/cli/output internal/cli/tty internal/config internal/project internal/registry internal/registry/added internal/signin
internal/cli/allprojects: client internal/cli/interrupt internal/cli/output internal/cli/refusal internal/cli/sessionview internal/host internal/hubprocess internal/project/known internal/wire
internal/cli/answer: internal/wire
internal/cli/ask: client internal/cli/invocation internal/cli/output internal/cli/reach
internal/cli/attach: client internal/cli/output internal/cli/tty internal/lazyregexp internal/wire
internal/cli/attachment: client internal/cli/output internal/cli/tty internal/project internal/wire
internal/cli/build: client internal/cli/interrupt internal/cli/invocation internal/cli/output internal/cli/reach internal/cli/refusal internal/visible internal/wire
internal/cli/candidate: client internal/cli/attach internal/cli/output internal/wire
internal/cli/daemon: client internal/cli/interrupt internal/cli/output internal/cli/refusal internal/config internal/filewatch internal/host internal/hubprocess internal/project internal/wire
internal/cli/doctor: frame internal/catalog internal/cli/output internal/config internal/database internal/executor/process internal/host internal/hubprocess internal/logging internal/mcpprobe internal/origin internal/project internal/socket internal/wire
internal/cli/editor:
internal/cli/eventline: client internal/cli/inbox internal/cli/output internal/wire
internal/cli/flagvalue: internal/logging
internal/cli/foreign: client internal/cli/output internal/cli/refusal internal/database internal/history internal/host internal/hubprocess internal/logging internal/origin internal/project
internal/cli/highlight:  # colours of code
internal/cli/inbox: client internal/cli/output internal/diff internal/form internal/question internal/wire
internal/cli/interrupt:  # C-c
internal/cli/invocation: client frame internal/cli/flagvalue internal/cli/interrupt internal/cli/output internal/cli/reach internal/cli/refusal internal/cli/tty internal/hubprocess internal/logging internal/wire  # what every command stands on, so that each can be a package
internal/cli/leftopen: client internal/cli/interrupt internal/cli/output internal/cli/turn internal/wire
internal/cli/live:
internal/cli/markdown: internal/cli/highlight internal/lazyregexp internal/visible
internal/cli/mcp: client server internal/cli/invocation internal/host internal/logging internal/mcptools
internal/cli/nativesession: client internal/cli/output internal/wire
internal/cli/output: internal/cli/markdown internal/cli/tty internal/visible
internal/cli/pager: internal/cli/output internal/cli/tty
internal/cli/picker: internal/cli/output internal/cli/tty
internal/cli/preview: client internal/cli/interrupt internal/cli/invocation internal/cli/output internal/cli/preview/web internal/cli/reach internal/cli/refusal internal/wire
internal/cli/preview/web: internal/lazyregexp
internal/cli/prompttext: internal/cli/tty
internal/cli/reach: client internal/cli/interrupt internal/host internal/hubprocess internal/logging internal/project
internal/cli/refusal: internal/cli/output internal/wire
internal/cli/sessions: client internal/cli/output internal/cli/pager internal/cli/picker internal/cli/sessionview internal/cli/transcript internal/cli/tty internal/wire
internal/cli/sessionview: internal/cli/output internal/wire
internal/cli/gates:  # flags
internal/cli/spending: internal/cli/flagvalue internal/cli/invocation internal/cli/output internal/wire
internal/cli/transcript: client internal/cli/attachment internal/cli/markdown internal/cli/output internal/lazyregexp internal/visible internal/wire
internal/cli/triggers: client internal/cli/invocation internal/cli/output internal/cli/reach internal/wire
internal/cli/tty:
internal/cli/turn: client internal/cli/attachment internal/cli/editor internal/cli/inbox internal/cli/interrupt internal/cli/live internal/cli/markdown internal/cli/output internal/cli/pager internal/cli/refusal internal/cli/tty internal/domain internal/form internal/question internal/visible internal/wire
internal/cli/usage: internal/cli/output internal/cli/tty internal/lazyregexp
internal/config: internal/catalog internal/config/bounded internal/config/budgetconfig internal/config/buildconfig internal/config/commandconfig internal/config/document internal/config/gateconfig internal/config/previewconfig internal/config/triggerconfig internal/filewatch internal/ownership internal/project internal/trust
internal/config/bounded:  # files that came with a project
internal/config/budgetconfig: internal/config/document
internal/config/buildconfig: internal/config/commandconfig internal/config/document
internal/config/commandconfig: internal/config/document
internal/config/document: internal/config/bounded  # knows no key, so that a section of the configuration can be a package
internal/config/gateconfig: internal/config/commandconfig internal/config/document
internal/config/previewconfig: internal/config/document
internal/config/triggerconfig: internal/config/document internal/trigger/schedule  # what a file says of triggers; it reads none
internal/configured: internal/config internal/domain internal/restricted
internal/configwatch: internal/background
internal/content: internal/catalog internal/domain internal/lazyregexp
internal/conversation: internal/catalog internal/content internal/domain internal/store
internal/credential: internal/catalog internal/config internal/domain internal/redact
internal/database: internal/history internal/origin internal/project internal/store internal/store/health internal/store/sqlite internal/store/sqlite/schema
internal/demoagent: internal/lazyregexp
internal/diagnostic: internal/domain internal/lazyregexp  # text in, values out
internal/dialect: frame server internal/domain internal/form internal/openjson  # how events are spelled
internal/diff:
internal/domain:  # values: everybody else speaks them
internal/editorfiles: internal/catalog
internal/eventlog: internal/background internal/domain internal/store
internal/executor: frame server internal/catalog internal/catalogrpc internal/executor/acp internal/executor/command internal/executor/process internal/executor/task internal/executor/terminal internal/executor/usercommand internal/socket
internal/executor/acp: frame internal/catalog internal/executor/acp/linefilter internal/executor/acp/setting internal/executor/authmethod internal/executor/blocks internal/executor/plan internal/executor/process internal/executor/silence internal/executor/task internal/executor/titlecommand internal/executor/transcript internal/executor/wireerror internal/executor/workspace internal/form internal/shellcommand internal/toolinput
internal/executor/acp/linefilter: frame
internal/executor/acp/setting: frame internal/catalog
internal/executor/authmethod: internal/catalog
internal/executor/blocks: internal/catalog internal/domain internal/executor/task
internal/executor/command: internal/catalog internal/executor/process internal/executor/task internal/executor/transcript
internal/executor/executortest: internal/catalog internal/witness  # for tests
internal/executor/plan: internal/toolinput
internal/executor/process: internal/catalog internal/lazyregexp
internal/executor/silence: internal/catalog
internal/executor/task: internal/catalog internal/executor/process internal/executor/workspace
internal/executor/terminal: server internal/catalog internal/executor/process
internal/executor/titlecommand: internal/executor/task  # words of an agent, as an input
internal/executor/transcript: internal/catalog
internal/executor/usercommand: internal/catalog internal/executor/process
internal/executor/wireerror: internal/lazyregexp
internal/executor/workspace: internal/catalog
internal/executorcall: internal/approval internal/catalog internal/config internal/conversation internal/credential internal/domain internal/query internal/restricted internal/store internal/store/health
internal/filewatch:
internal/form:
internal/fulldisk: internal/background internal/domain internal/store
internal/gate: internal/background internal/config/gateconfig internal/diagnostic internal/domain internal/restricted internal/store internal/usercommand  # the life of runs is an interface to it
internal/golden:
internal/history: internal/domain internal/lazyregexp internal/store
internal/host: client frame handlers server server/stdio internal/agentstatus internal/aiwg internal/build internal/catalog internal/config internal/config/previewconfig internal/database internal/domain internal/editorfiles internal/filewatch internal/gate internal/history internal/hub internal/hubprocess internal/logging internal/origin internal/project internal/project/known internal/relay internal/socket internal/store internal/store/sqlite internal/supervisor internal/trigger internal/trust
internal/hub: internal/adoption internal/agentsetting internal/approval internal/background internal/budget internal/build internal/catalog internal/changereview internal/config internal/config/budgetconfig internal/config/previewconfig internal/configured internal/configwatch internal/conversation internal/credential internal/domain internal/eventlog internal/executorcall internal/fulldisk internal/gate internal/intake internal/mcpclient internal/mcpservers internal/policy internal/preview internal/query internal/redact internal/removal internal/restricted internal/store internal/store/health internal/terminal internal/threadsettings internal/trigger internal/usercommand  # no transport: it knows nothing of connections
internal/hubprocess: client frame server internal/config internal/logging internal/project internal/socket internal/visible  # how the hub of another process is found, reached and started
internal/intake: internal/catalog internal/content internal/conversation internal/diff internal/domain internal/redact internal/store
internal/jsontest:  # for tests
internal/jsonwalk:
internal/lazyregexp:  # compiled when they are needed
internal/logging:
internal/mcpclient: internal/background internal/catalog internal/executor/process internal/mcpservers
internal/mcpprobe: internal/catalog internal/executor/process
internal/mcpservers: internal/background internal/catalog internal/executor/process internal/lazyregexp internal/mcpprobe internal/redact
internal/mcptools: client  # neither hub nor store: it speaks with the hub as any client does
internal/nativesession: frame internal/agentlink internal/catalog internal/executor/acp internal/executor/authmethod
internal/needs:  # for tests
internal/openjson:
internal/openrpc: server server/schema internal/lazyregexp
internal/origin: internal/ownership internal/project  # a database is known before anything of it is read
internal/ownership:
internal/pending: frame
internal/policy: internal/catalog internal/config internal/domain internal/restricted internal/shellcommand internal/toolinput  # it asks nobody and keeps nothing
internal/preview: internal/config/previewconfig internal/domain internal/store
internal/project: internal/ownership
internal/project/known: internal/project
internal/query: internal/conversation internal/domain internal/store internal/store/health
internal/question: internal/form internal/shellcommand internal/visible
internal/redact:
internal/registry: internal/lazyregexp  # what somebody else says of agents
internal/registry/added: internal/registry  # where what was added came from
internal/relay: frame server internal/pending
internal/removal: internal/domain internal/store
internal/restricted: internal/domain
internal/screen: internal/lazyregexp  # for tests and pictures
internal/shellcommand: internal/lazyregexp
internal/signin: internal/agentlink internal/executor/authmethod internal/executor/process
internal/socket:
internal/store: internal/domain  # what is asked of a store; no SQL
internal/store/health: internal/background internal/domain internal/store
internal/store/sqlite: internal/domain internal/lazyregexp internal/store internal/store/sqlite/agentsessionrow internal/store/sqlite/dbfile internal/store/sqlite/eventrow internal/store/sqlite/gaterow internal/store/sqlite/pagerow internal/store/sqlite/reviewrow internal/store/sqlite/rowjson internal/store/sqlite/schema internal/store/sqlite/statement internal/store/sqlite/triggerrow internal/store/sqlite/usagerow
internal/store/sqlite/agentsessionrow: internal/domain internal/store internal/store/sqlite/rowjson internal/store/sqlite/statement
internal/store/sqlite/dbfile:  # files, not SQL
internal/store/sqlite/eventrow: internal/domain internal/store/sqlite/rowjson  # pure functions: no database
internal/store/sqlite/gaterow: internal/domain internal/store/sqlite/rowjson internal/store/sqlite/statement
internal/store/sqlite/pagerow: internal/domain internal/store internal/store/sqlite/statement
internal/store/sqlite/reviewrow: internal/domain internal/store/sqlite/statement
internal/store/sqlite/rowjson: internal/domain internal/openjson  # pure functions: no database
internal/store/sqlite/schema:
internal/store/sqlite/statement: internal/store internal/store/sqlite/dbfile internal/store/sqlite/schema
internal/store/sqlite/triggerrow: internal/domain internal/store internal/store/sqlite/statement
internal/store/sqlite/usagerow: internal/domain internal/store/sqlite/statement
internal/store/storetest: internal/domain internal/store
internal/supervisor: frame server internal/background internal/catalog internal/catalogrpc internal/domain internal/socket  # the hub is an interface to it
internal/terminal: internal/background internal/catalog internal/domain internal/lazyregexp internal/redact internal/store
internal/threadsettings: internal/agentsetting internal/background internal/catalog internal/config internal/domain internal/query internal/restricted internal/store
internal/toolinput: internal/jsonwalk
internal/trigger: internal/background internal/config/triggerconfig internal/domain internal/lazyregexp internal/restricted internal/store internal/trigger/schedule internal/trigger/watch  # the life of runs and the questions are interfaces to it
internal/trigger/schedule:  # when a time comes
internal/trigger/watch: internal/ownership  # which files have changed
internal/trust: internal/project
internal/usercommand: internal/catalog internal/domain internal/store  # what a command is for is its caller's
internal/visible: internal/lazyregexp
internal/wire: client
internal/witness:  # for tests
server: frame server/schema internal/background internal/pending
server/passfd: server
server/schema: frame
server/stdio: server
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
	allowed := table()
	used := make(map[string]bool)
	for _, system := range []string{"linux", "darwin", "windows"} {
		list := exec.Command("go", "list", "-f", `{{.ImportPath}}: {{join .Imports " "}}`, module+"/...")
		list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			name, imports, _ := strings.Cut(strings.TrimSpace(line), ":")
			name = strings.TrimPrefix(name, module+"/")
			may, known := allowed[name]
			if !assert.True(t, known, "say in mayImport what %s may import", name) {
				continue
			}
			for _, i := range strings.Fields(imports) {
				if ours, ok := strings.CutPrefix(i, module+"/"); ok {
					assert.Contains(t, may, ours, "%s must not import %s", name, ours)
					used[name+" "+ours] = true
				}
			}
		}
	}
	for name, may := range allowed {
		for _, ours := range may {
			assert.True(t, used[name+" "+ours], "%s does not import %s: take that out of mayImport", name, ours)
		}
	}
}
