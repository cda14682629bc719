package turn

import (
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// IsOrphan reports whether a session was interrupted because its hub ended.
func IsOrphan(s wire.Session) bool {
	return s.Status == wire.Interrupted && (s.ErrorCode == "SHUTDOWN" || s.ErrorCode == "ORPHANED")
}

// GoOnPrompt asks an agent to go on with a request that the end of its hub interrupted.
func GoOnPrompt(request string) string {
	return domain.GoOnPrompt("You were interrupted, because the program that ran you ended.", request)
}
