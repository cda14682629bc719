// Package buildconfig is [[builds]] of a configuration: what can be built, by which
// command.
package buildconfig

import (
	"github.com/duet-rpc/duet-rpc/internal/config/commandconfig"
	"github.com/duet-rpc/duet-rpc/internal/config/document"
)

// A Build is something that can be built. Its directory is relative to the project's root.
type Build struct {
	commandconfig.Definition
	Backend bool // it is what buildBackend builds
}

// Decode reads [[builds]] of a file; what is wrong is noted there.
func Decode(top document.Table, source string) (out []Build) {
	commandconfig.Decode(top, "builds", source, []string{"backend"}, func(t document.Table, d commandconfig.Definition) {
		b := Build{Definition: d}
		if yes := t.Flag("backend"); yes != nil {
			b.Backend = *yes
		}
		out = append(out, b)
	})
	return out
}
