// Package export writes a session as a document for other tools (docs/export.md), piece by piece, so that
// a long session need not be in memory.
package export

import (
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// A Form is a form of the document. The document is the concatenation of Head, an Item for each item, and
// Tail. first, and none, report that there is no item before.
type Form interface {
	Head(t *protocol.Turn) (string, error)
	Item(i *protocol.SessionItem, first bool) (string, error)
	Tail(changed protocol.ChangeList, none bool) (string, error)
}

// In returns the form of a format.
func In(f protocol.ExportFormat) Form {
	if f == protocol.ExportJSON {
		return inJSON{}
	}
	return markdown{}
}

// inJSON is the object of docs/export.md, indented.
type inJSON struct{}

const indent = "  "

func (inJSON) Head(t *protocol.Turn) (string, error) {
	turn, err := value(t, indent)
	return "{\n" + indent + `"format": "duet-session",` + "\n" + indent + `"version": 1,` + "\n" +
		indent + `"turn": ` + turn + ",\n" + indent + `"items": [`, err
}

func (inJSON) Item(i *protocol.SessionItem, first bool) (string, error) {
	text, err := value(i, indent+indent)
	before := ","
	if first {
		before = ""
	}
	return before + "\n" + indent + indent + text, err
}

func (inJSON) Tail(changed protocol.ChangeList, none bool) (string, error) {
	files, err := value(protocol.List(changed.Changes), indent)
	if err != nil {
		return "", err
	}
	diff, err := value(changed.Diff, indent)
	end := "\n" + indent + "]"
	if none {
		end = "]"
	}
	return end + ",\n" + indent + `"files": ` + files + ",\n" + indent + `"diff": ` + diff + "\n}\n", err
}

// value returns v as it stands in the document behind an indentation. Its JSON is what a client gets.
func value(v any, prefix string) (string, error) {
	raw, err := rawjson.Encode(v)
	if err != nil {
		return "", err
	}
	if raw, err = json.MarshalIndent(json.RawMessage(raw), prefix, indent); err != nil {
		return "", err
	}
	return strings.TrimSpace(rawjson.Inert(raw)), nil
}
