package agents

import (
	"os"

	"github.com/duet-rpc/duet-rpc/internal/agentstatus"
)

// notes are what agents have told last; none where they cannot be kept.
func notes() *agentstatus.Notes {
	n, _ := agentstatus.DefaultNotes(os.Getenv)
	return n
}
