package config

import _ "embed"

//go:embed defaults.toml
var defaults string

// Defaults is a configuration file in which every key is described and nothing
// is set: a line that begins with "# " is prose, one that begins with "#" alone
// is TOML to be uncommented.
func Defaults() string { return defaults }
