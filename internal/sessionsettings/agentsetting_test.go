package sessionsettings

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func choices(ids ...string) *domain.Selection {
	s := new(domain.Selection)
	for _, id := range ids {
		s.Choices = append(s.Choices, domain.Choice{ID: id})
	}
	return s
}

var (
	acpAgent = config.Agent{Name: "ours", Driver: config.DriverACP}
	command  = config.Agent{Name: "plain", Driver: config.DriverCommand}
)

// Duet's modes are available with every agent, once each, after its own. Plan is available only if
// the agent has it, or has no modes and asks before it acts.
func TestModes(t *testing.T) {
	for name, c := range map[string]struct {
		agent    config.Agent
		reported domain.AgentSession
		want     []string
	}{
		"nothing told": {acpAgent, domain.AgentSession{}, []string{"default", "acceptEdits", "bypassPermissions", "plan"}},
		"a command":    {command, domain.AgentSession{}, []string{"default", "acceptEdits", "bypassPermissions"}},
		"its own":      {acpAgent, domain.AgentSession{Modes: choices("architect", "default")}, []string{"architect", "default", "acceptEdits", "bypassPermissions"}},
	} {
		assert.Equal(t, c.want, modesOf(c.agent, c.reported), name)
		assert.Equal(t, Known{c.agent.Name, c.reported, c.want}, settingsOfAgent(c.agent, c.reported), name)
	}
	assert.Equal(t, []string{"default", "acceptEdits", "bypassPermissions"}, duets, "no caller has the list itself")
}

// An unsupported setting is refused with the valid values.
func TestCheck(t *testing.T) {
	session := domain.AgentSession{
		Modes: choices("architect"), Models: choices("small", "large"),
		Options: []domain.AgentOption{{ID: "effort", Choices: choices("low", "high").Choices}, {ID: "free"}},
	}
	for name, c := range map[string]struct {
		agent       config.Agent
		reported    domain.AgentSession
		mode, model string
		options     map[string]string
		param       string // the refused parameter; "": none
		message     string
		accepted    []string
	}{
		"nothing asked":         {acpAgent, session, "", "", nil, "", "", nil},
		"all that it has":       {acpAgent, session, "architect", "large", map[string]string{"effort": "high", "free": "any"}, "", "", nil},
		"a mode of Duet's":      {acpAgent, session, "acceptEdits", "", nil, "", "", nil},
		"no longer asked for":   {acpAgent, session, "", "", map[string]string{"effort": ""}, "", "", nil},
		"nothing told":          {acpAgent, domain.AgentSession{}, "any", "any", map[string]string{"any": "thing"}, "", "", nil},
		"another mode":          {acpAgent, session, "plan", "", nil, "permission_mode", "a mode of the agent ours", modesOf(acpAgent, session)},
		"it has no modes":       {acpAgent, domain.AgentSession{Modes: choices()}, "x", "", nil, "permission_mode", "a permission mode", modesOf(acpAgent, domain.AgentSession{})},
		"a command and plan":    {command, domain.AgentSession{}, "plan", "", nil, "permission_mode", "acts without asking", duets},
		"a command's mode":      {command, domain.AgentSession{}, "x", "", nil, "permission_mode", "a permission mode", duets},
		"another model":         {acpAgent, session, "", "huge", nil, "model", "a model of the agent ours", []string{"small", "large"}},
		"another option":        {acpAgent, session, "", "", map[string]string{"x": "1"}, "options", "options of the agent ours", []string{"effort", "free"}},
		"another option's end":  {acpAgent, session, "", "", map[string]string{"x": ""}, "options", `"x"`, []string{"effort", "free"}},
		"another value":         {acpAgent, session, "", "", map[string]string{"effort": "huge"}, "options.effort", "a value that the agent ours has", []string{"low", "high"}},
		"the first by its name": {acpAgent, session, "", "", map[string]string{"z": "1", "b": "1"}, "options", `"b"`, []string{"effort", "free"}},
		"it has no options":     {acpAgent, domain.AgentSession{Options: []domain.AgentOption{}}, "", "", map[string]string{"x": "1"}, "options", `"x"`, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkSetting(c.agent, c.reported, c.mode, c.model, c.options)
			if c.param == "" {
				require.NoError(t, err)
				return
			}
			var refused *domain.Error
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, domain.KindInvalid, refused.Kind)
			assert.Equal(t, c.param, refused.Param)
			assert.Contains(t, refused.Message, c.message)
			assert.Equal(t, c.accepted, refused.Accepted)
		})
	}
}

func content(kind string) (c domain.Content) {
	c.Type = kind
	return c
}

// Images and sound go only to an agent that accepts them or has reported nothing.
func TestCheckContent(t *testing.T) {
	image, audio, text := content(domain.BlockImage), content(domain.BlockAudio), content("text")
	sees := domain.AgentSession{Takes: &domain.PromptTakes{Image: true}}
	assert.NoError(t, CheckContent("ours", domain.AgentSession{}, []domain.Content{image, audio}))
	assert.NoError(t, CheckContent("ours", sees, []domain.Content{text, image}))
	assert.EqualError(t, CheckContent("ours", sees, []domain.Content{image, audio}),
		"content: expected what the agent ours takes in prompts: text, images and links to resources, received content of the type audio")
	assert.Error(t, CheckContent("ours", domain.AgentSession{Takes: &domain.PromptTakes{Audio: true}}, []domain.Content{image}))
}

// seen holds agents' reports: one in a session, and the last ones elsewhere.
type seen struct {
	inSession domain.AgentSessionSeen
	last      map[string]*domain.Selection
	err       error
}

func (s seen) AgentSession(_ context.Context, session int64) (domain.AgentSessionSeen, error) {
	if session == 0 {
		return s.inSession, errors.New("there is no session 0")
	}
	return s.inSession, s.err
}

func (s seen) LastAgentSession(_ context.Context, agent string) (domain.AgentSessionSeen, error) {
	return domain.AgentSessionSeen{AgentSession: domain.AgentSession{Models: s.last[agent]}}, nil
}

// The agent's report in the session precedes its last report elsewhere. Another agent's earlier
// report in the session does not count.
func TestReportedBy(t *testing.T) {
	here, there, others := choices("here"), choices("there"), choices("others")
	s := seen{last: map[string]*domain.Selection{"ours": there, "other": others}}
	s.inSession = domain.AgentSessionSeen{Agent: "ours", AgentSession: domain.AgentSession{Models: here}}
	for _, c := range []struct {
		session int64
		agent   string
		want    *domain.Selection
	}{{1, "ours", here}, {0, "ours", there}, {1, "other", others}, {1, "new", nil}} {
		reported, err := ReportedBy(t.Context(), s, c.session, c.agent)
		require.NoError(t, err)
		assert.Same(t, c.want, reported.Models, "%+v", c)
	}
	s.err = errors.New("the disk is gone")
	_, err := ReportedBy(t.Context(), s, 1, "other")
	assert.ErrorIs(t, err, s.err)
}
