package turn

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/inbox"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/pager"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
	"github.com/duet-rpc/duet-rpc/internal/question"
)

// An asked is a question of the agent, and what is shown of it.
type asked struct {
	wire.Approval
	sheet question.Sheet
}

// A typed is a line that was typed, or the end of the input.
type typed struct {
	text string
	err  error
}

// What the next line is taken for.
type expected int

const (
	anAnswer   expected = iota
	aReason             // for the denial
	whatToTell          // the agent, after the denial
	aPattern            // of the rule that is kept
	anInput             // for the tool, edited
)

// An asker puts questions to whoever sits at the terminal, one at a time. One
// goroutine uses it: the one of Attend.
type asker struct {
	Options
	view     *View
	hub      *client.Client
	terminal *os.File // nil: there is none

	typed      chan typed
	wantLine   chan struct{} // asks for a line
	begin      sync.Once     // to read lines
	lineIsFor  string        // the question for which a line was asked for; or empty
	seen       map[string]bool
	decided    map[string]bool // by us
	told       []string        // the tasks with which we have the agent told something, which follow
	waiting    []asked         // the first is being asked
	expected   expected
	filling    *filling         // the form that is being asked
	scope      string           // of the rule, where a pattern is expected
	continued  <-chan os.Signal // after we were stopped
	silence    <-chan string    // what is to be said of a hub that does not answer
	interrupt  func(os.Signal)  // does what a signal asks for
	interrupts bool             // it was asked for
	isToEnd    bool             // not by somebody at the terminal, who could ask again
}

func newAsker(o Options, view *View, c *client.Client) *asker {
	a := &asker{
		Options: o, view: view, hub: c, typed: make(chan typed), wantLine: make(chan struct{}, 1),
		seen: make(map[string]bool), decided: make(map[string]bool),
	}
	if tty.Is(os.Stdin) {
		a.terminal = os.Stdin
	} else if tty.Is(os.Stderr) { // the prompt came on standard input
		if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			a.terminal = terminal
		}
	}
	return a
}

// ask answers a question by the options, or begins to ask it.
func (a *asker) ask(ctx context.Context, approval wire.Approval) {
	if a.seen[approval.ID] {
		return // open questions are announced again
	}
	a.seen[approval.ID] = true
	approval = inbox.Whole(ctx, a.hub, approval)
	q := asked{approval, inbox.Sheet(approval, a.view.session.WorkingDir)}
	a.show(q)
	switch {
	case approval.Mode != "" && (a.Deny || a.Yes || a.terminal == nil):
		note, d := a.elicitedAlone(approval)
		a.view.Note(note)
		a.decideAlone(ctx, q, d)
	case a.Deny:
		a.decideAlone(ctx, q, wire.Decision{Decision: "deny", Comment: "denied by --deny"})
	case a.Yes:
		a.view.Note("allowed by --yes")
		a.decideAlone(ctx, q, wire.Decision{Decision: "approve"})
	case a.terminal == nil:
		a.view.Note("denied: there is no terminal to ask on; --yes would allow it")
		a.decideAlone(ctx, q, wire.Decision{Decision: "deny", Comment: "nobody is there to ask"})
	default:
		a.waiting = append(a.waiting, q)
		if len(a.waiting) == 1 {
			a.prompt()
		}
	}
}

// resolved tells of a decision that somebody else made, and stops asking.
func (a *asker) resolved(d wire.EventData) {
	if !a.seen[d.ApprovalID] || a.decided[d.ApprovalID] {
		if !a.seen[d.ApprovalID] {
			a.view.refusal(d)
		}
		return
	}
	i := slices.IndexFunc(a.waiting, func(q asked) bool { return q.ID == d.ApprovalID })
	if i == 0 {
		a.view.endLine() // behind what we asked
	}
	if d.DecidedBy != "end" { // that of the turn is announced itself
		text := d.Decision + " " + decidedBy(d.DecidedBy)
		if why := cmp.Or(d.Response, d.Comment); why != "" {
			text += ": " + why
		}
		if d.Explanation != "" {
			text += " (" + d.Explanation + ")"
		}
		a.view.Note(output.Line(text))
	}
	if i < 0 {
		return
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if i == 0 {
		a.expected = anAnswer
		a.askFirst()
	}
}

// decidedBy says who made a decision.
func decidedBy(who string) string {
	switch who {
	case "user":
		return "elsewhere"
	case "overtaken":
		return "because the conversation went on without it"
	}
	return "by " + who
}

// askFirst asks the first question that waits, if there is one, also where it was
// asked before: whoever comes back to us sees a shell's screen.
func (a *asker) askFirst() {
	if len(a.waiting) > 0 {
		a.show(a.waiting[0])
		a.prompt()
	}
}

// show shows what is asked, as far as it fits on a screen.
func (a *asker) show(q asked) {
	for _, diff := range inbox.FileDiffs(q.Approval, a.view.session.WorkingDir) { // it is not shown again when it was made
		a.view.diffs[diff] = true
	}
	more := ": v shows all"
	if a.terminal == nil || a.Yes || a.Deny {
		more = ""
	}
	lines, _ := q.sheet.Excerpt(more)
	a.view.lines(lines)
}

// page shows all of a question. Signals that come while a pager does are for
// the pager, but for those that end us.
func (a *asker) page(q asked) {
	var text strings.Builder
	for _, line := range q.sheet.Whole() {
		text.WriteString(line.Text + "\n")
	}
	paging := pager.Start(a.view.side, text.String())
	for {
		select {
		case <-paging.Done():
			return
		case <-a.continued: // the pager shows its page again
		case sig := <-a.Signals:
			if sig != os.Interrupt {
				paging.Stop()
				a.interrupt(sig)
			}
		}
	}
}

// prompt asks for a line. What was typed before is thrown away: whoever typed it
// has not seen the question.
func (a *asker) prompt() { a.askLine(a.promptFor(a.waiting[0]), a.waiting[0].ID) }

// askLine asks for a line, with a text before the cursor, and says what it is for.
func (a *asker) askLine(text, isFor string) {
	a.begin.Do(func() { go a.read() })
	tty.DiscardTyped(a.terminal)
	fmt.Fprint(a.view.side, text)
	a.view.asking = true
	if a.lineIsFor == "" {
		a.lineIsFor = isFor
		a.wantLine <- struct{}{}
	}
}

// promptFor is what stands before the cursor.
func (a *asker) promptFor(q asked) string {
	switch a.expected {
	case aReason:
		return "Why not? "
	case whatToTell:
		return "What is the agent to be told? "
	case aPattern:
		if q.Rules[a.scope].Pattern == "" {
			return "Return agrees, . goes back: "
		}
		return "Return agrees, another pattern takes its place, . goes back: "
	case anInput:
		return "New input (one line of JSON): "
	}
	_, hidden := q.sheet.Excerpt("")
	switch {
	case q.Mode != "":
		return a.elicitationPrompt(q)
	case q.Type == wire.HumanContact && hidden:
		return "Your answer, or v to view all: "
	case q.Type == wire.HumanContact:
		return "Your answer: "
	}
	keys := "[y]es, [n]o"
	if tells(q) {
		keys += ", [t]ell why not"
	}
	if q.Plan == "" {
		keys += ", [a]lways in this session"
		if len(q.Rules) > 0 {
			keys += ", in the [p]roject"
		}
	}
	if len(q.Options) > 0 {
		keys += ", a number"
	}
	if q.Editable {
		keys += ", [e]dit"
	}
	if hidden {
		keys += ", [v]iew all"
	}
	return "Allow? " + keys + ": "
}

// tells reports whether what a person says to a question would not reach the agent
// but by a prompt.
func tells(q asked) bool { return !q.TakesComment && len(q.Rules)+len(q.Plan)+len(q.Options) > 0 }

// read reads a line of the terminal whenever one is asked for. What came with
// it is thrown away: it was typed before the next question was asked. It ends
// with the process: nothing else ends a read of a terminal.
func (a *asker) read() {
	for range a.wantLine {
		text, err := bufio.NewReader(a.terminal).ReadString('\n')
		if text != "" {
			err = nil
		}
		a.typed <- typed{strings.TrimSpace(text), err}
	}
}
