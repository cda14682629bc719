package acp

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Gemini CLI reports its mode in a message. The same text of other agents, or with an unknown
// mode, is an ordinary message.
func TestSpokenMode(t *testing.T) {
	const said = `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[MODE_UPDATE] %s"}}`
	for _, c := range []struct{ agent, mode, becomes string }{
		{"gemini-cli", "default", "default"},
		{"gemini-cli", "default, and more", "plan"},
		{"another", "default", "plan"},
	} {
		t.Run(c.agent+" "+c.mode, func(t *testing.T) {
			var s settingState
			s.Introduced(&domain.AgentInfo{Name: c.agent}, domain.PromptTakes{})
			s.Opened(readOffer([]byte(`{"modes":{"currentModeId":"plan","availableModes":[{"id":"plan"},{"id":"default"}]}}`)), true)
			update := s.SpokenMode("agent_message_chunk", fmt.Appendf(nil, said, c.mode))
			assert.Equal(t, c.becomes != "plan", update != nil)
			assert.Equal(t, update != nil, s.Update("current_mode_update", update))
			assert.Equal(t, c.becomes, s.Session().Mode.Current)
		})
	}
}
