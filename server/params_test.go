package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

type colour string

func (colour) Accepted() []string { return []string{"red", "green"} }

type base struct {
	Note string `json:"note,omitempty"`
}

type paintParams struct {
	base
	Colour colour            `json:"colour" doc:"What to paint with."`
	Coats  int               `json:"coats"`
	Gloss  *bool             `json:"gloss"`
	Sides  []side            `json:"sides,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Extra  json.RawMessage   `json:"extra,omitempty"`
	Small  int8              `json:"small,omitempty"`
	Hidden int               `json:"-"`
}

type side struct {
	Name string  `json:"name"`
	Area float64 `json:"area,omitempty"`
}

func paint() *server.Registry {
	reg := server.NewRegistry()
	server.Handle(reg, "paint", func(_ context.Context, p paintParams) (paintParams, error) { return p, nil },
		server.Doc("Paints."))
	server.Handle(reg, "nothing", func(context.Context, struct{}) (*int, error) { return nil, nil })
	return reg
}

func TestFormsOfParams(t *testing.T) {
	c := connect(t, paint(), frame.LSP, server.Options{})
	for _, params := range []string{``, `,"params":null`, `,"params":{}`, `,"params":[]`, `,"params":[null]`, `,"params":{"x":1}`, `,"params":[{"x":1}]`} {
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":null}`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"nothing"`+params+`}`), params)
	}
	for params, received := range map[string]string{
		`5`: "integer", `1.5`: "number", `"x"`: "string", `true`: "boolean", `[1]`: "array of integer", `[1,2]`: "array of 2", `[[]]`: "array of array", `[{},{}]`: "array of 2",
	} {
		e := errorOf(t, c.ask(`{"jsonrpc":"2.0","id":1,"method":"nothing","params":`+params+`}`))
		assert.Equal(t, -32602, e.Code)
		assert.Equal(t, map[string]any{"param": "params", "expected": "object", "received": received}, e.Data, params)
	}
	require.NoError(t, c.close())
}

func TestWrongParams(t *testing.T) {
	c := connect(t, paint(), frame.LSP, server.Options{})
	red := []any{"red", "green"}
	for _, x := range []struct {
		params                    string
		param, expected, received string
		accepted                  any
	}{
		{`{}`, "colour", "string", "nothing", red},
		{`{"colour":"red"}`, "coats", "integer", "nothing", nil},
		{`{"colour":null,"coats":1}`, "colour", "string", "null", red},
		{`{"colour":"blue","coats":1}`, "colour", "one of red, green", `"blue"`, red},
		{`{"colour":5,"coats":1}`, "colour", "string", "integer", red},
		{`{"colour":"red","coats":"1"}`, "coats", "integer", "string", nil},
		{`{"colour":"red","coats":1.5}`, "coats", "integer", "number 1.5", nil},
		{`{"colour":"red","coats":1,"gloss":"yes"}`, "gloss", "boolean", "string", nil},
		{`{"colour":"red","coats":1,"note":5}`, "note", "string", "integer", nil},
		{`{"colour":"red","coats":1,"sides":{}}`, "sides", "array", "object", nil},
		{`{"colour":"red","coats":1,"sides":[{"name":"a"},{}]}`, "sides[1].name", "string", "nothing", nil},
		{`{"colour":"red","coats":1,"sides":[{"name":"a","area":"x"}]}`, "sides[0].area", "number", "string", nil},
		{`{"colour":"red","coats":1,"labels":{"a":5}}`, "labels.a", "string", "integer", nil},
		{`{"colour":"red","coats":1,"small":300}`, "small", "int8", "number 300", nil},
		{`{"Colour":"red","coats":1}`, "colour", "string", "nothing", red},
	} {
		e := errorOf(t, c.ask(`{"jsonrpc":"2.0","id":1,"method":"paint","params":`+x.params+`}`))
		want := map[string]any{"param": x.param, "expected": x.expected, "received": x.received}
		if x.accepted != nil {
			want["accepted"] = x.accepted
		}
		assert.Equal(t, -32602, e.Code, x.params)
		assert.Equal(t, want, e.Data, x.params)
	}
	assert.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"note":"n","colour":"red","coats":2,"gloss":null,"sides":[{"name":"top","area":1.5}],"labels":{"a":"b"},"extra":[1]}}`,
		c.ask(`{"jsonrpc":"2.0","id":1,"method":"paint","params":{"note":"n","colour":"red","coats":2,"unknown":1,"sides":[{"name":"top","area":1.5}],"labels":{"a":"b"},"extra":[1],"gloss":null}}`))
	require.NoError(t, c.close())
}

func TestSchemas(t *testing.T) {
	m := paint().Methods()[0]
	b := must(json.Marshal(m.Params()))(t)
	assert.JSONEq(t, `{"type":"object","required":["colour","coats"],"properties":{
		"note":{"type":"string"},
		"colour":{"type":"string","enum":["red","green"],"description":"What to paint with."},
		"coats":{"type":"integer"},"gloss":{"type":"boolean"},
		"sides":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"area":{"type":"number"}}}},
		"labels":{"type":"object","additionalProperties":{"type":"string"}},
		"extra":{},"small":{"type":"integer"}}}`, string(b))
	assert.Equal(t, "{note?: string, colour: string, coats: integer, gloss?: boolean, sides?: array of {name: string, area?: number}, "+
		"labels?: object of string, extra?: any, small?: integer}", m.Params().String())
	assert.Equal(t, "Paints.", m.Doc)
}

func TestRegisteringTwicePanics(t *testing.T) {
	reg := paint()
	assert.PanicsWithValue(t, `server: method "paint" is registered twice`, func() {
		server.Handle(reg, "paint", func(context.Context, struct{}) (int, error) { return 0, nil })
	})
}

type loopType struct{ Next *loopType }

func TestTypesWithoutJSONPanicWhenDescribed(t *testing.T) {
	reg := server.NewRegistry()
	server.Handle(reg, "loop", func(context.Context, loopType) (chan int, error) { return nil, nil })
	assert.Panics(t, func() { reg.Methods()[0].Params() })
	assert.Panics(t, func() { reg.Methods()[0].Result() })
}

func TestResultsAreCleanJSON(t *testing.T) {
	reg := server.NewRegistry()
	server.Handle(reg, "agent", func(context.Context, struct{}) (map[string]any, error) {
		return map[string]any{
			"bytes": "a\xffb", "html": "<&>", "bad": json.RawMessage("{\"x\xff\": \"\xc3\"}"), "raw": json.RawMessage(`{ "lone": "\ud800x\udc00\\ud800", "pair":"\ud83d\ude00" }`),
		}, nil
	})
	c := connect(t, reg, frame.LSP, server.Options{})
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"bad":{"x�":"�"},"bytes":"a\ufffdb","html":"<&>","raw":{"lone":"\ufffdx\ufffd\\ud800","pair":"\ud83d\ude00"}}}`,
		c.ask(`{"jsonrpc":"2.0","id":1,"method":"agent"}`))
	require.NoError(t, c.close())
}

// shows registers a method that returns its parameters in Go syntax.
func shows[P any](reg *server.Registry, name string) {
	server.Handle(reg, name, func(_ context.Context, p P) (string, error) { return fmt.Sprintf("%#v", p), nil })
}

type ownJSON struct{ text string }

func (o *ownJSON) UnmarshalJSON(b []byte) error { o.text = string(b); return nil }

func TestAMethodIsAddedWhileOthersAreCalled(t *testing.T) {
	reg := server.NewRegistry()
	shows[any](reg, "first")
	c := connect(t, reg, frame.LSP, server.Options{})
	for _, name := range []string{"second", "third"} {
		c.silent(`{"jsonrpc":"2.0","method":"` + name + `"}`)
		shows[any](reg, name)
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"1"}`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"`+name+`","params":1}`))
	}
	assert.PanicsWithValue(t, `server: method "third" is registered twice`, func() { shows[any](reg, "third") })
	require.NoError(t, c.close())
}

// Every method that Handle registers can be called.
func TestEveryFormOfParamsThatIsRegisteredCanBeCalled(t *testing.T) {
	reg := server.NewRegistry()
	shows[[]int](reg, "slice")
	shows[*[]int](reg, "pointer to slice")
	shows[[2]string](reg, "array")
	shows[[]any](reg, "mixed")
	shows[[]side](reg, "objects")
	shows[map[string]int](reg, "map")
	shows[any](reg, "any")
	shows[json.RawMessage](reg, "raw")
	shows[ownJSON](reg, "own")
	server.Handle(reg, "pointer", func(_ context.Context, p *side) (string, error) { return p.Name, nil })
	server.Handle(reg, "optional", func(_ context.Context, p *struct {
		N int `json:"n,omitempty"`
	},
	) (int, error) {
		return p.N, nil // never nil
	})
	c := connect(t, reg, frame.LSP, server.Options{})
	for _, x := range []struct{ method, params, want string }{
		{"slice", `[1,2,3]`, `[]int{1, 2, 3}`},
		{"slice", `[]`, `[]int{}`},
		{"slice", `null`, `[]int{}`},
		{"slice", ``, `[]int{}`},
		{"slice", `{}`, `params: expected array, received object`},
		{"slice", `5`, `params: expected array, received integer`},
		{"slice", `[1,"x"]`, `params[1]: expected integer, received string`},
		{"slice", `[null]`, `params[0]: expected integer, received null`},
		{"pointer to slice", `[1]`, ``},
		{"array", `["a","b"]`, `[2]string{"a", "b"}`},
		{"array", `["a"]`, `params: expected array of 2, received array of 1`},
		{"array", `["a","b","c"]`, `params: expected array of 2, received array of 3`},
		{"array", ``, `params: expected array of 2, received array of 0`},
		{"mixed", `[1,"x",null,{"a":[]}]`, `[]interface {}{1, "x", interface {}(nil), map[string]interface {}{"a":[]interface {}{}}}`},
		{"objects", `[{"name":"a"},{"name":"b","area":2}]`, `[]server_test.side{server_test.side{Name:"a", Area:0}, server_test.side{Name:"b", Area:2}}`},
		{"objects", `[{"name":"a"},{}]`, `params[1].name: expected string, received nothing`},
		{"map", `{"a":1}`, `map[string]int{"a":1}`},
		{"map", `[{"a":1}]`, `map[string]int{"a":1}`},
		{"map", ``, `map[string]int{}`},
		{"map", `[1,2]`, `params: expected object, received array of 2`},
		{"map", `{"a":"x"}`, `a: expected integer, received string`},
		{"any", `[1]`, `[]interface {}{1}`},
		{"any", `"x"`, `"x"`},
		{"any", ``, `<nil>`},
		{"raw", `[1]`, `json.RawMessage{0x5b, 0x31, 0x5d}`},
		{"raw", ``, `json.RawMessage(nil)`},
		{"own", `[1]`, `server_test.ownJSON{text:"[1]"}`},
		{"own", `{"a":1}`, `server_test.ownJSON{text:"{\"a\":1}"}`},
		{"pointer", `{"name":"x"}`, `x`},
		{"pointer", ``, `name: expected string, received nothing`},
		{"optional", ``, `0`},
		{"optional", `null`, `0`},
		{"optional", `[{"n":3}]`, `3`},
	} {
		if x.params != "" {
			x.params = `,"params":` + x.params
		}
		var r struct {
			Result any
			Error  struct{ Message string }
		}
		require.NoError(t, json.Unmarshal([]byte(c.ask(`{"jsonrpc":"2.0","id":1,"method":"`+x.method+`"`+x.params+`}`)), &r))
		if r.Error.Message != "" {
			assert.Equal(t, "Invalid params: "+x.want, r.Error.Message, "%s %s", x.method, x.params)
		} else if x.want != "" {
			assert.Equal(t, x.want, fmt.Sprint(r.Result), "%s %s", x.method, x.params)
		}
	}
	require.NoError(t, c.close())
}

// Handle rejects parameters that no request could have.
func TestParamsThatJSONRPCDoesNotHavePanic(t *testing.T) {
	for name, register := range map[string]func(*server.Registry, string){
		"string": shows[string], "*string": shows[*string], "int": shows[int], "bool": shows[bool], "float64": shows[float64],
		"[]uint8": shows[[]byte], "time.Time": shows[time.Time], "netip.Addr": shows[netip.Addr], "chan int": shows[chan int],
		"func()": shows[func()], "fmt.Stringer": shows[fmt.Stringer],
	} {
		reg := server.NewRegistry()
		assert.PanicsWithValue(t, `server: method "m": JSON-RPC has no parameters of the type `+name+
			"; use a struct for named ones, such as struct{ Text string `json:\"text\"` }, or a slice for positional ones",
			func() { register(reg, "m") })
		assert.Empty(t, reg.Methods())
	}
}

// Names of members are case-sensitive, and the last of two equal members counts. The handler gets
// the checked values.
func TestNamesOfParamsAreExact(t *testing.T) {
	reg := paint()
	server.Handle(reg, "nested", func(_ context.Context, p struct {
		Outer  side            `json:"outer"`
		Sides  []side          `json:"sides,omitempty"`
		ByName map[string]side `json:"byName,omitempty"`
	},
	) (any, error) {
		return p, nil
	})
	c := connect(t, reg, frame.LSP, server.Options{})
	for _, x := range []struct{ method, params, want string }{
		{"paint", `{"colour":"red","coats":1,"Colour":"nonsense","COATS":2,"Coats":"x"}`, `{"colour":"red","coats":1,"gloss":null}`},
		{"paint", `{"Colour":5,"colour":"red","coats":1}`, `{"colour":"red","coats":1,"gloss":null}`},
		{"paint", `{"colour":"nonsense","colour":"red","coats":"x","coats":1}`, `{"colour":"red","coats":1,"gloss":null}`},
		{"paint", `{"colour":"red","coats":1,"GLOSS":true,"Note":"n","\u004eote":"m","s\u006dall":7,"note":"\"}"}`, `{"note":"\"}","colour":"red","coats":1,"gloss":null,"small":7}`},
		{"paint", "{\"colour\":\"red\",\"coats\":1,\"coat\u017f\":2}", `{"colour":"red","coats":1,"gloss":null}`}, // ſ is an s to encoding/json
		{"paint", `{"colour":"red","coats":1,"labels":{"a":"1","A":"2"},"Coats":5}`, `{"colour":"red","coats":1,"gloss":null,"labels":{"A":"2","a":"1"}}`},
		{"paint", `{"colour":"red","coats":1,"extra":{"a":1,"A":2,"a":3},"Coats":5}`, `{"colour":"red","coats":1,"gloss":null,"extra":{"a":1,"A":2,"a":3}}`},
		{"nested", `{"outer":{"name":"a","Name":"b","area":1},"outer":{"name":"c"}}`, `{"outer":{"name":"c"}}`},
		{"nested", `{"outer":{"name":"a"},"sides":[{"name":"b","NAME":"x"},{"name":"c"}],"byName":{"x":{"name":"d","Area":5}}}`, `{"outer":{"name":"a"},"sides":[{"name":"b"},{"name":"c"}],"byName":{"x":{"name":"d"}}}`},
	} {
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+x.want+`}`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"`+x.method+`","params":`+x.params+`}`), x.params)
	}
	require.NoError(t, c.close())
}
