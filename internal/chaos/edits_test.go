//go:build linux && soak

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
)

// Numbers of the sessions that several people edit at once, and limits of their queues.
const (
	sharedQueues   = 2
	sharedSessions = 3
	mostPrompts    = 25 // of a queue
	longestQueue   = 8
)

// shared holds the sessions of a round that people edit at once. The board guards prompts.
type shared struct {
	queues   []string // their thread_ids
	review   string   // session that has changed reviewedFiles
	sessions []chosenIDs
	threads  map[string]bool // of all of them
	prompts  map[string]int  // sent prompts, by thread
	versions int             // of all prompts
}

// chosenIDs are the ids of a session that its clients chose.
type chosenIDs struct{ launch, thread string }

// newID returns a random UUID.
func newID(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(a), uint16(a>>32), uint16(a>>48)&0xfff, uint16(b>>48)&0xfff, b&0xffffffffffff)
}

// prepare launches the shared sessions, before any process is killed.
func (r *round) prepare(ctx context.Context) bool {
	p := r.editor(8)
	defer p.leave()
	if !r.entered(ctx, p) {
		return false
	}
	s := &r.board.shared
	s.threads, s.prompts = make(map[string]bool), make(map[string]int)
	var reported struct {
		SessionID string `json:"session_id"`
		ThreadID  string `json:"thread_id"`
	}
	launch := func(params object) bool {
		if err := p.ask(ctx, "launchSession", params, &reported); err != nil {
			r.found(checkUnsettled, "launchSession %v: %v", params, err)
			return false
		}
		s.threads[reported.ThreadID] = true
		return true
	}
	for range sharedQueues {
		if !launch(object{"query": waitPrompt(time.Millisecond)}) {
			return false
		}
		s.queues = append(s.queues, reported.ThreadID)
	}
	for range sharedSessions {
		one := chosenIDs{newID(r.rand), newID(r.rand)}
		s.sessions, s.threads[one.thread] = append(s.sessions, one), true
	}
	if !launch(object{"query": editPrompt, "agent": "editing"}) {
		return false
	}
	s.review = reported.SessionID
	return r.atRest(ctx, p)
}

// edit performs one random action on a shared session, and sometimes kills a process after the
// acknowledgement.
func (p *person) edit(ctx context.Context) {
	var outcome string
	switch choice := p.rand.IntN(100); {
	case choice < 50:
		outcome = p.editQueue(ctx)
	case choice < 70:
		outcome = p.review(ctx)
	default:
		outcome = p.manage(ctx)
	}
	if outcome == done && p.rand.IntN(12) == 0 {
		p.killer.afterAnAnswer()
	}
}

// try makes a call and returns its outcome.
func (p *person) try(ctx context.Context, method string, params, result any) string {
	err := p.call(ctx, method, params, result, "session_not_found", "not_found")
	switch kind := client.KindOf(err); {
	case err == nil:
		return done
	case kind == "bad_state" || kind == "session_not_running":
		return refused
	case kind == "session_not_found" || kind == "not_found":
		return absent
	}
	return unknown
}

// beginSpan returns the span of a call that starts now.
func (p *person) beginSpan() span { return span{Who: p.who, From: p.since()} }

// A queuedPrompts is the response with a queue.
type queuedPrompts struct {
	Queued []struct {
		Turn   string `json:"turn_uuid"`
		Prompt string `json:"prompt"`
	} `json:"queued"`
}

// editQueue reads a queue, and then sends a prompt or edits, moves or withdraws one.
func (p *person) editQueue(ctx context.Context) string {
	queue, ok := p.readQueue(ctx, p.board.shared.queues[p.rand.IntN(sharedQueues)])
	if !ok {
		return unknown
	}
	thread, n := queue.thread, len(queue.Queued)
	if n < longestQueue && (n < 2 || p.rand.IntN(5) < 2) {
		version, ok := p.board.newPrompt(thread)
		if !ok {
			return unknown
		}
		c := queueCall{span: p.beginSpan(), Thread: thread, What: queueAdd, Name: nameOf(version), Text: version}
		return p.queueCalled(c, p.try(ctx, "continueSession", object{"session_id": thread, "query": p.promptOf(version)}, nil))
	}
	if n == 0 {
		return unknown
	}
	one, other := queue.Queued[p.rand.IntN(n)], queue.Queued[p.rand.IntN(n)]
	c := queueCall{span: p.beginSpan(), Thread: thread, Name: nameOf(versionOf(one.Prompt))}
	switch p.rand.IntN(5) {
	case 0, 1:
		c.What, c.Text = queueEdit, p.board.newVersion(c.Name)
		return p.queueCalled(c, p.try(ctx, "turn.edit", object{"turn": one.Turn, "prompt": p.promptOf(c.Text)}, nil))
	case 2, 3:
		params := object{"turn": one.Turn}
		if p.rand.IntN(3) > 0 {
			params["before"], c.Before = other.Turn, nameOf(versionOf(other.Prompt))
		}
		c.What = queueMove
		return p.queueCalled(c, p.try(ctx, "turn.move", params, nil))
	}
	c.What = queueWithdraw
	return p.queueCalled(c, p.try(ctx, "turn.interrupt", object{"turn": one.Turn}, nil))
}

// promptOf returns the text of a version of a queued prompt.
func (p *person) promptOf(version string) string {
	return queuedPrompt(version, time.Duration(20+p.rand.IntN(250))*time.Millisecond)
}

// A readQueue is a queue with the thread_id of its session.
type readQueue struct {
	queuedPrompts
	thread string
}

func (p *person) readQueue(ctx context.Context, thread string) (q readQueue, ok bool) {
	c := queueCall{span: p.beginSpan(), Thread: thread, What: queueRead}
	q.thread = thread
	outcome := p.try(ctx, "session.get", object{"session": thread}, &q.queuedPrompts)
	for _, one := range q.Queued {
		c.Read = append(c.Read, versionOf(one.Prompt))
	}
	if outcome == done {
		p.queueCalled(c, done)
	}
	return q, outcome == done
}

func (p *person) queueCalled(c queueCall, outcome string) string {
	c.Until, c.Outcome = p.since(), outcome
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	p.board.queueCalls = append(p.board.queueCalls, c)
	return outcome
}

// newPrompt returns the first version of a new prompt, or false after most of them.
func (b *board) newPrompt(thread string) (version string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shared.prompts[thread] == mostPrompts {
		return "", false
	}
	b.shared.prompts[thread]++
	b.shared.versions++
	return fmt.Sprintf("p%d.0", b.shared.versions), true
}

// newVersion returns a new version of a prompt.
func (b *board) newVersion(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shared.versions++
	return fmt.Sprintf("%s.%d", name, b.shared.versions)
}

// review reads the changes of all files, or decides one.
func (p *person) review(ctx context.Context) string {
	if p.rand.IntN(3) == 0 {
		return p.readChanges(ctx)
	}
	return p.decideChange(ctx, reviewedFiles[p.rand.IntN(len(reviewedFiles))], []string{changeAccept, changeRevert, changeReopen}[p.rand.IntN(3)])
}

func (p *person) decideChange(ctx context.Context, file, decision string) string {
	c := changeCall{span: p.beginSpan(), File: file, What: decision}
	var r struct {
		State string `json:"state"`
	}
	c.Outcome = p.try(ctx, "change."+decision, object{"turn": p.board.shared.review, "path": file}, &r)
	if c.Outcome == refused || c.Outcome == absent {
		p.board.found("%s of %s was refused", decision, file)
	}
	c.Read = r.State
	return p.changeCalled(c)
}

func (p *person) readChanges(ctx context.Context) string {
	c := changeCall{span: p.beginSpan(), What: changeRead}
	var r struct {
		Changes []struct {
			Path  string `json:"path"`
			State string `json:"state"`
		} `json:"changes"`
	}
	if c.Outcome = p.try(ctx, "change.list", object{"turn": p.board.shared.review}, &r); c.Outcome != done {
		return c.Outcome
	}
	var files []string
	for _, s := range r.Changes {
		c.File, c.Read = filepath.Base(s.Path), s.State
		files = append(files, c.File)
		p.changeCalled(c)
	}
	if slices.Sort(files); !slices.Equal(files, reviewedFiles) {
		p.board.found("the changed files are %q", files)
	}
	return done
}

func (p *person) changeCalled(c changeCall) string {
	c.Until = p.since()
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	p.board.changeCalls = append(p.board.changeCalls, c)
	return c.Outcome
}

// manage launches, continues, interrupts, archives, restores, deletes or reads a session.
func (p *person) manage(ctx context.Context) string {
	what := []string{convLaunch, convLaunch, convContinue, convInterrupt, convArchive, convRestore, convDelete, convRead, convRead, convRead}
	return p.manageOne(ctx, p.board.shared.sessions[p.rand.IntN(sharedSessions)], what[p.rand.IntN(len(what))])
}

func (p *person) manageOne(ctx context.Context, ids chosenIDs, what string) string {
	c := convCall{span: p.beginSpan(), Launch: ids.launch, What: what}
	thread := object{"session_id": ids.thread}
	switch what {
	case convLaunch:
		var r struct {
			SessionID string `json:"session_id"`
		}
		c.Outcome = p.try(ctx, "launchSession", object{"query": waitPrompt(150 * time.Millisecond), "launch_id": ids.launch, "conversation_id": ids.thread}, &r)
		c.Session = r.SessionID
	case convContinue:
		thread["query"] = waitPrompt(20 * time.Millisecond)
		c.Outcome = p.try(ctx, "continueSession", thread, nil)
	case convInterrupt:
		c.Outcome = p.try(ctx, "interruptSession", object{"session_id": ids.launch}, nil)
	case convArchive, convRestore:
		thread["archived"] = what == convArchive
		c.Outcome = p.try(ctx, "archiveSession", thread, nil)
	case convDelete:
		c.Outcome = p.try(ctx, "session.delete", object{"session": ids.thread}, nil)
	case convRead:
		var r struct {
			Session struct {
				ID       string `json:"id"`
				State    string `json:"state"`
				Archived bool   `json:"archived"`
			} `json:"session"`
		}
		if c.Outcome = p.try(ctx, "getSessionState", object{"session_id": ids.launch}, &r); c.Outcome == unknown {
			return unknown
		}
		c.Session, c.State, c.Archived = r.Session.ID, r.Session.State, r.Session.Archived
	}
	c.Until = p.since()
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	p.board.convCalls = append(p.board.convCalls, c)
	return c.Outcome
}

// readShared reads all shared sessions at rest, and checks the reviewed files.
func (r *round) readShared(ctx context.Context, p *person) {
	s := &r.board.shared
	for _, thread := range s.queues {
		p.readQueue(ctx, thread)
	}
	for _, ids := range s.sessions {
		p.manageOne(ctx, ids, convRead)
	}
	p.readChanges(ctx)
	r.board.mu.Lock()
	states, open := make(map[string]string), make(map[string]bool)
	for _, c := range r.board.changeCalls {
		states[c.File] = c.Read // the last one is that of readChanges
		open[c.File] = open[c.File] || c.Outcome == unknown
	}
	r.board.mu.Unlock()
	for _, file := range reviewedFiles {
		if !open[file] { // a decision without a response may have changed the file only
			r.requireFile(file, states[file])
		}
		for _, decision := range []string{changeRevert, changeReopen} {
			if p.decideChange(ctx, file, decision) == done {
				r.requireFile(file, map[string]string{changeRevert: changeReverted, changeReopen: changeOpen}[decision])
			}
		}
	}
}
