package acp

import "github.com/duet-rpc/duet-rpc/internal/domain"

// readsKey reports whether the agent reads a key from the variables that it has.
func (m AuthMethod) readsKey(has map[string]bool) bool {
	return m.Kind() == domain.SignInByAgent && m.Meta.APIKey != nil && m.Meta.APIKey.Provider == "openai" &&
		(has["CODEX_API_KEY"] || has["OPENAI_API_KEY"])
}
