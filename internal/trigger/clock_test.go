package trigger

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// After the clock was set back by hours, the next time is the next one by the new clock, and triggers
// take events again.
func TestAClockThatIsSetBack(t *testing.T) {
	at := func(hour, minute int) time.Time { return time.Date(2026, 3, 4, hour, minute, 0, 0, time.UTC) }
	times, err := config.ParseSchedule("5 * * * *", "UTC")
	require.NoError(t, err)
	e := New(context.Background(), Options{})
	due := &dueTime{trigger: config.Trigger{ID: "tick"}, schedule: times, next: at(17, 5)}
	e.due["tick"], e.known["tick"], e.known["new"] = due, at(16, 0), at(11, 0)

	wait, waits := e.fireDue(t.Context(), at(12, 0))
	assert.True(t, waits)
	assert.Equal(t, lookAtTheClock, wait)
	assert.Equal(t, at(12, 5), due.next)
	e.followClock(at(12, 0))
	assert.Equal(t, at(11, 59), e.known["tick"])
	assert.Equal(t, at(11, 0), e.known["new"])

	// Set forward by hours, it fires none of the times between.
	e.fireDue(t.Context(), at(19, 30))
	assert.Empty(t, e.fired)
	assert.Equal(t, at(20, 5), due.next)
}
