package acpagent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

type turnKey struct{}

// promptArrives registers a turn before the client's next message is read, because that message
// may cancel it.
func (a *agent) promptArrives(ctx context.Context, params json.RawMessage) context.Context {
	var p acp.SessionParams
	_ = json.Unmarshal(params, &p) // an unreadable request names no session
	s := a.lookup(p.SessionID)
	if s == nil {
		return ctx
	}
	t := newTurn()
	s.mu.Lock()
	if n := len(s.turns); n > 0 {
		t.before = s.turns[n-1].begun
	}
	s.turns = append(s.turns, t)
	s.mu.Unlock()
	context.AfterFunc(ctx, func() { s.forgetUnclaimed(t) })
	return context.WithValue(ctx, turnKey{}, t)
}

// claim reports whether a turn is still registered, and passes it to its handler.
func (s *session) claim(t *turn, prompt []json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.claimed, t.prompt = slices.Contains(s.turns, t), prompt
	return t.claimed
}

// forgetUnclaimed removes a turn whose request ended before its handler started: its parameters
// were wrong, or it was cancelled.
func (s *session) forgetUnclaimed(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.claimed {
		s.forgetTurn(t)
	}
}

// prompt runs a turn. For a client with states the response comes when the transcript contains the
// prompt, or is an error if it never will. For any other it comes at the end of the turn.
func (a *agent) prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil {
		return acp.PromptResponse{}, notFound(p.SessionID)
	}
	r, err := s.runPrompt(ctx, t, p)
	if err == nil && s.hasStates && r.MessageID == "" {
		return r, server.NewError(server.CodeCancelled, "Request cancelled: the prompt was not added to the session", nil)
	}
	return r, err
}

// runPrompt runs a turn. The turn ends with the hub's turn, whatever else happens in the
// session.
func (s *session) runPrompt(ctx context.Context, t *turn, p acp.PromptRequest) (acp.PromptResponse, error) {
	if !s.claim(t, p.Prompt) {
		return acp.PromptResponse{StopReason: acp.StopCancelled}, nil
	}
	defer s.turnLeft(t)
	if t.before != nil { // prompts begin in the order of their arrival
		select {
		case <-t.before:
		case <-s.ctx.Done():
			return acp.PromptResponse{StopReason: acp.StopCancelled}, nil
		case <-ctx.Done():
			return acp.PromptResponse{StopReason: acp.StopCancelled}, nil
		}
	}
	full := readPrompt(p.Prompt)
	if len(p.Meta) <= catalog.MaxMeta && bytes.HasPrefix(p.Meta, []byte("{")) {
		full.meta = p.Meta
	}
	if strings.TrimSpace(full.text) == "" {
		return acp.PromptResponse{}, server.InvalidParam(server.ParamError{
			Param: "prompt", Expected: "a text, or something beside text", Received: "nothing",
		})
	}
	if text, handled, err := s.command(ctx, full.text); err != nil {
		return acp.PromptResponse{}, err
	} else if handled {
		return s.commandRan(p.Prompt, text), nil
	}
	// If the request is cancelled while the turn begins, the turn is ended afterwards: until the
	// hub has answered, it is unknown whether the turn has begun.
	s.order.Lock()
	id, err := s.begin(context.WithoutCancel(ctx), t, full)
	s.order.Unlock()
	t.markBegun()
	if err != nil {
		return acp.PromptResponse{}, full.refused(err)
	}
	if id == "" {
		return acp.PromptResponse{StopReason: acp.StopCancelled}, nil
	}
	defer context.AfterFunc(ctx, func() { s.requestCancelled(id) })()
	select {
	case o := <-t.ended:
		return s.response(ctx, id, o)
	case <-s.ctx.Done(): // the client has closed or deleted the session
	case <-s.conn.Stopping(): // no client reads the answer; the turn continues
	}
	return acp.PromptResponse{StopReason: acp.StopCancelled}, nil
}

// requestCancelled ends a turn whose request the client has cancelled. If the connection has
// ended instead, the turn continues. For a client with states the request ends when the turn begins.
func (s *session) requestCancelled(id string) {
	s.mu.Lock()
	r := s.work.find(id)
	hasBegun := s.hasStates && (r == nil || r.inserted)
	s.mu.Unlock()
	select {
	case <-s.conn.Stopping():
	default:
		if !hasBegun {
			s.interrupt(id)
		}
	}
}

// turnLeft removes a turn that was answered.
func (s *session) turnLeft(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetTurn(t)
}

// forgetTurn is turnLeft for a caller that holds s.mu.
func (s *session) forgetTurn(t *turn) {
	t.markBegun()
	s.turns = slices.DeleteFunc(s.turns, func(other *turn) bool { return other == t })
}

// begin starts the hub session of a turn, and returns its id; "" if the client has cancelled the
// turn before. The caller holds s.order.
func (s *session) begin(ctx context.Context, t *turn, full fullPrompt) (id string, err error) {
	s.mu.Lock()
	start, workspace, cancelled := s.start, s.workspace, t.cancelled
	s.mu.Unlock()
	if cancelled {
		return "", nil
	}
	hub := s.agent.hub
	var started protocol.Started
	if start == nil {
		params := promptParams{protocol.PromptParams{
			Session: protocol.Ref(s.id), Prompt: &full.text,
			NextTurn: protocol.NextTurn{AgentSettings: settingsOf(protocol.Value(workspace), s.agent.readsFiles())},
		}, full.content}
		started, err = s.started(ctx, full.meta, func(metadata json.RawMessage) (string, any) {
			params.Metadata = metadata
			return "session.prompt", params
		})
		if err != nil {
			return "", err
		}
	} else {
		since, err := hubclient.LastSeq(ctx, hub)
		if err != nil {
			return "", err
		}
		if started, err = s.launch(ctx, start, full); err != nil {
			return "", err
		}
		s.mu.Lock()
		s.start = nil
		s.mu.Unlock()
		if err := s.follow(context.WithoutCancel(ctx), since); err != nil {
			return "", err
		}
	}
	s.mu.Lock()
	t.id, s.workspace = started.ID, nil
	s.ours[t.id] = true
	if s.hasStates {
		s.work.get(t.id)
	}
	cancelled = t.cancelled
	s.mu.Unlock()
	if cancelled {
		s.interrupt(started.ID)
	}
	return started.ID, nil
}

// startParams are the parameters of session.start with the client's content as it came.
type startParams struct {
	protocol.StartParams
	Content []json.RawMessage `json:"content,omitempty"`
}

// promptParams are the parameters of session.prompt with the client's content as it came.
type promptParams struct {
	protocol.PromptParams
	Content []json.RawMessage `json:"content,omitempty"`
}

// forkParams are the parameters of session.fork with the client's content as it came.
type forkParams struct {
	protocol.ForkParams
	Content []json.RawMessage `json:"content,omitempty"`
}

// launch starts the session.
func (s *session) launch(ctx context.Context, b *beginning, full fullPrompt) (protocol.Started, error) {
	settings := settingsOf(b.workspace, s.agent.readsFiles())
	return s.started(ctx, full.meta, func(metadata json.RawMessage) (string, any) {
		if b.from != "" {
			return "session.fork", forkParams{protocol.ForkParams{
				Turn: protocol.Ref(b.from), SessionUUID: s.id, Prompt: full.text,
				NextTurn: protocol.NextTurn{AgentSettings: settings, Metadata: metadata},
			}, full.content}
		}
		return "session.start", startParams{protocol.StartParams{
			Prompt: full.text, SessionUUID: s.id, AgentSettings: settings, Metadata: metadata,
			WorkingDir: b.workspace.CWD, Agent: b.agent, Mode: b.mode, Model: b.model, Options: b.options,
			Worktree: new(false), // the editor shows the files of the directory that it names
		}, full.content}
	})
}

// beginsTried limits the attempts to begin a turn when hubs end before they answer.
const beginsTried = 5

// promptMetadata is stored with the session of a prompt.
type promptMetadata struct {
	Meta   json.RawMessage `json:"_meta,omitempty"` // the client's, for the agent
	Client string          `json:"client"`
	Prompt string          `json:"prompt"` // a UUID
	Source string          `json:"source"`
}

// started asks the hub to start the session of a prompt, with the method and parameters that call
// returns for the session's metadata. meta is the client's _meta for the agent. A hub that ended before it answered may
// have started it. The next hub recognizes that by the prompt's id.
func (s *session) started(ctx context.Context, meta json.RawMessage, call func(metadata json.RawMessage) (method string, params any)) (started protocol.Started, err error) {
	prompt := uuid.NewString()
	metadata, err := json.Marshal(promptMetadata{Meta: meta, Client: s.agent.client.title(), Prompt: prompt, Source: "acp"})
	if err != nil {
		return started, err
	}
	method, params := call(metadata)
	for range beginsTried {
		err = s.agent.hub.Call(ctx, method, params, &started, client.SentOnce())
		if client.KindOf(err) != hubclient.KindHubLost {
			return started, err
		}
		last, _, notBegun := hubclient.Turn(ctx, s.agent.hub, s.id)
		var is struct{ Prompt string }
		if notBegun == nil && json.Unmarshal(last.Metadata, &is) == nil && is.Prompt == prompt {
			return protocol.Started{ID: last.ID}, nil
		}
		if client.KindOf(notBegun) == hubclient.KindHubLost {
			break // there is no new hub
		}
	}
	return started, err
}

// settingsOf returns the settings of a turn in a client's workspace: its MCP servers, directories and
// system prompt.
func settingsOf(w acp.Workspace, readsFiles bool) protocol.AgentSettings {
	return protocol.AgentSettings{
		ReadsFiles: readsFiles, MCPConfig: mcpConfig(w.MCPServers), AdditionalDirectories: w.AdditionalDirectories,
		AppendSystemPrompt: w.SystemPrompt.Text(),
	}
}

// response returns the response to a prompt whose turn has ended or, for a client with states, has begun.
func (s *session) response(ctx context.Context, id string, o outcome) (acp.PromptResponse, error) {
	if o.inserted != "" {
		return acp.PromptResponse{MessageID: o.inserted}, nil
	}
	if o.code == orphaned {
		s.askAfterReply(ctx)
	}
	return s.ending(context.WithoutCancel(ctx), id, o)
}

// ending returns how a turn ended: its stop reason and usage, or the error that ended it.
func (s *session) ending(ctx context.Context, id string, o outcome) (acp.PromptResponse, error) {
	why, isFailure := o.stopped()
	r := acp.PromptResponse{StopReason: why}
	state, _, err := hubclient.Turn(ctx, s.agent.hub, id)
	if isFailure {
		if o.code == authRequired {
			s.agent.mustSignIn(state.Agent)
		}
		if o.code == orphaned && s.asksAgain() {
			o.err += "; its question is still open, and the agent continues when you answer it"
		}
		return r, s.agent.failed(o)
	}
	if err == nil && protocol.Value(state.TotalTokens) > 0 {
		r.Usage = &acp.Usage{
			Total: *state.TotalTokens, Input: protocol.Value(state.InputTokens), Output: protocol.Value(state.OutputTokens),
			CachedRead: protocol.Value(state.CacheReadTokens), CachedWrite: protocol.Value(state.CacheWriteTokens),
		}
	}
	return r, nil
}

// orphaned is the error code of a session whose process died together with its hub.
const orphaned = "ORPHANED"

// asksAgain reports whether a turn has left questions that the client must be asked again.
func (s *session) asksAgain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.askAgain) > 0
}

// askAfterReply repeats the open questions of a prompt's turn to the client, after the response
// to the prompt.
func (s *session) askAfterReply(ctx context.Context) {
	server.AfterReply(ctx, func() {
		s.conn.Go(func(context.Context) {
			s.order.Lock()
			defer s.order.Unlock()
			s.askOpen()
		})
	})
}

// cancel ends the turns that the client waits for, or the running turn if it waits for none. For
// a client with states it ends every turn of the session, queued ones included. It does not wait for the
// ends.
func (s *session) cancel() {
	ids := s.cancelled()
	s.conn.Go(func(context.Context) {
		for _, id := range ids {
			s.interrupt(id)
		}
	})
}

// cancelled marks the client's turns as cancelled, and returns the turns to end: the last one
// first, since a queued turn begins when the one before it ends.
func (s *session) cancelled() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.turns {
		t.cancelled = true
		if t.id != "" && !s.hasStates {
			ids = append(ids, t.id)
		}
	}
	if len(s.turns) == 0 && s.running != "" && !s.hasStates {
		ids = []string{s.running}
	}
	for _, r := range s.work.turns {
		ids = append(ids, r.id)
	}
	slices.Reverse(ids)
	return ids
}

// An mcpServer is an MCP server in the hub's form: a program, or an address.
type mcpServer struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitzero"`
	Env     map[string]string `json:"env,omitzero"`
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitzero"`
}

// mcpConfig converts a client's MCP servers to the hub's form; nil for none. It drops invalid ones,
// because the user cannot correct them.
func mcpConfig(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list)
	servers := make(map[string]mcpServer)
	for _, item := range list {
		var m acp.MCPServer
		if json.Unmarshal(item, &m) != nil || m.Name == "" || m.Command == "" && m.URL == "" {
			continue
		}
		if m.URL != "" {
			servers[m.Name] = mcpServer{Type: cmp.Or(m.Type, "http"), URL: m.URL, Headers: values(m.Headers)}
		} else {
			servers[m.Name] = mcpServer{Command: m.Command, Args: append([]string{}, m.Args...), Env: values(m.Env)}
		}
	}
	if len(servers) == 0 {
		return nil
	}
	config, _ := json.Marshal(map[string]map[string]mcpServer{"mcpServers": servers}) // strings: it cannot fail
	return config
}

func values(list []acp.Variable) map[string]string {
	m := make(map[string]string, len(list))
	for _, v := range list {
		m[v.Name] = v.Value
	}
	return m
}

// A fullPrompt is a prompt in the hub's form: its text, and its other content.
type fullPrompt struct {
	text    string
	content []json.RawMessage
	blocks  []int           // the index in the client's prompt of each content
	meta    json.RawMessage // the client's _meta, for the agent; nil: none
}

func readPrompt(blocks []json.RawMessage) (p fullPrompt) {
	var texts []string
	for i, raw := range blocks {
		var block acp.Content
		if json.Unmarshal(raw, &block) == nil && block.Type == "text" && block.Text != nil {
			texts = append(texts, *block.Text)
			continue
		}
		p.content, p.blocks = append(p.content, raw), append(p.blocks, i)
	}
	p.text = strings.Join(texts, "\n")
	if strings.TrimSpace(p.text) == "" && len(p.content) > 0 {
		p.text = "See what is attached."
	}
	return p
}

// refused converts an error of the hub for the client. The hub's content[n] has another index in
// the client's prompt.
func (p fullPrompt) refused(err error) error {
	var e *client.Error
	var wrong server.ParamError
	if !errors.As(err, &e) || e.Code != jsonrpc2.CodeInvalidParams || json.Unmarshal(e.Data, &wrong) != nil {
		return refused(err)
	}
	rest, ok := strings.CutPrefix(wrong.Param, "content")
	if !ok {
		return refused(err)
	}
	wrong.Param = "prompt" + rest
	if index, member, found := strings.Cut(strings.TrimPrefix(rest, "["), "]"); found {
		n, err := strconv.Atoi(index)
		if err == nil && n >= 0 && n < len(p.blocks) {
			wrong.Param = fmt.Sprintf("prompt[%d]%s", p.blocks[n], member)
		}
	}
	return server.InvalidParam(wrong)
}

// steer sends a message to the agent in the middle of its turn, or queues it after the turn. In
// an idle session it answers promptRequired: only session/prompt reports the end of a turn.
func (a *agent) steer(ctx context.Context, p acp.SteerRequest) (acp.SteerResponse, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return acp.SteerResponse{}, err
	}
	full := readPrompt(p.Prompt)
	if strings.TrimSpace(full.text) == "" {
		return acp.SteerResponse{}, server.InvalidParam(server.ParamError{
			Param: "prompt", Expected: "a text, or something beside text", Received: "nothing",
		})
	}
	s.mu.Lock()
	isIdle := s.start != nil || s.running == "" && len(s.turns) == 0
	if !isIdle && !s.hasStates { // a client with states gets each message
		s.steered = append(s.steered, full.text)
	}
	s.mu.Unlock()
	if isIdle {
		return acp.SteerResponse{Outcome: acp.SteerPromptRequired, Reason: "noRunningTurn"}, nil
	}
	started, err := s.started(ctx, nil, func(metadata json.RawMessage) (string, any) {
		return "session.prompt", promptParams{protocol.PromptParams{
			Session: protocol.Ref(s.id), Prompt: &full.text, Deliver: "steer", NextTurn: protocol.NextTurn{Metadata: metadata},
		}, full.content}
	})
	if err != nil {
		s.forgetSteered(full.text)
		return acp.SteerResponse{}, full.refused(err)
	}
	if started.Delivered == protocol.DeliveredInjected {
		return acp.SteerResponse{Outcome: acp.SteerInjected}, nil
	}
	s.forgetSteered(full.text)
	s.mu.Lock()
	s.ours[started.ID] = true // the client already has its text
	s.mu.Unlock()
	return acp.SteerResponse{Outcome: acp.SteerQueued}, nil
}

// forgetSteered removes a steered message of this client, and reports whether there was one.
func (s *session) forgetSteered(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.steered, text)
	if i < 0 {
		return false
	}
	s.steered = slices.Delete(s.steered, i, i+1)
	return true
}
