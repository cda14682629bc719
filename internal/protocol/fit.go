package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// LongestDuration is the longest duration of a parameter. Longer ones mean the same, unlimited, and a date
// cannot overflow by this one.
const LongestDuration = 100 * 365 * 24 * time.Hour

// Milliseconds returns n milliseconds, at most LongestDuration.
func Milliseconds[N int64 | uint](n N) time.Duration {
	if n > 0 && uint64(n) > uint64(LongestDuration/time.Millisecond) {
		return LongestDuration
	}
	return max(time.Duration(n), -LongestDuration/time.Millisecond) * time.Millisecond
}

// TimeOrNil returns nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// OrNil returns nil for the zero value.
func OrNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Headline returns the beginning of a text as one line of at most most characters.
func Headline(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// LongestMessage limits a message, in bytes, if the framing has no limit. Another duet-rpc accepts
// frames of 10 MiB.
const LongestMessage = 9 << 20

// Room returns how many bytes a result may have on the connection of the request.
func Room(ctx context.Context) int {
	const envelope = 2048 // the id and the members around a result
	if conn := server.ConnFrom(ctx); conn != nil && conn.MaxMessage() > 0 {
		return conn.MaxMessage() - envelope
	}
	return LongestMessage
}

// A shortenable is an object with texts that may be cut if a message is too long.
type shortenable interface{ Texts() []*string }

// textCaps are the lengths, in bytes, to which texts are cut: the next one is tried until the message
// fits.
var textCaps = []int{256 << 10, 64 << 10, 16 << 10, 4 << 10, 1 << 10, 256}

// Fit cuts texts of the objects of a list until the list fits into most bytes. If that is not enough,
// it returns the first objects that fit. A cut text ends with a note that says so.
func Fit[T shortenable](list []T, most int) []T {
	sizes := make([]int, len(list))
	measure := func() (total int) {
		for i, o := range list {
			sizes[i] = EncodedSize(o) + 1
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
			for _, text := range o.Texts() {
				*text = Cut(*text, limit)
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

// Fitting returns how many objects at the beginning of a list fit into most bytes.
func Fitting[T any](list []T, most int) int {
	for i, o := range list {
		if most -= EncodedSize(o) + 1; most < 0 {
			return i
		}
	}
	return len(list)
}

// A bounded knows an upper limit for its length as JSON, in bytes, which costs less than encoding it.
type bounded interface{ AtMost() int }

// atMost returns an upper limit for the length of a list as JSON, in bytes. It costs less than
// encoding the list.
func atMost[T any](list []T) int {
	total := 0
	for _, o := range list {
		b, is := any(o).(bounded)
		if !is {
			return math.MaxInt
		}
		if total += b.AtMost() + 1; total < 0 {
			return math.MaxInt
		}
	}
	return total
}

// TextAtMost returns an upper limit for the length of texts as JSON, in bytes: each byte may become
// six.
func TextAtMost(texts ...*string) int {
	total := 0
	for _, text := range texts {
		total += 6*len(*text) + 2
	}
	return total
}

// EncodedSize returns the length of v as JSON, in bytes, or a little more.
func EncodedSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(b)
}

// PageSize returns the limit of a list, which is byDefault if the request has none.
func PageSize(asked *uint, byDefault, most int) int {
	if asked == nil || *asked == 0 {
		return byDefault
	}
	return int(min(*asked, uint(most)))
}

// FitRaw cuts the strings in raw JSON until it fits into most bytes. If that is not enough, it
// returns an object that says so. It keeps all members, also repeated names: programs differ in which
// one counts, so the user sees all.
func FitRaw(raw json.RawMessage, most int) json.RawMessage {
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

// cutStrings cuts each string value in compact JSON to limit bytes. It does not cut names.
func cutStrings(compact []byte, limit int) json.RawMessage {
	out := make([]byte, 0, len(compact))
	for len(compact) > 0 {
		start := bytes.IndexByte(compact, '"')
		if start < 0 {
			break
		}
		end := start + 1
		for ; compact[end] != '"'; end++ {
			if compact[end] == '\\' {
				end++
			}
		}
		end++
		out = append(out, compact[:start]...)
		isName := end < len(compact) && compact[end] == ':'
		out = append(out, cutString(compact[start:end], limit, isName)...)
		compact = compact[end:]
	}
	return append(out, compact...)
}

func cutString(quoted []byte, limit int, isName bool) []byte {
	if isName || len(quoted)-2 <= limit { // escaping makes it no shorter
		return quoted
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil || len(text) <= limit {
		return quoted
	}
	return encodeText(Cut(text, limit))
}

func encodeText(text string) []byte {
	b, _ := json.Marshal(text) // a string has no error
	return b
}

// trimApproval cuts each input and text to most bytes.
func trimApproval(a *Approval, most int) {
	for _, input := range []*json.RawMessage{&a.ToolInput, &a.UpdatedInput} {
		if len(*input) > most {
			*input, a.Truncated = FitRaw(*input, most), true
		}
	}
	for _, text := range a.Texts() {
		if len(*text) > most {
			*text, a.Truncated = Cut(*text, most), true
		}
	}
	if a.Elicitation != nil && len(a.Schema) > most { // a part of a schema is another form
		whole := *a.Elicitation
		whole.Schema = nil
		a.Elicitation, a.Truncated = &whole, true
	}
}

// FitApprovals returns approvals in a form for clients, and shortens them until all of them fit into
// most bytes. It leaves none out: users would not see its question.
func FitApprovals[T shortenable](list []*Approval, most int, form func(*Approval) T) []T {
	forms := func() (out []T) {
		out = make([]T, 0, len(list))
		for _, a := range list {
			out = append(out, form(a))
		}
		return out
	}
	for _, limit := range textCaps {
		if atLeast(list) <= most {
			if all := forms(); Fitting(all, most) == len(list) {
				return all
			}
		}
		for _, a := range list {
			trimApproval(a, limit)
		}
	}
	return Fit(forms(), most)
}

// atLeast returns about how long the inputs and diffs of approvals are as JSON, in bytes. It is much
// cheaper than encoding them to see that they do not fit.
func atLeast(list []*Approval) (size int) {
	for _, a := range list {
		size += len(a.ToolInput) + len(a.UpdatedInput) + len(a.Diff)
	}
	return size
}

// AtMost returns an upper limit for the length of the turn as JSON, in bytes.
func (t *Turn) AtMost() int {
	if t.Modes != nil || t.AgentSession != nil {
		return math.MaxInt32
	}
	total := 4096 + TextAtMost(t.Texts()...) + TextAtMost(
		&t.Summary, &t.Title, &t.SessionTitle, &t.Model, &t.WorkingDir, &t.AgentSessionID, &t.CallerID, &t.Agent, &t.StopReason,
	)
	return total + ListsAtMost(t.AdditionalDirectories, t.UnansweredServers, t.Worktree, t.AuthMethods, t.Gates)
}

// ListsAtMost returns an upper limit for the length of members of a turn as JSON, in bytes.
func ListsAtMost(directories, servers []string, w *WorktreeState, methods []domain.AuthMethod, gates *Gates) (total int) {
	for _, text := range slices.Concat(directories, servers) {
		total += TextAtMost(&text)
	}
	if w != nil {
		total += TextAtMost(&w.Branch, &w.Dir)
	}
	return total + AuthMethodsAtMost(methods) + GatesAtMost(gates)
}

// AuthMethodsAtMost returns an upper limit for the length of methods as JSON, in bytes.
func AuthMethodsAtMost(methods []domain.AuthMethod) (total int) {
	for _, m := range methods {
		total += 100 + TextAtMost(&m.ID, &m.Name, &m.Description, &m.Type)
	}
	return total
}

// GatesAtMost returns an upper limit for the length of gates as JSON, in bytes.
func GatesAtMost(g *Gates) int {
	if g == nil {
		return 0
	}
	total := 500 + TextAtMost(&g.Reason)
	for _, list := range [][]string{g.Gates, g.Failing} {
		for _, name := range list {
			total += TextAtMost(&name)
		}
	}
	for _, r := range g.Results {
		total += 300 + TextAtMost(&r.Gate, &r.Reason, &r.Output)
		for _, f := range r.Findings {
			total += 200 + TextAtMost(&f.File, &f.Message, &f.Source)
		}
	}
	return total
}

// OrAbsent returns nil for null: clients send null for an absent value.
func OrAbsent(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
