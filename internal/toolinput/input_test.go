package toolinput_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

func TestAnInputThatAllProgramsReadAlike(t *testing.T) {
	for input, want := range map[string]toolinput.Input{
		``:                 {},
		`{}`:               {},
		`[]`:               {},
		`7`:                {},
		` "command" `:      {},
		`{"command":"ls"}`: {Commands: []string{"ls"}},
		`{"c\u006fmmand":"l\u0073","n":[{"a":1,"A":2}]}`: {Commands: []string{"ls"}},
		` { "file_path" : "/a" , "command" : null } `:    {Files: []string{"/a"}},
		`{"command":"\ud83d\ude00 é\/\b\f\n\r\t\"\\"}`:   {Commands: []string{"😀 é/\b\f\n\r\t\"\\"}},
		`{"command":["bash","-lc","rm x",7]}`:            {Commands: []string{"bash", "-lc", "rm x", "bash -lc rm x"}, CommandNotText: true},
		`{"command":["rm"]}`:                             {Commands: []string{"rm"}, CommandNotText: true, Words: []string{"rm"}},
		`{"command":["bash","-lc","rm x"]}`:              {Commands: []string{"bash", "-lc", "rm x", "bash -lc rm x"}, CommandNotText: true, Words: []string{"bash", "-lc", "rm x"}},
		`{"command":{"x":1}}`:                            {Commands: []string{`{"x":1}`}, CommandNotText: true},
		`{"command":1e400}`:                              {Commands: []string{"1e400"}, CommandNotText: true},
		`{"command":"a (b)","command_readings":["a"]}`:   {Commands: []string{"a (b)"}, Readings: []string{"a"}},
		`{"file_path":["a","b"]}`:                        {Files: []string{"a", "b"}, FileNotText: true},
		`{"file_path":false}`:                            {Files: []string{"false"}, FileNotText: true},
		`{"env":{"path":"a","PATH":"b"}}`:                {},
		`{"arguments":{"command":"x"}}`:                  {},
	} {
		assert.Equal(t, want, toolinput.Read([]byte(input)), input)
	}
	assert.Equal(t, "ls", toolinput.Read([]byte(`{"command":"ls"}`)).Command())
	assert.Empty(t, toolinput.Read([]byte(`{"command":["ls"]}`)).Command(), "a list is not one text")
}

func TestAnInputThatProgramsReadDifferently(t *testing.T) {
	for input, want := range map[string]struct {
		why      string
		commands []string
		files    []string
	}{
		`{"command":"a","Command":"b"}`:              {why: `"command" and "Command" differ in case only`, commands: []string{"a", "b"}},
		`{"Command":"b"}`:                            {why: `"command" is spelled "Command"`, commands: []string{"b"}},
		`{"command":"a","command_readings":["b",7]}`: {why: `"command_readings" is no list of texts`, commands: []string{"a"}},
		`{"command":"a","Command_Readings":["b"]}`:   {why: `"command_readings" is spelled "Command_Readings"`, commands: []string{"a"}},
		`{"command":["a"],"command":["b"]}`:          {why: `"command" appears more than once`, commands: []string{"a", "b"}},
		`{"command":"a","command":"b"}`:              {why: `"command" appears more than once`, commands: []string{"a", "b"}},
		`{"command":"a","c\u006fmmand":"b"}`:         {why: `"command" appears more than once`, commands: []string{"a", "b"}},
		`{"file_path":"a","FILE_PATH":["b"]}`:        {why: `"file_path" and "FILE_PATH" differ in case only`, files: []string{"a", "b"}},
		`{"fıle_path":"a"}`:                          {why: `"file_path" is spelled "fıle_path"`, files: []string{"a"}},
		`{"fİle_path":"a"}`:                          {why: `"file_path" is spelled "fİle_path"`, files: []string{"a"}},
		`{"tasK":1,"tas\u212a":2}`:                   {why: "\"tasK\" and \"tas\u212a\" differ in case only"},
		`{"s":1,"ſ":2}`:                              {why: `"s" and "ſ" differ in case only`},
		`{"x":[{"y":{"a":1,"a":2}}]}`:                {why: `"a" appears more than once`},
		`[{"a":1,"a":2}]`:                            {why: `"a" appears more than once`},
		`{"edits":[{"file_path":1,"File_Path":2}]}`:  {why: `"file_path" and "File_Path" differ in case only`},
		`{"command":"\ud800"}`:                       {why: "not valid Unicode", commands: []string{"\xed\xa0\x80"}},
		`{"x":["\udc00\ud800"]}`:                     {why: "not valid Unicode"},
		`{"\ud800":1}`:                               {why: "not valid Unicode"},
		"{\"command\":\"\xff\"}":                     {why: "not valid Unicode", commands: []string{"\xff"}},
		`{`:                                          {why: "not valid JSON"},
		strings.Repeat("[", 20_000):                  {why: "not valid JSON"},
	} {
		got := toolinput.Read([]byte(input))
		assert.Contains(t, got.Ambiguity, want.why, input)
		assert.Equal(t, want.commands, got.Commands, input)
		assert.Equal(t, want.files, got.Files, input)
		assert.Empty(t, got.Words, input)
	}
	long := toolinput.Read([]byte(`{"` + strings.Repeat("é", 1000) + `":1,"` + strings.Repeat("é", 1000) + `":1}`))
	assert.Less(t, len(long.Ambiguity), 200, "a human reads it")
	assert.True(t, json.Valid(fmt.Appendf(nil, "%q", long.Ambiguity)))
}

// Names that encoding/json treats as equal are equal here, too.
func TestNamesThatDifferInCase(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		for next := unicode.SimpleFold(r); next > r; next = unicode.SimpleFold(next) {
			a, _ := json.Marshal("x" + string(r))
			b, _ := json.Marshal("x" + string(next))
			if in := toolinput.Read(fmt.Appendf(nil, `{%s:1,%s:2}`, a, b)); in.Ambiguity == "" {
				t.Errorf("%c and %c", r, next)
			}
		}
	}
}

func TestOnlyTheSameInputsHaveOnePrint(t *testing.T) {
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "a" : 1 } `, `{"\u0062":[true,null],"\u0061":1}`},
		{`"é\/"`, `"\u00e9/"`},
		{`"😀"`, `"\ud83d\ude00"`},
	} {
		for _, other := range same[1:] {
			assert.True(t, toolinput.Same([]byte(same[0]), []byte(other)), "%s and %s", same[0], other)
		}
	}
	inputs := []string{
		``, `{`, `null`, `0`, `-0`, `1`, `1.0`, `1e0`, `1e400`, `1e401`, `-1e400`, `9007199254740992`, `9007199254740993`, `"1"`, `true`, `false`, `"true"`,
		`""`, `"\ufffd"`, `"\ud800"`, `"\ud801"`, `"\udc00"`, `"\udc00\ud800"`, "\"\xff\"", "\"\xfe\"", `[]`, `{}`, `[[]]`, `[[],[]]`, `[[[]]]`, `["a","b"]`, `["ab"]`,
		`{"a":1}`, `{"A":1}`, `{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":2}`, `{"a":1,"A":2}`, `{"a":2,"A":1}`, `{"A":1,"a":2}`, `{"A":2,"a":1}`, `{"a":{"b":1}}`, `{"a":{"b":1,"b":1}}`, `{"a":[{"b":1}]}`,
		`{"a":{},"b":1}`, `{"a":{"b":1},"c":{}}`, `["s"]`, `["n"]`, `{"a":null}`, `{"a":""}`,
	}
	seen := map[string]string{}
	for _, input := range inputs {
		print := toolinput.Fingerprint([]byte(input))
		assert.Len(t, print, 64)
		assert.Empty(t, seen[print], "%q has the print of %q", input, seen[print])
		seen[print] = input
	}
}

// Depth costs no more than length.
func TestAnInputThatIsDeep(t *testing.T) {
	const depth = 9000
	deep := []byte(strings.Repeat(`{"a":[`, depth/2) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat(`]}`, depth/2))
	require.True(t, json.Valid(deep))
	assert.Equal(t, toolinput.Input{}, toolinput.Read(deep))
	assert.Equal(t, toolinput.Fingerprint(deep), toolinput.Fingerprint(append([]byte(" "), deep...)))
}

func TestMembersOfAMessage(t *testing.T) {
	got, err := toolinput.Members([]byte(` {"title":"x","rawInput":{"a":1,"a":2} , "n" : -1.5e3,"b":[{}],"\u0063":null}`))
	require.NoError(t, err)
	assert.Equal(t, map[string]json.RawMessage{
		"title": json.RawMessage(`"x"`), "rawInput": json.RawMessage(`{"a":1,"a":2}`), "n": json.RawMessage(`-1.5e3`), "b": json.RawMessage(`[{}]`), "c": json.RawMessage(`null`),
	}, got)
	var title string
	require.NoError(t, toolinput.Take(got, "title", &title))
	assert.Equal(t, "x", title)
	assert.Error(t, toolinput.Take(got, "n", &title))
	assert.NoError(t, toolinput.Take(got, "absent", &title))
	for _, bad := range []string{``, `[]`, `{`, `{"a":1,"a":1}`, `{"rawInput":1,"RawInput":2}`} {
		_, err := toolinput.Members([]byte(bad))
		assert.Error(t, err, bad)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"command":"ls","file_path":"/a"}`, `{"command":"a","Command":"b"}`, `{"command":["x"]}`, `{"a":{"b":[1,"\ud800",{"c":1e400}]}}`, `[`, `null`, "\"\xff\"", ` {"\u0063ommand" : null}`,
	} {
		f.Add([]byte(seed), "command")
	}
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		in := toolinput.Read(raw)
		print := toolinput.Fingerprint(raw)
		members, err := toolinput.Members(raw)
		if !json.Valid(raw) {
			assert.Error(t, err)
			return
		}
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, raw))
		assert.Equal(t, print, toolinput.Fingerprint(compact.Bytes()))
		if in.Ambiguity != "" {
			return
		}
		// Without twins encoding/json reads the same, ignoring case.
		var want struct {
			Command any
			Path    any `json:"file_path"`
		}
		var all map[string]json.RawMessage
		if json.Unmarshal(raw, &all) != nil || all == nil { // null is not an object
			assert.Equal(t, toolinput.Input{}, in)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, len(all), len(members))
		for name, value := range all {
			assert.Equal(t, string(bytes.TrimSpace(value)), string(members[name]))
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		require.NoError(t, d.Decode(&want))
		if text, ok := want.Command.(string); ok {
			assert.Equal(t, []string{text}, in.Commands)
			assert.False(t, in.CommandNotText)
		} else {
			assert.Empty(t, in.Command())
			assert.Equal(t, want.Command != nil, in.CommandNotText)
		}
		if text, ok := want.Path.(string); ok {
			assert.Equal(t, []string{text}, in.Files)
		}
		// A twin is detected, and changes the fingerprint.
		quoted, err := json.Marshal(name)
		if _, is := all[name]; err != nil || !is {
			return
		}
		twin := append(compact.Bytes()[:compact.Len()-1:compact.Len()-1], fmt.Sprintf(",%s:0}", quoted)...)
		assert.NotEmpty(t, toolinput.Read(twin).Ambiguity, "%s", twin)
		assert.NotEqual(t, print, toolinput.Fingerprint(twin))
	})
}
