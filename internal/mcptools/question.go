package mcptools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duet-rpc/duet-rpc/client"
)

// Codes of the hub's errors.
const (
	codePermissionDenied = -32003
	codeTaskCancelled    = -32004
	codeHubLost          = -32042
)

const (
	toolPermission = "request_permission"
	toolAsk        = "ask_user"
)

// progressEvery is how often an agent that wants to know is told that its question
// waits.
const progressEvery = 15 * time.Second

func (t *tools) addQuestions(s *mcp.Server) {
	s.AddTool(&mcp.Tool{
		Name:        toolPermission,
		Description: "Asks the people at the project whether a tool may run, unless a rule of theirs says so already. It waits for the answer, which is JSON: {\"behavior\":\"allow\",\"updatedInput\":{…}} or {\"behavior\":\"deny\",\"message\":\"…\"}.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"tool_name":{"type":"string","description":"The tool that is to run."},"input":{"type":"object","description":"Its input."},"tool_use_id":{"type":"string","description":"Your own id of the call."}},"required":["tool_name","input"]}`),
	}, t.requestPermission)
	s.AddTool(&mcp.Tool{
		Name:        toolAsk,
		Description: "Asks the people at the project something, and waits for the answer, in words.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string","description":"What to ask. Say all that is needed to answer."},"subject":{"type":"string","description":"What it is about, in a few words."},"options":{"type":"array","items":{"type":"string"},"description":"Answers to choose from. Other words may come back nevertheless."}},"required":["message"]}`),
	}, t.askUser)
}

type permissionArguments struct {
	Tool      string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
}

// A verdict is what an agent is told, as Claude Code reads it.
type verdict struct {
	Behavior     string          `json:"behavior"` // allow or deny
	UpdatedInput json.RawMessage `json:"updatedInput,omitempty"`
	Message      string          `json:"message,omitempty"`
}

// requestPermission asks whether a tool may run. Whatever hinders that is a denial: an
// agent is not to take an error for leave.
func (t *tools) requestPermission(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var p permissionArguments
	if err := json.Unmarshal(r.Params.Arguments, &p); err != nil || p.Tool == "" {
		return told(verdict{Behavior: "deny", Message: "tool_name and input are needed: the tool, and its input as an object"})
	}
	if len(p.Input) == 0 || string(p.Input) == "null" {
		p.Input = json.RawMessage("{}")
	}
	answer, err := t.ask(ctx, r, "requestPermission", map[string]any{"tool_name": p.Tool, "tool_input": p.Input, "tool_use_id": p.ToolUseID})
	var refused *client.Error
	switch {
	case err == nil:
		var given struct {
			UpdatedInput json.RawMessage `json:"updated_input"`
		}
		if err := json.Unmarshal(answer, &given); err != nil {
			return nil, err
		}
		return told(verdict{Behavior: "allow", UpdatedInput: json.RawMessage(cmp.Or(string(given.UpdatedInput), string(p.Input)))})
	case ctx.Err() != nil || t.hasLeft():
		return nil, err
	case errors.As(err, &refused):
		return told(verdict{Behavior: "deny", Message: refused.Message})
	}
	return told(verdict{Behavior: "deny", Message: "nobody could be asked: " + err.Error()})
}

func told(v verdict) (*mcp.CallToolResult, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // a command is to come back as it was
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(bytes.TrimSpace(text.Bytes()))}}}, nil
}

func (t *tools) askUser(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var p struct {
		Message string   `json:"message"`
		Subject string   `json:"subject"`
		Options []string `json:"options"`
	}
	if err := json.Unmarshal(r.Params.Arguments, &p); err != nil {
		return failed("the arguments are not as the tool's schema has them: " + err.Error()), nil
	}
	params := map[string]any{"message": p.Message, "subject": p.Subject}
	if len(p.Options) > 0 {
		params["options"] = p.Options
	}
	answer, err := t.ask(ctx, r, "askUser", params)
	var refused *client.Error
	switch {
	case err == nil:
		var given struct {
			Response string `json:"response"`
		}
		if err := json.Unmarshal(answer, &given); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: given.Response}}}, nil
	case errors.As(err, &refused):
		return failed(refused.Message), nil
	}
	return nil, err
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

var errLeft = errors.New("the agent has gone")

func (t *tools) hasLeft() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// ask asks people, and waits. If the agent takes the question back, it ends; if the agent
// goes, it stays open.
func (t *tools) ask(ctx context.Context, r *mcp.CallToolRequest, method string, params map[string]any) (json.RawMessage, error) {
	params["keep"], params["thread"] = true, t.thread(r)
	if t.opts.CWD != "" {
		params["cwd"] = t.opts.CWD
	}
	type reply struct {
		answer json.RawMessage
		err    error
	}
	replied := make(chan reply, 1)
	asking, withdraw := context.WithCancel(context.WithoutCancel(ctx))
	t.asking.Go(func() {
		defer withdraw()
		answer, err := t.askHub(asking, method, params)
		replied <- reply{answer, err}
	})
	var tick <-chan time.Time
	token := r.Params.GetProgressToken()
	if token != nil {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	for n := 0; ; n++ {
		if token != nil {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: "waiting for an answer (duet-rpc approvals)"})
		}
		select {
		case got := <-replied:
			return got.answer, got.err
		case <-t.gone:
			return nil, errLeft
		case <-ctx.Done():
			if t.hasLeft() {
				return nil, errLeft
			}
			withdraw()
			return nil, ctx.Err()
		case <-tick:
		}
	}
}

// askHub asks a hub, and the next one where that ends before there is an answer: the
// question is kept, and goes on there.
func (t *tools) askHub(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	const pause = 300 * time.Millisecond // for a hub that is ending to have gone
	for {
		var answer json.RawMessage
		err := t.hub.Call(ctx, method, params, &answer, client.WithTimeout(0))
		var refused *client.Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &refused) || refused.Code != codeHubLost && refused.Kind() != "subsystem_unavailable" {
			return answer, err
		}
		select {
		case <-time.After(pause):
		case <-t.gone:
			return nil, errLeft
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// thread is the conversation in which an agent's questions are: of all agents of a name,
// so that one that is started again finds the answers to what it asked before.
func (t *tools) thread(r *mcp.CallToolRequest) string {
	name := "agents"
	if p := r.Session.InitializeParams(); p != nil && p.ClientInfo != nil && p.ClientInfo.Name != "" {
		name = p.ClientInfo.Name
	}
	return "mcp:" + name
}
