package config

import "slices"

// KnownKeys are all keys of all tables.
func KnownKeys() []string {
	return slices.Concat(topKeys, limitKeys, agentKeys, serverKeys, keyKeys, ruleKeys)
}
