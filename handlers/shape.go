package handlers

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// longest is the longest time that a client can mean: it is without end, and
// what is reckoned with it is still a date.
const longest = 100 * 365 * 24 * time.Hour

// milliseconds is a time of so many, or the longest if that is less.
func milliseconds[N int64 | uint](n N) time.Duration {
	if n > 0 && uint64(n) > uint64(longest/time.Millisecond) {
		return longest
	}
	return max(time.Duration(n), -longest/time.Millisecond) * time.Millisecond
}

// timeOrNil is nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// orNil is nil for the zero value.
func orNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// headline is the beginning of a text as one line of at most most characters.
func headline(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// longestMessage bounds what goes out where the framing does not: a peer that
// is a duet-rpc itself takes frames of 10 MiB.
const longestMessage = 9 << 20

// room is how many bytes a result may have on the connection that asks.
func room(ctx context.Context) int {
	const envelope = 2048 // the id and what stands around a result
	if conn := server.ConnFrom(ctx); conn != nil && conn.MaxMessage() > 0 {
		return conn.MaxMessage() - envelope
	}
	return longestMessage
}

// A shortenable is an object with texts that may be cut where a message would
// become too long.
type shortenable interface{ texts() []*string }

// textCaps are the lengths to which texts are cut, one after the other, until
// a message fits.
var textCaps = []int{256 << 10, 64 << 10, 16 << 10, 4 << 10, 1 << 10, 256}

// fit cuts texts of the objects of a list until the list fits into most bytes,
// and if that does not do, returns only as many of its objects as fit. Texts
// that are cut say so.
func fit[T shortenable](list []T, most int) []T {
	sizes := make([]int, len(list))
	measure := func() (total int) {
		for i, o := range list {
			sizes[i] = encodedSize(o) + 1
			total += sizes[i]
		}
		return total
	}
	if atMost(list) <= most {
		return list
	}
	total := measure()
	for _, limit := range textCaps {
		if total <= most {
			return list
		}
		for _, o := range list {
			for _, text := range o.texts() {
				*text = dialect.Cut(*text, limit)
			}
		}
		total = measure()
	}
	kept := 0
	for sum := 0; kept < len(list) && sum+sizes[kept] <= most; kept++ {
		sum += sizes[kept]
	}
	return list[:kept]
}

// fitting is how many of the first of a list fit into most bytes.
func fitting[T any](list []T, most int) int {
	for i, o := range list {
		if most -= encodedSize(o) + 1; most < 0 {
			return i
		}
	}
	return len(list)
}

// A bounded object can say how long it is at most, as JSON, without being
// encoded.
type bounded interface{ atMost() int }

// atMost is how long a list can be, as JSON, in bytes.
func atMost[T any](list []T) int {
	total := 0
	for _, o := range list {
		b, ok := any(o).(bounded)
		if !ok {
			return math.MaxInt
		}
		total += b.atMost() + 1
	}
	return total
}

// textAtMost is how long texts are at most, as JSON: each byte may become six.
func textAtMost(texts ...*string) int {
	total := 0
	for _, text := range texts {
		total += 6*len(*text) + 2
	}
	return total
}

// encodedSize is the length of v as JSON, in bytes; it is not too small.
func encodedSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(b)
}

// pageSize is the limit of a list: its default where none was asked for.
func pageSize(asked *uint, byDefault, most int) int {
	if asked == nil || *asked == 0 {
		return byDefault
	}
	return int(min(*asked, uint(most)))
}

// beforeRow is the row of the run that an id names, for paging; 0 for none.
func beforeRow(ctx context.Context, h *hub.Hub, id string) (int64, error) {
	if id == "" {
		return 0, nil
	}
	s, err := h.Query().Session(ctx, id)
	return s.ID, err
}
