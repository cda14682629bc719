package acpagent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// queueCommand changes a prompt that waits in the session, or lists those that wait.
func (s *session) queueCommand(ctx context.Context, rest string) (string, error) {
	s.order.Lock()
	isNew := s.start != nil
	s.order.Unlock()
	if isNew {
		return s.listQueue(nil), nil
	}
	waiting, err := s.queued(ctx, "session.queue", map[string]string{"session_id": s.id})
	if err != nil || rest == "" {
		return s.listQueue(waiting), err
	}
	number, rest, _ := strings.Cut(rest, " ")
	verb, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	text = strings.TrimSpace(text)
	at, ok := s.placed(number, waiting)
	if !ok {
		return "No prompt " + number + " waits.\n\n" + s.listQueue(waiting), nil
	}
	method, params := "session.moveQueued", map[string]string{"session_id": waiting[at].SessionID}
	// Prompts that no client has written keep their turns.
	var movable []string
	for _, p := range waiting {
		if p.Editable {
			movable = append(movable, p.SessionID)
		}
	}
	place := slices.Index(movable, waiting[at].SessionID)
	switch {
	case verb == "edit" && text != "":
		method, params["query"] = "session.editQueued", text
	case verb == "up" && place > 0:
		params["before"] = movable[place-1]
	case verb == "down" && place >= 0 && place+2 < len(movable):
		params["before"] = movable[place+2]
	case verb == "down" && place >= 0 && place+2 == len(movable): // it runs last
	case verb == "up", verb == "down":
		return "Prompt " + number + " stays where it is.\n\n" + s.listQueue(waiting), nil
	case verb == "drop" && text == "":
		method = "interruptSession"
	default:
		return queueHelp, nil
	}
	now, err := s.queued(ctx, method, params)
	if err != nil {
		return "It was not changed: " + message(err) + "\n", nil
	}
	if method == "interruptSession" {
		return "Prompt " + number + " does not run.\n", nil
	}
	return s.listQueue(now), nil
}

const queueHelp = "`/queue 2 edit TEXT` changes prompt 2, `/queue 2 up` and `/queue 2 down` move it, `/queue 2 drop` takes it back.\n"

// A queuedPrompt is a prompt that waits, as session.queue tells it.
type queuedPrompt struct {
	SessionID string `json:"session_id"`
	Query     string `json:"query"`
	Editable  bool   `json:"editable"`
}

func (s *session) queued(ctx context.Context, method string, params map[string]string) ([]queuedPrompt, error) {
	r, _, err := wire.Call[struct {
		Queued []queuedPrompt `json:"queued"`
	}](ctx, s.agent.hub, method, params)
	return r.Queued, err
}

// placed is the index of the prompt with a number of the list that was shown last, if it
// still waits.
func (s *session) placed(number string, waiting []queuedPrompt) (at int, ok bool) {
	s.mu.Lock()
	shown := s.queue
	s.mu.Unlock()
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return 0, false
	}
	if shown == nil {
		return n - 1, n <= len(waiting)
	}
	if n > len(shown) {
		return 0, false
	}
	at = slices.IndexFunc(waiting, func(p queuedPrompt) bool { return p.SessionID == shown[n-1] })
	return at, at >= 0
}

// listQueue lists the prompts that wait, by the numbers that they have from now on.
func (s *session) listQueue(waiting []queuedPrompt) string {
	shown := make([]string, len(waiting))
	var b strings.Builder
	for i, p := range waiting {
		shown[i] = p.SessionID
		text, _, _ := strings.Cut(p.Query, "\n")
		fmt.Fprintf(&b, "%d. %s\n", i+1, text)
	}
	s.mu.Lock()
	s.queue = shown
	s.mu.Unlock()
	if len(waiting) == 0 {
		return "No prompt waits in this session.\n"
	}
	return b.String() + "\n" + queueHelp
}
