package handlers_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/server"
)

// published holds the schemas of all results by method, as rpc.discover returns them.
var published = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	doc := handlers.Describe(everything(), "0.0.0-test")
	schemas := make(map[string]*jsonschema.Schema)
	for _, m := range doc.Methods {
		raw, err := json.Marshal(m.Result.Schema)
		if err != nil {
			return nil, err
		}
		parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			return nil, err
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft7)
		c.AssertFormat()
		if err := c.AddResource(m.Name+".json", parsed); err != nil {
			return nil, err
		}
		if schemas[m.Name], err = c.Compile(m.Name + ".json"); err != nil {
			return nil, err
		}
	}
	return schemas, nil
})

// described holds the methods with a checked result.
var described sync.Map

// neverAnswered are methods without a result in these tests. Two always fail, and secret.provide
// needs the request of a real executor.
var neverAnswered = []string{"test.fail", "test.panic", "secret.provide"}

// undescribed returns the methods whose schema no test checked.
func undescribed() (names []string) {
	for _, m := range everything().Methods() {
		if _, seen := described.Load(m.Name); !seen && !slices.Contains(neverAnswered, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// requireAsDescribed requires that a result matches its method's schema. The client of this package
// checks each result with it.
func requireAsDescribed(t *testing.T, method string, result []byte) {
	t.Helper()
	schema := must(published())(t)[method]
	if schema == nil {
		return // a method of the test
	}
	described.Store(method, true)
	value := must(jsonschema.UnmarshalJSON(strings.NewReader(string(result))))(t)
	require.NoError(t, schema.Validate(value), "%s: %.2000s", method, result)
}

func TestResultsOfCoreMethodsAreAsDescribed(t *testing.T) {
	c := connectTo(t, server.New(everything(), server.Options{}), frame.LSP)
	for method, params := range map[string]string{
		"initialize": `{"capabilities":{}}`, "ping": "", "health": "", "version": "", "listMethods": "", "describeMethods": "", "rpc.discover": "",
		"echo": `[1]`, "setLogLevel": `{"level":"DEBUG"}`, "test.sleep": `{"ms":1}`,
	} {
		c.ask(method, params)
	}
	c.ask("shutdown", `{"reason":"none"}`)
	c = connectTo(t, server.New(everything(), server.Options{}), frame.LSP)
	c.ask("shutdown", "")
	c = connectTo(t, server.New(everything(), server.Options{}), frame.LSP)
	c.ask("exit", "")
}

// An empty list in a result is a list, not null.
func TestResultsWithNothingInThemAreAsDescribed(t *testing.T) {
	w := newWorld(t, quick)
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		c := w.connect(f)
		for method, params := range map[string]string{
			"task.list": "", "task.stats": "", "daemon.status": "", "listSessions": "", "getSessionLeaves": "", "getRecentPaths": "",
			"session.search": `{"query":"nothing"}`, "fetchApprovals": "", "rule.list": "", "terminal.list": "", "daemon.listen": `{"path":"/s"}`,
		} {
			c.ask(method, params)
		}
	}
	c := w.connect(frame.LSP)
	draft := c.launch(`{"query":"x","draft":true}`)
	for _, method := range []string{"getSessionState", "getConversation", "getSessionSnapshots", "fetchApprovals"} {
		c.ask(method, `{"session_id":"`+draft+`"}`)
	}
}

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
	b := must(json.Marshal(handlers.Describe(registry(), "1.2.3")))(t)
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
	assert.Contains(t, text, "  \"a-b\": string | null;\n", "nullable types include null, and names other than identifiers have quotes")
	assert.Contains(t, text, "  list: Array<{ n: number; any?: unknown; }>;\n  named: Record<string, string>;\n", "a type without a name")
	assert.Contains(t, text, "new Set<Method>([\n  \"greet.person\",\n]);\n")
}
