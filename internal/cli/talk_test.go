package cli

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// The footer shows the mode in force, also after the agent has left the requested one.
func TestFooterShowsTheModeInForce(t *testing.T) {
	view := turn.NewView(io.Discard, io.Discard, true, false)
	session := protocol.Turn{ID: "s", Agent: "claude", Mode: "auto", RequestedMode: "plan", AgentMode: "auto"}
	talk := &talking{view: view, talk: turn.NewTalk(view, session, turn.TalkOptions{})}
	assert.Equal(t, "  claude · auto · RET sends, C-d leaves", talk.footer())
	now := &domain.Selection{Current: "auto", Choices: []domain.Choice{{ID: "auto", Name: "Auto"}}}
	talk.agent.AgentSession = &protocol.AgentSession{Mode: now}
	assert.Equal(t, "  claude · auto · RET sends, C-d leaves", talk.footer())
	talk.talk.Session.Mode = "default"
	assert.Equal(t, "  claude · Auto · RET sends, C-d leaves", talk.footer(), "the agent has left the default by itself")
	now.Current = "default"
	talk.talk.Session.Mode = "acceptEdits"
	assert.Equal(t, "  claude · acceptEdits · RET sends, C-d leaves", talk.footer(), "Duet's own mode")
}

// All clients round the share of the context in the same way.
func TestFooterRoundsTheContext(t *testing.T) {
	view := turn.NewView(io.Discard, io.Discard, true, false)
	session := protocol.Turn{ID: "s", Agent: "claude", ContextTokens: new(int64(259)), ContextSize: new(int64(1000))}
	talk := &talking{view: view, talk: turn.NewTalk(view, session, turn.TalkOptions{})}
	assert.Equal(t, "  claude · context 26 % · RET sends, C-d leaves", talk.footer())
}
