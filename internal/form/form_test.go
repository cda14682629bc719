package form

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// schema has a field of each kind, not sorted by name.
const schema = `{"type":"object","title":"Setup","$schema":"x","properties":{
	"strategy":{"type":"string","title":"Strategy","oneOf":[{"const":"safe","title":"Change little"},{"const":"bold","title":"Change all"}],"default":"safe"},
	"name":{"type":"string","minLength":2,"maxLength":5,"pattern":"^[a-zä]+$"},
	"mail":{"type":"string","format":"email"},
	"at":{"type":"string","format":"date-time"},
	"port":{"type":"integer","minimum":1024,"maximum":65535,"default":3000},
	"ratio":{"type":"number","maximum":1.5},
	"log":{"type":"boolean","default":true},
	"colours":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["red","green","blue"]},"default":["red","pink"]},
	"size":{"type":"string","enum":["s","l"],"enumNames":["Small","Large"]},
	"any":{"type":"object","properties":{}}
},"required":["name","port"]}`

func read(t *testing.T, schema string) Form {
	t.Helper()
	f, err := Read(json.RawMessage(schema))
	require.NoError(t, err)
	return f
}

func TestAFormIsReadInTheOrderOfTheAgent(t *testing.T) {
	f := read(t, schema)
	assert.Equal(t, []string{"strategy", "name", "mail", "at", "port", "ratio", "log", "colours", "size", "any"}, f.names())
	var kinds []Kind
	for _, field := range f.Fields {
		kinds = append(kinds, field.Kind)
	}
	assert.Equal(t, []Kind{Choice, Text, Text, Text, Integer, Number, Boolean, Choices, Choice, Other}, kinds)
	assert.Equal(t, []Option{{Value: "s", Title: "Small"}, {Value: "l", Title: "Large"}}, f.Fields[8].Choices)
	assert.True(t, f.Fields[1].Required)
	assert.False(t, f.Fields[2].Required)
	assert.Equal(t, "Setup", f.Title)
	assert.JSONEq(t, `{"strategy":"safe","port":3000,"log":true}`, string(f.Values(f.Defaults())), "a default that would not do is none")
}

func TestWhatIsNoFormIsRefused(t *testing.T) {
	for _, schema := range []string{`[]`, `"x"`, `{"type":"string"}`, `{"properties":[]}`, `{"properties":{"a":{},"a":{}}}`, `{"properties":{"a":`} {
		_, err := Read(json.RawMessage(schema))
		assert.Error(t, err, schema)
	}
	for _, schema := range []string{`{}`, `{"properties":null}`, `{"properties":{},"required":"a"}`} {
		assert.Empty(t, read(t, schema).Fields, schema)
	}
}

func TestAValueThatWillNotDoIsNamed(t *testing.T) {
	f := read(t, schema)
	for content, want := range map[string]string{
		`{"name":"abc","port":1024}`:                                  "",
		`{"name":"äää","port":65535,"ratio":-2.5e-1,"log":false}`:     "",
		`{"name":"abc","port":8e3,"colours":["blue","red"],"any":[]}`: "",
		`{"port":1024}`:                                      "name: expected a text of 2 to 5 characters that matches ^[a-zä]+$, received nothing",
		`{"name":"a","port":1024}`:                           `name: expected a text of 2 to 5 characters that matches ^[a-zä]+$, received "a"`,
		`{"name":"a1","port":1024}`:                          `name: expected a text of 2 to 5 characters that matches ^[a-zä]+$, received "a1"`,
		`{"name":7,"port":1024}`:                             `name: expected a text of 2 to 5 characters that matches ^[a-zä]+$, received 7`,
		`{"name":"abc","port":80}`:                           "port: expected a whole number from 1024 to 65535, received 80",
		`{"name":"abc","port":"8080"}`:                       `port: expected a whole number from 1024 to 65535, received "8080"`,
		`{"name":"abc","port":2000.5}`:                       "port: expected a whole number from 1024 to 65535, received 2000.5",
		`{"name":"abc","port":1e999999999}`:                  "port: expected a whole number from 1024 to 65535, received 1e999999999",
		`{"name":"abc","port":null}`:                         "port: expected a whole number from 1024 to 65535, received null",
		`{"name":"abc","port":2000,"ratio":2}`:               "ratio: expected a number of at most 1.5, received 2",
		`{"name":"abc","port":2000,"log":"yes"}`:             `log: expected true or false, received "yes"`,
		`{"name":"abc","port":2000,"strategy":"Change all"}`: `strategy: expected one of safe, bold, received "Change all"`,
		`{"name":"abc","port":2000,"colours":[]}`:            "colours: expected a list of 1 to 2 of red, green, blue, received []",
		`{"name":"abc","port":2000,"colours":["red","red"]}`: `colours: expected a list of 1 to 2 of red, green, blue, received ["red","red"]`,
		`{"name":"abc","port":2000,"mail":"nobody"}`:         `mail: expected an email address, received "nobody"`,
		`{"name":"abc","port":2000,"at":"noon"}`:             `at: expected a time like 2006-01-02T15:04:05Z, received "noon"`,
		`{"name":"abc","port":2000,"nmae":"abc"}`:            "nmae: expected one of the form's fields, strategy, name, mail, at, port, ratio, log, colours, size, any, received a field that it does not have",
		`{"name":"abc","port":2000,"name":"abd"}`:            "name: expected a text of 2 to 5 characters that matches ^[a-zä]+$, received the field twice",
		`[]`:   "expected an object with the form's values, received another value",
		`null`: "expected an object with the form's values, received another value",
	} {
		err := f.Check(json.RawMessage(content))
		if want == "" {
			assert.NoError(t, err, content)
		} else {
			assert.EqualError(t, err, want, content)
		}
	}
	assert.NoError(t, read(t, `{"properties":{"a":{"type":"string","pattern":"(?=x)y"}}}`).Check(json.RawMessage(`{"a":"z"}`)), "a pattern that is none of ours is left to the agent")
}

func TestWhatIsTypedBecomesAValue(t *testing.T) {
	f := read(t, schema)
	for _, c := range []struct{ field, typed, want string }{
		{"strategy", "bold", `"bold"`},
		{"strategy", "change LITTLE", `"safe"`},
		{"strategy", " 2 ", `"bold"`},
		{"strategy", "3", ""},
		{"name", "abc", `"abc"`},
		{"name", `"a"`, ""},
		{"port", " 8080", "8080"},
		{"port", "80", ""},
		{"port", "0x1F90", ""},
		{"ratio", "+.5", ""},
		{"ratio", "+0.5", "0.5"},
		{"ratio", "NaN", ""},
		{"log", "Y", "true"},
		{"log", "no", "false"},
		{"log", "maybe", ""},
		{"colours", "red, 3", `["red","blue"]`},
		{"colours", "", ""},
		{"colours", "red,pink", ""},
		{"any", `{"a":1}`, `{"a":1}`},
		{"any", `{a}`, ""},
	} {
		for _, field := range f.Fields {
			if field.Name != c.field {
				continue
			}
			value, err := field.Parse(c.typed)
			assert.Equal(t, c.want, string(value), "%s: %q", c.field, c.typed)
			assert.Equal(t, c.want == "", err != nil, "%s: %q", c.field, c.typed)
		}
	}
	assert.Equal(t, "Strategy: Change all; log: yes; colours: red, blue", f.InWords(json.RawMessage(`{"strategy":"bold","log":true,"colours":["red","blue"]}`)))
}

func TestWhereALinkLeads(t *testing.T) {
	for address, want := range map[string]Link{
		"https://agent.example.com/connect?id=1": {Host: "agent.example.com"},
		"http://localhost:8080/":                 {Host: "localhost:8080"},
		"http://127.0.0.1/":                      {Host: "127.0.0.1"},
		"http://example.com/":                    {"example.com", []string{"what is sent there can be read on the way: it is http, not https"}},
		"https://github.com@evil.example/":       {"evil.example", []string{"the text before the @ is not the host; the host is evil.example"}},
		"https://xn--pple-43d.com/":              {"xn--pple-43d.com", []string{"the name of the host is written in Punycode: it may be shown as another one"}},
		"https://аpple.com/":                     {"аpple.com", []string{"the name of the host has letters that may look like others"}},
		"https://10.1.2.3/":                      {"10.1.2.3", []string{"the host is a bare address without a name"}},
		"javascript:alert(1)":                    {"", []string{"it does not say which host it leads to", "it is no web address"}},
		"://":                                    {"", []string{"this is no address that can be read"}},
	} {
		assert.Equal(t, want, LinkOf(address), address)
	}
}
