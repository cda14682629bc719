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

// A switchboard is an executor that notes what it is told.
type switchboard struct {
	mu   sync.Mutex
	told []string
}

func (s *switchboard) note(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, what)
	return nil
}

func (s *switchboard) PauseNotifications(context.Context) error  { return s.note("pause") }
func (s *switchboard) ResumeNotifications(context.Context) error { return s.note("resume") }

func (s *switchboard) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.told...)
}

func TestExecutorsPauseAtTheWaterMarks(t *testing.T) {
	for name, c := range map[string]struct {
		size  int // of a report, in bytes
		below int // how many reports are just not too many
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
				report() // what was on its way
				d.disk.release()
				synctest.Wait()
				assert.Equal(t, []string{"pause", "resume"}, x.all())
				assert.Len(t, d.recorded, c.below+2)
				assert.Equal(t, 1, d.disk.timesAsked(), "they share a transaction")
			})
		})
	}
}

// Executors stay paused as long as no transaction begins.
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

// Who reports and does not pause waits in the end, but not for a closed intake.
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

// Reports of two runs share an operation of the writer, but neither goes on, to its
// end perhaps, before the writer has that operation.
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

// What waits because no transaction began is kept before the end of its run.
func TestTheEndOfARunIsKeptAfterWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.disk.notBegun = fmt.Errorf("begin: %w", store.ErrLocked)
		d.say(t, 1)
		d.disk.set(func(s *disk) { s.notBegun = nil })
		d.run.Finish()
		assert.Equal(t, "1 ", d.said())
		time.Sleep(2 * retryAfter)
		assert.Equal(t, 2, d.disk.timesAsked(), "it is asked for once")
	})
}

// A transaction that cannot begin is asked for again until the intake is closed,
// and nothing is lost.
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
		assert.Equal(t, completed, d.run.Judge(completed))

		d.disk.set(func(s *disk) { s.notBegun = fmt.Errorf("begin: %w", store.ErrLocked) })
		d.say(t, 3)
		asked := d.disk.timesAsked()
		d.Close()
		time.Sleep(time.Minute)
		assert.Equal(t, asked, d.disk.timesAsked())
	})
}

// Reports that could not be kept are known when the end of their run is judged,
// in the same transaction perhaps, and each counts once.
func TestARunWhoseReportsCouldNotBeKeptHasNotCompleted(t *testing.T) {
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
		d.disk.Enqueue(func(store.Tx) error { atOnce = d.run.Judge(completed); return nil }, func(error) {})
		d.disk.release()
		result := d.run.Judge(completed)
		assert.Equal(t, catalog.StatusFailed, result.Status, name)
		assert.Contains(t, result.Error.Message, "but a report of it could not be taken", name)
		assert.Equal(t, [2]int{0, c.lost}, d.problems(), name)
		if name != "not committed" {
			assert.Equal(t, result, atOnce, name)
		}
	}
	d := newDesk(t)
	d.fail = func(report) error { return store.ErrFull }
	d.say(t, 1)
	assert.Equal(t, completed, d.run.Judge(completed), "what a full disk ends is told otherwise")
	assert.Equal(t, [2]int{1, 0}, d.problems())
}

// One report that makes no sense takes no other with it.
func TestAReportThatMakesNoSenseIsLeftOut(t *testing.T) {
	d := newDesk(t)
	for _, p := range []catalog.ReportMessageParams{
		{EventType: catalog.EventContentDelta, EventData: []byte(`{"delta":7}`)},
		{EventType: catalog.EventFileChange, EventData: []byte(`{}`)},
	} {
		p.SessionToken = token
		assert.Error(t, d.ReportMessage(t.Context(), p))
	}
	d.say(t, 1)
	assert.Equal(t, "1 ", d.said())
	assert.Contains(t, d.run.Judge(completed).Error.Message, "2 reports")
}

func TestNobodyIsHeardOfARunThatHasEnded(t *testing.T) {
	d := newDesk(t)
	d.disk.held = true
	d.say(t, 1) // on its way
	d.ended = true
	d.disk.release()
	d.End(1)
	d.say(t, 2)
	d.ReportRefused("task", errors.New("lost"))
	assert.Empty(t, d.said())
	assert.Equal(t, completed, d.run.Judge(completed))
	assert.Error(t, d.ReportProgress(t.Context(), catalog.ReportProgressParams{SessionToken: "another"}))
}

// Pieces of late text that wait together change their message once.
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
