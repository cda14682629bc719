package domain_test

import (
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
