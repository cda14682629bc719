package trust

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestARunKeepsThatItIsRestricted(t *testing.T) {
	for _, metadata := range []string{"", "null", `{"a":[1,2]}`, `{"workspace_trusted":true}`} {
		run := domain.Run{Metadata: json.RawMessage(metadata)}
		assert.False(t, RestrictedRun(run), metadata)
		RestrictRun(&run)
		assert.True(t, RestrictedRun(run), metadata)
		assert.True(t, json.Valid(run.Metadata), metadata)
	}
	run := domain.Run{Metadata: json.RawMessage(`{"a":[1,2]}`)}
	RestrictRun(&run)
	assert.JSONEq(t, `{"a":[1,2],"workspace_trusted":false}`, string(run.Metadata), "what was there stays")
}

func TestAContextTellsThatItIsRestricted(t *testing.T) {
	assert.False(t, Restricted(context.Background()))
	assert.True(t, Restricted(Restrict(context.Background())))
}
