package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	values "github.com/duet-rpc/duet-rpc/internal/domain"
)

// An answer is a line that was typed, or the end of the input.
type answer struct {
	text string
	err  error
}

// An asker puts questions to whoever sits at the terminal, one at a time.
type asker struct {
	out         io.Writer
	view        *promptView
	opts        promptOptions
	terminal    *os.File // nil: there is none
	answers     chan answer
	hub         *client.Client
	begin       sync.Once     // to read
	lines       chan struct{} // asks for a line
	reading     string        // the question for which a line was asked for; or empty
	asked       map[string]bool
	decided     map[string]bool // by us
	waiting     []asking        // the first is being asked
	why         bool            // the line that comes is the reason for a denial
	edit        bool            // the line that comes is the input, edited
	interrupted bool
	signals     <-chan os.Signal
	continued   <-chan os.Signal // after we were stopped
	silence     <-chan string    // what is to be said of a hub that does not answer
	interrupt   func()           // what a signal asks for
}

func newAsker(out io.Writer, o promptOptions, view *promptView, c *client.Client) *asker {
	a := &asker{
		out: out, view: view, opts: o, hub: c, answers: make(chan answer), lines: make(chan struct{}, 1),
		asked: make(map[string]bool), decided: make(map[string]bool),
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		a.terminal = os.Stdin
	} else if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil && term.IsTerminal(int(os.Stderr.Fd())) {
		a.terminal = tty // the prompt came on standard input
	}
	return a
}

// ask answers a question by the flags, or begins to ask it.
func (a *asker) ask(ctx context.Context, q asking) {
	if a.asked[q.ApprovalID] {
		return // a question that is open is told again
	}
	a.asked[q.ApprovalID] = true
	q.lay(ctx, a.hub, a.view.session.WorkingDir)
	a.show(q)
	switch {
	case a.opts.deny, a.terminal == nil && !a.opts.yes:
		comment := "denied by --deny"
		if !a.opts.deny {
			comment = "nobody is there to ask"
			a.view.note("denied: there is no terminal to ask on; --yes would allow it")
		}
		a.decideAlone(ctx, q, decision{Decision: "deny", Comment: comment})
	case a.opts.yes:
		a.view.note("allowed by --yes")
		a.decideAlone(ctx, q, decision{Decision: "approve"})
	default:
		a.waiting = append(a.waiting, q)
		if len(a.waiting) == 1 {
			a.prompt()
		}
	}
}

// resolved tells of a decision that somebody else made, and stops asking.
func (a *asker) resolved(g gist) {
	if !a.asked[g.ApprovalID] || a.decided[g.ApprovalID] {
		return
	}
	i := slices.IndexFunc(a.waiting, func(q asking) bool { return q.ApprovalID == g.ApprovalID })
	if i == 0 {
		a.view.line() // behind what we asked
	}
	if g.DecidedBy != "end" { // that of the run, which is told
		by := "elsewhere"
		switch g.DecidedBy {
		case "user":
		case "overtaken":
			by = "because the conversation went on without it"
		default:
			by = "by " + g.DecidedBy
		}
		text := g.Decision + " " + by
		if why := firstText(g.Response, g.Comment); why != "" {
			text += ": " + why
		}
		a.view.note(oneLine(text))
	}
	if i < 0 {
		return
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if i == 0 {
		a.why, a.edit = false, false
		a.next()
	}
}

// next asks the first question that waits, if there is one, also where it was
// asked before: whoever comes back to us sees a shell's screen.
func (a *asker) next() {
	if len(a.waiting) > 0 {
		a.show(a.waiting[0])
		a.prompt()
	}
}

// show shows what is asked, as far as it fits on a screen.
func (a *asker) show(q asking) {
	for _, d := range q.Diffs { // it is not shown again when it was made
		a.view.shown[diff.Unified(a.view.session.WorkingDir, d.Path, d.OldText, &d.NewText)] = true
	}
	more := ": v shows all"
	if a.terminal == nil || a.opts.yes || a.opts.deny {
		more = ""
	}
	lines, _ := q.sheet.Excerpt(more)
	a.view.lines(lines)
}

// page shows all of a question. Signals that come while a pager does are for
// the pager, but for those that end us.
func (a *asker) page(q asking) {
	var text strings.Builder
	for _, line := range q.sheet.Whole() {
		text.WriteString(line.Text + "\n")
	}
	end := page(a.out, text.String())
	for {
		select {
		case <-end.done:
			return
		case <-a.continued: // the pager shows its page again
		case sig := <-a.signals:
			if sig != os.Interrupt {
				end.stop()
				a.interrupt()
			}
		}
	}
}

// prompt asks for a line. What was typed before is thrown away: whoever typed it
// has not seen the question.
func (a *asker) prompt() {
	a.begin.Do(func() { go a.read() })
	discardTyped(a.terminal)
	q := a.waiting[0]
	keys := "[y]es, [n]o, [a]lways in this session"
	if q.Editable {
		keys += ", [e]dit"
	}
	_, hidden := q.sheet.Excerpt("")
	if hidden {
		keys += ", [v]iew all"
	}
	switch {
	case a.why:
		fmt.Fprint(a.out, "Why not? ")
	case a.edit:
		fmt.Fprint(a.out, "New input (one line of JSON): ")
	case q.Type == values.HumanContact && hidden:
		fmt.Fprint(a.out, "Your answer, or v to view all: ")
	case q.Type == values.HumanContact:
		fmt.Fprint(a.out, "Your answer: ")
	default:
		fmt.Fprintf(a.out, "Allow? %s: ", keys)
	}
	a.view.asking = true
	if a.reading == "" {
		a.reading = q.ApprovalID
		a.lines <- struct{}{}
	}
}

// read reads a line of the terminal whenever one is asked for. What came with
// it is thrown away: it was typed before the next question was asked. It ends
// with the process: nothing else ends a read of a terminal.
func (a *asker) read() {
	for range a.lines {
		text, err := bufio.NewReader(a.terminal).ReadString('\n')
		if text != "" {
			err = nil
		}
		a.answers <- answer{strings.TrimSpace(text), err}
	}
}

// answered takes a line.
func (a *asker) answered(ctx context.Context, line answer) {
	meant := a.reading
	a.reading = ""
	if line.err == nil {
		a.view.asking = false // the terminal has ended the line
	}
	if len(a.waiting) == 0 {
		return
	}
	q := a.waiting[0]
	if q.ApprovalID != meant { // it may have been typed before this one was asked
		if line.err == nil {
			a.view.note("not taken: that question was answered elsewhere; this one is still open")
		}
		a.prompt()
		return
	}
	d, again := a.decisionOf(q, line)
	if again {
		a.prompt()
		return
	}
	a.why, a.edit = false, false
	if line.err != nil {
		a.decideAlone(ctx, q, d)
	} else if !a.decide(ctx, q, d) {
		a.prompt()
		return
	}
	a.waiting = a.waiting[1:]
	a.next()
}

// decisionOf makes a decision of a line, or asks for another one.
func (a *asker) decisionOf(q asking, line answer) (d decision, again bool) {
	switch {
	case line.err != nil:
		a.view.line()
		return decision{Decision: "deny", Comment: "the terminal was closed"}, false
	case a.why:
		return decision{Decision: "deny", Comment: firstText(line.text, "denied")}, false
	case a.edit:
		if !json.Valid([]byte(line.text)) || !strings.HasPrefix(line.text, "{") {
			a.edit = line.text != ""
			a.view.note("that is no JSON object; an empty line goes back")
			return d, true
		}
		return decision{Decision: "approve", Input: json.RawMessage(line.text)}, false
	case q.Type == values.HumanContact:
		if _, hidden := q.sheet.Excerpt(""); hidden && line.text == "v" {
			a.page(q)
			return d, true
		}
		if n, err := strconv.Atoi(line.text); err == nil && n >= 1 && n <= len(q.Options) {
			return decision{Decision: "respond", Option: q.Options[n-1].OptionID, Comment: q.Options[n-1].Name}, false
		}
		return decision{Decision: "respond", Comment: line.text}, line.text == ""
	}
	switch strings.ToLower(line.text) {
	case "y", "yes":
		return decision{Decision: "approve"}, false
	case "a", "always":
		return decision{Decision: "approve", Scope: "session"}, false
	case "n", "no":
		a.why = true
	case "e", "edit":
		if !q.Editable {
			a.view.note("this agent runs the tool with its own input or not at all; type n, and then what to run instead")
			return d, true
		}
		if len(q.ToolInput) > longestTyped {
			a.view.note("the input is too long for a line; edit it with: duet-rpc approvals approve " + q.ApprovalID[:min(len(q.ApprovalID), shortID)] + " --edit-input JSON")
			return d, true
		}
		a.edit = true
		a.view.aside("  "+typeable(q.ToolInput), dim)
	case "v", "view":
		a.page(q)
	default:
		keys := []string{"y", "n", "a"}
		if q.Editable {
			keys = append(keys, "e")
		}
		if _, hidden := q.sheet.Excerpt(""); hidden {
			keys = append(keys, "v")
		}
		last := len(keys) - 1
		a.view.note("please type " + strings.Join(keys[:last], ", ") + " or " + keys[last])
	}
	return d, true
}

// decideAlone is decide where nobody can be asked again: if the decision does
// not fit the question, the run is interrupted, so that it does not wait for
// ever.
func (a *asker) decideAlone(ctx context.Context, q asking, d decision) {
	if a.decide(ctx, q, d) || ctx.Err() != nil {
		return
	}
	a.view.note("nobody is there to answer; interrupting")
	if err := a.hub.Call(ctx, "interruptSession", map[string]string{"session_id": q.SessionID, "reason": "nobody_answers"}, nil); err != nil {
		a.view.note(inItsWords(err).Error())
	}
}

// decide sends a decision, and reports whether the question is closed.
func (a *asker) decide(ctx context.Context, q asking, d decision) bool {
	d.ID = q.ApprovalID
	if q.Type == values.HumanContact {
		if d.Decision == "approve" && len(q.Options) > 0 {
			d.Option, d.Comment = q.Options[0].OptionID, q.Options[0].Name
		}
		// An agent that lets us choose can be told that we do not.
		if d.Decision != "deny" || len(q.Options) == 0 || q.Options[0].Kind == "" {
			d.Decision = "respond"
		}
		d.Comment = firstText(d.Comment, "yes")
	}
	var r struct{ Success bool }
	err := a.send(ctx, d, &r)
	if err != nil && ctx.Err() == nil {
		a.view.note(inItsWords(err).Error())
		return false
	}
	if r.Success {
		a.decided[q.ApprovalID] = true
	} // else the run was interrupted, or somebody else was faster: that is told
	return true
}

// send sends a decision, and waits for what the hub says, signals and silence
// looked at meanwhile.
func (a *asker) send(ctx context.Context, d decision, result any) error {
	sent := make(chan error, 1)
	go func() { sent <- a.hub.Call(ctx, "sendDecision", d, result) }()
	for {
		select {
		case err := <-sent:
			return err
		case text := <-a.silence:
			a.view.note(text)
		case <-a.signals:
			a.interrupt()
		}
	}
}
