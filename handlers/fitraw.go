package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/jsonwalk"
)

// fitRaw cuts the strings in raw JSON until it fits into most bytes. What
// cannot be made to fit becomes an object that says so. All members stay as they
// stand there, also those that programs may take for one: what a human is shown
// is no one program's reading.
func fitRaw(raw json.RawMessage, most int) json.RawMessage {
	if len(raw) <= most {
		return raw
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		for _, limit := range textCaps {
			if shorter := cutStrings(compact.Bytes(), limit); len(shorter) <= most {
				return shorter
			}
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"trimmed":%d}`, len(raw)))
}

// cutStrings cuts the texts in compact JSON to at most limit bytes each; names
// stay.
func cutStrings(compact []byte, limit int) json.RawMessage {
	out := make([]byte, 0, len(compact))
	for len(compact) > 0 {
		start := bytes.IndexByte(compact, '"')
		if start < 0 {
			break
		}
		end := jsonwalk.String(compact, start)
		out = append(out, compact[:start]...)
		isName := end < len(compact) && compact[end] == ':'
		out = append(out, cutString(compact[start:end], limit, isName)...)
		compact = compact[end:]
	}
	return append(out, compact...)
}

func cutString(quoted []byte, limit int, isName bool) []byte {
	if isName || len(quoted)-2 <= limit { // escaped it is no shorter
		return quoted
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil || len(text) <= limit {
		return quoted
	}
	return encodeText(dialect.Cut(text, limit))
}

func encodeText(text string) []byte {
	b, _ := json.Marshal(text) // a string always can be
	return b
}
