package nativesession

import (
	"context"
	"time"
)

// geminiCLI is what Gemini CLI calls itself.
const geminiCLI = "gemini-cli"

// minuteSlack is how far behind the beginning of a minute a session is loaded.
const minuteSlack = 100 * time.Millisecond

// awaitLoadable waits until an agent can load a session without losing it, which takes
// a minute at most. Gemini CLI (0.61) keeps a session in a file that is named after
// the minute in which it was begun and its id; to load one it begins another with the
// same id, and within that minute this one takes the place of what was said. When a
// session was begun it does not tell, so the next minute is waited for.
func (k *asked) awaitLoadable(ctx context.Context) error {
	if k.calls != geminiCLI {
		return nil
	}
	next := time.NewTimer(untilNextMinute(time.Now()))
	defer next.Stop()
	select {
	case <-next.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// afterLoad is what is to be known of a session that an agent has loaded. Gemini CLI
// (0.61) leaves an empty file with the session's id behind, and its cleanup deletes that
// as one that has nothing when it is started the next time: all files of the id.
func (k *asked) afterLoad() string {
	if k.calls != geminiCLI {
		return ""
	}
	return "Gemini CLI deletes a session that was loaded when it is started in its directory again, unless general.sessionRetention.enabled is false in its settings: what was said in it is here, and is told to it anew then"
}

// untilNextMinute is how long the minute lasts, and a moment more.
func untilNextMinute(now time.Time) time.Duration {
	return now.Truncate(time.Minute).Add(time.Minute + minuteSlack).Sub(now)
}
