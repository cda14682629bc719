package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

func TestAMemberIsTheLastWithItsName(t *testing.T) {
	for _, c := range []struct{ object, want string }{
		{`{"a":1,"b":2}`, `2`},
		{`{"b":1,"b":{"b":3}}`, `{"b":3}`},
		{`{"\u0062" : "x" }`, `"x"`},
		{`{"B":1}`, ``},
		{`["b"]`, ``},
		{``, ``},
	} {
		assert.Equal(t, c.want, string(rawjson.Member([]byte(c.object), "b")), c.object)
	}
}

// For an invalid object, Members yields the members in front of the mistake.
func TestMembersInFrontOfAMistake(t *testing.T) {
	for object, want := range map[string]string{
		` { "a" : 1 , "b" : [2] } `: `"a"=1 "b"=[2] `,
		`{"a":1 "b":2}`:             `"a"=1 `,
		`{"a":1x"b":2}`:             `"a"=1 `,
		`{"a":1`:                    `"a"=1 `,
		`{"a":1,`:                   `"a"=1 `,
		`{"a":1,b":2}`:              `"a"=1 `,
		`{"a":1,"b":}`:              `"a"=1 `,
		`{"a":1,"b"`:                `"a"=1 `,
		`{"a" 1}`:                   ``,
		`{}`:                        ``,
		`{`:                         ``,
		``:                          ``,
	} {
		got := ""
		for name, value := range rawjson.Members([]byte(object)) {
			got += string(name) + "=" + string(value) + " "
		}
		assert.Equal(t, want, got, object)
	}
}

// Encode turns any raw JSON into text: each lone half of a surrogate pair becomes U+FFFD, and
// nothing else changes.
func TestEncodeMendsSurrogates(t *testing.T) {
	for raw, want := range map[string]string{
		`"\ud83d\ude00"`: `"\ud83d\ude00"`, `"\uD83D\uDE00"`: `"\uD83D\uDE00"`, `"\udbff\udfff"`: `"\udbff\udfff"`,
		`"\ud800"`: `"\ufffd"`, `"\udbffx"`: `"\ufffdx"`, `"\udc00"`: `"\ufffd"`, `"\udfff"`: `"\ufffd"`, `"\uDAaa"`: `"\ufffd"`,
		`"\ud800\ud800\udc00"`: `"\ufffd\ud800\udc00"`, `"\ude00\ud83d"`: `"\ufffd\ufffd"`,
		`"\ud800\u0041"`: `"\ufffd\u0041"`, `"\ud800\n"`: `"\ufffd\n"`,
		`"\u00d8\u0d80\ud7ff\ue000\\ud800\"\ud900"`: `"\u00d8\u0d80\ud7ff\ue000\\ud800\"\ufffd"`,
		"\"\xff\"": "\"\ufffd\"",
	} {
		got, err := rawjson.Encode(json.RawMessage(raw))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), raw)
	}
	got, err := rawjson.Encode("<&>")
	require.NoError(t, err)
	assert.Equal(t, `"<&>"`, string(got))
	_, err = rawjson.Encode(func() {})
	assert.Error(t, err)
}
