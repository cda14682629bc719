package config

// This file is [[builds]] of a configuration: what can be built, by which
// command.

// A Build is something that can be built. Its directory is relative to the project's root.
type Build struct {
	Definition
	Backend bool // it is what buildBackend builds
}

// decodeBuild reads [[builds]] of a file; what is wrong is noted there.
func decodeBuild(top table, source string) (out []Build) {
	decodeCommand(top, "builds", source, []string{"backend"}, func(t table, d Definition) {
		b := Build{Definition: d}
		if yes := t.Flag("backend"); yes != nil {
			b.Backend = *yes
		}
		out = append(out, b)
	})
	return out
}
