//go:build linux && soak

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// hurry acts as an editor that sends a launch and an answer at once, closes its side and reads the
// responses.
func (p *person) hurry(ctx context.Context) {
	work, ok := p.board.newWork(mostWorks)
	if !ok {
		return
	}
	l := launch{Work: work, Steps: 1, Query: workPrompt(work, 1)}
	in := frameOf(object{"jsonrpc": "2.0", "id": "launch", "method": "launchSession", "params": object{"query": l.Query}})
	c := call{Who: hurried, What: callDecide, Write: answer{Status: "approved", Words: p.board.newWords()}, Outcome: unknown, From: p.since()}
	if c.Approval, ok = p.board.oldest(p.rand.IntN, 2); ok {
		in += frameOf(object{"jsonrpc": "2.0", "id": "decide", "method": "sendDecision", "params": object{
			"approval_id": c.Approval, "decision": "approve", "comment": c.Write.Words,
		}})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shellTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--root", p.project.root)
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.Stdin = p.project.root, p.project.environment(), p.project.log, strings.NewReader(in)
	out, _ := cmd.Output() // output before a kill counts
	c.Until = p.since()
	for _, body := range bodiesOf(out) {
		var m struct {
			ID     string `json:"id"`
			Result struct {
				decided
				SessionID string `json:"session_id"`
				ThreadID  string `json:"thread_id"`
			} `json:"result"`
		}
		_ = json.Unmarshal(body, &m)
		switch r := m.Result; {
		case m.ID == "launch" && r.SessionID != "":
			l.Session, l.Thread = r.SessionID, r.ThreadID
			p.board.launched(l)
		case m.ID == "decide" && r.Success:
			c.Outcome = won
		case m.ID == "decide" && r.Status != "":
			c.Outcome, c.Read.Status = lost, r.Status
		}
	}
	if ok {
		p.called(c)
	}
}

func frameOf(message object) string {
	body, _ := json.Marshal(message)
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// bodiesOf returns the bodies of the complete frames in a program's output.
func bodiesOf(out []byte) (bodies [][]byte) {
	for {
		header, rest, ok := bytes.Cut(out, []byte("\r\n\r\n"))
		var n int
		if _, err := fmt.Sscanf(string(header), "Content-Length: %d", &n); !ok || err != nil || len(rest) < n {
			return bodies
		}
		bodies, out = append(bodies, rest[:n]), rest[n:]
	}
}
