package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// switchboard is an executor that records pause and resume.
type switchboard struct {
	mu       sync.Mutex
	reported []string
}

func (s *switchboard) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reported = append(s.reported, what)
	return nil
}

func (s *switchboard) PauseNotifications(context.Context) error  { return s.note("pause") }
func (s *switchboard) ResumeNotifications(context.Context) error { return s.note("resume") }

func (s *switchboard) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.reported...)
}

func TestExecutorsPauseAtTheWaterMarks(t *testing.T) {
	for name, c := range map[string]struct {
		size  int // of a report, in bytes
		below int // number of reports just below the limit
	}{
		"many":  {1, highWater - 1},
		"large": {highBytes / 4, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, x := newDesk(t), &switchboard{}
				defer d.Join(x)()
				d.disk.held = true
				report := func() {
					assert.NoError(t, d.ReportMessage(t.Context(), catalog.ReportMessageParams{
						SessionToken: token, EventType: catalog.EventRaw, EventData: make([]byte, c.size),
					}))
				}
				for range c.below {
					report()
				}
				synctest.Wait()
				assert.Empty(t, x.all())
				report()
				synctest.Wait()
				assert.Equal(t, []string{"pause"}, x.all())
				report() // on its way
				d.disk.release()
				synctest.Wait()
				assert.Equal(t, []string{"pause", "resume"}, x.all())
				assert.Len(t, d.recorded, c.below+2)
				assert.Equal(t, 1, d.disk.timesAsked(), "they share a transaction")
			})
		})
	}
}

// Executors stay paused while no transaction can begin.
func TestExecutorsStayPausedUntilReportsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, x := newDesk(t), &switchboard{}
		defer d.Join(x)()
		d.disk.notBegun = fmt.Errorf("begin: %w", store.ErrLocked)
		for range highWater {
			d.report(t, 0, "x")
		}
		time.Sleep(10 * retryAfter)
		assert.Equal(t, []string{"pause"}, x.all())
		d.disk.set(func(s *disk) { s.notBegun = nil })
		time.Sleep(retryAfter)
		synctest.Wait()
		assert.Equal(t, []string{"pause", "resume"}, x.all())
	})
}

// A reporter that does not pause blocks in the end, but not after Close.
func TestWhoDoesNotPauseWaits(t *testing.T) {
	for name, free := range map[string]func(*desk){
		"until there is room":     func(d *desk) { d.disk.release() },
		"until the intake closes": func(d *desk) { d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				d.disk.held = true
				for range overfull * highWater {
					d.report(t, 0, "x")
				}
				passed := false
				go func() {
					d.report(t, 0, "y")
					passed = true
				}()
				synctest.Wait()
				assert.False(t, passed)
				free(d)
				synctest.Wait()
				assert.True(t, passed)
			})
		})
	}
}

// Reports of two turns share a transaction, and neither reporter continues before the writer has the
// request.
func TestNobodyGoesOnBeforeTheWriterKnowsOfTheReport(t *testing.T) {
	d := newDesk(t)
	d.disk.held = true
	d.disk.asking = func() {
		if d.queue.adding.TryLock() {
			d.queue.adding.Unlock()
			t.Error("another report may be added, and share the operation, before the writer has it")
		}
	}
	d.say(t, 1)
	d.disk.release()
	assert.Equal(t, "1 ", d.said())
}

// Reports that wait because no transaction could begin are stored before the end of their turn.
func TestTheEndOfATurnIsKeptAfterWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.disk.notBegun = fmt.Errorf("begin: %w", store.ErrLocked)
		d.say(t, 1)
		d.disk.set(func(s *disk) { s.notBegun = nil })
		d.turn.Finish()
		assert.Equal(t, "1 ", d.said())
		time.Sleep(2 * retryAfter)
		assert.Equal(t, 2, d.disk.timesAsked(), "it is asked for once")
	})
}

// A transaction that cannot begin is retried until the intake is closed, and no report is lost.
func TestWhatCannotBeKeptYetIsKeptLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.disk.notBegun = fmt.Errorf("begin: %w", store.ErrLocked)
		d.say(t, 1)
		time.Sleep(retryAfter + time.Millisecond)
		d.say(t, 2)
		assert.Equal(t, 2, d.disk.timesAsked())
		assert.Equal(t, [2]int{0, 0}, d.problems())
		d.disk.set(func(s *disk) { s.notBegun = fmt.Errorf("begin: %w", store.ErrFull) })
		time.Sleep(retryAfter)
		assert.Equal(t, [2]int{1, 0}, d.problems())
		d.disk.set(func(s *disk) { s.notBegun = nil })
		time.Sleep(retryAfter)
		assert.Equal(t, "1 2 ", d.said())
		assert.Equal(t, completed, d.turn.Judge(completed))

		d.disk.set(func(s *disk) { s.notBegun = fmt.Errorf("begin: %w", store.ErrLocked) })
		d.say(t, 3)
		asked := d.disk.timesAsked()
		d.Close()
		time.Sleep(time.Minute)
		assert.Equal(t, asked, d.disk.timesAsked())
	})
}

// Lost reports are known when the end of their turn is judged, even in the same transaction, and
// each counts once.
func TestATurnWhoseReportsCouldNotBeKeptHasNotCompleted(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(*desk)
		lost int
	}{
		"they panic":         {func(d *desk) { d.fail = func(report) error { panic("a defect") } }, 1},
		"they are not taken": {func(d *desk) { d.fail = func(report) error { return errors.New("no") } }, 0},
		"not committed":      {func(d *desk) { d.disk.notKept = errors.New("no") }, 1},
	} {
		d := newDesk(t)
		c.fail(d)
		d.disk.held = true
		d.say(t, 1)
		var atOnce catalog.ExecutePromptResult
		d.disk.Enqueue(func(store.Tx) error { atOnce = d.turn.Judge(completed); return nil }, func(error) {})
		d.disk.release()
		result := d.turn.Judge(completed)
		assert.Equal(t, catalog.StatusFailed, result.Status, name)
		assert.Contains(t, result.Error.Message, "but a report of it could not be stored", name)
		assert.Equal(t, [2]int{0, c.lost}, d.problems(), name)
		if name != "not committed" {
			assert.Equal(t, result, atOnce, name)
		}
	}
	d := newDesk(t)
	d.fail = func(report) error { return store.ErrFull }
	d.say(t, 1)
	assert.Equal(t, completed, d.turn.Judge(completed), "the end by a full disk is reported otherwise")
	assert.Equal(t, [2]int{1, 0}, d.problems())
}

// An invalid report does not affect others.
func TestAReportThatMakesNoSenseIsLeftOut(t *testing.T) {
	d := newDesk(t)
	for _, p := range []catalog.ReportMessageParams{
		{EventType: catalog.EventContentDelta, EventData: []byte(`{"delta":7}`)},
		{EventType: catalog.EventFileChange, EventData: []byte(`{}`)},
	} {
		p.SessionToken = token
		assert.Error(t, d.ReportMessage(t.Context(), p))
	}
	d.ReportRefused("another task", errors.New("lost"))
	d.say(t, 1)
	assert.Equal(t, "1 ", d.said())
	assert.Contains(t, d.turn.Judge(completed).Error.Message, "2 reports")
}

func TestNobodyIsHeardOfATurnThatHasEnded(t *testing.T) {
	d := newDesk(t)
	d.disk.held = true
	d.say(t, 1) // on its way
	d.ended = true
	d.disk.release()
	d.End(1)
	d.say(t, 2)
	d.ReportRefused("task", errors.New("lost"))
	assert.Empty(t, d.said())
	assert.Equal(t, completed, d.turn.Judge(completed))
	assert.Error(t, d.ReportProgress(t.Context(), catalog.ReportProgressParams{SessionToken: "another"}))
}

// Waiting pieces of late text change their message once.
func TestLateTextIsJoined(t *testing.T) {
	d := newDesk(t)
	d.disk.held = true
	for _, piece := range []struct{ task, message, text string }{{"a", "m", "1"}, {"a", "m", "2"}, {"a", "n", "3"}, {"b", "n", "4"}, {"b", "", "5"}} {
		assert.NoError(t, d.ReportLate(t.Context(), catalog.ReportLateParams{
			SessionID: "s", TaskID: piece.task, EventType: catalog.EventContentDelta, EventData: encode(catalog.ContentDelta{MessageID: piece.message, Delta: catalog.Delta{Text: piece.text}}),
		}))
	}
	d.disk.release()
	var texts []string
	for _, r := range d.recorded {
		texts = append(texts, r.between.task+" "+r.delta.Delta.Text)
	}
	assert.Equal(t, []string{"a 12", "a 3", "b 45"}, texts)
}
