package acp

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// setterOf returns a setter for an agent that accepts each mode, and that reported its modes when
// it opened the session.
func setterOf(t *testing.T, isNew bool, current string, modes ...string) *setter {
	t.Helper()
	available := []any{}
	for _, id := range modes {
		available = append(available, map[string]string{"id": id})
	}
	offer, err := json.Marshal(map[string]any{"modes": map[string]any{"currentModeId": current, "availableModes": available}})
	require.NoError(t, err)
	s := new(settingState)
	s.Opened(readOffer(offer), isNew)
	return &setter{State: s, Agent: "ours", Call: func(method string, _ any) (json.RawMessage, error) {
		assert.Equal(t, acp.MethodSessionSetMode, method)
		return json.RawMessage(`{}`), nil
	}}
}

// An agent in plan mode without a mode of the wanted name returns to its first mode, or to the
// only other one. If neither is known, the error says that it still plans.
func TestLeavePlanMode(t *testing.T) {
	for name, c := range map[string]struct {
		isNew  bool
		began  string
		modes  []string
		wanted string
		is     string // its mode afterwards
	}{
		"to its default":                    {true, "code", []string{"code", "plan", "default"}, "default", "default"},
		"to where it began":                 {true, "build", []string{"yolo", "build", "plan"}, "default", "build"},
		"to where it began, allowing edits": {true, "build", []string{"yolo", "build", "plan"}, "acceptEdits", "build"},
		"to the only other":                 {false, "plan", []string{"build", "plan"}, "default", "build"},
		"to nobody knows which":             {false, "plan", []string{"yolo", "build", "plan"}, "default", "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			for way, set := range map[string]func(s *setter) (problem string){
				"while it works": func(s *setter) string { return fmt.Sprint(s.Set(c.wanted, "", nil)) },
				"for a prompt": func(s *setter) (problem string) {
					problem = "<nil>"
					assert.NoError(t, s.ChooseMode("", c.wanted, func(message string) { problem = message }))
					return problem
				},
			} {
				s := setterOf(t, c.isNew, c.began, c.modes...)
				require.NoError(t, s.Set(catalog.ModePlan, "", nil))
				problem := set(s)
				assert.Equal(t, c.is, s.State.Session().Mode.Current, way)
				if c.is == catalog.ModePlan {
					assert.Contains(t, problem, "choose one of yolo, build", way)
				} else {
					assert.Equal(t, "<nil>", problem, way)
				}
			}
		})
	}
}

// An agent that plans by its user's configuration stays in that mode.
func TestConfiguredPlanModeStays(t *testing.T) {
	s := setterOf(t, true, "plan", "build", "plan")
	require.NoError(t, s.ChooseMode("", catalog.ModeDefault, func(message string) { assert.Fail(t, message) }))
	assert.Equal(t, catalog.ModePlan, s.State.Session().Mode.Current)
}
