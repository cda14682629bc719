package acp

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// complaints is the stderr of a process.
type complaints struct {
	came chan struct{}
	mu   sync.Mutex // guards text
	text string
}

func (c *complaints) Complaints(since int64, _ int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text[since:]
}

func (c *complaints) ComplaintBytes() int64 { return int64(len(c.Complaints(0, 0))) }

func (c *complaints) Complained() <-chan struct{} { return c.came }

func (c *complaints) say(text string) {
	c.mu.Lock()
	c.text += text
	c.mu.Unlock()
	select {
	case c.came <- struct{}{}:
	default:
	}
}

// watched is a turn with a silence limit of 5 s, or 30 s in a tool, and the reported silences.
type watched struct {
	*silenceWatch
	stderr   complaints
	mu       sync.Mutex // guards reports
	reports  []catalog.Silence
	began    time.Time
	starting atomic.Bool
	heldUp   atomic.Bool
	end      func()
}

func watchSilence(t *testing.T, f func(*watched)) {
	synctest.Test(t, func(t *testing.T) {
		w := &watched{began: time.Now(), stderr: complaints{came: make(chan struct{}, 1)}}
		w.silenceWatch = newSilence(5*time.Second, 30*time.Second, func(s catalog.Silence) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reports = append(w.reports, s)
		})
		w.Begin(&w.stderr, w.starting.Load, w.heldUp.Load)
		finished, over := make(chan struct{}), make(chan struct{})
		go func() { defer close(over); w.Run(finished) }()
		w.end = func() { close(finished); <-over }
		f(w)
		if w.end != nil {
			w.end()
		}
	})
}

func (w *watched) reported() []catalog.Silence {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reports)
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *watched) at(d time.Duration) int64 { return w.began.Add(d).UnixMilli() }

func TestSilenceIsReportedOnceWithItsEnd(t *testing.T) {
	watchSilence(t, func(w *watched) {
		pass(4900 * time.Millisecond)
		w.Sign()
		pass(4900 * time.Millisecond)
		assert.Empty(t, w.reported())
		pass(time.Hour)
		assert.Equal(t, []catalog.Silence{{SinceMS: w.at(4900 * time.Millisecond)}}, w.reported())
		w.Sign()
		assert.Equal(t, catalog.Silence{SinceMS: w.at(4900 * time.Millisecond), Ended: true, LastedMS: (time.Hour + 4900*time.Millisecond).Milliseconds()}, w.reported()[1], "reported at once, before its cause")
		w.Sign()
		assert.Len(t, w.reported(), 2)
		pass(5100 * time.Millisecond)
		assert.Len(t, w.reported(), 3, "the next silence is reported, too")
		w.end()
		w.end = nil
		assert.True(t, w.reported()[3].Ended, "the end of the turn ends the silence")
	})
}

func TestComplaintsDuringSilenceAreReported(t *testing.T) {
	watchSilence(t, func(w *watched) {
		w.stderr.say("long ago\n")
		pass(together)
		w.Sign()
		pass(together)
		w.stderr.say("API error 500\n")
		w.Sign() // written before the complaint, on another pipe
		pass(5100 * time.Millisecond)
		assert.Equal(t, []catalog.Silence{{SinceMS: w.at(2 * together), Note: "API error 500\n"}}, w.reported())
		for range 10 {
			w.stderr.say("again\n")
		}
		pass(complaintPause + time.Millisecond)
		assert.Len(t, w.reported(), 2, "complaints that come together are reported together")
		assert.Contains(t, w.reported()[1].Note, "again")
		for range 100 {
			w.stderr.say("and again\n")
			pass(complaintPause * 2)
			w.stderr.say("or not\n")
			pass(complaintPause * 2)
		}
		assert.Len(t, w.reported(), 1+maxComplaints)
	})
}

// A retry is no activity: its note is part of the silence.
func TestRetriesDoNotEndASilence(t *testing.T) {
	watchSilence(t, func(w *watched) {
		pass(3 * time.Second)
		w.Retries("Reconnecting... 1/5")
		pass(1900 * time.Millisecond)
		assert.Empty(t, w.reported())
		pass(200 * time.Millisecond)
		assert.Equal(t, []catalog.Silence{{SinceMS: w.at(0), Note: "Reconnecting... 1/5"}}, w.reported())
		w.Retries("Reconnecting... 1/5")
		assert.Len(t, w.reported(), 1, "the same one is not reported again")
		w.Retries("Reconnecting... 2/5")
		assert.Equal(t, catalog.Silence{SinceMS: w.at(0), Note: "Reconnecting... 2/5"}, w.reported()[1])
		w.Sign()
		assert.True(t, w.reported()[2].Ended)
		pass(5100 * time.Millisecond)
		assert.Empty(t, w.reported()[3].Note, "the next silence has another reason")
	})
}

func TestWaitingAgentIsNotSilent(t *testing.T) {
	watchSilence(t, func(w *watched) {
		answered := w.Waits()
		pass(time.Hour)
		assert.Empty(t, w.reported())
		answered()
		pass(4900 * time.Millisecond)
		assert.Empty(t, w.reported())
		pass(200 * time.Millisecond)
		assert.Equal(t, []catalog.Silence{{SinceMS: w.at(time.Hour)}}, w.reported())
		w.Waits()
		assert.Len(t, w.reported(), 2)
		assert.True(t, w.reported()[1].Ended)
	})
	watchSilence(t, func(w *watched) {
		w.heldUp.Store(true)
		pass(20 * time.Second)
		assert.Empty(t, w.reported(), "a held-up turn reports no silence")
		w.heldUp.Store(false)
		pass(10 * time.Second)
		assert.Len(t, w.reported(), 1)
	})
}

func TestSilentToolIsReportedLater(t *testing.T) {
	watchSilence(t, func(w *watched) {
		w.Tool("outer", "Task", false)
		w.Tool("inner", "", false)
		w.Tool("inner", "make test", false)
		pass(29 * time.Second)
		assert.Empty(t, w.reported())
		pass(2 * time.Second)
		assert.Equal(t, []catalog.Silence{{SinceMS: w.at(0), ToolID: "inner", Tool: "make test"}}, w.reported())
		w.Sign()
		w.Tool("inner", "", true)
		pass(10 * time.Second)
		assert.Len(t, w.reported(), 2, "the outer tool still runs")
		w.Sign()
		w.Tool("outer", "", true)
		pass(5100 * time.Millisecond)
		assert.Len(t, w.reported(), 3)
		assert.Empty(t, w.reported()[2].Tool)
	})
	watchSilence(t, func(w *watched) {
		ended := w.WaitsForProgram()
		pass(29 * time.Second)
		assert.Empty(t, w.reported())
		pass(2 * time.Second)
		assert.Equal(t, "a program in a terminal", w.reported()[0].Tool)
		w.Sign()
		ended()
		pass(5100 * time.Millisecond)
		assert.Len(t, w.reported(), 3)
	})
}

func TestSilentStartIsMarked(t *testing.T) {
	watchSilence(t, func(w *watched) {
		w.starting.Store(true)
		pass(6 * time.Second)
		assert.Equal(t, "it is starting, or opening its session", w.reported()[0].Note)
		w.Sign()
		w.stderr.say("waiting for a login")
		pass(6 * time.Second)
		assert.Equal(t, "it is starting, or opening its session\nwaiting for a login", w.reported()[2].Note)
		w.stderr.say("downloading")
		pass(3 * time.Second)
		assert.Equal(t, "it is starting, or opening its session\ndownloading", w.reported()[3].Note, "also what it writes later")
	})
}
