package domain

// Levels of a sandbox, from the weakest to the strongest. "" is no sandbox.
const (
	SandboxWorkspace = "workspace" // writes stay in the session's directories; the network is reachable
	SandboxOffline   = "offline"   // the same without a network
)

// SandboxLevels returns the levels from the weakest to the strongest, without "".
func SandboxLevels() []string { return []string{SandboxWorkspace, SandboxOffline} }

// StrongerSandbox returns the stronger of two levels. An unknown level counts as the strongest, so
// that a level of a newer version never means no sandbox.
func StrongerSandbox(a, b string) string {
	if sandboxRank(a) >= sandboxRank(b) {
		return a
	}
	return b
}

func sandboxRank(level string) int {
	switch level {
	case "":
		return 0
	case SandboxWorkspace:
		return 1
	case SandboxOffline:
		return 2
	}
	return 3
}
