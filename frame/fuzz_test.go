package frame_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// FuzzParse compares the scanner with encoding/json: the same verdict (except for UTF-8, which
// encoding/json repairs), the same members, the same spans.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		smallRequest, ping, `[]`, `[1, {"a":[]}, "x"]`, `{"id":1,"id":2}`, `{"\u0069d":"\ud800"}`, ` 5 `, `-0.5e+10`, `01`, `1.`, `"`,
		`true`, `[true,false,null]`, `{"a":true,"b":false,"c":null}`, `tru`, `trux`, `fals`, `falsy`, `nulL`, `-`, `-x`, `0.5e`, `1e+`, `1E-05`, `[0,10,-0]`, `1 2`, `[1 2]`, `{"a" 1}`, `{"a":1 "b":2}`, `{1:2}`, `{"a":[}`, `[{]`,
		`"\u00e9\u12G4"`, `"\u12"`, `"\"\\\/\b\f\n\r\t"`, `"\x"`, `"\`, "\"12345678\x00\"", "\"1234567\x7f#]!\"", "\"\xc2\xa0\xdf\xbf\xe2\x82\xac\xf0\x9f\x98\x80\"", "\"\xc1\xbf\"", "\"\xe2\x82\"", "\"\xf4\x90\x80\x80\"", "\"\xc2",
		`{"a":}`, `{"a":1,}`, `[1,]`, `nul`, `truee`, "\"\x1f\"", "\"\xc3\xa9\"", "\"\xc3\"", "\"\xed\xa0\x80\"", `{"params":{"id":5,"params":[]}}`,
		strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70),
		`{"id" : 1 , "method"	: "x" }`, `{"method":"a\"b","id":null,"error":{},"result":[],"jsonrpc":"2.0"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var m frame.Message
		got := frame.Parse(body, &m)
		want := json.Valid(body) && utf8.Valid(body)
		if got != want {
			t.Fatalf("Parse(%q) = %v, encoding/json and utf8 say %v", body, got, want)
		}
		if !got {
			reason := frame.BodyRefusal(body).Reason
			if (reason == frame.ReasonInvalidUTF8) != !utf8.Valid(body) {
				t.Fatalf("BodyRefusal(%q) = %s", body, reason)
			}
			return
		}
		trimmed := bytes.Trim(body, " \t\r\n")
		switch {
		case m.Kind == frame.Object:
			checkMembers(t, body, &m)
		case m.Kind == frame.Array:
			checkElements(t, body)
		case trimmed[0] == '{' || trimmed[0] == '[':
			t.Fatalf("Parse(%q): kind %d", body, m.Kind)
		}
	})
}

func checkMembers(t *testing.T, body []byte, m *frame.Message) {
	var want map[string]json.RawMessage
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	walked := map[string]json.RawMessage{}
	for name, value := range rawjson.Members(body) {
		var plain string
		if err := json.Unmarshal(name, &plain); err != nil {
			t.Fatal(err)
		}
		walked[plain] = value
	}
	if len(walked) != len(want) {
		t.Fatalf("Members(%q): %d members, encoding/json has %d", body, len(walked), len(want))
	}
	for name, got := range walked {
		if !bytes.Equal(got, want[name]) {
			t.Fatalf("Members(%q): %q is %q, encoding/json has %q", body, name, got, want[name])
		}
	}
	for name, got := range map[string][]byte{
		"jsonrpc": m.JSONRPC, "id": m.ID, "method": m.Method, "params": m.Params, "result": m.Result, "error": m.Error,
	} {
		if !bytes.Equal(got, want[name]) {
			t.Fatalf("Parse(%q): %s is %q, encoding/json has %q", body, name, got, want[name])
		}
	}
}

func checkElements(t *testing.T, body []byte) {
	var want []json.RawMessage
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	i := 0
	for got := range rawjson.Elements(body) {
		if i >= len(want) || !bytes.Equal(got, want[i]) {
			t.Fatalf("Elements(%q): element %d is %q", body, i, got)
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("Elements(%q): %d elements, encoding/json has %d", body, i, len(want))
	}
}

// FuzzHeader gives a Reader one header section and a body. The Reader must never accept a length
// that a plain reading of the section does not give. It must return the same result however the
// bytes are cut into reads.
func FuzzHeader(f *testing.F) {
	for _, c := range lspCases {
		if head, _, ok := strings.Cut(c.in, "\r\n\r\n"); ok {
			f.Add([]byte(head + "\r\n\r\n"))
		}
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		const body = `"0123456789 0123456789 0123456789 0123456789"`
		in := append(bytes.Clone(head), body...)
		whole := drain(bytes.NewReader(in), frame.LSP, small)
		cut := drain(iotest.OneByteReader(bytes.NewReader(in)), frame.LSP, small)
		if strings.Join(whole, "\n") != strings.Join(cut, "\n") {
			t.Fatalf("%q: read whole %q, byte by byte %q", in, whole, cut)
		}
		if len(whole) > 0 && whole[len(whole)-1] == body && !bytes.Contains(bytes.ToLower(head), []byte("content-length")) {
			t.Fatalf("%q: a body without a Content-Length", head)
		}
	})
}

// FuzzNDJSON checks that the Reader cuts lines as bytes.Split does, and refuses the lines that
// json.Valid and utf8.Valid refuse.
func FuzzNDJSON(f *testing.F) {
	for _, c := range ndjsonCases {
		if len(c.in) < 1000 {
			f.Add([]byte(c.in))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var want []string
		for line := range bytes.SplitSeq(in, []byte("\n")) {
			bare := bytes.TrimSuffix(line, []byte("\r"))
			switch {
			case len(bytes.Trim(line, " \t\r")) == 0 && len(bare) <= small.MaxFrame:
			case len(bare) > small.MaxFrame:
				want = append(want, "-32600 oversize")
			case !utf8.Valid(line):
				want = append(want, "-32700 invalid-utf8")
			case !json.Valid(line):
				want = append(want, "-32700 invalid-json")
			default:
				want = append(want, string(bytes.Trim(line, " \t\r")))
			}
		}
		for name, src := range map[string]io.Reader{"whole": bytes.NewReader(in), "byte by byte": iotest.OneByteReader(bytes.NewReader(in))} {
			got := drain(src, frame.NDJSON, small)
			for i := range got {
				got[i] = strings.Trim(got[i], " \t\r")
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Fatalf("%s: %q gave\n%q, want\n%q", name, in, got, want)
			}
		}
	})
}

// FuzzResync checks resynchronisation: after any input, the Reader accepts a good frame that
// follows a header line. Enough bytes between the two fill any body or header that an earlier
// header announced.
func FuzzResync(f *testing.F) {
	for _, c := range lspCases {
		f.Add([]byte(c.in))
	}
	f.Add([]byte("Content-Type: x\r\nX: y Content-Length: 5\r\n\r\n12345"))
	f.Fuzz(func(t *testing.T, before []byte) {
		limits := frame.Limits{MaxFrame: 64, MaxHeader: 64}
		marker := `{"jsonrpc":"2.0","id":"marker","method":"ping"}`
		filler := strings.Repeat(";", 4*(limits.MaxFrame+limits.MaxHeader))
		in := string(before) + filler + lsp(marker)
		r := frame.NewReader(strings.NewReader(in), frame.LSP, limits)
		r.SetMaxSkip(len(filler) / 2)
		var m frame.Message
		served := false
		for outcomes := 0; ; outcomes++ {
			if outcomes > len(in) {
				t.Fatalf("%q: more outcomes than bytes", before)
			}
			err := r.Next(&m)
			if err == nil {
				served = string(m.Body) == marker
			} else if _, ok := errors.AsType[*frame.Refusal](err); !ok {
				break
			}
		}
		if !served {
			t.Fatalf("after %q the good frame was not served", before)
		}
	})
}
