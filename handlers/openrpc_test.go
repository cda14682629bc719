package handlers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/server"
)

type greeting struct {
	Name string `json:"name" doc:"Who."`
	Loud bool   `json:"loud,omitempty"`
}

type nested struct {
	Text *string `json:"a-b"`
	List []struct {
		N   int `json:"n"`
		Any any `json:"any,omitempty"`
	} `json:"list"`
	Named map[string]string `json:"named"`
}

func registry() *server.Registry {
	reg := server.NewRegistry()
	server.Handle(reg, "greet.person", func(context.Context, greeting) (string, error) { return "", nil },
		server.Doc("Greets somebody. Takes its time."), server.LongRunning())
	return reg
}

func TestDocument(t *testing.T) {
	b, err := json.Marshal(handlers.Describe(registry(), "1.2.3"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"openrpc":"1.3.2",
		"info":{"title":"duet-rpc","description":"The process that an editor starts to work with coding agents.","version":"1.2.3"},
		"methods":[{"name":"greet.person","summary":"Greets somebody. Takes its time.","paramStructure":"by-name","x-long-running":true,
			"params":[{"name":"name","description":"Who.","required":true,"schema":{"type":"string"}},{"name":"loud","schema":{"type":"boolean"}}],
			"result":{"name":"result","schema":{"type":"string"}}}]}`, string(b))
}

func TestMarkdown(t *testing.T) {
	text := handlers.Markdown(registry())
	assert.Contains(t, text, "| [`greet.person`](#greetperson) | Greets somebody |")
	assert.Contains(t, text, "| `name` | string | Who. |")
	assert.Contains(t, text, "| `loud` | boolean | Optional. |")
	assert.Contains(t, text, "Long-running")
	assert.Contains(t, text, "Result: `string`")
}

func TestTypeScript(t *testing.T) {
	reg := registry()
	server.Handle(reg, "greet_person", func(context.Context, struct{}) (nested, error) { return nested{}, nil },
		server.Doc("Ends a comment: */"))
	text := handlers.TypeScript(reg)
	assert.Contains(t, text, "  /** Greets somebody. Takes its time. */\n  \"greet.person\": { params: Greeting; result: string };\n")
	assert.Contains(t, text, "export type Greeting = {\n  /** Who. */\n  name: string;\n  loud?: boolean;\n};\n")
	assert.Contains(t, text, "  /** Ends a comment: *\\/ */\n  greet_person: { params: Record<string, never>; result: Nested };\n")
	assert.Contains(t, text, "  \"a-b\": string | null;\n", "what can be null is null there, and names that are no identifiers are quoted")
	assert.Contains(t, text, "  list: Array<{ n: number; any?: unknown; }>;\n  named: Record<string, string>;\n", "a type without a name")
	assert.Contains(t, text, "new Set<Method>([\n  \"greet.person\",\n]);\n")
}
