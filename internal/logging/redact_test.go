package logging_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/logging"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ message, want string }{
		"nothing":      {`{"jsonrpc":"2.0", "id":1e3,"method":"ping"}`, `{"jsonrpc":"2.0", "id":1e3,"method":"ping"}`},
		"a secret":     {`{"method":"secret.provide","params":{"request_id":"r","secret" : "s3cret"}}`, `{"method":"secret.provide","params":{"request_id":"r","secret" : "(redacted)"}}`},
		"a token":      {`{"params":{"session_token":"abc","prompt":"hi"}}`, `{"params":{"session_token":"(redacted)","prompt":"hi"}}`},
		"a key":        {`{"result":{"api_key":"sk-1","source":"env"}}`, `{"result":{"api_key":"(redacted)","source":"env"}}`},
		"environments": {`{"env":{"A":"x","B":["y",2]},"headers":[{"name":"n"}],"a":true}`, `{"env":{"A":"(redacted)","B":["(redacted)","(redacted)"]},"headers":[{"name":"(redacted)"}],"a":true}`},
		"empty, null":  {`{"token":null,"secret":"","password":false}`, `{"token":null,"secret":"","password":false}`},
		"counts":       {`{"input_tokens":5,"token_usage":{"total":7}}`, `{"input_tokens":5,"token_usage":{"total":7}}`},
		"a batch":      {`[{"secret":"a"}, {"Session-Token":"b"}]`, `[{"secret":"(redacted)"}, {"Session-Token":"(redacted)"}]`},
		"JSON in text": {`{"mcp_config":"{\"env\":{\"K\":\"v\"}}"}`, `{"mcp_config":"{\"env\":{\"K\":\"(redacted)\"}}"}`},
		"no JSON":      {`{"secret":"a`, `"(redacted)"`},
		"two values":   {`1 {"secret":"a"}`, `"(redacted)"`},
	} {
		assert.Equal(t, c.want, string(logging.Redact([]byte(c.message))), name)
	}
}
