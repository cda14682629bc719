//go:build lint

package architecture

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A rule limits the imports of the packages that match from. Patterns are separated by
// spaces; "server/..." is server and the packages below it. Imports of test files are
// free. only and except limit direct imports within the module, never limits indirect
// ones too.
type rule struct {
	from    string
	only    *string // the packages it may import; nil is no limit
	except  string  // the packages it may not import
	never   string  // the packages it may not import, even through another package
	because string
}

func only(patterns string) *string { return &patterns }

var rules = []rule{
	{
		from: "frame/...", only: only("internal/rawjson"),
		because: "frame is the codec, and stands on the scanner of JSON alone",
	},
	{
		from: "server/...", only: only("frame server/... internal/background internal/pending internal/rawjson"),
		because: "the library serves any method and knows nothing of agents",
	},
	{
		from: "client/...", only: only("client frame server internal/pending internal/socket"),
		because: "the library calls any server, and client/eventstream reads the log, without a word of agents",
	},
	{
		from: "internal/domain/... internal/rawjson", only: only(""),
		because: "domain holds the values, and rawjson reads the JSON, that every layer uses",
	},
	{
		from: "internal/store", only: only("internal/background internal/domain"),
		because: "store is the interface of a database, without SQL",
	},
	{
		from: "internal/hub/...", never: "client/... frame/... server/... handlers/... internal/cli/... internal/host/... internal/socket/... internal/store/sqlite/...",
		because: "the hub knows neither a transport nor a database",
	},
	{
		from: "handlers/...", except: "client internal/cli/... internal/executor/... internal/host/... internal/hubprocess internal/relay internal/socket internal/store/... internal/supervisor",
		because: "a handler turns a request into a call of the hub",
	},
	{
		from: "handlers/... internal/hub/... internal/hubclient internal/protocol internal/relay", never: "internal/dialect/...",
		because: "only the daemon knows the dialects, which are forms of the native methods",
	},
	{
		from: "internal/dialect/...", never: "handlers/... internal/cli/... internal/host/... internal/store/sqlite/...",
		because: "a dialect calls the native methods through the registry",
	},
	{
		from: "internal/executor/...", never: "handlers/... internal/hub/... internal/host/... internal/store/...",
		because: "an executor runs in a process of its own and calls the hub over the wire",
	},
	{
		from: "internal/acpagent/...", never: "handlers/... internal/host/... internal/hub/... internal/store/...",
		because: "an adapter uses the hub as any client does",
	},
	{
		from: "internal/cli/...", except: "handlers/... internal/hub/... internal/store/...",
		because: "a command uses the hub as any client does; internal/host starts one where none runs",
	},
}

const driver = "modernc.org/sqlite"

// importers lists the only packages that may import a package directly.
var importers = map[string]string{
	"handlers":              "internal/host",
	"internal/hub":          "handlers internal/dialect/aiwg internal/dialect/boundary internal/dialect/executor internal/dialect/native internal/host",
	"internal/store/sqlite": "internal/host",
	driver:                  "internal/store/sqlite/... internal/e2e",
}

// testOnly lists the packages that only tests and each other may import.
const testOnly = "internal/architecture internal/chaos internal/e2e/... internal/screen internal/store/storetest internal/testkit"

func TestLayersImportOneWay(t *testing.T) {
	imports := make(map[string][]string)
	for _, s := range sources(t) {
		if !s.isTest {
			imports[s.dir()] = append(imports[s.dir()], ours(s.imports())...)
		}
	}
	assert.Empty(t, violations(imports))
	for _, r := range rules {
		for pattern := range strings.FieldsSeq(r.from) {
			assert.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(imports)), func(pkg string) bool { return matches(pattern, pkg) }), "no package matches %s", pattern)
		}
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for _, imports := range []map[string][]string{
		{"frame": {"internal/visible"}},
		{"server/stdio": {"internal/relay"}},
		{"client": {"internal/hubclient"}},
		{"internal/domain": {"internal/form"}},
		{"internal/store": {"internal/visible"}},
		{"internal/hub": {"internal/x"}, "internal/x": {"internal/y"}, "internal/y": {"server"}},
		{"handlers": {"internal/store"}},
		{"handlers": {"internal/dialect/aiwg"}},
		{"internal/dialect/aiwg": {"internal/cli"}},
		{"internal/executor/acp": {"internal/store"}},
		{"internal/acpagent": {"internal/x"}, "internal/x": {"internal/hub/x"}},
		{"internal/cli/turn": {"internal/store"}},
		{"internal/gate": {"internal/hub"}},
		{"internal/intake": {"internal/store/sqlite"}},
		{"internal/relay": {"handlers"}},
		{"internal/hub": {"modernc.org/sqlite"}},
		{"internal/intake": {"internal/testkit"}},
	} {
		assert.Len(t, violations(imports), 1, "%v", imports)
	}
	assert.Empty(t, violations(map[string][]string{
		"internal/host": {"handlers"}, "server/stdio": {"server"}, "internal/store/sqlite/x": {"modernc.org/sqlite"},
		"internal/cli": {"internal/host"},
	}))
}

// ours returns the import paths that the rules name: the packages of the module, without its name,
// and the database driver.
func ours(paths []string) (list []string) {
	for _, p := range paths {
		if p, ok := strings.CutPrefix(p, module+"/"); ok {
			list = append(list, p)
		} else if p == driver {
			list = append(list, p)
		}
	}
	return list
}

// matches reports whether a package matches one of the patterns.
func matches(patterns, pkg string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		below, tree := strings.CutSuffix(pattern, "/...")
		if pkg == below || tree && strings.HasPrefix(pkg, below+"/") {
			return true
		}
	}
	return false
}

// violations lists the imports that break a rule.
func violations(imports map[string][]string) (list []string) {
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		direct := slices.Compact(slices.Sorted(slices.Values(imports[pkg])))
		for _, r := range rules {
			if !matches(r.from, pkg) {
				continue
			}
			for _, i := range direct {
				if r.only != nil && i != driver && !matches(*r.only, i) || matches(r.except, i) {
					list = append(list, pkg+" imports "+i+": "+r.because)
				}
			}
			if way := reach(imports, pkg, r.never); way != nil {
				list = append(list, strings.Join(way, " imports ")+": "+r.because)
			}
		}
		for _, i := range direct {
			if may, limited := importers[i]; limited && !matches(may, pkg) {
				list = append(list, pkg+" imports "+i+": only "+may+" may")
			}
			if matches(testOnly, i) && !matches(testOnly, pkg) {
				list = append(list, pkg+" imports "+i+": it is for tests")
			}
		}
	}
	return list
}

// reach returns the shortest chain of imports from a package to one that matches, or nil.
func reach(imports map[string][]string, from, patterns string) []string {
	seen := map[string]bool{from: true}
	for queue := [][]string{{from}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0]
		for _, next := range imports[way[len(way)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			further := append(slices.Clone(way), next)
			if matches(patterns, next) {
				return further
			}
			queue = append(queue, further)
		}
	}
	return nil
}
