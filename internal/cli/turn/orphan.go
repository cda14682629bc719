package turn

import "github.com/duet-rpc/duet-rpc/internal/cli/wire"

// IsOrphan reports whether a session was interrupted because its hub ended.
func IsOrphan(s wire.Session) bool {
	return s.Status == wire.Interrupted && (s.ErrorCode == "SHUTDOWN" || s.ErrorCode == "ORPHANED")
}

// GoOnPrompt asks an agent to go on with a request where it was interrupted. Its own
// session may have lost the turn, so it says what that was about. The demo agent,
// which has no model, knows the first word and the line above the request.
func GoOnPrompt(request string) string {
	return "Continue where you left off. You were interrupted, because the program that ran you ended.\n\nThe request was:\n\n" + request
}
