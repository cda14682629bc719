package acp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// Error texts of real agents.
func TestAgentErrorsHaveAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		err  acp.Error
		code string
		want string
	}{
		"claude without a key": {
			acp.Error{Code: -32000, Message: "Authentication required"},
			task.CodeAuthRequired,
			"x wants you to log in: Authentication required. Do that with `duet-rpc agents login x` in a terminal (in Emacs M-x duet-login), or configure its key, and try again; `duet-rpc agents` names the variables with keys that it does not get",
		},
		"codex without its variable": {
			acp.Error{Code: -32603, Message: "Internal error", Data: map[string]any{"message": "Missing environment variable: `OPENAI_API_KEY`."}},
			task.CodeAuthRequired,
			"x: Internal error: Missing environment variable: `OPENAI_API_KEY`. An agent does not get all of your variables: to pass this one on, set it and write env_from = [\"OPENAI_API_KEY\"] into the agent's table of the configuration; or name it under keys there, to be asked for it",
		},
		"codex with a wrong key": {
			acp.Error{Code: -32603, Message: "Internal error", Data: map[string]any{"message": "unexpected status 401 Unauthorized: no such key"}},
			task.CodeAuthRequired,
			"x: Internal error: unexpected status 401 Unauthorized: no such key. The model's API does not take the key or login of the agent: log in with `duet-rpc agents login x` in a terminal (in Emacs M-x duet-login), or correct its key, and try again",
		},
		"codex that is to wait": {
			acp.Error{Code: -32603, Message: "Internal error", Data: map[string]any{"message": "exceeded retry limit, last status: 429 Too Many Requests"}},
			task.CodeAgent,
			"x: Internal error: exceeded retry limit, last status: 429 Too Many Requests. The model's API takes no more requests for now: wait a while and continue, or look at your plan's limits",
		},
		"gemini with a wrong key": {
			acp.Error{Code: 401, Message: `{"error":{"message":"{\n  \"error\": {\n    \"code\": 401,\n    \"message\": \"API key not valid.\",\n    \"status\": \"UNAUTHENTICATED\"\n  }\n}\n","code":401,"status":"Unauthorized"}}`},
			task.CodeAuthRequired,
			"x: API key not valid. The model's API does not take the key or login of the agent: log in with `duet-rpc agents login x` in a terminal (in Emacs M-x duet-login), or correct its key, and try again",
		},
		"JSON behind words": {
			acp.Error{Code: -32603, Message: `API Error: 400 {"type":"error","error":{"message":"too long"}}`}, task.CodeAgent, "x: API Error: 400 too long",
		},
		"no answer of an API": {
			acp.Error{Code: -32603, Message: `cannot run {"command":"ls"}`, Data: "x {"}, task.CodeAgent, `x: cannot run {"command":"ls"}: x {`,
		},
	} {
		got := (&agent{name: "x"}).failureOf(&c.err)
		assert.Equal(t, c.code, got.Code, name)
		assert.Equal(t, c.want, got.Message, name)
	}
}

func TestContextOverflow(t *testing.T) {
	for _, text := range []string{
		"Prompt is too long", "prompt is too long: 203411 tokens > 200000 maximum",
		"Your input exceeds the context window of this model. Please adjust your input and try again.",
		"Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
		"This model's maximum context length is 128000 tokens.", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
		`{"error":{"code":"context_length_exceeded"}}`,
	} {
		assert.True(t, contextOverflow(text), text)
	}
	for _, text := range []string{"the file name is too long", "429 Too Many Requests", "context canceled", "it exceeds your plan's limits"} {
		assert.False(t, contextOverflow(text), text)
	}
}
