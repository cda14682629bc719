package config

// bounds are what a configuration file may have: a file that came with a
// project is nobody's word.
type bounds struct {
	bytes    int    // of the file
	document Bounds // looked at before it is parsed
	agents   int
	rules    int
}

// boundsOf are those of a source. The user's own file may be larger; an honest
// one of a project has a few hundred lines.
func boundsOf(source string) bounds {
	if source == SourceProject {
		return bounds{bytes: 256 << 10, document: Bounds{Keys: 5_000, Values: 5_000, Parts: 16, Nesting: 16}, agents: 100, rules: 1_000}
	}
	return bounds{bytes: 1 << 20, document: Bounds{Keys: 50_000, Values: 50_000, Parts: 16, Nesting: 16}, agents: 1_000, rules: 10_000}
}

// mostServers is how many MCP servers an agent may have.
const mostServers = 100
