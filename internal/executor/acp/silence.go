package acp

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Detection of a silent agent: no activity during a turn.

const (
	// complaintLines limits the lines of an agent's stderr in one report, and complaintLength the
	// bytes of each line.
	complaintLines  = 3
	complaintLength = 300
	// complaintPause is the minimum time between two reports of complaints. maxComplaints limits
	// the reports per silence.
	complaintPause = 2 * time.Second
	// together is how long before the last activity a complaint still belongs to the silence
	// after it: the two come by different pipes, in any order.
	together      = time.Second
	maxComplaints = 20
)

// A complainer is an agent's stderr; see process.Process.
type complainer interface {
	Complaints(since int64, lines int) string
	ComplaintBytes() int64
	Complained() <-chan struct{}
}

// maxCalls limits the known tool calls.
const maxCalls = 10_000

// A silenceWatch notices that a turn's agent shows no activity: no update, no request, no
// response. Agents retry for minutes when a model's API is down, and report that on stderr only.
//
// Time in which the agent waits for Duet, for a permission above all, does not count. During a
// tool call silence is normal, so a longer limit applies: the tool may hang. The end of a silence
// is reported before the update that ended it. Except for Begin, its methods may be called from
// any goroutine.
type silenceWatch struct {
	after, inTool time.Duration
	stderr        complainer
	starting      func() bool           // the agent does not have the prompt yet
	heldUp        func() bool           // the agent is not being read
	report        func(catalog.Silence) // reports to the hub; blocks
	wake          chan struct{}         // makes Run look again

	mu           sync.Mutex // guards the fields below, and keeps the reports in order
	last         time.Time  // time of the last activity
	heard        int64      // bytes of stderr shortly before that
	next         int64      // bytes of stderr at nextAt: the next value of heard
	nextAt       time.Time
	waiting      int        // the agent's requests without an answer yet
	programs     int        // the agent's requests that wait for the end of a program
	running      []openCall // the oldest first
	reported     *catalog.Silence
	reportedUpTo int64  // bytes of stderr that were reported
	said         int    // number of complaint reports in this silence
	retry        string // the agent's retry note since the last activity; see Retries
}

// An openCall is a tool call that has begun and not ended.
type openCall struct{ id, title string }

// newSilence makes a silenceWatch with a limit and another limit during a tool call. report reports
// to the hub and may block.
func newSilence(after, inTool time.Duration, report func(catalog.Silence)) *silenceWatch {
	return &silenceWatch{after: after, inTool: inTool, report: report, wake: make(chan struct{}, 1)}
}

// Begin begins to watch an agent with this stderr. starting reports that the agent does not have
// the prompt yet, heldUp that Duet does not read it. Activity before Begin does not count.
func (s *silenceWatch) Begin(stderr complainer, starting, heldUp func() bool) {
	s.stderr, s.starting, s.heldUp = stderr, starting, heldUp
	s.heard = stderr.ComplaintBytes()
	s.next, s.nextAt = s.heard, time.Now()
	s.Sign()
}

// Run reports silences until the turn has finished. Call Begin first.
func (s *silenceWatch) Run(finished <-chan struct{}) {
	timer := time.NewTimer(s.after)
	defer timer.Stop()
	defer s.Sign()
	for {
		var complained <-chan struct{} // non-nil while a complaint may be reported
		if s.isReported() {
			complained = s.stderr.Complained()
		}
		select {
		case <-finished:
			return
		case <-s.wake:
		case <-timer.C:
		case <-complained:
			select { // more lines may follow
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

// look makes the reports that are due, and returns when to look again; 0 means at the next event.
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
	if s.heldUp() { // unread output may exist
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
	default:
		reported.Note = s.inStart(reported.Note)
	}
	s.reported, s.said = &reported, 0
	s.report(reported)
	return 0
}

// inStart adds the first line of a silence during the start to a note. The caller holds mu.
func (s *silenceWatch) inStart(note string) string {
	if !s.starting() {
		return note
	}
	return strings.TrimSuffix(catalog.Starting+"\n"+note, "\n")
}

// complaint reports new lines on stderr since the silence was reported. The caller holds mu.
func (s *silenceWatch) complaint() {
	written := s.stderr.ComplaintBytes()
	text := shortLines(s.stderr.Complaints(s.reportedUpTo, complaintLines))
	if text == "" || s.inStart(text) == s.reported.Note || s.said >= maxComplaints {
		return
	}
	s.reportedUpTo = written
	s.reportNote(text)
}

// reportNote reports the current silence again, with another note. The caller holds mu.
func (s *silenceWatch) reportNote(note string) {
	s.said++
	s.reported.Note = s.inStart(note)
	s.report(*s.reported)
}

// Retries notes that the agent reported a failed request to its model's API that it retries. That
// is no progress: the silence continues, with that note.
func (s *silenceWatch) Retries(note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry = shortLines(note)
	if s.reported != nil && s.reported.Note != s.inStart(s.retry) && s.said < maxComplaints {
		s.reportNote(s.retry)
	}
}

// Sign notes activity. It reports the end of a silence, so call it before the agent's output is
// reported.
func (s *silenceWatch) Sign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signLocked()
}

func (s *silenceWatch) signLocked() {
	if s.stderr == nil { // not begun
		return
	}
	lasted := time.Since(s.last)
	s.last, s.retry = time.Now(), ""
	if s.last.Sub(s.nextAt) >= together {
		s.heard, s.next, s.nextAt = s.next, s.stderr.ComplaintBytes(), s.last
	}
	if s.reported == nil {
		return // the timer in Run does it
	}
	ended := *s.reported
	ended.Ended, ended.LastedMS = true, lasted.Milliseconds()
	s.reported = nil
	s.report(ended)
	s.lookAgain()
}

// Rest returns how long the agent has shown no activity. isOpen means that a tool call is open,
// or that the agent waits for a program or for Duet.
func (s *silenceWatch) Rest() (silent time.Duration, isOpen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.last), len(s.running) > 0 || s.programs > 0 || s.waiting > 0
}

// OpenCalls returns the titles of the open tool calls, by their ids.
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

// Waits notes that the agent waits for Duet until done is called.
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

// Tool notes an update of a tool call.
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

// shortLines cuts each line to complaintLength.
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
