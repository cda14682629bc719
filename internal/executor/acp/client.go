package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/workspace"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// serve answers a request of the agent in a goroutine of its own. ctx ends with the agent, or
// when the agent cancels the request.
func (a *agent) serve(ctx context.Context, method string, params json.RawMessage) (any, error) {
	defer a.requests.served()
	if t := a.turns.now(); t != nil {
		if method == acp.MethodTerminalWait {
			defer t.silence.WaitsForProgram()()
		} else {
			defer t.silence.Waits()()
		}
	}
	switch method {
	case acp.MethodSessionUpdate: // sent as a request; the filter has handled it
		return struct{}{}, nil
	case acp.MethodRequestPermission: // the agent gets its answer before a prompt that may follow
		answer, err := handle(ctx, params, a.requestPermission)
		return acp.Reply{Result: answer, Then: a.requests.questionAnswered}, err
	case acp.MethodElicit:
		answer, err := handle(ctx, params, a.elicit)
		return acp.Reply{Result: answer, Then: a.requests.questionAnswered}, err
	case acp.MethodReadTextFile:
		return handle(ctx, params, a.readTextFile)
	case acp.MethodWriteTextFile:
		return handle(ctx, params, a.writeTextFile)
	case acp.MethodTerminalCreate:
		return handle(ctx, params, a.createTerminal)
	case acp.MethodTerminalOutput:
		return handle(ctx, params, a.terminalOutput)
	case acp.MethodTerminalWait:
		return handle(ctx, params, a.awaitTerminal)
	case acp.MethodTerminalKill:
		return handle(ctx, params, a.killTerminal)
	case acp.MethodTerminalRelease:
		return handle(ctx, params, a.releaseTerminal)
	}
	if method == qwenStartTurn {
		return struct{}{}, nil
	}
	return nil, acp.MethodNotFound(method)
}

// handle decodes params for f.
func handle[P, R any](ctx context.Context, params json.RawMessage, f func(context.Context, P) (R, error)) (any, error) {
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.InvalidParams(err)
	}
	return f(ctx, p)
}

// none is an empty result.
type none struct{}

func (a *agent) readTextFile(ctx context.Context, p acp.ReadTextFileParams) (acp.ReadTextFileResult, error) {
	a.acted()
	text, err := a.workspace.ReadText(p.Path, p.Line, p.Limit)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // else the agent may not read it, whatever the editor has
		if edited, has := a.inEditor(ctx, p.Path); has {
			return acp.ReadTextFileResult{Content: workspace.Lines(edited, p.Line, p.Limit)}, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // agents use the protocol's code for a missing file to create it
		return acp.ReadTextFileResult{}, &acp.Error{Code: acp.CodeResourceNotFound, Message: "Resource not found: " + p.Path}
	}
	return acp.ReadTextFileResult{Content: text}, err
}

// inEditor returns the text of a file as the client's editor has it.
func (a *agent) inEditor(ctx context.Context, path string) (text string, has bool) {
	t, files := a.turns.now(), a.driver.opts.EditorFiles
	if t == nil || files == nil {
		return "", false
	}
	r, err := files.ReadEditorFile(ctx, catalog.ReadEditorFileParams{TaskID: t.ID, Path: path})
	return r.Text, err == nil && r.Found
}

func (a *agent) writeTextFile(ctx context.Context, p acp.WriteTextFileParams) (none, error) {
	a.acted()
	if err := a.allowed(ctx, a.writing(p.Path)); err != nil {
		return none{}, err
	}
	t := a.turns.now()
	if t != nil {
		t.Files.Track(p.Path, false, nil)
	}
	err := a.workspace.WriteText(p.Path, p.Content)
	if t != nil && err == nil {
		t.Files.Settle(p.Path)
	}
	return none{}, err
}

// pairs returns the variables of m, sorted by name.
func pairs(m map[string]string) []acp.Variable {
	list := []acp.Variable{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, acp.Variable{Name: name, Value: m[name]})
	}
	return list
}

// Results of the agent. Unknown members are ignored, so that newer agents work.
type (
	sessionResult struct {
		SessionID string
		offer
	}
	// promptResult is how a turn ended, by the final state_update.
	promptResult struct {
		StopReason string
		Usage      json.RawMessage
		Error      *acp.Error // of the stop reason "error"
		Ends       bool       // see acp.MemberEnds
	}
	promptUsage struct {
		InputTokens       figure `json:"inputTokens"`
		OutputTokens      figure `json:"outputTokens"`
		CachedReadTokens  figure `json:"cachedReadTokens"`
		CachedWriteTokens figure `json:"cachedWriteTokens"`
	}
)

// usage returns the tokens that the turn used, or nil if the agent reports none or in an unknown
// form. A successful turn does not fail for that.
func (r promptResult) usage() *catalog.TokenUsage {
	var u promptUsage
	if present(r.Usage) == nil || json.Unmarshal(r.Usage, &u) != nil {
		return nil
	}
	used := catalog.TokenUsage{
		InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens), CacheReadTokens: int64(u.CachedReadTokens),
		CacheWriteTokens: int64(u.CachedWriteTokens),
	}.Bounded()
	return &used
}

// A figure is a whole number from an agent. Any other value counts as 0.
type figure int64

func (f *figure) UnmarshalJSON(raw []byte) error {
	*f = 0
	var n float64
	if json.Unmarshal(raw, &n) == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		*f = figure(n)
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. A malformed member counts as absent.
func (r *sessionResult) UnmarshalJSON(raw []byte) error {
	json.Unmarshal(rawjson.Member(raw, "sessionId"), &r.SessionID)
	r.offer = readOffer(raw)
	return nil
}

// present returns raw, or nil for null.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
