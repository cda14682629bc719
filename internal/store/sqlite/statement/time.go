package statement

import "time"

// Nano is a time as it is kept: nanoseconds since 1970, 0 for none.
func Nano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Time is the time that [Nano] keeps so.
func Time(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
