package dialect

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
)

func TestStatesInTheWordsOfHumanLayer(t *testing.T) {
	for state, want := range map[domain.State]string{
		domain.New: "", domain.Queued: "starting", domain.Starting: "starting", domain.Running: "running", domain.WaitingInput: "waiting_input",
		domain.Interrupting: "interrupting", domain.Completed: "completed", domain.Failed: "failed", domain.TimedOut: "failed",
		domain.Cancelled: "interrupted", domain.Interrupted: "interrupted", domain.Draft: "draft", domain.Discarded: "discarded",
	} {
		assert.Equal(t, want, StatusOf(state))
	}
}
