package agentlink

import (
	"context"
	"time"
)

// Gemini CLI (0.61) can lose a session that is loaded.

// geminiCLI is the name that Gemini CLI reports.
const geminiCLI = "gemini-cli"

// minuteSlack is how long after the beginning of a minute a session is loaded.
const minuteSlack = 100 * time.Millisecond

// awaitLoadable waits until an agent can load a session without losing it, for a minute at most.
// Gemini CLI (0.61) keeps a session in a file named after its id and the minute in which it
// began. Loading begins another session with the same id, which within that minute overwrites
// the old file. Gemini does not report when a session began, so awaitLoadable waits for the next
// minute.
func (k *sessionLink) awaitLoadable(ctx context.Context) error {
	if k.agentName != geminiCLI {
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

// afterLoad returns a note about a session that an agent has loaded. Gemini CLI (0.61) leaves an
// empty file with the session's id behind. At its next start its cleanup deletes that as an
// empty session, and with it all files of the id.
func (k *sessionLink) afterLoad() string {
	if k.agentName != geminiCLI {
		return ""
	}
	return "Gemini CLI deletes a loaded session when it is started in its directory again, unless general.sessionRetention.enabled is false " +
		"in its settings. Duet keeps the transcript and sends it again then"
}

// untilNextMinute returns the rest of the minute, and a moment more.
func untilNextMinute(now time.Time) time.Duration {
	return now.Truncate(time.Minute).Add(time.Minute + minuteSlack).Sub(now)
}
