package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// An asked is a question of the agent, and what is shown of it.
type asked struct {
	wire.Approval
	dir   string // in which its session works
	sheet sheet
}

// What the next line is taken for.
type expected int

const (
	anAnswer expected = iota
	aReason           // for the denial
	aPattern          // of the rule that is kept
	anInput           // for the tool, edited
)

// An asker puts questions to whoever sits at the terminal, one at a time. One
// goroutine uses it: the one of Attend.
type asker struct {
	Options
	*keyboard
	view *View
	hub  *client.Client

	seen       map[string]bool
	decided    map[string]bool // by us
	told       []string        // the tasks with which we have the agent told something, which follow
	waiting    []asked         // the first is being asked
	expected   expected
	filling    *filling // the form that is being asked
	scope      string   // of the rule, where a pattern is expected
	draft      draft    // of a tool's input
	isInbox    bool     // questions of all sessions are gone through
	leave      func()   // them
	coming     int      // questions that are known and not asked for yet
	introduced int
	skipped    int
	pause      <-chan time.Time // of what the agent writes while a question stands; nil: it does not
	continued  <-chan os.Signal // after we were stopped
	silence    <-chan bool      // true: the hub does not answer; false: it answers again
	interrupt  func(os.Signal)  // does what a signal asks for
	interrupts bool             // it was asked for
	// isHubSilent is set from when the user reads that the hub does not answer until
	// they read that it answers again.
	isHubSilent bool
	isToEnd     bool // not by somebody at the terminal, who could ask again
}

func newAsker(o Options, view *View, c *client.Client) *asker {
	if view.keyboard == nil {
		view.keyboard = newKeyboard()
	}
	return &asker{
		Options: o, keyboard: view.keyboard, view: view, hub: c,
		seen: make(map[string]bool), decided: make(map[string]bool),
	}
}

// ask answers a question by the options, or begins to ask it.
func (a *asker) ask(ctx context.Context, approval wire.Approval) {
	if a.seen[approval.ApprovalID] {
		return // open questions are announced again
	}
	a.seen[approval.ApprovalID] = true
	approval = wholeApproval(ctx, a.hub, approval)
	dir := a.dirOf(ctx, approval)
	shown := approval
	if a.isAlone() && approval.Type == domain.FunctionCall {
		shown.Options = nil // which nobody chooses from
	}
	q := asked{approval, dir, Sheet(shown, dir)}
	if len(a.waiting) == 0 { // else what is typed would be taken for an answer to this one
		a.show(q)
	}
	switch {
	case approval.Mode != "" && a.isAlone():
		note, d := a.elicitedAlone(approval)
		a.view.Note(note)
		a.decideAlone(ctx, q, d)
	case a.Deny:
		a.decideAlone(ctx, q, protocol.DecisionParams{Decision: protocol.Deny, Comment: "denied by --deny"})
	case a.Yes:
		a.view.Note("allowed by --yes")
		a.decideAlone(ctx, q, protocol.DecisionParams{Decision: protocol.Approve})
	case a.terminal == nil:
		a.view.Note("denied: there is no terminal to ask on; --yes would allow it")
		a.decideAlone(ctx, q, protocol.DecisionParams{Decision: protocol.Deny, Comment: "nobody is there to ask"})
	default:
		a.waiting = append(a.waiting, q)
		if len(a.waiting) == 1 {
			a.prompt()
		}
	}
}

// isAlone reports whether nobody is asked: the options answer.
func (a *asker) isAlone() bool { return a.terminal == nil || a.Yes || a.Deny }

// resolved tells of a decision that somebody else made, and stops asking.
func (a *asker) resolved(d wire.EventData) {
	if !a.seen[d.ApprovalID] || a.decided[d.ApprovalID] {
		if !a.seen[d.ApprovalID] {
			a.view.refusal(d)
		}
		return
	}
	i := slices.IndexFunc(a.waiting, func(q asked) bool { return q.ApprovalID == d.ApprovalID })
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
		a.view.Note(term.Line(text))
	}
	if i < 0 {
		return
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if i == 0 {
		a.expected = anAnswer
		a.next()
	}
}

// dirOf is where the session works that asks.
func (a *asker) dirOf(ctx context.Context, approval wire.Approval) string {
	if !a.isInbox {
		return a.view.session.WorkingDir
	}
	session, _, _ := wire.SessionState(ctx, a.hub, approval.SessionID) // else names stay as they are
	return session.WorkingDir
}

// decidedBy says who made a decision.
func decidedBy(who string) string {
	switch who {
	case "user":
		return "elsewhere"
	case "overtaken":
		return "because the conversation went on without it"
	case "changed":
		return "because the agent changed the tool call"
	}
	return "by " + who
}

// next asks the first question that waits, if there is one, also where it was
// asked before: whoever comes back to us sees a shell's screen.
func (a *asker) next() {
	if len(a.waiting) > 0 {
		a.show(a.waiting[0])
		a.prompt()
	} else {
		a.lines()
	}
}

// show shows what is asked, as far as it fits on a screen.
func (a *asker) show(q asked) {
	if a.isInbox {
		a.introduce(q)
	}
	for _, diff := range fileDiffs(q.Approval, q.dir) { // it is not shown again when it was made
		a.view.diffs[diff] = true
	}
	more := ": v shows all"
	if a.isAlone() {
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
	paging := term.StartPager(a.view.side, text.String())
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

// prompt asks for a key or a line. What was typed before is thrown away: whoever
// typed it has not seen the question.
func (a *asker) prompt() { a.promptBelow(nil) }

// promptAgain asks again what is asked, if something else stands below it by now: what
// the agent does beside, or something of ours. A message that is being written is not
// broken for that, unless no more of it has come for a moment.
func (a *asker) promptAgain() {
	switch {
	case len(a.waiting) == 0, a.view.asking, a.interrupts:
		a.pause = nil
	case a.view.message == "":
		a.pause = nil
		a.promptBelow(a.waiting[0].sheet.Heading())
	case a.pause == nil:
		a.pause = time.After(beat)
	}
}

// paused is called when no more of a message has come for a moment.
func (a *asker) paused() {
	a.pause = nil
	a.promptBelow(a.waiting[0].sheet.Heading())
}

// promptBelow is prompt, below lines that say what is asked if it was asked before.
func (a *asker) promptBelow(heading []QuestionLine) {
	q := a.waiting[0]
	a.view.lines(heading)
	text := a.promptFor(q) // which may print what it is about
	key := a.takesKey(q)
	if key && len(heading) > 0 {
		a.goOnListening() // a key may be on its way
	} else {
		a.listen(q.ApprovalID, key)
	}
	if key && q.Mode == domain.ElicitForm { // what would be sent stands in between
		heading = nil
	}
	a.view.ask(heading, text)
}

// takesKey tells whether a single key is an answer to what is asked now.
func (a *asker) takesKey(q asked) bool {
	switch {
	case a.expected != anAnswer:
		return false
	case q.Mode == domain.ElicitForm:
		f := a.fillingOf(q)
		return f.at == len(f.form.Fields)
	}
	return q.Mode == domain.ElicitURL || (q.OptionsOnly || q.Type != domain.HumanContact) && len(q.Options) < 10
}

// promptFor is what stands before the cursor.
func (a *asker) promptFor(q asked) string {
	switch a.expected {
	case aReason:
		if tells(q) {
			return "What is the agent to be told? (Return alone goes back) "
		}
		return "Why not? (Return alone goes back) "
	case aPattern:
		if q.Rules[a.scope].Pattern == "" {
			return "Return agrees, . goes back: "
		}
		return "Return agrees, another pattern takes its place, . goes back: "
	case anInput:
		return "New input (one line of JSON): "
	}
	if a.edited(q) != nil {
		return "Allow it with this input? [y]es, [n]o, [t]ell why not, [e]dit again: "
	}
	_, hidden := q.sheet.Excerpt("")
	switch {
	case q.Mode != "":
		return a.elicitationPrompt(q)
	case q.OptionsOnly:
		return a.choicePrompt(q, hidden)
	case q.Type == domain.HumanContact:
		text := "Your answer"
		if hidden {
			text += ", or v to view all"
		}
		if a.isInbox {
			text += ", or Return to skip it, :quit"
		}
		return text + ": "
	}
	keys := "[y]es, [n]o, [t]ell why not"
	if len(q.Rules) > 0 {
		keys += ", [a]lways in this session, in the [p]roject"
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
	if a.isInbox {
		keys += ", [s]kip, [q]uit"
	}
	return "Allow? " + keys + ": "
}

// choicePrompt asks for one of the options of a question that takes nothing else.
func (a *asker) choicePrompt(q asked, hidden bool) string {
	text := "Choose " + choices(q)
	if hidden {
		text += ", [v]iew all"
	}
	switch {
	case a.isInbox && a.takesKey(q):
		text += ", [s]kip, [q]uit"
	case a.isInbox:
		text += ", Return to skip it, :quit"
	}
	return text + ": "
}

// choices are what can be typed for one of a question's options.
func choices(q asked) string {
	text := fmt.Sprintf("1 to %d", len(q.Options))
	if q.Declinable {
		text += ", . for none of them"
	}
	return text
}

// tells reports whether what a person says to a question would not reach the agent
// but by a prompt.
func tells(q asked) bool { return !q.TakesComment && len(q.Rules)+len(q.Plan)+len(q.Options) > 0 }

// introduce says of which session a question is, and how many others wait.
func (a *asker) introduce(q asked) {
	parts := []string{q.TaskID}
	if q.Agent != "" {
		parts = append(parts, "agent "+q.Agent)
	}
	parts = append(parts, term.Age(q.CreatedAt)+" ago")
	if n := max(0, len(a.waiting)-1) + a.coming; n > 0 {
		parts = append(parts, term.Count(n, "other waits", "others wait"))
	}
	if a.introduced > 0 {
		a.view.aside("", "")
	}
	a.introduced++
	a.view.Note(term.Line(strings.Join(parts, " · ")))
	if q.Stale {
		a.view.Note("the agent that asked is gone; what you decide continues its session")
	}
}

// A draft is an input of a tool that is being edited, as it was left.
type draft struct {
	question string          // its id
	text     string          // what the editor has left
	input    json.RawMessage // what it means; nil: it cannot be used
}

// edited is the input that takes the place of a question's, or nil.
func (a *asker) edited(q asked) json.RawMessage {
	if a.draft.question != q.ApprovalID {
		return nil
	}
	return a.draft.input
}
