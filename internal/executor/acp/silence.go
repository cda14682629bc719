package acp

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Detection of a silent agent: no sign of life during a turn.

const (
	// complaintLines is how many lines of an agent's stderr are told at once, and
	// complaintLength how long each may be, in bytes.
	complaintLines  = 3
	complaintLength = 300
	// complaintPause is how long it takes at least from one report of complaints
	// to the next, and maxComplaints how many there are of one silence.
	complaintPause = 2 * time.Second
	// together is how long before a sign of life a complaint still belongs to the
	// silence that follows: the two come by different pipes, in any order.
	together      = time.Second
	maxComplaints = 20
)

// A complainer is the stderr of an agent; see process.Process.
type complainer interface {
	Complaints(since int64, lines int) string
	ComplaintBytes() int64
	Complained() <-chan struct{}
}

// maxCalls is how many tool calls are known at once.
const maxCalls = 10_000

// A silenceWatch notices that a turn's agent gives no sign of life: no update, no
// request, no response. Agents try again by themselves when a model's API is down,
// for minutes, and tell nobody but their stderr.
//
// It does not count while the agent waits for us, for a permission above all. In
// the middle of a tool call an agent may well be silent, so that counts only
// after a longer time: the tool may hang. The report of its end comes before that
// of what ended it. Its methods may be called from any goroutine, but for Begin.
type silenceWatch struct {
	after, inTool time.Duration
	stderr        complainer
	starting      func() bool           // the agent does not have the prompt yet
	heldUp        func() bool           // the agent is not being read
	tell          func(catalog.Silence) // waits for the hub
	wake          chan struct{}         // to look again when it is to be told

	mu           sync.Mutex // guards the fields below, and keeps what is told in order
	last         time.Time  // when the last sign of life was
	heard        int64      // how much was on stderr a moment before that, in bytes
	next         int64      // how much was there at nextAt: the next value of heard
	nextAt       time.Time
	waiting      int        // requests that we have not answered
	programs     int        // requests of it that wait for the end of a program
	running      []openCall // the oldest first
	reported     *catalog.Silence
	reportedUpTo int64  // how much of stderr was told, in bytes
	said         int    // how often complaints were told of this silence
	retry        string // what the agent said over the protocol since the last sign of life; see Retries
}

// An openCall is a tool call that has begun and not ended.
type openCall struct{ id, title string }

// newSilence makes a Watch that tells of silence after a time, or after another in the
// middle of a tool call. tell waits for the hub.
func newSilence(after, inTool time.Duration, tell func(catalog.Silence)) *silenceWatch {
	return &silenceWatch{after: after, inTool: inTool, tell: tell, wake: make(chan struct{}, 1)}
}

// Begin begins to watch an agent with this stderr. starting tells that it does not
// have the prompt yet, heldUp that it is not being read. Signs before it are none.
func (s *silenceWatch) Begin(stderr complainer, starting, heldUp func() bool) {
	s.stderr, s.starting, s.heldUp = stderr, starting, heldUp
	s.heard = stderr.ComplaintBytes()
	s.next, s.nextAt = s.heard, time.Now()
	s.Sign()
}

// Run tells of silence until the turn has finished. It comes after Begin.
func (s *silenceWatch) Run(finished <-chan struct{}) {
	timer := time.NewTimer(s.after)
	defer timer.Stop()
	defer s.Sign()
	for {
		var complained <-chan struct{} // while that may be told
		if s.isReported() {
			complained = s.stderr.Complained()
		}
		select {
		case <-finished:
			return
		case <-s.wake:
		case <-timer.C:
		case <-complained:
			select { // more of it may come
			case <-finished:
				return
			case <-time.After(complaintPause):
			}
		}
		timer.Stop()
		if next := s.look(); next > 0 {
			timer.Reset(next)
		}
	}
}

func (s *silenceWatch) isReported() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported != nil
}

// look tells what is to be told now, and returns when to look again; 0: when
// something happens.
func (s *silenceWatch) look() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting > 0 {
		return 0
	}
	if s.reported != nil {
		s.complaint()
		return 0
	}
	if s.heldUp() { // it may have said something
		s.last = time.Now()
	}
	within := s.after
	if len(s.running) > 0 || s.programs > 0 {
		within = s.inTool
	}
	if left := within - time.Since(s.last); left > 0 {
		return left
	}
	s.reportedUpTo = s.stderr.ComplaintBytes()
	reported := catalog.Silence{SinceMS: s.last.UnixMilli(), Note: cmp.Or(s.retry, shortLines(s.stderr.Complaints(s.heard, complaintLines)))}
	switch {
	case len(s.running) > 0:
		call := s.running[len(s.running)-1]
		reported.ToolID, reported.Tool = call.id, call.title
	case s.programs > 0:
		reported.Tool = "a program in a terminal"
	case s.starting():
		reported.Note = strings.TrimSuffix(catalog.Starting+"\n"+reported.Note, "\n")
	}
	s.reported, s.said = &reported, 0
	s.tell(reported)
	return 0
}

// complaint tells what the agent has complained of since the silence was told; mu
// is held.
func (s *silenceWatch) complaint() {
	written := s.stderr.ComplaintBytes()
	text := shortLines(s.stderr.Complaints(s.reportedUpTo, complaintLines))
	if text == "" || text == s.reported.Note || s.said >= maxComplaints {
		return
	}
	s.reportedUpTo = written
	s.tellNote(text)
}

// tellNote tells a silence that was told before again, with another note; mu is held.
func (s *silenceWatch) tellNote(note string) {
	s.said++
	s.reported.Note = note
	s.tell(*s.reported)
}

// Retries notes that the agent told over the protocol that a request to its model's API failed
// and that it tries again. That is no progress: the silence goes on, with that note.
func (s *silenceWatch) Retries(note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry = shortLines(note)
	if s.reported != nil && s.reported.Note != s.retry && s.said < maxComplaints {
		s.tellNote(s.retry)
	}
}

// Sign notes a sign of life. It reports the end of a silence, so it comes before
// what the agent said is reported.
func (s *silenceWatch) Sign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signLocked()
}

func (s *silenceWatch) signLocked() {
	if s.stderr == nil { // it has not begun
		return
	}
	s.last, s.retry = time.Now(), ""
	if s.last.Sub(s.nextAt) >= together {
		s.heard, s.next, s.nextAt = s.next, s.stderr.ComplaintBytes(), s.last
	}
	if s.reported == nil {
		return // the timer finds out
	}
	ended := *s.reported
	ended.Ended = true
	s.reported = nil
	s.tell(ended)
	s.lookAgain()
}

// Rest is how long the agent has given no sign of life, and whether it is in the middle of a
// tool call, or waits for a program or for us.
func (s *silenceWatch) Rest() (silent time.Duration, isOpen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.last), len(s.running) > 0 || s.programs > 0 || s.waiting > 0
}

// OpenCalls are the titles of the tool calls that have begun and not ended, by their ids.
func (s *silenceWatch) OpenCalls() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := make(map[string]string)
	for _, call := range s.running {
		open[call.id] = call.title
	}
	return open
}

func (s *silenceWatch) lookAgain() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Waits notes that the agent waits for us until done is called.
func (s *silenceWatch) Waits() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signLocked()
	s.waiting++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last = time.Now()
		if s.waiting--; s.waiting == 0 {
			s.lookAgain()
		}
	}
}

// WaitsForProgram notes that the agent waits for the end of a program until done
// is called.
func (s *silenceWatch) WaitsForProgram() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signLocked()
	s.programs++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last = time.Now()
		s.programs--
		s.lookAgain() // the shorter time counts again
	}
}

// Tool notes what the agent tells of a tool call.
func (s *silenceWatch) Tool(id, title string, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.running {
		if s.running[i].id != id {
			continue
		}
		if ended {
			s.running = append(s.running[:i], s.running[i+1:]...)
			s.lookAgain() // the shorter time counts again
		} else {
			s.running[i].title = title
		}
		return
	}
	if !ended && len(s.running) < maxCalls {
		s.running = append(s.running, openCall{id, title})
	}
}

// shortLines are lines of a bounded length.
func shortLines(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > complaintLength {
			line = strings.ToValidUTF8(line[:complaintLength], "") + "…"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
