package acp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// apiTrouble is what codex-acp 2.6 tells of requests to its model's API that fail. ACP v1 has no
// update for that: codex-acp puts it into the _meta of session_info_update, and answers the
// prompt with end_turn, as if the turn had succeeded.
type apiTrouble struct {
	failed bool   // the status of its session is an error
	retry  string // the last failure after which it tried again
	said   string // its text since the session failed, up to maxTroubleText bytes
}

// maxTroubleText bounds the text that is kept of a failure.
const maxTroubleText = 2000

// codexStatus is the _meta of codex-acp's session_info_update.
type codexStatus struct {
	Codex struct {
		ThreadStatus struct{ Type string }
		Error        struct {
			Message           string
			AdditionalDetails string
			WillRetry         bool
		}
	}
}

// readCodexStatus reads the status that an update tells; the zero value if it tells none.
func readCodexStatus(kind string, update []byte) (s codexStatus) {
	if kind == "session_info_update" {
		if meta := frame.Member(update, "_meta"); meta != nil {
			json.Unmarshal(meta, &s)
		}
	}
	return s
}

// retryNote describes a failed request that the agent tries again, or is "".
func (s codexStatus) retryNote() string {
	e := s.Codex.Error
	if !e.WillRetry {
		return ""
	}
	note := e.Message
	if e.AdditionalDetails != "" {
		note += ": " + e.AdditionalDetails
	}
	return bounded(note)
}

// took takes over what an update tells.
func (p *apiTrouble) took(s codexStatus) {
	switch s.Codex.ThreadStatus.Type {
	case "systemError":
		p.failed, p.said = true, ""
	case "active":
		*p = apiTrouble{}
	}
	p.retry = cmp.Or(s.retryNote(), p.retry)
}

// text adds a text of the agent.
func (p *apiTrouble) text(text string) {
	if p.failed && len(p.said) < maxTroubleText {
		p.said = bounded(p.said + text)
	}
}

func bounded(text string) string {
	if len(text) > maxTroubleText {
		text = strings.ToValidUTF8(text[:maxTroubleText], "")
	}
	return text
}

// troubled is the failure of a turn whose agent answered end_turn and told that it failed; nil
// if it told nothing of that kind.
func (a *agent) troubled(t *turn) *task.Failure {
	t.mu.Lock()
	trouble := t.trouble
	t.mu.Unlock()
	if !trouble.failed {
		return nil
	}
	text := cmp.Or(strings.TrimSpace(trouble.said), trouble.retry, "a request to its model's API failed")
	return a.failureOf(&acp.Error{Code: -32603, Message: text})
}
