package protocol

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
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

func TestTextsAreCutWhereTheySaySo(t *testing.T) {
	assert.Equal(t, "abc", Cut("abc", 3))
	assert.Equal(t, "ab… [1 of 3 bytes left out]", Cut("abc", 2))
	assert.Equal(t, "… [2 of 2 bytes left out]", Cut("é", 1), "never inside a character")
}
