package intake

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
)

// Bounds of what is kept of the ways to sign in that an agent offers.
const (
	maxAuthMethods    = 20
	maxAuthMethodText = 500 // bytes
)

// withoutKeys is why a prompt failed, as its executor says, without keys: there
// may be what the agent complained of last.
func withoutKeys(failure *catalog.ExecutionError, secrets *redact.Secrets) *catalog.ExecutionError {
	if failure == nil {
		return nil
	}
	clean := *failure
	clean.Message, clean.AuthMethods = secrets.Piece(clean.Message), nil
	for _, m := range failure.AuthMethods[:min(len(failure.AuthMethods), maxAuthMethods)] {
		if m.ID == "" || len(m.ID) > maxAuthMethodText {
			continue
		}
		m.Name, m.Description = secrets.Piece(cut(m.Name)), secrets.Piece(cut(m.Description))
		clean.AuthMethods = append(clean.AuthMethods, m)
	}
	return &clean
}

func cut(text string) string {
	if len(text) <= maxAuthMethodText {
		return text
	}
	return strings.ToValidUTF8(text[:maxAuthMethodText], "") + "…"
}

// SignIn are the ways to sign in that an agent offers which failed because nobody
// is.
func SignIn(failure *catalog.ExecutionError) (methods []domain.AuthMethod) {
	for _, m := range failure.AuthMethods {
		methods = append(methods, domain.AuthMethod(m))
	}
	return methods
}
