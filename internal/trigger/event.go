package trigger

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// An Event is something that happened and that triggers may be for.
type Event struct {
	Type    string // such as run.failed
	Source  string // watch, schedule, run or approval
	Time    time.Time
	Payload map[string]any // values as of encoding/json, and slices of strings

	key        string // by which it is known again: a trigger does something for it once
	of         string // the one trigger that it is for, or "": all
	depth      int    // how many executions of triggers led to it
	restricted bool   // it is of a run that is for somebody who does not trust the workspace
}

// members are what conditions and templates see of an event.
func (e Event) members() map[string]any {
	return map[string]any{"type": e.Type, "source": e.Source, "timestamp": e.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00"), "payload": e.Payload}
}

// JSON is the event as an object.
func (e Event) JSON() json.RawMessage {
	text, err := json.Marshal(e.members())
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// member looks a value up by a path such as payload.paths.0. It is nil where there is
// none.
func (e Event) member(path string) any {
	var at any = e.members()
	for name := range strings.SplitSeq(path, ".") {
		switch in := at.(type) {
		case map[string]any:
			at = in[name]
		case []any:
			at = item(in, name)
		case []string:
			at = item(in, name)
		default:
			return nil
		}
	}
	return at
}

func item[T any](list []T, index string) any {
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

var placeholder = lazyregexp.New(`\{\{\s*([\w.-]+)\s*\}\}`)

// mostRendered is how long a text becomes at most, in bytes.
const mostRendered = 64 << 10

// render puts members of an event in the place of {{their.path}}. What the event has
// not stays as it is written.
func render(template string, e Event) string {
	text := placeholder().ReplaceAllStringFunc(template, func(found string) string {
		value := e.member(placeholder().FindStringSubmatch(found)[1])
		switch value := value.(type) {
		case nil:
			return found
		case string:
			return value
		case []string:
			return strings.Join(value, ", ")
		case map[string]any, []any:
			text, _ := json.Marshal(value)
			return string(text)
		}
		return fmt.Sprint(value)
	})
	return cut(text, mostRendered)
}

// cut is the beginning of a text, at most so many bytes of it, and whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
