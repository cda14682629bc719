package server_test

import (
	"context"
	"encoding/json"
	"testing"

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
