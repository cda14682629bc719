package signin

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/executor/authmethod"
)

// What is taken of an agent's messages. What is not known is passed over: an
// agent that is newer has to work.
type (
	initializeResult struct {
		AgentCapabilities struct {
			Auth struct {
				Logout json.RawMessage `json:"logout"`
			} `json:"auth"`
			SessionCapabilities struct {
				Delete json.RawMessage `json:"delete"`
			} `json:"sessionCapabilities"`
			Meta struct {
				AuthStatus json.RawMessage `json:"authStatus"` // claude: it says who is signed in
			} `json:"_meta"`
		} `json:"agentCapabilities"`
		AgentInfo struct {
			Name    string `json:"name"`
			Title   string `json:"title"`
			Version string `json:"version"`
		} `json:"agentInfo"`
		AuthMethods []authmethod.Method `json:"authMethods"`
	}
	// authStatus is told by claude, in the notification _auth/status_update.
	authStatus struct {
		Kind   string `json:"kind"`
		Label  string `json:"label"`
		Detail string `json:"detail"`
	}
	sessionResult struct {
		SessionID string `json:"sessionId"`
	}
)
