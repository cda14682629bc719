package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// This file computes the next time of a schedule of five fields (crontab(5)), in a time zone
// that changes its clocks.

// A Schedule is a recurring time. It is a value and may be shared.
type Schedule struct {
	spec *cron.SpecSchedule
	zone *time.Location
	// eachHour reports that the schedule does not fix the hour, so that a repeated hour counts
	// twice.
	eachHour bool
}

// localZone is the name of the machine's own time zone.
const localZone = "local"

// ParseSchedule parses minute, hour, day of the month, month and day of the week. zone is a name
// of the IANA time zone database, [localZone], or "" for UTC.
func ParseSchedule(fields, zone string) (Schedule, error) {
	if n := len(strings.Fields(fields)); n != 5 || strings.HasPrefix(fields, "TZ=") || strings.HasPrefix(fields, "CRON_TZ=") {
		return Schedule{}, fmt.Errorf("five fields, minute hour day month weekday, and it has %d", n)
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(fields)
	if err != nil {
		return Schedule{}, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Schedule{}, fmt.Errorf("five fields, minute hour day month weekday")
	}
	s := Schedule{spec: spec, zone: time.UTC, eachHour: strings.HasPrefix(strings.Fields(fields)[1], "*")}
	if s.zone, err = location(zone); err != nil {
		return Schedule{}, err
	}
	if s.Next(time.Now()).IsZero() {
		return Schedule{}, fmt.Errorf("a time that comes")
	}
	return s, nil
}

func location(zone string) (*time.Location, error) {
	if zone == localZone {
		return time.Local, nil
	}
	where, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("a time zone such as Europe/Berlin, %q or \"UTC\"", localZone)
	}
	return where, nil
}

// Next returns the first time after t at which the schedule is due, or zero if there is none
// within five years. A time of day that the clocks skip is due later by the length of the gap. A
// time that occurs twice is due the first time, unless the schedule does not fix the hour.
func (s Schedule) Next(t time.Time) time.Time {
	next := s.after(t)
	for !next.IsZero() && !s.eachHour && s.isRepeated(next) {
		next = s.after(next)
	}
	return next
}

func (s Schedule) after(t time.Time) time.Time {
	t = t.In(s.zone)
	next := s.spec.Next(t)
	if s.eachHour {
		return next
	}
	// Compute as if the clocks did not change: a result that they never show is in the gap.
	_, offset := t.Zone()
	unchanged := s.spec.Next(t.In(time.FixedZone("", offset)))
	if unchanged.IsZero() || !next.IsZero() && !unchanged.Before(next) {
		return next
	}
	shown := unchanged.In(s.zone)
	if _, then := shown.Zone(); then > offset && s.skips(unchanged, offset) {
		return shown
	}
	return next
}

// skips reports whether the clocks of the zone never show the time that a clock offset seconds
// east of UTC shows at t.
func (s Schedule) skips(t time.Time, offset int) bool {
	wall := t.In(time.FixedZone("", offset))
	shown := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, s.zone)
	return shown.Hour() != wall.Hour() || shown.Minute() != wall.Minute()
}

// isRepeated reports whether the clocks have shown the same time shortly before.
func (s Schedule) isRepeated(t time.Time) bool {
	_, now := t.Zone()
	before := t.Add(-3 * time.Hour)
	_, then := before.Zone()
	if then <= now {
		return false
	}
	first := t.Add(-time.Duration(then-now) * time.Second)
	_, offset := first.Zone()
	return offset == then && first.Hour() == t.Hour() && first.Minute() == t.Minute()
}
