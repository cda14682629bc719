package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// modeSpoken is how a message of Gemini CLI (0.61) begins in which it says, instead
// of sending current_mode_update, that it is in another mode: when it was set to
// that, and when it has left plan mode. Nothing else is in such a message.
const modeSpoken = "[MODE_UPDATE] "

// SpokenMode is the update of the mode that an update of Gemini CLI stands for;
// nil if it stands for itself. A model may say the same: it gains nothing by that,
// since no mode that an agent enters unasked lets more pass than "default".
func (s *settingState) SpokenMode(kind string, raw []byte) []byte {
	if kind != "agent_message_chunk" || !s.speaksOfModes() {
		return nil
	}
	var c struct {
		Content struct {
			Text *string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &c) != nil || c.Content.Text == nil {
		return nil
	}
	mode, found := strings.CutPrefix(*c.Content.Text, modeSpoken)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !found || s.now.Mode == nil ||
		!slices.ContainsFunc(s.now.Mode.Choices, func(c catalog.Choice) bool { return c.ID == mode }) {
		return nil
	}
	update, _ := json.Marshal(map[string]string{"sessionUpdate": "current_mode_update", "currentModeId": mode})
	return update
}

// speaksOfModes reports whether the agent is Gemini CLI: the text of others, of which
// there is much, is not looked at.
func (s *settingState) speaksOfModes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Agent != nil && s.now.Agent.Name == "gemini-cli"
}
