package intake

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Kinds of reports that are no events of the catalog.
const (
	kindProgress       = "progress"        // how far a task is
	kindSessionBetween = "session between" // catalog.Session, told while no prompt runs
)

// A report is something that an executor said about a run.
type report struct {
	run    int64
	kind   string // catalog.Event…, or kind…
	data   json.RawMessage
	delta  catalog.ContentDelta     // of a delta, which has no data
	change *conversation.FileChange // of a changed file
	blocks []domain.Content         // of content, and of a tool call; not in data
	parent string                   // of content: the tool call of the sub-agent that says it

	thought bool // of content: it is part of a thought

	between *between // of what is told between two turns, which has no run
}

// size is about how much memory it takes, in bytes.
func (r *report) size() int {
	n := len(r.data) + len(r.delta.Delta.Text) + len(r.delta.Meta)
	for _, b := range r.blocks {
		n += len(b.Data)
	}
	return n
}

// isDelta reports whether it is a piece of a message or of a thought.
func (r *report) isDelta() bool {
	return r.kind == catalog.EventContentDelta || r.kind == catalog.EventThinkingChunk
}

// isLateText reports whether it is text of a run that has ended.
func (r *report) isLateText() bool { return r.between != nil && r.isDelta() }

// continuedBy reports whether the next piece belongs to the same message as this
// one.
func (r *report) continuedBy(next report) bool {
	a, b := r.delta.MessageID, next.delta.MessageID
	return r.kind == next.kind && r.delta.ParentID == next.delta.ParentID && (a == b || a == "" || b == "")
}

var errNoPath = errors.New("a file change without a path")

// reportOf is an event of an agent as a report. It does what may take long, so
// that the store's writer need not.
func (in *Intake) reportOf(run int64, kind string, data json.RawMessage) (report, error) {
	r := report{run: run, kind: kind, data: data}
	switch {
	case r.isDelta():
		r.data = nil
		return r, json.Unmarshal(data, &r.delta)
	case kind == catalog.EventFileChange:
		var err error
		r.change, err = in.fileChange(data)
		return r, err
	}
	return r, nil
}

// fileChange makes the diff of a reported change of a file.
func (in *Intake) fileChange(data json.RawMessage) (*conversation.FileChange, error) {
	var c conversation.FileChange
	if err := json.Unmarshal(data, &c.FileChange); err != nil {
		return nil, err
	}
	switch {
	case c.Path == "":
		return nil, errNoPath
	case c.Binary:
		return &c, nil
	}
	c.Diff = diff.Unified(in.opts.Root, c.Path, c.Before, c.After)
	c.Added, c.Removed = diff.Count(c.Diff)
	return &c, nil
}

// encode is a value of the catalog as JSON. What an executor sent in the place of
// JSON, and is none, is said in its place.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"malformed": fmt.Sprint(err)})
	}
	return b
}
