package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// AuthRequired is the error code of a turn whose agent requires a sign-in, or its key.
const AuthRequired = "AGENT_AUTH_REQUIRED"

// DuetModes are Duet's own; an agent may have others.
var DuetModes = []string{"default", "acceptEdits", "bypassPermissions", "plan"}

// Turn returns a turn by any of its ids; a session's means its last turn.
func Turn(ctx context.Context, c *client.Client, id string) (protocol.Turn, json.RawMessage, error) {
	r, raw, err := TurnGet(ctx, c, protocol.TurnParams{Turn: protocol.Ref(id)})
	return r.Turn, raw, err
}

// Turns lists turns, the newest first.
func Turns(ctx context.Context, c *client.Client, p protocol.ListTurnsParams) ([]protocol.Turn, json.RawMessage, error) {
	r, raw, err := TurnList(ctx, c, p)
	return plain(r.Turns), raw, err
}

// Sessions lists sessions by their last turns, the newest first.
func Sessions(ctx context.Context, c *client.Client, p protocol.SessionListParams) ([]protocol.Turn, json.RawMessage, error) {
	r, raw, err := SessionList(ctx, c, p)
	return plain(r.Sessions), raw, err
}

func plain(turns []*protocol.Turn) []protocol.Turn {
	list := make([]protocol.Turn, len(turns))
	for i, t := range turns {
		list[i] = *t
	}
	return list
}

// BesideWords warns of the turns that may change the same files, or is "".
func BesideWords(beside []string) string {
	switch len(beside) {
	case 0:
		return ""
	case 1:
		return beside[0] + " works in this directory, too: both may change the same files"
	}
	return strings.Join(beside, ", ") + " work in this directory, too: they may change the same files"
}

// LastTurn returns the id of a turn, or that of the newest for "last".
func LastTurn(ctx context.Context, c *client.Client, id string) (string, error) {
	if id != domain.LastTurn {
		return id, nil
	}
	list, _, err := Turns(ctx, c, protocol.ListTurnsParams{Limit: new(uint(1))})
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", errors.New("there is no session yet to continue")
	}
	return list[0].ID, nil
}

// DescribeAgent returns the settings of an agent, or of a session's agent if session is given. "" is
// the default agent.
func DescribeAgent(ctx context.Context, c *client.Client, agent, session string) (protocol.AgentDescription, error) {
	if session != "" {
		s, _, err := Turn(ctx, c, session)
		return protocol.AgentDescription{Agent: s.Agent, Modes: s.Modes, AgentSession: s.AgentSession}, err
	}
	k, _, err := AgentDescribe(ctx, c, protocol.DescribeAgentParams{Agent: agent})
	return k, err
}

// Agents lists the configured and built-in agents.
func Agents(ctx context.Context, c *client.Client) ([]domain.Agent, error) {
	r, _, err := AgentList(ctx, c)
	return r.Agents, err
}

// Terminals lists the hub's terminals.
func Terminals(ctx context.Context, c *client.Client) ([]protocol.Terminal, json.RawMessage, error) {
	r, raw, err := Call[struct{ Terminals []protocol.Terminal }](ctx, c, "terminal.list", nil)
	return r.Terminals, raw, err
}
