package intake

import (
	"encoding/json"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/diff"
)

// KindProgress is the kind of a report of how far a task is. The other kinds are
// those of the catalog.
const KindProgress = "progress"

// A Report is something that an executor said about a run.
type Report struct {
	Run    int64
	Kind   string // catalog.Event…, or KindProgress
	Data   json.RawMessage
	Delta  catalog.ContentDelta // of a delta, which has no Data
	Change *FileChange          // of a changed file
}

// size is about how much memory it takes, in bytes.
func (r *Report) size() int { return len(r.Data) + len(r.Delta.Delta.Text) }

// isDelta reports whether it is a piece of a message or of a thought.
func (r *Report) isDelta() bool {
	return r.Kind == catalog.EventContentDelta || r.Kind == catalog.EventThinkingChunk
}

// continuedBy reports whether the next piece belongs to the same message as this
// one.
func (r *Report) continuedBy(next Report) bool {
	a, b := r.Delta.MessageID, next.Delta.MessageID
	return r.Kind == next.Kind && (a == b || a == "" || b == "")
}

// A FileChange is a changed file with its unified diff.
type FileChange struct {
	catalog.FileChange
	Diff           string
	Added, Removed int // lines
}

var errNoPath = errors.New("a file change without a path")

// reportOf is an event of an agent as a report. It does what may take long, so
// that the store's writer need not.
func (in *Intake) reportOf(run int64, kind string, data json.RawMessage) (Report, error) {
	r := Report{Run: run, Kind: kind, Data: data}
	switch {
	case r.isDelta():
		r.Data = nil
		return r, json.Unmarshal(data, &r.Delta)
	case kind == catalog.EventFileChange:
		var err error
		r.Change, err = in.fileChange(data)
		return r, err
	}
	return r, nil
}

// fileChange makes the diff of a reported change of a file.
func (in *Intake) fileChange(data json.RawMessage) (*FileChange, error) {
	var c FileChange
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
