package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// A session at the terminal: turns, and below them a box in which the user writes the next
// prompt while the agent works.

// ErrLeave says that the user leaves the session.
var ErrLeave = errors.New("the user leaves the session")

// TalkOptions say how a session begins, and where prompts and commands go.
type TalkOptions struct {
	Options

	Dir string // where the user's commands run before the session has a turn
	// Shell, if set, returns the command that runs a line of the shell in a directory of another machine.
	Shell    func(ctx context.Context, dir, line string) *exec.Cmd
	First    string   // the prompt that begins the session here; "": the user writes it
	History  []string // earlier prompts, the newest last
	Complete func(line string, isFirst bool) (replaces int, candidates []term.Candidate)
	// Send starts a session with a prompt, or continues it. If its agent works, the
	// prompt waits in the queue, or, with steer, goes to the agent at once if that is possible.
	Send func(ctx context.Context, c *client.Client, text string, steer bool) (protocol.Started, error)
	// Command runs what follows a slash. ok is false if that is a prompt: the agent has a command
	// of this name. [ErrLeave] leaves the session.
	Command func(ctx context.Context, c *client.Client, text string) (ok bool, err error)
	// NextMode changes to the next permission mode.
	NextMode func(ctx context.Context, c *client.Client) error
	// Reported is called when an agent has reported something about its session, such as its commands.
	Reported func(ctx context.Context, c *client.Client)
	// Ended, if set, is called when a turn has ended that no other one follows, from a goroutine of its own.
	Ended func(ctx context.Context, c *client.Client, session protocol.Turn)
	// Footer describes the session: its agent, its mode.
	Footer func() string
}

// A Talk is a session at the terminal. Only the goroutine that calls Run uses it.
type Talk struct {
	TalkOptions
	Session protocol.Turn // its latest turn; the zero value: it has none

	view    *View
	asker   *asker    // of the current connection
	box     *term.Box // nil: the terminal cannot move its cursor, and prompts are lines
	typedAt time.Time // when the user last typed into the box
	up      int       // where the cursor is in the box
	column  int
	isBusy  bool // a turn is shown
	// isOrphaned is true after the hub has ended a turn that was shown, until the user knows.
	isOrphaned bool
	// catchesUp: turns that began before the session was connected again are shown, even if they have ended.
	catchesUp bool
	since     int64 // the last event that was shown of the next turn; 0: none was

	next    string          // a turn that was started, and is to be shown
	entered string          // the turn whose prompt the user has typed as a line
	shown   map[string]bool // sessions
	queued  []queuedPrompt  // by this client
	ran     []string        // the user's commands since the last prompt, with their outputs
	news    talkNews
	reports chan struct{} // an agent has reported something about its session, or a question was opened or closed; buffer of 1
	asks    openQuestions // of all sessions

	resizes <-chan os.Signal
}

// queuedPrompt is a prompt that waits for the end of the turn.
type queuedPrompt struct{ session, text string }

// settleAfter is how long after a key of the user a question waits before keys answer it, if
// there is text in the box.
const settleAfter = time.Second

// NewTalk returns a session that view shows. Its first turn follows the turn session, or begins a
// new session if that is the zero value.
func NewTalk(view *View, session protocol.Turn, o TalkOptions) *Talk {
	t := &Talk{TalkOptions: o, Session: session, view: view, shown: make(map[string]bool), reports: make(chan struct{}, 1)}
	t.news.more = make(chan struct{}, 1)
	if session.ID != "" {
		t.shown[session.ID] = true
	}
	view.talk = t
	if view.region != nil && view.words != nil {
		history := slices.Clone(o.History)
		for i := range history {
			history[i] = asPrompt(history[i])
		}
		t.box = term.NewBox(history)
		t.box.Complete = o.Complete
		view.region.Cursor = func() (up, column int, ok bool) { return t.up, t.column, true }
	}
	return t
}

// talkNews are events of turns that have started and of questions that were answered, in any
// session.
type talkNews struct {
	mu   sync.Mutex
	list []eventstream.Event // guarded by mu
	more chan struct{}       // buffer of 1
}

func (b *talkNews) add(e eventstream.Event) {
	b.mu.Lock()
	b.list = append(b.list, e)
	b.mu.Unlock()
	b.signal()
}

func (b *talkNews) signal() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// take removes and returns the first event; nil: there is none. The others stay: each turn is shown after the one before
// it.
func (b *talkNews) take() (first eventstream.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		return first
	}
	first = b.list[0]
	if b.list = b.list[1:]; len(b.list) > 0 {
		b.signal()
	}
	return first
}

// Run shows the session until the user leaves it. It returns [hubclient.ErrHubGone] if the
// hub has ended; call it again with a new connection then. c must not reconnect by itself.
func (t *Talk) Run(ctx context.Context, c *client.Client) (err error) {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := hubclient.WhileConnected(ctx, c)
	defer cancel()
	defer func() {
		if err != nil && !errors.Is(err, ErrLeave) && !errors.Is(err, ErrHungUp) {
			err = hubclient.OrGone(ctx, err)
		}
	}()
	a := newAsker(t.Options, t.view, c)
	a.talk, a.keeps, t.asker = t, true, a
	defer a.release()
	defer t.view.endLine()
	defer a.watch(ctx, &running)()
	defer t.signals(a)()

	seq, err := hubclient.LastSeq(ctx, c)
	if err != nil {
		return err
	}
	open, _, err := hubclient.OpenApprovals(ctx, c, "")
	if err != nil {
		return err
	}
	t.asks.are(open)
	sub, err := eventstream.Subscribe(ctx, c, eventstream.Options{
		Kinds: []string{protocol.KindTurnState, protocol.KindApprovalOpened, protocol.KindApprovalClosed, protocol.KindAgentSession}, Since: &seq,
	}, func(e eventstream.Event) {
		switch d := hubclient.DataOf(e).(type) {
		case *protocol.AgentSessionEvent:
			t.report()
		case *protocol.ApprovalOpenedEvent:
			t.asks.opened(d.ApprovalID, e.Session)
			t.report()
		case *protocol.ApprovalClosedEvent:
			t.asks.closed(d.ApprovalID)
			t.report()
			t.news.add(e)
		case *protocol.TurnStateEvent:
			if d.State == domain.Starting || d.State == domain.Running {
				t.news.add(e)
			}
		}
	})
	if err != nil {
		return err
	}
	defer func() { cancel(); sub.Close() }()
	if err := t.restore(ctx, c); err != nil {
		return err
	}
	for {
		session, err := t.idle(ctx, a)
		if err != nil {
			return err
		}
		if err := t.turn(ctx, a, session, &running); err != nil {
			return err
		}
		if t.catchesUp && t.next == "" {
			if t.next, err = nextOf(ctx, c, t.Session, true); err != nil {
				return err
			}
			t.catchesUp = t.next != ""
		}
	}
}

// restore finds the turn that was shown when the hub ended, or one that works already.
func (t *Talk) restore(ctx context.Context, c *client.Client) error {
	if t.Session.ID == "" {
		return nil
	}
	id := t.Session.SessionUUID // its last turn
	if t.isBusy {
		id = t.Session.ID
	}
	now, _, err := hubclient.Turn(ctx, c, id)
	if err != nil {
		return err
	}
	wasBusy := t.isBusy
	t.isOrphaned, t.isBusy = wasBusy && IsOrphan(now), false
	if t.isOrphaned {
		t.view.End(now)
	}
	t.Session, t.next = now, now.ID
	if wasBusy && !t.isOrphaned && now.State != domain.Queued { // only the connection broke
		t.since, t.catchesUp = t.view.seq, true
		return nil
	}
	if now.State.Ended() || now.State == domain.Queued { // then a turn before it may work
		t.next, err = nextOf(ctx, c, now, wasBusy)
		t.catchesUp = wasBusy && t.next != ""
	}
	return err
}

// nextOf returns the turn to show next in a session, or "": the first that has begun since the
// turn of, which broke, even if it has ended meanwhile; or the one that works; or else the one whose
// prompt is the next to be sent.
func nextOf(ctx context.Context, c *client.Client, of protocol.Turn, broke bool) (id string, err error) {
	// Asked first: a prompt that is in neither list has not existed.
	now, _, err := hubclient.SessionGet(ctx, c, protocol.SessionRefParams{Session: protocol.Ref(of.ID)})
	if err != nil {
		return "", err
	}
	turns, _, err := hubclient.Turns(ctx, c, protocol.ListTurnsParams{Session: protocol.Ref(of.ID), Limit: new(uint(200))})
	if err != nil {
		return "", err
	}
	var first time.Time
	for _, s := range turns {
		isNew := broke && s.CreatedAt.After(of.CreatedAt)
		if s.ID == of.ID || s.StartedAt == nil || s.State.Ended() && !isNew {
			continue
		}
		if id == "" || s.StartedAt.Before(first) {
			id, first = s.ID, *s.StartedAt
		}
	}
	if id == "" && len(now.Queued) > 0 {
		id = now.Queued[0].TurnUUID
	}
	return id, nil
}

// signals watches signals until stop is called.
func (t *Talk) signals(a *asker) (stop func()) {
	if t.box == nil {
		return func() {}
	}
	resizes, resized := term.Resized()
	t.resizes = resizes
	isOn := false
	a.paste = func(on bool) {
		if on == isOn {
			return
		}
		isOn = on
		if on {
			fmt.Fprint(t.view.out, term.PasteOn)
		} else {
			fmt.Fprint(t.view.out, term.PasteOff)
		}
	}
	return func() {
		a.paste(false)
		resized()
	}
}

// turn shows a turn to its end, and those that follow from it.
func (t *Talk) turn(ctx context.Context, a *asker, session protocol.Turn, running *sync.WaitGroup) error {
	for next := &session; next != nil; {
		a.giveUp()
		a.waiting = nil // a question that was left open is withdrawn
		a.interrupts, t.isBusy = false, true
		since := t.since
		if t.since = 0; since == 0 {
			t.view.Begin(*next)
		}
		ended, err := a.attend(ctx, *next, since, running)
		if err != nil {
			return err
		}
		if ended.Worktree == nil && ended.SessionUUID == next.SessionUUID { // the end of a turn does not have it
			ended.Worktree = next.Worktree
		}
		if t.isBusy = false; t.Session.ID == ended.ID { // else /new or /resume has left it
			t.Session = ended
		}
		next, err = a.follow(ctx, ended)
		t.view.End(ended)
		if err != nil {
			return err
		}
		if next == nil && t.Ended != nil {
			running.Go(func() { t.Ended(ctx, a.hub, ended) })
		}
		if a.isToEnd {
			return ErrLeave
		}
	}
	return nil
}

// askLeftOpen asks the questions that the last turn has left open, because its agent is gone. An
// answer may start the next turn.
func (t *Talk) askLeftOpen(ctx context.Context, a *asker) error {
	a.waiting, a.commentTurns = nil, nil
	a.interrupts = false
	a.interrupt = func(sig os.Signal) { a.isToEnd = sig != os.Interrupt }
	a.giveUp()
	var open []hubclient.Approval
	if t.next == "" && t.Session.ID != "" && t.Session.State != domain.Completed {
		var err error
		if open, err = leftOpen(ctx, a.hub, t.Session); err != nil {
			return err
		}
		t.view.session = t.Session
	}
	switch isOrphaned := t.isOrphaned; {
	case len(open) > 0:
		text := "the agent is gone"
		if isOrphaned {
			text = "the daemon has ended, and the agent with it"
		}
		t.view.Note(text + "; its question is open, and what you allow or answer continues the session")
	case isOrphaned && t.next != "":
		t.view.Note("the daemon has ended, and the agent with it; the queued prompt goes on")
	case isOrphaned:
		t.view.Note("the daemon has ended, and the agent with it; send a prompt to continue")
	}
	t.isOrphaned = false
	for _, q := range open {
		delete(a.seen, q.ApprovalID) // the turn has asked it
		a.ask(ctx, q)
	}
	return nil
}

// idle waits for the next turn of the session: a prompt, an answer to a question that was left
// open, or a turn that another client or the agent has started.
func (t *Talk) idle(ctx context.Context, a *asker) (protocol.Turn, error) {
	if err := t.askLeftOpen(ctx, a); err != nil {
		return protocol.Turn{}, err
	}
	from := newSources(func() {})
	from.news = t.news.more
	of := &idle{t, a, protocol.Turn{}}
	err := a.loop(ctx, of, from)
	return of.turn, err
}

// idle is a session between two turns.
type idle struct {
	*Talk
	a    *asker
	turn protocol.Turn // the next one
}

func (i *idle) wait(ctx context.Context) (bool, error) {
	t, a := i.Talk, i.a
	for {
		if a.isToEnd {
			return true, ErrHungUp
		}
		if t.next != "" {
			return true, i.begins(ctx)
		}
		if err := t.sendFirst(ctx, a); err != nil {
			return true, err
		}
		if err := t.typedEarly(ctx, a); err != nil {
			return true, err
		}
		if t.next != "" {
			continue
		}
		if t.box != nil || a.isStopped || len(a.waiting) > 0 {
			return false, nil
		}
		if !t.view.asking {
			a.listen(aLine)
			fmt.Fprint(t.view.side, "› ")
			t.view.asking = true
		}
		if len(a.early) == 0 {
			return false, nil
		}
		early := a.early
		a.early = nil
		if err := t.received(ctx, a, early, nil); err != nil {
			return true, err
		}
	}
}

// begins reads the turn that is to be shown next.
func (i *idle) begins(ctx context.Context) (err error) {
	id := i.next
	i.next = ""
	i.turn, _, err = hubclient.Turn(ctx, i.a.hub, id)
	return err
}

func (i *idle) event(ctx context.Context, e eventstream.Event) (bool, error) {
	if d, ok := hubclient.DataOf(e).(*protocol.ApprovalClosedEvent); ok && i.a.isWaiting(d.ApprovalID) {
		i.a.resolved(d)
	}
	if e.Kind != protocol.KindTurnState || e.TurnUUID == "" || i.Session.ID == "" || i.shown[e.TurnUUID] {
		return false, nil
	}
	session, _, err := hubclient.Turn(ctx, i.a.hub, e.TurnUUID)
	i.turn = session
	return err == nil && session.SessionUUID == i.Session.SessionUUID, nil
}

// cleared handles C-c between turns.
func (t *Talk) cleared(a *asker) {
	switch {
	case len(a.waiting) > 0:
		a.giveUp()
		a.waiting, a.meant = nil, ""
		t.view.Note("left open: `duet-rpc approvals` asks again, and your next prompt withdraws it")
	case t.box == nil:
		t.view.endLine()
	case t.box.IsEmpty():
		t.view.Note("C-d leaves the session, and so does /exit")
	default:
		t.box.Set("")
	}
}

// received takes keys for the next prompt. end is the end of the input.
func (t *Talk) received(ctx context.Context, a *asker, keys []term.Key, end error) error {
	a.meant = ""
	line, ok := a.takeKeys(keys, end)
	if !ok {
		return nil
	}
	if t.box == nil {
		a.stop() // the next line is for the next prompt
	}
	return t.typed(ctx, a, line)
}

// answered handles a decision about a question that was left open: no agent is there to hear a denial. t may
// be nil.
func (t *Talk) answered(a *asker, d protocol.DecisionParams, isReason bool) {
	if !t.isIdle() || d.Decision != protocol.Deny || len(a.commentTurns) > 0 {
		return
	}
	t.view.Note("denied; your next prompt continues the session")
	if isReason {
		t.Write(d.Comment)
	}
}

// typed handles keys for the box, or a line where there is none.
func (t *Talk) typed(ctx context.Context, a *asker, line typed) error {
	if t.box == nil {
		if line.err != nil {
			t.view.endLine()
			return ErrLeave
		}
		t.view.asking = false // the terminal has ended the line
		_, err := t.enter(ctx, a, line.text, false)
		return err
	}
	if line.err != nil {
		return ErrLeave
	}
	keys := append(a.early, line.keys...)
	a.early, t.typedAt = nil, time.Now()
	for {
		if t.next != "" { // a prompt that follows in the same read belongs to that turn
			a.early = keys
			return nil
		}
		t.box.Queues = len(t.queued) > 0
		key, rest := t.box.Take(keys)
		keys = rest
		switch key {
		case term.NoKey:
			return nil
		case term.SendKey, term.SteerKey:
			text := t.box.Text()
			if strings.TrimSpace(text) == "" {
				continue
			}
			t.box.Sent()
			sent, err := t.enter(ctx, a, text, key == term.SteerKey)
			if !sent {
				t.box.Set(text)
			}
			if err != nil {
				return err
			}
		case term.LeaveKey:
			return ErrLeave
		case term.StopKey:
			if t.isBusy && !a.interrupts {
				a.interrupt(os.Interrupt)
			}
		case term.EditorKey:
			text, err := a.inEditor("prompt.md", t.box.Text())
			if err != nil {
				t.view.Note("the editor: " + err.Error())
			} else {
				t.box.Set(strings.TrimRight(text, "\n"))
			}
		case term.ModeKey:
			if err := t.NextMode(ctx, a.hub); err != nil {
				t.view.Note(InDialogue(err).Error())
			}
		case term.TakeBackKey:
			if err := t.takeBack(ctx, a); err != nil {
				t.view.Note(InDialogue(err).Error())
			}
		case term.RedrawKey:
			t.view.hide()
			fmt.Fprint(t.view.out, "\x1b[H\x1b[2J")
		}
	}
}

// takeBack takes the last queued prompt back into the box.
func (t *Talk) takeBack(ctx context.Context, a *asker) error {
	last := t.queued[len(t.queued)-1]
	now, _, err := hubclient.Turn(ctx, a.hub, last.session)
	if err != nil {
		return err
	}
	if now.State == domain.Queued {
		err = a.hub.Call(ctx, "turn.interrupt", protocol.InterruptTurnParams{Turn: protocol.Ref(last.session), Reason: "taken_back"}, nil)
	}
	switch {
	case err != nil:
		return err
	case now.State != domain.Queued:
		t.view.Note("the agent has this prompt already")
		t.queued = t.queued[:len(t.queued)-1]
		return nil
	}
	t.queued = t.queued[:len(t.queued)-1]
	t.Write(last.text)
	return nil
}

// typedEarly handles keys for the box that could not be handled when they came. t may be nil.
func (t *Talk) typedEarly(ctx context.Context, a *asker) error {
	if !t.hasBox() || len(a.early) == 0 || len(a.waiting) > 0 || t.next != "" {
		return nil
	}
	return t.typed(ctx, a, typed{})
}

// sendFirst sends the first prompt. If that fails, the prompt is in the box.
func (t *Talk) sendFirst(ctx context.Context, a *asker) error {
	text := t.First
	if text == "" || len(a.waiting) > 0 { // an answer may start a turn
		return nil
	}
	t.First = ""
	sent, err := t.enter(ctx, a, asPrompt(text), false)
	t.entered = "" // no line of the terminal has it
	if !sent && err == nil {
		t.Write(text)
	}
	return err
}

// enter runs a command, or sends a prompt with the outputs of the user's commands. sent is false if the text was not taken.
func (t *Talk) enter(ctx context.Context, a *asker, text string, steer bool) (sent bool, err error) {
	ofUser, isOfUser := strings.CutPrefix(text, "!") // not after a space
	if text = strings.TrimSpace(text); text == "" {
		return true, nil
	}
	if command, isCommand := strings.CutPrefix(text, "/"); isCommand && !strings.HasPrefix(command, "/") && !strings.Contains(command, "\n") {
		t.view.endLine()
		a.release() // a command may read from the terminal
		ok, err := t.Command(ctx, a.hub, command)
		switch {
		case errors.Is(err, ErrLeave):
			return true, err
		case err != nil:
			t.view.Note(InDialogue(err).Error())
			return ok, nil
		case ok:
			return true, nil
		}
	}
	if command := strings.TrimSpace(ofUser); isOfUser && !strings.Contains(command, "\n") {
		t.view.endLine()
		t.runCommand(a, command)
		return true, nil
	}
	text = t.withOutputs(text)
	started, err := t.Send(ctx, a.hub, text, steer)
	if err != nil {
		if ctx.Err() != nil {
			return false, err
		}
		t.view.Note(InDialogue(err).Error())
		return false, nil
	}
	t.ran = nil
	switch started.Delivered {
	case protocol.DeliveredInjected:
		t.view.Note("sent to the agent while it works: " + term.Cut(term.Line(text), 60))
	case protocol.DeliveredQueued:
		if steer && t.isBusy {
			t.queued = slices.Insert(t.queued, 0, queuedPrompt{started.ID, text})
			t.view.Note("the agent does not take this while it works: it is the next prompt after this turn; C-c interrupts the turn")
			break
		}
		t.queued = append(t.queued, queuedPrompt{started.ID, text})
	default:
		if len(t.queued) > 0 { // an earlier prompt's turn has ended already, and is not shown yet
			t.queued = append(t.queued, queuedPrompt{started.ID, text})
			break
		}
		t.next = started.ID
		if t.box == nil {
			t.entered = t.next
		}
	}
	return true, nil
}

// Show continues the session of a turn.
func (t *Talk) Show(session protocol.Turn) {
	t.Session, t.queued, t.next = session, nil, ""
	t.shown[session.ID] = true
	if !session.State.Ended() {
		t.next = session.ID
	}
}

// Ask asks the user something that one key answers. The answer is empty after C-c or C-d.
func (t *Talk) Ask(ctx context.Context, question string) (string, error) {
	defer t.goesOn()
	return t.asker.line(ctx, question, aKey)
}

// goesOn forgets C-c after a question that is not the agent's: it was the answer.
func (t *Talk) goesOn() {
	if !t.asker.isToEnd {
		t.asker.interrupts = false
	}
}

// Write puts a prompt into the box, if there is one.
func (t *Talk) Write(text string) {
	if t.box != nil {
		t.box.Set(asPrompt(text))
	}
}

// isIdle reports whether the session is between two turns. t may be nil.
func (t *Talk) isIdle() bool { return t != nil && !t.isBusy }

// IsBusy reports whether a turn is shown.
func (t *Talk) IsBusy() bool { return t.isBusy }

// begin shows the prompt of a turn.
func (t *Talk) begin(s protocol.Turn) {
	t.shown[s.ID], t.Session = true, s
	t.queued = slices.DeleteFunc(t.queued, func(q queuedPrompt) bool { return q.session == s.ID })
	t.view.endLine()
	if s.ID == t.entered {
		return // the line is on the screen
	}
	if s.Prompt == "" {
		if s.Source != "agent" { // else its first message says why the agent continued
			t.view.Note(s.Summary)
		}
		return
	}
	lines := strings.Split(term.Exact(strings.TrimSpace(s.Prompt)), "\n")
	if hidden := len(lines) - mostPrompt; hidden > 1 {
		lines = append(lines[:mostPrompt], "… "+term.Count(hidden, "more line"))
	}
	t.view.aside("› "+term.Indented(strings.Join(lines, "\n")), bold)
	if s.State == domain.Queued {
		t.view.Note(waitsFor(s))
	}
}

// mostPrompt is how many lines of a prompt are shown above its turn.
const mostPrompt = 10

// end shows the end of a turn: its time, tokens and cost, and why it ended if it has not
// completed.
func (t *Talk) end(s protocol.Turn) {
	for _, name := range s.UnansweredServers {
		t.view.Note("the MCP server " + name + " has not answered yet; `duet-rpc doctor` tries it again")
	}
	if titles := s.BackgroundTitles(); titles != "" {
		t.view.Note("works in the background: " + titles + "; duet-rpc session interrupt " + s.Name + " ends it")
	}
	if s.State != domain.Completed {
		spent := spentOn(s)
		if whole := s.Outcome() + " · " + spent; spent != "" && term.Fits(t.view.side, "— "+whole) {
			t.view.Note(whole)
			return
		}
		t.view.Note(s.Outcome())
	}
	t.view.Spent(s)
}

// hasBox reports whether there is a prompt box. t may be nil.
func (t *Talk) hasBox() bool { return t != nil && t.box != nil }

// isTyping reports whether the user is writing a prompt just now. t may be nil.
func (t *Talk) isTyping() bool {
	return t.hasBox() && !t.box.IsEmpty() && time.Since(t.typedAt) < settleAfter
}

// resized returns a channel that reports changes of the terminal's size; nil without a box. t
// may be nil.
func (t *Talk) resized() <-chan os.Signal {
	if t == nil {
		return nil
	}
	return t.resizes
}

// report has the loop read what an agent has reported, and draw the footer.
func (t *Talk) report() {
	select {
	case t.reports <- struct{}{}:
	default: // the report before is not read yet
	}
}

// openQuestions are the sessions of the open questions, by the ids of the questions.
type openQuestions struct {
	mu sync.Mutex
	of map[string]int64 // guarded by mu
}

func (q *openQuestions) are(open []hubclient.Approval) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of = make(map[string]int64, len(open))
	for _, a := range open {
		q.of[a.ApprovalID] = a.Session
	}
}

func (q *openQuestions) opened(id string, session int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of[id] = session
}

func (q *openQuestions) closed(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.of, id)
}

// AsksElsewhere returns the other sessions that have open questions, the oldest first.
func (t *Talk) AsksElsewhere() []int64 {
	t.asks.mu.Lock()
	defer t.asks.mu.Unlock()
	sessions := slices.Sorted(maps.Values(t.asks.of))
	return slices.DeleteFunc(slices.Compact(sessions), func(n int64) bool { return n == t.Session.Session })
}

// reported returns a channel that says that an agent has reported something about its session. t may
// be nil.
func (t *Talk) reported() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.reports
}

// draw draws the box, unless a question is asked, and gives it the keys, unless a question below the
// agent's text waits for one. t may be nil.
func (t *Talk) draw(a *asker) {
	if !t.hasBox() || t.view.asking {
		return
	}
	if !a.asks() {
		a.listen(theBox)
	}
	t.view.draw()
}

// rows returns the rows of the queue, the box and the footer.
func (t *Talk) rows(columns int) (rows []string) {
	paint := func(color string) func(string) string {
		return func(text string) string { return t.view.paint(text, color) }
	}
	for _, q := range t.queued {
		rows = append(rows, t.view.paint(term.CutToFit("⧗ "+term.Line(q.text), columns), dim))
	}
	box, up, column := t.box.Rows(columns, paint(bold), paint(dim))
	t.up, t.column = up+1, column
	rows = append(rows, box...)
	return append(rows, t.view.paint(wholeParts(t.Footer(), columns), dim))
}

// wholeParts leaves out the last parts of a line that do not fit.
func wholeParts(line string, columns int) string {
	for displaywidth.String(line) > columns {
		end := max(strings.LastIndex(line, " · "), strings.LastIndex(line, ", "))
		if end < 0 {
			break
		}
		line = line[:end]
	}
	return term.CutToFit(line, columns)
}
