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

// A member in another case is another member, and of two with one name the last counts: the
// handler gets the values that were checked.
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
