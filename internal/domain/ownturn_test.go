package domain_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestTurnTriggerText(t *testing.T) {
	for want, trigger := range map[string]domain.TurnTrigger{
		"Continued by itself": {},
		"Continued by itself: background task finished (sleep 3)": {Kind: "background_notification", Label: "sleep 3"},
		"Continued by itself: background task finished":           {Kind: "task-notification"},
		"Continued by itself: working towards its goal":           {Kind: "goal"},
		"Continued by itself: wake up call":                       {Kind: "wake_up-call"},
	} {
		assert.Equal(t, want, trigger.String())
	}
}

// Agent-initiated runs keep the depth of the configured trigger that led to them.
func TestAgentInitiatedRunKeepsTriggerDepth(t *testing.T) {
	first := domain.Run{Source: domain.SourceTrigger, Metadata: json.RawMessage(`{"trigger":"nightly","trigger_depth":3,"plan":[]}`)}
	second := domain.Run{Source: domain.SourceAgent}
	second.SetTrigger(domain.TurnTrigger{Kind: "goal"}, first)
	third := domain.Run{Source: domain.SourceAgent}
	third.SetTrigger(domain.TurnTrigger{}, second)
	assert.JSONEq(t, `{"turn_trigger":{"kind":"goal"},"trigger":"nightly","trigger_depth":3}`, string(second.Metadata))
	assert.JSONEq(t, `{"trigger":"nightly","trigger_depth":3}`, string(third.Metadata))
	assert.Equal(t, "Continued by itself: working towards its goal", second.Summary())

	other := domain.Run{Source: domain.SourceAgent}
	other.SetTrigger(domain.TurnTrigger{}, domain.Run{Source: domain.SourceSession, Metadata: json.RawMessage(`{"trigger":"forged","trigger_depth":9}`)})
	assert.JSONEq(t, `{}`, string(other.Metadata))
}
