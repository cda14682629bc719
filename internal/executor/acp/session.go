package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// prompt makes the session ready and runs the prompt in it.
func (a *agent) prompt(t *turn) (string, *task.Failure) {
	opening, failed := a.openSession(t)
	if failed != nil {
		return "", failed
	}
	with, failed := promptCapabilities(a.info.Prompt).ForPrompt(a.name, t.Params.Content)
	if failed != nil {
		a.reportSettings(t) // the agent's capabilities are known now
		return "", failed
	}
	if failed := a.choose(t); failed != nil {
		return "", failed
	}
	if t.Stopped() {
		return "", nil
	}
	a.noteOwnProcesses()
	result, err := call[promptResult](a, acp.MethodSessionPrompt, promptBlocks{Session: a.session, Texts: append(opening, acp.TextContent(t.Params.Prompt)), With: with, Meta: t.Params.Meta})
	if err == nil && a.info.IsVersion2() {
		result, err = a.awaitIdle(t)
	}
	if err != nil {
		return "", a.failure(err)
	}
	if result.StopReason != "cancelled" && !t.Stopped() {
		t.delivered(t.answers.turnEnded())
	}
	if !t.Stopped() && t.answers.endedByDenial() {
		t.Event(catalog.EventDenialEndedTurn, struct{}{})
	}
	if u := t.usage(result.usage()); u != nil {
		t.Usage(*u)
	}
	if failed := a.codexFailure(t); failed != nil && result.StopReason == "end_turn" && !t.Stopped() {
		return "", failed
	}
	return result.StopReason, nil
}

// openSession makes sure that the agent has the conversation's session, and returns the content
// that must precede the prompt.
func (a *agent) openSession(t *turn) ([]acp.Content, *task.Failure) {
	if a.session == "" {
		if failed := a.initialize(t.Launch); failed != nil {
			return nil, failed
		}
	}
	wanted := string(t.Conversation.NativeSessionID)
	switch {
	case a.session != "" && (wanted == "" || wanted == a.session), wanted != "" && a.resume(t, wanted):
		t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: string(a.session), Resumed: true})
		return unanswered(t), nil
	case wanted == "" && a.session == "" && a.fork(t):
		t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: string(a.session), Forked: true})
		return unanswered(t), nil
	case a.gone(): // the agent exited during the attempt
		return nil, a.exited()
	}
	request := a.sessionRequest(t, "")
	takesSystemPrompt := request.SystemPrompt != nil
	claude := a.info.Info != nil && strings.Contains(strings.ToLower(a.info.Info.Name), "claude")
	if t.Conversation.SystemPrompt != "" && claude && !takesSystemPrompt { // claude has a _meta member for it
		request.Meta = map[string]any{"systemPrompt": map[string]any{"append": t.Conversation.SystemPrompt}}
		takesSystemPrompt = true
	}
	result, err := a.newSession(request, func(r sessionResult) { a.settings.Opened(r.offer, true) })
	switch {
	case err != nil:
		return nil, a.failure(err)
	case result.SessionID == "":
		return nil, &task.Failure{Code: task.CodeAgent, Message: a.name + ": the agent opened a session without an id"}
	}
	a.session = string(result.SessionID)
	var opening []acp.Content
	if t.Conversation.SystemPrompt != "" && !takesSystemPrompt {
		opening = append(opening, acp.TextContent(t.Conversation.SystemPrompt))
	}
	for _, file := range t.Conversation.ContextFiles {
		path := t.Workspace.Absolute(file)
		opening = append(opening, acp.LinkContent(filepath.Base(path), (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()))
	}
	history, failed := t.History(t.Params.Prompt)
	if failed != nil {
		return nil, failed
	}
	if history != "" {
		opening = append(opening, acp.TextContent(history))
	}
	t.Event(catalog.EventNativeSession, catalog.NativeSession{SessionID: result.SessionID, Primed: history != ""})
	return opening, nil
}

// unanswered returns the messages that a resumed session may not know.
func unanswered(t *turn) []acp.Content {
	text := task.Unanswered(t.Conversation.Messages, t.Params.Prompt)
	if text == "" {
		return nil
	}
	return []acp.Content{acp.TextContent(text)}
}

// newSession opens a session. For an agent that has its key but uses it only after authenticate
// (codex), it calls authenticate. opened receives the result before later updates are handled.
func (a *agent) newSession(request acp.OpenSessionRequest, opened func(sessionResult)) (sessionResult, error) {
	patience := 4 * a.startTimeout
	result, err := callInOrder(a, patience, acp.MethodSessionNew, request, opened)
	if method := acp.WithKey(a.info.AuthMethods, a.has); method != "" && acp.IsAuthRequired(err) {
		_, refused := callWithin[json.RawMessage](a, patience, a.info.Login(), map[string]string{"methodId": method})
		if refused == nil {
			return callInOrder(a, patience, acp.MethodSessionNew, request, opened)
		}
	}
	return result, err
}

// initialize offers version 2 of the protocol. An agent that knows only version 1 answers with
// version 1, or refuses the request and gets one of version 1.
func (a *agent) initialize(launch *catalog.AgentLaunch) *task.Failure {
	can := acp.ClientCapabilities{
		FS:       acp.FileCapabilities{ReadTextFile: launch.Files == catalog.FilesReadWrite || launch.Files == "", WriteTextFile: launch.Files != catalog.FilesNone},
		Terminal: true, Plan: acp.Supported,
	}
	can.Elicitation.Form, can.Elicitation.URL = acp.Supported, acp.Supported
	// Otherwise agents write notices and compactions as messages.
	can.Session.ConfigOptions.Boolean, can.Session.Notices, can.Session.Compaction = acp.Supported, acp.Supported, acp.Supported
	request := acp.Offer(can)
	if launch.Protocol == acp.Version1 {
		request = request.Version1Only()
	}
	info, err := callWithin[acp.Initialized](a, a.startTimeout, acp.MethodInitialize, request)
	if errors.As(err, new(*acp.Error)) && !a.gone() {
		info, err = callWithin[acp.Initialized](a, a.startTimeout, acp.MethodInitialize, request.Version1Only())
	}
	if err != nil {
		return a.failure(err)
	}
	a.info = info
	a.isKimi.Store(info.Info != nil && info.Info.Name == kimiCode)
	a.settings.Introduced(info.Info, promptCapabilities(info.Prompt).Takes())
	return nil
}

// resume resumes or loads the agent's own session, and reports whether that succeeded.
func (a *agent) resume(t *turn, id string) bool {
	request := a.sessionRequest(t, id)
	opened := func(r sessionResult) { a.settings.Opened(r.offer, false) }
	var err error
	switch {
	case acp.Has(a.info.Session.Resume):
		_, err = callInOrder(a, 4*a.startTimeout, acp.MethodSessionResume, request, opened)
	case a.info.LoadSession:
		a.loading.Store(true)
		defer a.loading.Store(false)
		var result sessionResult
		result, err = callWithin[sessionResult](a, 4*a.startTimeout, acp.MethodSessionLoad, request)
		if err == nil {
			a.replayed()
			opened(result) // a replayed report is older
		}
	default:
		return false
	}
	if err != nil {
		a.driver.log.Info("the agent has lost its session", "agent", a.name, "err", err)
		return false
	}
	a.session = id
	return true
}

// methodReplayed is a method that no agent has. Its refusal shows that everything sent before has
// arrived.
const methodReplayed = "_duet/replayed"

// replayTime limits the wait for an agent that does not refuse.
const replayTime = 2 * time.Second

// replayed waits until the agent has sent the whole history. gemini answers before that.
func (a *agent) replayed() {
	for before := int64(-1); before != a.updates.Load(); {
		before = a.updates.Load()
		ctx, cancel := context.WithTimeout(a.life, replayTime)
		_, err := acp.Call[json.RawMessage](ctx, a.conn, methodReplayed, struct{}{})
		late := ctx.Err() != nil
		cancel()
		if late && err != nil {
			return
		}
	}
}

// fork makes the agent's session a fork of another of its sessions, if the conversation begins
// there and the agent can fork. It reports whether it did.
func (a *agent) fork(t *turn) bool {
	from := t.Conversation.ForkNativeSessionID
	if from == "" || !acp.Has(a.info.Session.Fork) {
		return false
	}
	a.loading.Store(true) // opencode sends the history again, which the hub already has
	defer a.loading.Store(false)
	result, err := callWithin[sessionResult](a, 4*a.driver.opts.StartTimeout, acp.MethodSessionFork, a.sessionRequest(t, from))
	if err != nil || result.SessionID == "" || result.SessionID == from {
		a.driver.log.Info("the agent did not fork its session", "agent", a.name, "err", err)
		return false
	}
	a.replayed()
	a.session = string(result.SessionID)
	a.settings.Opened(result.offer, true)
	return true
}

// A conversation keeps the agent of one hub session from prompt to prompt.
type conversation struct {
	busy  chan struct{} // holds a token while the agent is in use
	agent *agent        // nil, or an agent that may have died; only the token holder accesses it

	latest atomic.Pointer[agent] // that of the current or the latest turn, until it is dismissed
}

// enter waits until no other prompt of the conversation runs. It returns nil if the task is
// stopped first.
func (d *Driver) enter(t *turn) *conversation {
	name := t.Params.SessionID
	if name == "" { // without an id no later prompt can reuse the conversation
		name = "task " + t.ID
	}
	for {
		d.mu.Lock()
		c := d.conversations[name]
		if c == nil {
			c = &conversation{busy: make(chan struct{}, 1)}
			d.conversations[name] = c
		}
		d.mu.Unlock()
		stop := t.Context().Done()
		if t.Params.Unprompted { // the agent is already working and must be stopped
			stop = d.ctx.Done()
		}
		select {
		case c.busy <- struct{}{}:
		case <-stop:
			return nil
		}
		d.mu.Lock()
		same := d.conversations[name] == c
		d.mu.Unlock()
		if same {
			return c
		}
		<-c.busy // it was released during the wait
	}
}

// leave lets the next prompt in. The agent stays, unless the conversation has no id.
func (d *Driver) leave(t *turn, c *conversation) {
	if t.Params.SessionID == "" {
		c.dismiss()
		d.forget("task " + t.ID)
	}
	<-c.busy
}

func (d *Driver) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conversations, name)
}

// ReleaseSession ends the agent of a conversation, unless it is busy: with a prompt, a program in
// a terminal, or background work. With Force, an agent that can cancel its background work is
// asked to, and stays.
func (d *Driver) ReleaseSession(p catalog.ReleaseSessionParams) catalog.ReleaseSessionResult {
	d.mu.Lock()
	c := d.conversations[p.SessionID]
	d.mu.Unlock()
	if c == nil {
		return catalog.ReleaseSessionResult{Released: true}
	}
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		if a := c.latest.Load(); a != nil && p.Background != "" {
			return a.cancelTask(p.Background)
		}
		return catalog.ReleaseSessionResult{Reason: "busy"}
	}
	if p.Background != "" {
		if c.agent == nil {
			return catalog.ReleaseSessionResult{Released: true}
		}
		return c.agent.cancelTask(p.Background)
	}
	if a := c.agent; a != nil && !p.Force {
		tasks, more := a.backgroundTasks()
		switch {
		case a.hasPrograms():
			return catalog.ReleaseSessionResult{Reason: "terminals"}
		case a.own.wants.Load():
			return catalog.ReleaseSessionResult{Reason: "busy"}
		case len(tasks) > 0 || more:
			return catalog.ReleaseSessionResult{Reason: "background"}
		}
	}
	if a := c.agent; a != nil && p.Force && !a.hasPrograms() && !a.own.wants.Load() && a.cancelBackground() {
		return catalog.ReleaseSessionResult{Reason: "cancelled"}
	}
	c.dismiss()
	d.forget(p.SessionID)
	return catalog.ReleaseSessionResult{Released: true}
}

// end ends the agent when no prompt uses it.
func (c *conversation) end() {
	c.busy <- struct{}{}
	c.dismiss()
	<-c.busy
}

// dismiss ends the agent, if there is one. The caller holds the token.
func (c *conversation) dismiss() {
	if c.agent != nil {
		c.agent.retire()
		c.agent = nil
		c.latest.Store(nil)
	}
}

// StopEnded cancels what an agent does by itself after a task that has ended. It does nothing once
// the conversation's next task has begun.
func (d *Driver) StopEnded(task string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conversations {
		if a := c.latest.Load(); a != nil && a.isAfter(task) {
			d.work.Go(func() { c.cancelAfter(task) })
			return
		}
	}
}

// isAfter reports whether a task was the agent's latest.
func (a *agent) isAfter(task string) bool {
	last := a.last.Load()
	return last != nil && last.task == task
}

// cancelAfter sends session/cancel to an idle agent, if a task was its latest.
func (c *conversation) cancelAfter(task string) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		return // its next task begins
	}
	a := c.agent
	if a == nil || a.session == "" || !a.isAfter(task) {
		return
	}
	sent := make(chan struct{})
	a.driver.work.Go(func() { // concurrently, because an agent that does not read would block it
		defer close(sent)
		_ = a.conn.Notify(acp.MethodSessionCancel, acp.SessionParams{SessionID: a.session})
	})
	select {
	case <-sent:
	case <-time.After(a.driver.opts.CancelGrace):
	case <-a.driver.ctx.Done():
	}
}

// kimiCode is the name by which Kimi Code introduces itself. Version 2.1 sends no input of a
// tool call until the tool runs: it shows the model's arguments as text. A permission request
// names the tool in its title.
const kimiCode = "Kimi Code CLI"

// takeArguments uses the arguments that Kimi Code shows as the input of the tool call. Arguments
// arrive in growing pieces. Only a whole JSON object is an input.
func (u *toolUpdate) takeArguments() {
	if u.RawInput != nil || u.hasStarted() || u.text == "" {
		return
	}
	if _, err := toolinput.Members([]byte(u.text)); err == nil {
		u.RawInput, u.text = json.RawMessage(u.text), ""
	}
}

// nameByTitle takes the tool's name from the title of a permission request of Kimi Code.
func (p *permissionRequest) nameByTitle() { p.Name = cmp.Or(p.Name, p.Title) }
