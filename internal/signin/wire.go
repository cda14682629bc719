package signin

// What is taken of an agent's messages. What is not known is passed over: an
// agent that is newer has to work.
type (
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
