package frame

import "time"

// Defaults for zero fields of [Limits].
const (
	DefaultMaxFrame  = 10 << 20         // 10 MiB of body
	DefaultMaxHeader = 8 << 10          // 8 KiB of header section
	DefaultTimeout   = 30 * time.Second // for one frame, from its first byte
)

// MaxDepth is how deep arrays and objects may nest before a body counts as invalid JSON. It is
// encoding/json's own bound, so that encoding/json can decode every body that a Reader accepts.
const MaxDepth = 10_000

// maxSkip is the longest oversize body that is skipped by counting. A larger length is more
// likely a corrupted number than a body that will come, so the Reader looks for the next header
// at once.
const maxSkip = 1 << 30

// Limits bound the cost of one incoming frame. A zero field means its default, such as
// [DefaultMaxFrame].
type Limits struct {
	// MaxFrame is the longest body accepted, in bytes. A line of NDJSON is measured without its
	// line end. A longer body is skipped, not kept.
	MaxFrame int
	// MaxHeader is the longest header section accepted, in bytes, counted up
	// to and including the blank line that ends it. NDJSON has no header.
	MaxHeader int
	// Timeout is how long a frame may take from its first byte to its last.
	// An idle connection never times out. Negative: no limit.
	Timeout time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.MaxFrame <= 0 {
		l.MaxFrame = DefaultMaxFrame
	}
	if l.MaxHeader <= 0 {
		l.MaxHeader = DefaultMaxHeader
	}
	if l.Timeout == 0 {
		l.Timeout = DefaultTimeout
	}
	return l
}
