package mcpprobe

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

const (
	outputMost = 16 << 20        // bytes that are read of a server
	lineMost   = 4 << 20         // bytes of a message
	textMost   = 300             // bytes of what it complains of
	endTime    = time.Second     // for one that has answered to end by itself
	exitTime   = 5 * time.Second // for one that closed its output to have an exit status
)

const runIt = "run its command in a terminal to see what it needs: an argument, a variable (env), a login"

// initialize is the one request that a server gets.
var initialize = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"duet-rpc","version":"1"}}}`, protocolVersion)

// An answer is a message of a server, as far as it is looked at.
type answer struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// isOurs reports whether it answers initialize.
func (a answer) isOurs() bool {
	return a.Method == "" && string(a.ID) == "1" && (len(a.Result) > 0 || a.Error != nil)
}

// judge says who has answered, or why that is no answer.
func (a answer) judge(took time.Duration) (found string, problem *Problem) {
	var result struct {
		ProtocolVersion string                         `json:"protocolVersion"`
		ServerInfo      struct{ Name, Version string } `json:"serverInfo"`
	}
	switch {
	case a.Error != nil:
		return "", &Problem{Cause: "it refuses to begin: " + cut(a.Error.Message), Todo: runIt}
	case json.Unmarshal(a.Result, &result) != nil || result.ProtocolVersion == "":
		return "", &Problem{Cause: "it answered what is none of the Model Context Protocol", Todo: "correct the server's command in the configuration"}
	}
	return fmt.Sprintf("%s answers in %v", strings.TrimSpace(cmp.Or(result.ServerInfo.Name, "it")+" "+result.ServerInfo.Version), took.Round(time.Millisecond)), nil
}

// checkProgram starts a program, asks it who it is, and ends it. It is killed when
// ctx ends.
func checkProgram(ctx context.Context, spec process.Spec) (found string, problem *Problem) {
	runner := process.NewRunner(ctx, slog.New(slog.DiscardHandler), process.Grace{})
	defer runner.Close()
	p, err := runner.Start(spec)
	if err != nil {
		return "", &Problem{Cause: "it could not be started: " + err.Error(), Todo: runIt}
	}
	defer context.AfterFunc(ctx, p.Kill)()
	began := time.Now()
	_, _ = p.Write([]byte(initialize + "\n")) // of one that takes no input it is told below
	out, stop := p.Output()
	said, answered := firstAnswer(out)
	took := time.Since(began)
	late := ctx.Err() != nil
	ended := !answered && p.Wait(exitTime) && !late
	p.CloseInput()
	if !p.Wait(endTime) {
		p.Terminate()
	}
	stop()
	switch {
	case answered:
		return said.judge(took)
	case late:
		return "", &Problem{Cause: fmt.Sprintf("it does not answer within %v%s", took.Round(time.Second), lastWords(p)), Todo: runIt}
	case !ended:
		return "", &Problem{Cause: "it closed its output before it answered" + lastWords(p), Todo: runIt}
	}
	how := ""
	if code, signal := p.ExitStatus(); signal != "" {
		how = "by " + signal
	} else {
		how = fmt.Sprintf("with status %d", code)
	}
	return "", &Problem{Cause: "it ended " + how + " before it answered" + lastWords(p), Todo: runIt}
}

// firstAnswer is the first message that answers initialize. What else is printed is
// passed over, as most clients do.
func firstAnswer(out io.Reader) (a answer, found bool) {
	lines := bufio.NewScanner(io.LimitReader(out, outputMost))
	lines.Buffer(nil, lineMost)
	for lines.Scan() {
		var one answer
		if json.Unmarshal(lines.Bytes(), &one) == nil && one.isOurs() {
			return one, true
		}
	}
	return answer{}, false
}

// lastWords is the last line that a program complained of, behind a colon.
func lastWords(p *process.Process) string {
	if said := p.LastComplaint(); said != "" {
		return ": " + cut(said)
	}
	return ""
}

// cut is what somebody else wrote, cut.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > textMost {
		text = strings.ToValidUTF8(text[:textMost], "") + "…"
	}
	return text
}
