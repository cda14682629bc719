package config

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// agents resolves names to configured errors.
type agents map[string]error

func (a agents) Resolve(name string) (Agent, error) {
	if err := a[name]; err != nil {
		return Agent{}, err
	}
	if name == "" {
		name = "default"
	}
	return Agent{Name: name, Driver: map[string]string{"theirs": DriverExecutor}[name]}, nil
}

func TestErrorsSayWhatToDo(t *testing.T) {
	c := Configuration{Agents: agents{
		"nobody": &UnknownAgentError{Name: "nobody", Known: []string{"a", "b"}}, "projects": &NotTrustedError{Agent: "projects"}, "broken": errors.New("it is broken"),
	}}
	for name, kind := range map[string]string{"nobody": domain.KindUnknownAgent, "projects": domain.KindNotTrusted, "broken": domain.KindExecutor} {
		_, err := c.Agent(name)
		var e *domain.Error
		assert.ErrorAs(t, err, &e)
		assert.Equal(t, kind, e.Kind)
		assert.Equal(t, Agent{Name: name}, c.Known(name), "a caller that only asks for known agents gets no error")
	}
	agent, err := c.Agent("")
	assert.NoError(t, err)
	assert.Equal(t, "default", agent.Name)
	assert.True(t, c.ConfirmsAnswers("ours"))
	assert.False(t, c.ConfirmsAnswers("theirs"))
}

// A restricted client gets nothing from the project's file: no agent and no key, even if the
// configuration cannot be read.
func TestWhatARestrictedTurnGets(t *testing.T) {
	all, own := map[string]Key{"all": {}}, map[string]Key{"own": {}}
	var unreadable error
	c := Configuration{
		Agents: agents{}, Logger: slog.New(slog.DiscardHandler),
		Current: func(restricted bool) (*Config, error) {
			if restricted {
				return &Config{Keys: own}, unreadable
			}
			return &Config{Keys: all}, nil
		},
	}
	var turn domain.Turn
	assert.Equal(t, all, c.KeysOf(turn))
	_, err := c.AgentFor(false, "mine")
	assert.NoError(t, err)

	turn.Restricted = true
	assert.Equal(t, own, c.KeysOf(turn))
	_, err = c.AgentFor(true, "mine")
	assert.Error(t, err, "its configuration has no such agent")
	unreadable = errors.New("it cannot be read")
	assert.Nil(t, c.KeysOf(turn))
	_, err = c.AgentFor(true, "mine")
	assert.ErrorContains(t, err, "it cannot be read")
}
