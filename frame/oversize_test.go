package frame_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
)

// long is what makes a body too long, behind what a case begins it with.
var long = strings.Repeat("x", 5000)

// oversizeCases are bodies whose beginnings do or do not tell whose request it
// is. Each is cut by the limits of the test or goes on as valid JSON.
var oversizeCases = []struct {
	name, body string
	id         string // empty: none is believed
}{
	{"the order of vscode-jsonrpc and jsonrpc.el", `{"jsonrpc":"2.0","id":7,"method":"m","params":"` + long + `"}`, "7"},
	{"Vim's order", `{"method":"m","jsonrpc":"2.0","id":7,"params":"` + long + `"}`, "7"},
	{"id first", `{"id":7,"jsonrpc":"2.0","method":"m","params":"` + long + `"}`, "7"},
	{"sorted", `{"id":7,"jsonrpc":"2.0","method":"m","params":["` + long + `"]}`, "7"},
	{"no method before params", `{"jsonrpc":"2.0","id":7,"params":["` + long + `"],"method":"m"}`, "7"},
	{"method after a long member", `{"jsonrpc":"2.0","id":7,"x":"` + long + `","method":"m"}`, ""},
	{"id behind params", `{"jsonrpc":"2.0","method":"m","params":["` + long + `"],"id":7}`, ""},
	{"a text", `{"id":"a\u0062\"c","method":"m","params":"` + long + `"}`, `"a\u0062\"c"`},
	{"a text that spells an id", `{"method":"\"id\":5,","params":"` + long + `","id":7}`, ""},
	{"a number that goes on", `{"method":"m","id":-1.5e+10,"params":"` + long + `"}`, "-1.5e+10"},
	{"a large number", `{"method":"m","id":123456789012345678901234567890,"params":"` + long + `"}`, "123456789012345678901234567890"},
	{"null", `{"id":null,"method":"m","params":"` + long + `"}`, "null"},
	{"white space", " \r\n\t{ \"id\" : 7 ,\n\"method\" : \"m\" , \"params\" : \"" + long + `"}`, "7"},
	{"names spelt with escapes", `{"\u0069d":7,"m\u0065thod":"m","params":"` + long + `"}`, "7"},
	{"short, with white space behind", `{"jsonrpc":"2.0","id":7,"method":"m"}` + strings.Repeat(" ", 5000), "7"},

	{"nested in params", `{"method":"m","params":{"id":5,"method":"n","x":"` + long + `"}}`, ""},
	{"nested in another member", `{"x":{"id":5,"method":"n"},"method":"m","params":"` + long + `"}`, ""},
	{"nested, and its own", `{"x":{"id":5},"id":7,"method":"m","params":"` + long + `"}`, "7"},
	{"nested in an array", `{"x":[{"id":5}],"method":"m","params":"` + long + `"}`, ""},
	{"in another case", `{"ID":5,"Id":6,"method":"m","params":"` + long + `"}`, ""},
	{"a notification", `{"jsonrpc":"2.0","method":"m","params":"` + long + `"}`, ""},
	{"a batch", `[{"jsonrpc":"2.0","id":7,"method":"m","params":"` + long + `"}]`, ""},
	{"a response", `{"jsonrpc":"2.0","id":7,"result":"` + long + `"}`, ""},
	{"an error response", `{"jsonrpc":"2.0","error":{"code":1,"message":"` + long + `"},"id":7}`, ""},
	{"a response with a method that is null", `{"id":7,"method":null,"params":null,"result":"` + long + `"}`, ""},
	{"a response with params", `{"id":7,"result":1,"params":["` + long + `"]}`, ""},
	{"a response whose result comes late", `{"id":7,"x":"` + long + `","result":1}`, ""},
	{"an id of the wrong type", `{"id":{"a":1},"method":"m","params":"` + long + `"}`, ""},
	{"an id that is an array", `{"id":[7],"method":"m","params":"` + long + `"}`, ""},
	{"an id that is true", `{"method":"m","id":true,"params":"` + long + `"}`, ""},
	{"an id that is too long", `{"method":"m","id":"` + long + `"}`, ""},
	{"no object", `"` + long + `"`, ""},
	{"no JSON", `{"method":"m",id:7,"params":"` + long + `"}`, ""},
	{"no JSON before it", `{"method":"m","x":01,"id":7,"params":"` + long + `"}`, ""},
	{"no UTF-8 before it", `{"method":"m` + "\xff" + `","id":7,"params":"` + long + `"}`, ""},
	{"nothing but blanks", strings.Repeat(" ", 5000), ""},
}

// Whoever sent a request that is too long learns of it, in both framings and
// however the bytes come.
func TestIDsOfOversizeRequests(t *testing.T) {
	for _, c := range oversizeCases {
		t.Run(c.name, func(t *testing.T) {
			want := "-32600 oversize"
			if c.id != "" {
				want += " id=" + c.id
			}
			limits := frame.Limits{MaxFrame: 4500}
			for _, in := range []string{
				lsp(c.body) + lsp(ping),
				"Content-Length: 1073741825\r\n\r\n" + c.body + lsp(ping), // not skipped by counting
			} {
				assert.Equal(t, []string{want, ping}, drain(strings.NewReader(in), frame.LSP, limits), "whole")
				assert.Equal(t, []string{want, ping}, drain(iotest.OneByteReader(strings.NewReader(in)), frame.LSP, limits), "byte by byte")
				assert.Equal(t, []string{want, ping}, drain(iotest.DataErrReader(strings.NewReader(in)), frame.LSP, limits), "with the last bytes EOF")
			}
			if strings.ContainsAny(c.body, "\n") || strings.TrimSpace(c.body) == "" {
				return
			}
			in := c.body + "\n" + ping + "\n"
			assert.Equal(t, []string{want, ping}, drain(strings.NewReader(in), frame.NDJSON, limits), "whole line")
			assert.Equal(t, []string{want, ping}, drain(iotest.OneByteReader(strings.NewReader(in)), frame.NDJSON, limits), "line byte by byte")
		})
	}
}

// The id is looked for in the first 4 KiB, and believed only if it is whole
// there: what follows a number is seen.
func TestIDsOfOversizeRequestsAtTheEdge(t *testing.T) {
	for behind, want := range map[int]string{4096 - 2: "-32600 oversize id=7", 4096 - 1: "-32600 oversize", 4096: "-32600 oversize"} {
		head := `{"method":"`
		head += strings.Repeat("m", behind-len(head)-len(`","id":`)) + `","id":` // 7 stands at behind
		in := lsp(head + `7,"params":"` + long + `"}`)
		assert.Equal(t, []string{want}, drain(strings.NewReader(in), frame.LSP, small), behind)
		assert.Equal(t, []string{want}, drain(iotest.OneByteReader(strings.NewReader(in)), frame.LSP, small), behind)
	}
}

// FuzzOversize gives a Reader bodies that are too long. An id that it believes
// must be one of the message's own, if the message turns out to be valid, and
// it must be the same however the bytes come; the next frame is served.
func FuzzOversize(f *testing.F) {
	for _, c := range oversizeCases {
		f.Add([]byte(strings.ReplaceAll(c.body, long, "")))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		limits := frame.Limits{MaxFrame: 1}
		if len(body) < 2 || len(body) > 4096 {
			return
		}
		in := append([]byte(lsp(string(body))), lsp("5")...)
		got := drain(bytes.NewReader(in), frame.LSP, limits)
		cut := drain(iotest.OneByteReader(bytes.NewReader(in)), frame.LSP, limits)
		if len(got) != 2 || got[1] != "5" || strings.Join(got, "\n") != strings.Join(cut, "\n") {
			t.Fatalf("%q: read whole %q, byte by byte %q", body, got, cut)
		}
		id, believed := strings.CutPrefix(got[0], "-32600 oversize id=")
		var m frame.Message
		if !frame.Parse(body, &m) {
			return
		}
		own := map[string]bool{}
		if m.Kind == frame.Object {
			for name, value := range frame.Members(body) {
				var plain string
				if json.Unmarshal(name, &plain); plain == "id" {
					own[string(value)] = true
				}
			}
		}
		switch {
		case believed && !own[id]:
			t.Fatalf("%q: the id %s is not one of its own", body, id)
		case believed && m.Method == nil && m.Params == nil:
			t.Fatalf("%q: it is no request, and %s was believed", body, id)
		case !believed && len(own) == 1 && m.Method != nil && m.Method[0] == '"' && frame.ValidID(m.ID) && m.Result == nil && m.Error == nil:
			t.Fatalf("%q: the id %s was not found", body, m.ID)
		}
	})
}
