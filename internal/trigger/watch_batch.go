package trigger

import (
	"hash/maphash"
	"path"
	"slices"
	"strings"
	"time"
)

// A changeKind is what has become of a file.
type changeKind byte

// Kinds of changes.
const (
	changeCreate changeKind = iota + 1
	changeModify
	changeDelete
)

// A watchSpec is what one trigger wants to know.
type watchSpec struct {
	ID         string
	Paths      []string // as of triggerconfig.Trigger
	Extensions []string
	Ignore     []string
	Kinds      []changeKind // none: all
	Debounce   time.Duration
	Since      time.Time // files that were changed after it are told from the start on; zero: none
}

// A changeBatch is what has changed until nothing changed any more. What is gone again, or
// came and went, is not in it.
type changeBatch struct {
	ID          string
	First, Last time.Time // when the first change was told, and the last
	Paths       []string  // the first of them, relative to the root, with slashes; "." where too many changed to know any
	Count       int       // at least; of different files
	Created     int
	Modified    int
	Deleted     int
}

const (
	mostPaths     = 100
	mostPathBytes = 16 << 10
	mostKept      = 1 << 20 // bytes of paths that are kept until it is known which of them are told
	mostFiles     = 100_000 // of which a batch knows what became of each
	longestWait   = 30 * time.Second
)

var seed = maphash.MakeSeed()

func hashOf(path string) uint64 { return maphash.String(seed, path) }

// A pending is what has changed for a trigger and is not told yet. Its memory is bounded,
// however many files there are.
type pending struct {
	spec    watchSpec
	paths   list
	ignored list
	looked  time.Time // when a batch was made last

	first, last time.Time // zero: nothing is pending
	became      map[uint64]changeKind
	kept        []string // the paths of the first of them
	keptBytes   int
	more        int // changes of files beyond mostFiles
}

func newPending(s watchSpec) *pending {
	return &pending{spec: s, paths: parseList(s.Paths, true), ignored: parseList(s.Ignore, false), looked: s.Since}
}

// wants reports whether the trigger is for a file.
func (p *pending) wants(file string) bool {
	if len(p.spec.Extensions) > 0 && !slices.ContainsFunc(p.spec.Extensions, func(e string) bool { return strings.HasSuffix(path.Base(file), e) }) {
		return false
	}
	if len(p.spec.Paths) > 0 && !p.paths.holds(file, false) {
		return false
	}
	return !p.ignored.holds(file, false)
}

// written is what a file is told as that was written while nobody looked: it may have been
// created.
func (p *pending) written() changeKind {
	if len(p.spec.Kinds) > 0 && !slices.Contains(p.spec.Kinds, changeModify) && slices.Contains(p.spec.Kinds, changeCreate) {
		return changeCreate
	}
	return changeModify
}

// note adds a change.
func (p *pending) note(file string, kind changeKind, now time.Time) {
	if p.became == nil {
		p.first, p.became = now, make(map[uint64]changeKind)
	}
	p.last = now
	h := hashOf(file)
	before, known := p.became[h]
	switch {
	case !known && len(p.became) >= mostFiles:
		if p.spec.wants(kind) {
			p.more++
		}
		return
	case before == changeCreate && kind == changeDelete:
		p.became[h] = 0 // it came and went
		return
	case before == changeCreate:
		return
	case before == changeDelete && kind == changeCreate:
		kind = changeModify // it was replaced
	case known && before == 0 && kind == changeDelete:
		return
	case known && before == 0:
		kind = changeCreate
	}
	p.became[h] = kind
	if !known && p.keptBytes+len(file) <= mostKept {
		p.kept, p.keptBytes = append(p.kept, file), p.keptBytes+len(file)
	}
}

// wants reports whether the trigger is for what has become of a file; 0 is nothing.
func (s watchSpec) wants(k changeKind) bool {
	return k != 0 && (len(s.Kinds) == 0 || slices.Contains(s.Kinds, k))
}

// due is when what is pending is to be told; zero: nothing is.
func (p *pending) due() time.Time {
	if p.became == nil {
		return time.Time{}
	}
	due, latest := p.last.Add(p.spec.Debounce), p.first.Add(max(longestWait, p.spec.Debounce))
	if latest.Before(due) {
		return latest
	}
	return due
}

// take is what is pending, which is told then; ok is false where nothing is left of it.
func (p *pending) take() (b changeBatch, ok bool) {
	b = changeBatch{ID: p.spec.ID, First: p.first, Last: p.last, Count: p.more}
	for _, kind := range p.became {
		if !p.spec.wants(kind) {
			continue
		}
		b.Count++
		switch kind {
		case changeCreate:
			b.Created++
		case changeModify:
			b.Modified++
		case changeDelete:
			b.Deleted++
		}
	}
	bytes := 0
	for _, file := range p.kept {
		if len(b.Paths) == mostPaths || bytes+len(file) > mostPathBytes {
			break
		}
		if p.spec.wants(p.became[hashOf(file)]) {
			b.Paths, bytes = append(b.Paths, file), bytes+len(file)
		}
	}
	if b.Count > 0 && len(b.Paths) == 0 {
		b.Paths = []string{"."} // something in it
	}
	p.looked = p.last
	p.became, p.kept, p.keptBytes, p.more, p.first, p.last = nil, nil, 0, 0, time.Time{}, time.Time{}
	return b, b.Count > 0
}
