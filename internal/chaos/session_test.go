//go:build linux && soak

package chaos

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Kinds of calls to a session. All launches of a session have the same launch_id.
const (
	convLaunch    = "launch"
	convContinue  = "continue"
	convInterrupt = "interrupt"
	convArchive   = "archive"
	convRestore   = "restore"
	convDelete    = "delete"
	convRead      = "read"
)

// A convCall is a client's request about a session or its first turn.
type convCall struct {
	span
	Launch   string `json:"launch"` // its launch_id
	What     string `json:"what"`
	Outcome  string `json:"outcome"`
	Session  string `json:"session,omitempty"`  // id in the response to a launch or read
	State    string `json:"state,omitempty"`    // in the response to a read: of the first session
	Archived bool   `json:"archived,omitempty"` // in the response to a read
}

// A convState is the state of a session. The zero value means that there is none.
type convState struct {
	There    bool
	Session  string // id of the first session, if a response had it
	Archived bool
	Stopped  bool   // an interruption of the first session was acknowledged, or may have been made
	Ended    string // the first session's final state, if a response had it
}

// convModel is a session that clients launch, continue, interrupt, archive and delete. A
// repeated launch returns the first one's turn, and a turn ends once.
var convModel = porcupine.Model{
	Init: func() any { return convState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(convState), input.(convCall)
		known := func() bool { return s.Session == "" || c.Session == s.Session }
		switch {
		case c.Outcome == absent:
			return !s.There, s
		case c.Outcome == refused: // while it works, or because it does not
			return s.There, s
		case c.What == convLaunch && !s.There:
			return true, convState{There: true, Session: c.Session}
		case c.Outcome == unknown && !s.There:
			return true, s
		case !s.There:
			return false, s
		}
		switch c.What {
		case convLaunch:
			if c.Outcome == unknown {
				return true, s
			}
			is := known()
			s.Session = c.Session
			return is, s
		case convContinue, convRestore:
			s.Archived = false
		case convArchive:
			s.Archived = true
		case convInterrupt:
			s.Stopped = s.Stopped || c.Outcome == done
		case convDelete:
			s = convState{}
		case convRead:
			is := known() && c.Archived == s.Archived
			s.Session = c.Session
			if (shownSession{State: c.State}).ended() {
				is = is && (s.Ended == "" || s.Ended == c.State)
				s.Ended = c.State
				return is, s
			}
			return is && s.Ended == "" && (!s.Stopped || c.State == "interrupting"), s
		}
		return true, s
	},
	DescribeOperation: func(input, _ any) string {
		c := input.(convCall)
		text := fmt.Sprintf("%s: %s %.8s %s", c.What, c.Outcome, c.Session, c.State)
		if c.Archived {
			text += " archived"
		}
		return strings.TrimSpace(text)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
}

// shared returns the calls to each shared session for convModel. A call without a response may
// have any effect, at any time.
func (e *evidence) shared() map[string][]convCall {
	m := make(map[string][]convCall)
	for _, c := range e.Conversations {
		if c.Outcome == unknown {
			c.Until = forever
		}
		m[c.Launch] = append(m[c.Launch], c)
	}
	return m
}
