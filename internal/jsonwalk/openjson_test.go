package jsonwalk_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/jsonwalk"
)

type known struct {
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
}

func TestMembersThatNobodyKnowsArePassedOn(t *testing.T) {
	for in, out := range map[string]string{
		`{}`:                      `{}`,
		`null`:                    `{}`,
		`{"name":"a","kind":"b"}`: `{"name":"a","kind":"b"}`,
		`{"KIND":"b"}`:            `{"kind":"b"}`,
		`{"x":1}`:                 `{"x":1}`,
		`{"z":1.50,"name":"a","_meta":{"<":null}}`: `{"name":"a","_meta":{"<":null},"z":1.50}`,
	} {
		var k known
		others, err := jsonwalk.OpenjsonRead([]byte(in), &k)
		require.NoError(t, err, in)
		got, err := jsonwalk.OpenjsonWrite(k, others)
		require.NoError(t, err, in)
		assert.Equal(t, out, string(got), in)
	}
}

func TestWhatIsNoSuchObjectIsAnError(t *testing.T) {
	for _, in := range []string{``, `{`, `7`, `[]`, `"a"`, `{"name":7}`} {
		_, err := jsonwalk.OpenjsonRead([]byte(in), &known{})
		assert.Error(t, err, in)
	}
	_, err := jsonwalk.OpenjsonWrite(func() {}, map[string]json.RawMessage{"a": nil})
	assert.Error(t, err)
}
