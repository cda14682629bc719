package acp

import (
	"encoding/json"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// chooseMode sets the mode that the prompt asks for, if the agent has it.
func (a *agent) chooseMode(t *turn) {
	current := a.mode.Load()
	if current == nil {
		return
	}
	wanted := t.Params.PermissionMode
	if wanted != "" && wanted != *current && slices.Contains(a.modes, wanted) {
		_, err := callWithin[json.RawMessage](a, a.driver.opts.StartTimeout, acp.AgentMethodSessionSetMode,
			acp.SetSessionModeRequest{SessionId: a.session, ModeId: acp.SessionModeId(wanted)})
		if err != nil {
			a.driver.log.Warn("the agent did not take the mode", "agent", a.name, "mode", wanted, "err", err)
		} else {
			a.mode.Store(&wanted)
		}
	}
	t.Event(catalog.EventMode, catalog.Mode{Current: *a.mode.Load(), Available: a.modes})
}

// chooseModel sets the model, if the agent offers it.
func (a *agent) chooseModel(config *catalog.ModelConfig) {
	if config == nil || config.Model == "" {
		return
	}
	var err error
	switch option := a.modelOption(config.Model); {
	case option != nil:
		_, err = callWithin[json.RawMessage](a, a.driver.opts.StartTimeout, acp.AgentMethodSessionSetConfigOption, map[string]any{
			"sessionId": a.session, "configId": option.ID, "value": config.Model,
		})
	case slices.Contains(a.models, config.Model):
		_, err = callWithin[json.RawMessage](a, a.driver.opts.StartTimeout, acp.AgentMethodSessionSetModel, map[string]any{
			"sessionId": a.session, "modelId": config.Model,
		})
	default:
		a.driver.log.Debug("the agent does not offer the model", "agent", a.name, "model", config.Model)
	}
	if err != nil {
		a.driver.log.Debug("the agent did not take the model", "agent", a.name, "model", config.Model, "err", err)
	}
}

// modelOption is the agent's option that chooses the model, if it has that
// value.
func (a *agent) modelOption(model string) *configOption {
	for i, o := range a.configs {
		if o.Category != "model" && o.ID != "model" {
			continue
		}
		for _, v := range o.Options {
			if v.Value == model {
				return &a.configs[i]
			}
			for _, w := range v.Options {
				if w.Value == model {
					return &a.configs[i]
				}
			}
		}
	}
	return nil
}

func (a *agent) directories(t *turn) []string {
	if present(a.info.AgentCapabilities.SessionCapabilities.AdditionalDirectories) == nil {
		return nil
	}
	return t.Conversation.AdditionalDirectories
}

// mcpServers are the servers that the agent can use, as it wants to hear of
// them.
func (a *agent) mcpServers(servers []catalog.MCPServer) []acp.McpServer {
	list := []acp.McpServer{}
	can := a.info.AgentCapabilities.MCPCapabilities
	for _, s := range servers {
		headers := []acp.HttpHeader{}
		for name, value := range s.Headers {
			headers = append(headers, acp.HttpHeader{Name: name, Value: value})
		}
		switch {
		case s.Type == "http" && can.HTTP:
			list = append(list, acp.McpServer{Http: &acp.McpServerHttpInline{Type: "http", Name: s.Name, Url: s.URL, Headers: headers}})
		case s.Type == "sse" && can.SSE:
			list = append(list, acp.McpServer{Sse: &acp.McpServerSseInline{Type: "sse", Name: s.Name, Url: s.URL, Headers: headers}})
		case s.Type == "" || s.Type == "stdio":
			env := []acp.EnvVariable{}
			for name, value := range s.Env {
				env = append(env, acp.EnvVariable{Name: name, Value: value})
			}
			list = append(list, acp.McpServer{Stdio: &acp.McpServerStdio{Name: s.Name, Command: s.Command, Args: append([]string{}, s.Args...), Env: env}})
		default:
			a.driver.log.Warn("the agent cannot use this kind of MCP server", "agent", a.name, "server", s.Name, "type", s.Type)
		}
	}
	return list
}
