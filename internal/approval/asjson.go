package approval

import (
	"encoding/json"
)

// asJSON is a value of plain strings, lists and objects as JSON.
func asJSON(v any) json.RawMessage {
	b, _ := json.Marshal(v) // it cannot fail for those
	return b
}
