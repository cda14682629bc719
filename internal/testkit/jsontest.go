package testkit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// This file is for tests: it takes parts out of messages.

// JSONMember is what stands at a path in an object, such as error.code, as it stands
// there; nil if nothing does.
func JSONMember[O ~string | ~[]byte](t testing.TB, object O, path string) json.RawMessage {
	t.Helper()
	at := json.RawMessage(object)
	for name := range strings.SplitSeq(path, ".") {
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(at, &members), "%s", object)
		at = members[name]
	}
	return at
}

// JSONAs is the [Member] at a path, which has to be there, and a T.
func JSONAs[T any, O ~string | ~[]byte](t testing.TB, object O, path string) T {
	t.Helper()
	raw := JSONMember(t, object, path)
	require.NotNil(t, raw, "%s in %s", path, object)
	var value any
	require.NoError(t, json.Unmarshal(raw, &value))
	v, ok := value.(T)
	require.True(t, ok, "%s in %s", path, object)
	return v
}
