package domain

import (
	"encoding/json"
	"time"
)

// An Event is an entry of the log.
type Event struct {
	Seq    int64 // 0: not kept, such as a terminal's output
	Time   time.Time
	Type   string
	Thread int64           // or 0
	Run    int64           // or 0
	Key    string          // of a delta: the message's id
	Text   string          // of a delta: its text
	Data   json.RawMessage // of everything else: what clients see
}

// DamagedJSON is what stands in the place of JSON that could not be read.
const DamagedJSON = `{"damaged":true}`

// Damaged reports whether what the event has to tell could not be read. The
// rest of it may be wrong, too.
func (e Event) Damaged() bool { return string(e.Data) == DamagedJSON }
