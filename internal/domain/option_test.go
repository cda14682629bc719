package domain_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestOptionsKeepUnknownMembers(t *testing.T) {
	for in, out := range map[string]string{
		`{}`:                          `{}`,
		`null`:                        `{}`,
		`{"name":"a","kind":"b"}`:     `{"name":"a","kind":"b"}`,
		`{"KIND":"b","option_id":""}`: `{"kind":"b"}`,
		`{"x":1}`:                     `{"x":1}`,
		`{"z":1.50,"name":"a","_meta":{"n":null}}`: `{"name":"a","_meta":{"n":null},"z":1.50}`,
	} {
		var o domain.Option
		require.NoError(t, json.Unmarshal([]byte(in), &o), in)
		got, err := json.Marshal(o)
		require.NoError(t, err, in)
		assert.Equal(t, out, string(got), in)
	}
	for _, in := range []string{`7`, `[]`, `"a"`, `{"name":7}`} {
		assert.Error(t, json.Unmarshal([]byte(in), new(domain.Option)), in)
	}
}
