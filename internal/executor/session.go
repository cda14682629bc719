package executor

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// What is taken of an agent's answers. The SDK's own types refuse what they do
// not know; an agent that is newer than they are has to work.
type (
	helloResult struct {
		AgentCapabilities struct {
			LoadSession         bool `json:"loadSession"`
			SessionCapabilities struct {
				Resume                json.RawMessage `json:"resume"`
				AdditionalDirectories json.RawMessage `json:"additionalDirectories"`
			} `json:"sessionCapabilities"`
			Meta            json.RawMessage `json:"_meta"`
			MCPCapabilities struct {
				HTTP bool `json:"http"`
				SSE  bool `json:"sse"`
			} `json:"mcpCapabilities"`
		} `json:"agentCapabilities"`
		AgentInfo *struct {
			Name string `json:"name"`
		} `json:"agentInfo"`
		AuthMethods []struct {
			Name string `json:"name"`
		} `json:"authMethods"`
	}
	sessionResult struct {
		SessionID string     `json:"sessionId"`
		Modes     *modeState `json:"modes"`
		Models    *struct {
			CurrentModelID  string `json:"currentModelId"`
			AvailableModels []struct {
				ModelID string `json:"modelId"`
			} `json:"availableModels"`
		} `json:"models"`
		ConfigOptions []configOption `json:"configOptions"`
	}
	modeState struct {
		CurrentModeID  string `json:"currentModeId"`
		AvailableModes []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	}
	configOption struct {
		ID       string          `json:"id"`
		Category string          `json:"category"`
		Current  json.RawMessage `json:"currentValue"`
		Options  []struct {
			Value   string `json:"value"`
			Options []struct {
				Value string `json:"value"`
			} `json:"options"` // of a group
		} `json:"options"`
	}
	promptResult struct {
		StopReason string `json:"stopReason"`
		Usage      *struct {
			InputTokens       int64 `json:"inputTokens"`
			OutputTokens      int64 `json:"outputTokens"`
			CachedReadTokens  int64 `json:"cachedReadTokens"`
			CachedWriteTokens int64 `json:"cachedWriteTokens"`
		} `json:"usage"`
	}
)

// promptAgent runs the prompt with the session's agent, which is started if it
// is not there.
func (r *run) promptAgent(hub catalog.GetExecutionContextResult) (stopReason string, failed *failure) {
	s := r.x.takeSeat(r)
	if s == nil {
		return "", nil // stopped
	}
	defer r.x.leaveSeat(r, s)
	if a := s.agent; a != nil && (a.key != launchKey(r) || a.proc.ended()) {
		s.dismiss()
	}
	if r.stopped() {
		return "", nil
	}
	if s.agent == nil {
		if s.agent, failed = r.startAgent(); failed != nil {
			return "", failed
		}
	} else {
		s.agent.begin(r)
	}
	a := s.agent
	defer a.current.Store(nil)
	finished, guarded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(guarded)
		a.guard(r, finished)
	}()
	stopReason, failed = a.prompt(r, hub)
	close(finished)
	<-guarded
	if a.gone() {
		s.dismiss()
	}
	return stopReason, failed
}

// prompt makes the session ready and runs the prompt in it.
func (a *agent) prompt(r *run, hub catalog.GetExecutionContextResult) (string, *failure) {
	opening, failed := a.openSession(r, hub)
	if failed != nil {
		return "", failed
	}
	a.chooseMode(r)
	a.chooseModel(r, hub.ModelConfig)
	if r.stopped() {
		return "", nil
	}
	result, err := call[promptResult](a, acp.AgentMethodSessionPrompt, acp.PromptRequest{
		SessionId: a.session, Prompt: append(opening, acp.TextBlock(r.params.Prompt)),
	})
	if err != nil {
		return "", a.failure(err)
	}
	if result.StopReason != "cancelled" && !r.stopped() {
		r.took(r.given.turnEnds())
	}
	if u := result.Usage; u != nil {
		usage := catalog.TokenUsage{
			InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
			CacheReadTokens: u.CachedReadTokens, CacheWriteTokens: u.CachedWriteTokens,
		}
		r.report(catalog.EventUsage, catalog.Usage{TokenUsage: usage})
		r.mu.Lock()
		r.usage = &usage
		r.mu.Unlock()
	}
	return result.StopReason, nil
}

// openSession makes sure that the agent has the conversation's session, and
// returns what has to precede the prompt.
func (a *agent) openSession(r *run, hub catalog.GetExecutionContextResult) ([]acp.ContentBlock, *failure) {
	if a.session == "" {
		if failed := a.initialize(); failed != nil {
			return nil, failed
		}
	}
	wanted := acp.SessionId(hub.NativeSessionID)
	switch {
	case a.session != "" && (wanted == "" || wanted == a.session), wanted != "" && a.resume(r, hub, wanted):
		r.report(catalog.EventNativeSession, catalog.NativeSession{SessionID: string(a.session), Resumed: true})
		if text := unseen(hub.Messages, r.params.Prompt); text != "" {
			return []acp.ContentBlock{acp.TextBlock(text)}, nil
		}
		return nil, nil
	case a.gone(): // the attempt was its end
		return nil, a.exited()
	}
	request := acp.NewSessionRequest{
		Cwd: r.params.CWD, McpServers: a.mcpServers(hub.MCPServers), AdditionalDirectories: a.directories(hub),
	}
	claude := a.hello.AgentInfo != nil && strings.Contains(strings.ToLower(a.hello.AgentInfo.Name), "claude")
	if hub.SystemPrompt != "" && claude { // its own way to be told
		request.Meta = map[string]any{"systemPrompt": map[string]any{"append": hub.SystemPrompt}}
	}
	result, err := callWithin[sessionResult](a, 4*a.x.opts.StartTimeout, acp.AgentMethodSessionNew, request)
	switch {
	case err != nil:
		return nil, a.failure(err)
	case result.SessionID == "":
		return nil, &failure{CodeAgent, a.name + ": the agent opened a session without an id"}
	}
	a.opened(result.SessionID, result)
	var opening []acp.ContentBlock
	if hub.SystemPrompt != "" && !claude {
		opening = append(opening, acp.TextBlock(hub.SystemPrompt))
	}
	for _, file := range hub.ContextFiles {
		path := r.files.place.absolute(file)
		opening = append(opening, acp.ResourceLinkBlock(filepath.Base(path), (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()))
	}
	history := transcript(hub.Messages, r.params.Prompt)
	if history != "" {
		opening = append(opening, acp.TextBlock(history))
	}
	r.report(catalog.EventNativeSession, catalog.NativeSession{SessionID: result.SessionID, Primed: history != ""})
	return opening, nil
}

func (a *agent) opened(id string, result sessionResult) {
	a.session = acp.SessionId(id)
	a.modes, a.configs, a.models = nil, result.ConfigOptions, nil
	a.mode.Store(nil)
	if result.Modes != nil {
		a.mode.Store(&result.Modes.CurrentModeID)
		for _, m := range result.Modes.AvailableModes {
			a.modes = append(a.modes, m.ID)
		}
	}
	if result.Models != nil {
		for _, m := range result.Models.AvailableModels {
			a.models = append(a.models, m.ModelID)
		}
	}
}

func (a *agent) initialize() *failure {
	hello, err := callWithin[helloResult](a, a.x.opts.StartTimeout, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "duet", Version: "1"},
		ClientCapabilities: acp.ClientCapabilities{
			Fs: acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true,
		},
	})
	if err != nil {
		return a.failure(err)
	}
	a.hello = hello
	return nil
}

// resume resumes the agent's own session, or loads it, and reports whether it
// is there.
func (a *agent) resume(r *run, hub catalog.GetExecutionContextResult, id acp.SessionId) bool {
	servers, directories := a.mcpServers(hub.MCPServers), a.directories(hub)
	var result sessionResult
	var err error
	switch c := a.hello.AgentCapabilities; {
	case present(c.SessionCapabilities.Resume) != nil:
		result, err = callWithin[sessionResult](a, 4*a.x.opts.StartTimeout, acp.AgentMethodSessionResume, acp.ResumeSessionRequest{
			SessionId: id, Cwd: r.params.CWD, McpServers: servers, AdditionalDirectories: directories,
		})
	case c.LoadSession:
		a.loading.Store(true)
		defer a.loading.Store(false)
		result, err = callWithin[sessionResult](a, 4*a.x.opts.StartTimeout, acp.AgentMethodSessionLoad, acp.LoadSessionRequest{
			SessionId: id, Cwd: r.params.CWD, McpServers: servers, AdditionalDirectories: directories,
		})
	default:
		return false
	}
	if err != nil {
		a.x.log.Info("the agent has lost its session", "agent", a.name, "err", err)
		return false
	}
	a.opened(string(id), result)
	return true
}

// chooseMode sets the mode that the prompt asks for, if the agent has it.
func (a *agent) chooseMode(r *run) {
	current := a.mode.Load()
	if current == nil {
		return
	}
	wanted := r.params.PermissionMode
	if wanted != "" && wanted != *current && slices.Contains(a.modes, wanted) {
		_, err := callWithin[json.RawMessage](a, a.x.opts.StartTimeout, acp.AgentMethodSessionSetMode,
			acp.SetSessionModeRequest{SessionId: a.session, ModeId: acp.SessionModeId(wanted)})
		if err != nil {
			a.x.log.Warn("the agent did not take the mode", "agent", a.name, "mode", wanted, "err", err)
		} else {
			a.mode.Store(&wanted)
		}
	}
	r.report(catalog.EventMode, catalog.Mode{Current: *a.mode.Load(), Available: a.modes})
}

// chooseModel sets the model, if the agent offers it.
func (a *agent) chooseModel(r *run, config *catalog.ModelConfig) {
	if config == nil || config.Model == "" {
		return
	}
	var err error
	switch option := a.modelOption(config.Model); {
	case option != nil:
		_, err = callWithin[json.RawMessage](a, a.x.opts.StartTimeout, acp.AgentMethodSessionSetConfigOption, map[string]any{
			"sessionId": a.session, "configId": option.ID, "value": config.Model,
		})
	case slices.Contains(a.models, config.Model):
		_, err = callWithin[json.RawMessage](a, a.x.opts.StartTimeout, acp.AgentMethodSessionSetModel, map[string]any{
			"sessionId": a.session, "modelId": config.Model,
		})
	default:
		a.x.log.Debug("the agent does not offer the model", "agent", a.name, "model", config.Model)
	}
	if err != nil {
		a.x.log.Debug("the agent did not take the model", "agent", a.name, "model", config.Model, "err", err)
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

func (a *agent) directories(hub catalog.GetExecutionContextResult) []string {
	if present(a.hello.AgentCapabilities.SessionCapabilities.AdditionalDirectories) == nil {
		return nil
	}
	return hub.AdditionalDirectories
}

// mcpServers are the servers that the agent can use, as it wants to hear of
// them.
func (a *agent) mcpServers(servers []catalog.MCPServer) []acp.McpServer {
	list := []acp.McpServer{}
	can := a.hello.AgentCapabilities.MCPCapabilities
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
			a.x.log.Warn("the agent cannot use this kind of MCP server", "agent", a.name, "server", s.Name, "type", s.Type)
		}
	}
	return list
}
