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
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// asked is a question of the agent and its layout.
type asked struct {
	hubclient.Approval
	hub   *client.Client // the daemon that asks
	host  string         // where that is; "": on the machine of the project
	in    string         // the project, in an inbox of several
	dir   string         // the working directory of the session
	sheet sheet
}

// expected says what the next line is.
type expected int

const (
	anAnswer expected = iota
	aReason           // for the denial
	aPattern          // of the rule to store
	anInput           // for the tool, edited
	aCommand          // of the tool, edited
)

// asker asks questions on the terminal, one at a time. Only the goroutine of Attend uses it.
type asker struct {
	Options
	*keyboard
	view *View
	hub  *client.Client // of several, the one that sent the last event
	host string         // where it is; "": on the machine of the project
	in   string         // its project, in an inbox of several

	seen         map[string]bool
	decided      map[string]bool // by this client
	commentTurns []string        // turns whose prompts send the agent a comment; they are shown next
	waiting      []asked         // the user is answering the first
	expected     expected
	filling      *filling // the form that the user is filling in
	isNextField  bool     // the last line has filled in a field, and the user may have typed ahead for this one
	scope        string   // of the rule for which a pattern is expected
	given        string   // the text that the line began with, which the user edits; "": none
	draft        draft    // of a tool's input
	isInbox      bool     // it asks the questions of all sessions
	hasLeft      bool     // the user has left the inbox
	coming       int      // known questions that are not in waiting yet
	introduced   int
	skipped      int
	pause        <-chan time.Time                            // fires when the agent pauses while a question is open; nil: it is not writing
	stops        <-chan os.Signal                            // C-z
	isStopped    bool                                        // by C-z, until this process is continued
	continued    <-chan os.Signal                            // after this process was stopped
	silence      <-chan bool                                 // true: the hub does not answer; false: it answers again
	interrupt    func(os.Signal)                             // handles a signal
	interrupts   bool                                        // an interrupt was requested
	gone         func(context.Context, *client.Client) error // connects again after a connection has ended; nil: that ends the loop
	// isHubSilent is true after the user was informed that the hub does not answer, until they
	// are informed that it answers again.
	isHubSilent bool
	isClosed    bool // SIGHUP said that the terminal is closed
	isToEnd     bool // by a signal that no user at the terminal could repeat

	talk   *Talk            // the session that the turn belongs to; nil: there is one turn
	settle <-chan time.Time // fires when the user may have stopped typing a prompt while a question waits
}

func newAsker(o Options, view *View, c *client.Client) *asker {
	if view.keyboard == nil {
		view.keyboard = newKeyboard()
	}
	view.keyboard.edits = view.redraws
	return &asker{
		Options: o, keyboard: view.keyboard, view: view, hub: c,
		seen: make(map[string]bool), decided: make(map[string]bool),
	}
}

// ask answers a question from the options, or starts to ask it.
func (a *asker) ask(ctx context.Context, approval hubclient.Approval) {
	if a.seen[approval.ApprovalID] {
		return // the hub announces open questions again
	}
	a.seen[approval.ApprovalID] = true
	approval = wholeApproval(ctx, a.hub, approval)
	dir := a.dirOf(ctx, approval)
	shown := approval
	if a.isAlone() && approval.Type == domain.FunctionCall {
		shown.Options = nil // no user chooses one
	}
	q := asked{approval, a.hub, a.host, a.in, dir, sheetOf(shown, dir, false)}
	if len(a.waiting) == 0 { // otherwise input would be taken as an answer to this question
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
		a.decideAlone(ctx, q, protocol.DecisionParams{Decision: protocol.Deny, Comment: "there is no user to ask"})
	default:
		a.waiting = append(a.waiting, q)
		if len(a.waiting) == 1 && !a.talk.isTyping() {
			a.prompt()
		}
	}
}

// isAlone reports whether the options answer all questions, not a user.
func (a *asker) isAlone() bool { return a.terminal == nil || a.Yes || a.Deny }

// resolved shows a decision that another client made and stops asking.
func (a *asker) resolved(d *protocol.ApprovalClosedEvent) {
	if !a.seen[d.ApprovalID] || a.decided[d.ApprovalID] {
		if !a.seen[d.ApprovalID] {
			a.view.refusal(d)
		}
		return
	}
	i := slices.IndexFunc(a.waiting, func(q asked) bool { return q.ApprovalID == d.ApprovalID })
	if i == 0 {
		a.view.endLine() // after the prompt
	}
	if d.DecidedBy != "end" { // the end of the turn is shown separately
		text := d.Status.Words() + " " + decidedBy(d)
		if why := cmp.Or(d.Response, d.Comment); why != "" {
			text += ": " + why
		}
		if d.Explanation != "" {
			text += " (" + d.Explanation + ")"
		}
		a.view.Note(term.Line(text))
		a.view.denied[d.ToolUseID] = d.Status == domain.ApprovalDenied
	}
	if i < 0 {
		return
	}
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if i == 0 {
		a.giveUp()
		a.next()
	}
}

// drop stops asking the questions of a daemon whose connection is lost; they stay open there. note, if set, says so.
func (a *asker) drop(hub *client.Client, note string) {
	wasAsked := len(a.waiting) > 0 && a.waiting[0].hub == hub
	a.waiting = slices.DeleteFunc(a.waiting, func(q asked) bool {
		if q.hub == hub {
			delete(a.seen, q.ApprovalID)
		}
		return q.hub == hub
	})
	if wasAsked {
		a.view.endLine()
		a.giveUp()
	}
	if note != "" {
		a.view.Note(note)
	}
	if wasAsked {
		a.next()
	}
}

// giveUp ends an unfinished answer, whose question is gone. The next prompt of the session gets what
// the user typed.
func (a *asker) giveUp() {
	if a.given != "" { // the user did not type it
		a.unfinished = term.EditedLine{}
	}
	a.expected, a.given = anAnswer, ""
	a.keyboard.giveUp()
}

// isWaiting reports whether a question waits for the user.
func (a *asker) isWaiting(id string) bool {
	return slices.ContainsFunc(a.waiting, func(q asked) bool { return q.ApprovalID == id })
}

// dirOf returns the working directory of the session that asks.
func (a *asker) dirOf(ctx context.Context, approval hubclient.Approval) string {
	if !a.isInbox {
		return a.view.session.WorkingDir
	}
	session, _, _ := hubclient.Turn(ctx, a.hub, approval.TurnUUID) // without it, paths stay absolute
	return session.WorkingDir
}

// decidedBy says who made a decision, and in which client.
func decidedBy(d *protocol.ApprovalClosedEvent) string {
	switch d.DecidedBy {
	case "user":
		return "in " + cmp.Or(d.DecidedIn, "another client")
	case "overtaken":
		return "because the session continued without an answer"
	case "changed":
		return "because the agent changed the tool call"
	}
	return "by " + d.DecidedBy
}

// next asks the first waiting question, if there is one. It asks again even if it asked
// before, because another program may have used the screen.
func (a *asker) next() {
	switch {
	case len(a.waiting) > 0:
		a.show(a.waiting[0])
		a.prompt()
	case a.talk.hasBox():
		a.focus = unfocused // the box draws itself
	default:
		a.release()
	}
}

// show shows the part of the question that fits on a screen.
func (a *asker) show(q asked) {
	if a.isInbox {
		a.introduce(q)
	}
	a.view.propose(fileDiffs(q.Approval, q.dir))
	more := ": v shows all"
	if a.isAlone() {
		more = ""
	}
	lines, _ := q.sheet.Excerpt(more)
	a.view.question(q.Approval, lines)
}

// page shows the whole question in a pager.
func (a *asker) page(q asked) {
	a.release()
	var text strings.Builder
	for _, line := range q.sheet.Whole() {
		text.WriteString(line.Text + "\n")
	}
	paging := term.StartPager(a.view.side, text.String())
	a.lend(paging.Done(), paging.Stop, func() {})
}

// prompt asks for a key or a line. It discards earlier input, which the user typed before
// seeing the question.
func (a *asker) prompt() { a.promptBelow(nil) }

// promptAgain repeats the question if output is now below it. It does not split a message
// that the agent is writing, unless the agent has paused.
func (a *asker) promptAgain() {
	a.settle = nil
	switch {
	case len(a.waiting) == 0, a.view.asking, a.interrupts:
		a.pause = nil
	case a.talk.isTyping(): // a key would answer the question
		a.settle = time.After(settleAfter)
	case a.view.message == "":
		a.pause = nil
		a.promptBelow(a.waiting[0].sheet.Heading())
	case a.pause == nil:
		a.pause = time.After(beat)
	}
}

// paused is called when the agent has paused in a message.
func (a *asker) paused() {
	if a.pause = nil; !a.talk.isTyping() {
		a.promptBelow(a.waiting[0].sheet.Heading())
	}
}

// promptBelow is prompt with a heading that repeats what the question is about.
func (a *asker) promptBelow(heading []QuestionLine) {
	q := a.waiting[0]
	a.view.lines(heading)
	text := a.promptFor(q) // may print more context
	key := a.takesKey(q)
	// A key may already be on its way, and the reason follows the key that asks for it, as a field of a form
	// follows another one.
	if (len(heading) == 0 || !a.asks()) && a.expected != aReason && !a.isNextField {
		a.setAside()
	}
	a.meant = cmp.Or(a.meant, q.ApprovalID)
	if key {
		a.listen(aKey)
	} else {
		a.listen(aLine)
	}
	if key && q.Mode == domain.ElicitForm { // the values to send stand in between
		heading = nil
	}
	a.view.ask(heading, text)
	a.view.typing(a.unfinished.Cursor())
}

// takesKey reports whether a single key can answer the current prompt.
func (a *asker) takesKey(q asked) bool {
	switch {
	case a.expected != anAnswer:
		return false
	case q.Mode == domain.ElicitForm:
		f := a.fillingOf(q)
		return f.at == len(f.questions)
	}
	return q.Mode == domain.ElicitURL || (q.OptionsOnly || q.Type != domain.HumanContact) && len(q.Options) < 10
}

// promptFor returns the text before the cursor.
func (a *asker) promptFor(q asked) string {
	switch a.expected {
	case aReason:
		if needsPrompt(q) {
			return "What should the agent do? (Return alone goes back) "
		}
		return "Why not? (Return alone goes back) "
	case aPattern:
		if q.Rules[a.scope].Pattern == "" {
			return "Return agrees, . goes back: "
		}
		if a.given != "" {
			return "Return stores the rule, an empty line goes back: "
		}
		return "Return agrees, another pattern replaces it, . goes back: "
	case aCommand:
		return "Return allows it with your edit, an empty line goes back: "
	case anInput:
		return "New input (one line of JSON): "
	}
	if a.edited(q) != nil {
		return InPrompt(keysOfEdited())
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
			text += ", or Return for later, :quit"
		}
		return text + ": "
	}
	return InPrompt(a.allKeys(q))
}

// choicePrompt asks for one of the options of a question that takes no other answer.
func (a *asker) choicePrompt(q asked, hidden bool) string {
	var keys []domain.Answer
	if hidden {
		keys = append(keys, domain.Answer{Key: "v", Words: "View all"})
	}
	if keys = append(keys, a.leaving(q)...); len(keys) == 0 {
		return "Choose " + choices(q) + ": "
	}
	return "Choose " + choices(q) + ", " + InPrompt(keys)
}

// choices describes what the user can type for a question's options.
func choices(q asked) string {
	text := fmt.Sprintf("1 to %d", len(q.Options))
	if q.Declinable {
		text += ", [" + declineKey + "] Decline"
	}
	return text
}

// needsPrompt reports whether a comment on a question reaches the agent only as a prompt.
func needsPrompt(q asked) bool { return !q.TakesComment && len(q.Rules)+len(q.Plan)+len(q.Options) > 0 }

// introduce prints which turn a question belongs to and how many others wait.
func (a *asker) introduce(q asked) {
	parts := []string{labelAt(q.Turn, q.host)}
	if q.in != "" {
		parts = append(parts, q.in)
	}
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

// draft is the edited input of a tool.
type draft struct {
	question string          // the id of the question
	text     string          // the text from the editor
	input    json.RawMessage // the parsed text; nil: it is not valid
}

// edited returns the edited input for a question, or nil.
func (a *asker) edited(q asked) json.RawMessage {
	if a.draft.question != q.ApprovalID {
		return nil
	}
	return a.draft.input
}
