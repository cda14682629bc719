package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// due lists the due times of a schedule after a time, in its zone.
func due(t *testing.T, fields, zone, after string, n int) (list []string) {
	t.Helper()
	s, err := ParseSchedule(fields, zone)
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339, after)
	require.NoError(t, err)
	for range n {
		at = s.Next(at)
		list = append(list, at.Format("01-02 15:04 -0700"))
	}
	return list
}

func TestATimeComesInItsZone(t *testing.T) {
	assert.Equal(t, []string{"11-23 09:00 +0000", "11-24 09:00 +0000"}, due(t, "0 9 * * 1-5", "", "2026-11-22T10:00:00Z", 2))
	assert.Equal(t, []string{"11-23 09:00 +0100"}, due(t, "0 9 * * 1-5", "Europe/Berlin", "2026-11-22T10:00:00Z", 1))
	assert.Equal(t, []string{"11-22 10:15 +0000", "11-22 10:30 +0000"}, due(t, "*/15 * * * *", "UTC", "2026-11-22T10:00:00Z", 2))
}

// Europe/Berlin goes from 02:00 to 03:00 on 29 March 2026.
func TestATimeThatTheClocksSkipIsDueLater(t *testing.T) {
	assert.Equal(t, []string{"03-28 02:30 +0100", "03-29 03:30 +0200", "03-30 02:30 +0200"},
		due(t, "30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3))
	assert.Equal(t, []string{"03-29 01:30 +0100", "03-29 03:30 +0200", "03-29 04:30 +0200"},
		due(t, "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3), "each hour that there is")
	assert.Equal(t, []string{"03-29 04:00 +0200", "03-30 04:00 +0200"}, due(t, "0 4 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", 2))
	assert.Equal(t, []string{"03-29 03:00 +0200", "03-30 03:00 +0200"}, due(t, "0 3 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", 2))
}

// It goes from 03:00 to 02:00 on 25 October 2026.
func TestATimeThatTheClocksShowTwiceIsDueOnce(t *testing.T) {
	assert.Equal(t, []string{"10-24 02:30 +0200", "10-25 02:30 +0200", "10-26 02:30 +0100"},
		due(t, "30 2 * * *", "Europe/Berlin", "2026-10-23T12:00:00Z", 3))
	assert.Equal(t, []string{"10-25 02:30 +0200", "10-25 02:30 +0100", "10-25 03:30 +0100"},
		due(t, "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3), "each hour counts")
	assert.Equal(t, []string{"10-25 03:00 +0100"}, due(t, "0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 1))
}

// Lord Howe Island changes by half an hour, Chatham at a quarter to three.
func TestClocksThatChangeByHalfAnHour(t *testing.T) {
	assert.Equal(t, []string{"10-04 02:45 +1100", "10-05 02:15 +1100"}, due(t, "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2))
	assert.Equal(t, []string{"04-05 01:45 +1100", "04-06 01:45 +1030"}, due(t, "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", 2))
}

func TestWhatIsNoScheduleIsRefused(t *testing.T) {
	for _, fields := range []string{"", "* * * *", "* * * * * *", "@daily", "60 * * * *", "TZ=UTC * * * *", "0 0 31 2 *", "CRON_TZ=UTC 0 0 * * *"} {
		_, err := ParseSchedule(fields, "")
		assert.Error(t, err, fields)
	}
	_, err := ParseSchedule("* * * * *", "Mars/Olympus")
	assert.ErrorContains(t, err, "Europe/Berlin")
}
