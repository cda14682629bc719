package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

var completed = catalog.ExecutePromptResult{Status: catalog.StatusCompleted, StopReason: "end_turn"}

func TestReportsAreBroughtIntoTheirOrder(t *testing.T) {
	var tooMany []int64
	for n := int64(maxEarly) + 2; n > 1; n-- { // one more than the limit: the first missing one is skipped
		tooMany = append(tooMany, n)
	}
	inOrder := ""
	for n := 2; n <= maxEarly+2; n++ {
		inOrder += fmt.Sprintf("%d ", n)
	}
	for name, c := range map[string]struct {
		reports func(*testing.T, *desk)
		want    string
		lost    bool
	}{
		"mixed": {func(t *testing.T, d *desk) {
			d.say(t, 3, 1, 2, 2, 1, 3, 5, 4, 4, 0, 6) // 0 means unnumbered
		}, "1 2 3 4 5 0 6 ", false},
		"one comes too late": {func(t *testing.T, d *desk) {
			d.say(t, 1, 3, 5, 4)
			time.Sleep(gapTimeout - time.Millisecond)
			d.say(t, 0) // unnumbered, so it does not wait
			time.Sleep(2 * time.Millisecond)
			d.say(t, 2, 6)
		}, "1 0 3 4 5 6 ", true},
		"one never comes": {func(t *testing.T, d *desk) {
			d.say(t, 2)
			time.Sleep(gapTimeout + time.Millisecond)
			d.say(t, 3)
		}, "2 3 ", false},
		"the end waits for none": {func(t *testing.T, d *desk) {
			d.say(t, 3, 2)
		}, "2 3 ", false},
		"a repeat beside a gap is none of the lost": {func(t *testing.T, d *desk) {
			d.say(t, 1, 3)
			time.Sleep(gapTimeout + time.Millisecond)
			d.say(t, 1, 3)
		}, "1 3 ", false},
		"a gap that is filled cuts no later one short": {func(t *testing.T, d *desk) {
			d.say(t, 1, 3)
			time.Sleep(gapTimeout / 2)
			d.say(t, 2, 5)
			time.Sleep(gapTimeout * 3 / 4)
			d.say(t, 4)
		}, "1 2 3 4 5 ", false},
		"many are early": {func(t *testing.T, d *desk) {
			d.say(t, tooMany...)
			d.say(t, 1, maxEarly+3)
		}, inOrder + fmt.Sprintf("%d ", maxEarly+3), true},
		"nothing waits after the end": {func(t *testing.T, d *desk) {
			d.turn.Finish()
			d.say(t, 2)
			assert.Equal(t, "2 ", d.said())
		}, "2 ", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				c.reports(t, d)
				d.turn.Finish()
				assert.Equal(t, c.want, d.said())
				assert.Equal(t, c.lost, d.turn.Judge(completed).Status != catalog.StatusCompleted, "a report was refused")
			})
		})
	}
}

// A question follows everything said before it. It waits for missing reports as long as they may
// arrive, but not for a failed transaction.
func TestWhatWasSaidBeforeAQuestionIsThereBeforeIt(t *testing.T) {
	for name, c := range map[string]struct {
		before, meanwhile func(*testing.T, *desk)
		took              time.Duration
		want              string
	}{
		"all is there": {func(t *testing.T, d *desk) { d.say(t, 1, 2) }, func(*testing.T, *desk) {}, 0, "1 2 "},
		"one is missing, and comes": {func(t *testing.T, d *desk) { d.say(t, 1, 3) }, func(t *testing.T, d *desk) {
			assert.Equal(t, "1 ", d.said())
			time.Sleep(gapTimeout / 2)
			d.say(t, 2)
		}, gapTimeout / 2, "1 2 3 "},
		"one does not come": {func(t *testing.T, d *desk) { d.say(t, 1, 3) }, func(*testing.T, *desk) {}, gapTimeout, "1 3 "},
		"the store was busy": {func(t *testing.T, d *desk) {
			d.disk.set(func(disk *disk) { disk.notBegun = errors.New("busy") })
			d.say(t, 1)
			d.disk.set(func(disk *disk) { disk.notBegun = nil })
		}, func(*testing.T, *desk) {}, 0, "1 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				c.before(t, d)
				began, said := time.Now(), make(chan string, 1)
				go func() {
					d.EndMessage(t.Context(), 1)
					said <- d.said()
				}()
				synctest.Wait()
				c.meanwhile(t, d)
				assert.Equal(t, c.want, <-said)
				assert.Equal(t, c.took, time.Since(began))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.say(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		d.EndMessage(ctx, 1)
		assert.Zero(t, time.Since(began), "no one asks now")
	})
}

// The next report of an executor that does not confirm answers shows that its agent has taken them,
// each once.
func TestAReportShowsThatAnswersWereTaken(t *testing.T) {
	d := newDesk(t)
	d.say(t, 1)
	d.Answered(1, "first")
	d.Answered(1, "second")
	d.say(t, 2, 3)
	var kinds []string
	for _, r := range d.recorded {
		kinds = append(kinds, r.kind)
	}
	assert.Equal(t, []string{catalog.EventContentDelta, catalog.EventPermissionTaken, catalog.EventContentDelta, catalog.EventContentDelta}, kinds)
	assert.JSONEq(t, `{"approval_ids":["first","second"]}`, string(d.recorded[1].data))
}

// A secret may be split over pieces. Whatever ends the message releases the held end.
func TestKeysAreTakenOutOfWhatIsReported(t *testing.T) {
	const key = "sk-0123456789"
	for name, end := range map[string]func(*testing.T, *desk){
		"the run":        func(_ *testing.T, d *desk) { d.turn.Finish() },
		"something else": func(_ *testing.T, d *desk) { d.EndMessage(context.Background(), 1) },
		"a changed file": func(t *testing.T, d *desk) {
			assert.NoError(t, d.ReportMessage(t.Context(), catalog.ReportMessageParams{
				SessionToken: token, EventType: catalog.EventFileChange, EventData: json.RawMessage(`{"path":"/a"}`),
			}))
		},
		"another message": func(t *testing.T, d *desk) {
			assert.NoError(t, d.ReportError(t.Context(), catalog.ReportErrorParams{SessionToken: token}))
		},
	} {
		d := newDesk(t, key)
		d.report(t, 1, "it is sk-01234")
		assert.Equal(t, "it is ", d.said(), name)
		d.report(t, 2, "56789, not sk-")
		assert.Equal(t, "it is [secret], not ", d.said(), name)
		end(t, d)
		assert.Equal(t, "it is [secret], not sk-", d.said(), name)
	}
	d := newDesk(t, key)
	assert.NoError(t, d.ReportError(t.Context(), catalog.ReportErrorParams{SessionToken: token, Error: catalog.ReportedError{Message: "wrong: " + key}}))
	assert.Contains(t, string(d.recorded[0].data), "wrong: [secret]")
}
