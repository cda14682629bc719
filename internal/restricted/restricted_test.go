package restricted

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
		assert.False(t, Marked(run), metadata)
		Mark(&run)
		assert.True(t, Marked(run), metadata)
		assert.True(t, json.Valid(run.Metadata), metadata)
	}
	run := domain.Run{Metadata: json.RawMessage(`{"a":[1,2]}`)}
	Mark(&run)
	assert.JSONEq(t, `{"a":[1,2],"workspace_trusted":false}`, string(run.Metadata), "what was there stays")
}

func TestAContextTellsThatItIsRestricted(t *testing.T) {
	assert.False(t, Is(context.Background()))
	assert.True(t, Is(Context(context.Background())))
}
