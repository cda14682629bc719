//go:build linux && soak

package crash

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

// launched is a session of the day.
type launched struct {
	id, query string
	there     *promise
}

// launch starts a session, or continues one.
func (r *recording) launch(method string, params object) *launched {
	var got struct {
		ID string `json:"session_id"`
	}
	r.call(method, params, &got)
	l := &launched{id: got.ID, query: params["query"].(string)}
	l.there = r.promise("session "+l.id, l.query)
	return l
}

// question waits for the open question of a session.
func (r *recording) question(l *launched) (id string) {
	r.wait("a question of "+l.query, func(ctx context.Context) bool {
		var list struct{ Approvals []shownApproval }
		require.NoError(r.m.t, r.c.Call(ctx, "fetchApprovals", object{"session_id": l.id}, &list))
		for _, a := range list.Approvals {
			id = a.ID
		}
		return id != ""
	})
	return id
}

// ended waits for the end of a session.
func (r *recording) ended(l *launched) {
	r.wait("the end of "+l.query, func(ctx context.Context) bool {
		var now struct{ Session shownSession }
		require.NoError(r.m.t, r.c.Call(ctx, "getSessionState", object{"session_id": l.id}, &now))
		return isEnd(now.Session.State)
	})
}

func (r *recording) wait(what string, is func(context.Context) bool) {
	r.m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	for !is(ctx) {
		if ctx.Err() != nil {
			require.NoError(r.m.t, errors.New(what+" does not come"))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// decide answers a question.
func (r *recording) decide(id, decision, comment, scope string) *promise {
	params := object{"approval_id": id, "decision": decision, "comment": comment}
	if scope != "" {
		params["scope"] = scope
	}
	r.call("sendDecision", params, nil)
	return r.promise("approval "+id, map[string]string{"approve": "approved ", "deny": "denied "}[decision]+comment)
}

// makeOlder gives the database the format of an earlier version.
func (m *machine) makeOlder() {
	storetest.Downgrade(m.t, filepath.Join(m.state, "duet.db"), 100)
}

// nextDay begins with a question that is open from the day before.
func nextDay(r *recording) {
	r.step("event.subscribe", func() { r.call("event.subscribe", object{}, nil) })
	r.step("agent goes on after a late approval", func() {
		var list struct{ Approvals []shownApproval }
		r.call("fetchApprovals", object{}, &list)
		require.Len(r.m.t, list.Approvals, 1)
		r.decide(list.Approvals[0].ID, "approve", "late", "")
		l := r.launch("launchSession", object{"query": "beside it", "launch_id": uuid.NewString()})
		r.decide(r.question(l), "deny", "no", "")
		r.ended(l)
	})
}

// day is what a user does, in steps. Its promises are those of the responses.
func day(r *recording) {
	t := r.m.t
	var one, two, three, out, kept, draft *launched
	var rules shownRules
	var decided, ruled *promise
	var file []*promise
	rewind := func(params object) {
		r.takesBack(file...)
		var done struct{ Files []any }
		r.call("session.rewind", params, &done)
		require.NotEmpty(t, done.Files)
		file = r.promiseNow("file demo.txt")
	}
	r.step("event.subscribe", func() { r.call("event.subscribe", object{}, nil) })
	r.step("agent launch", func() {
		one = r.launch("launchSession", object{"query": "one", "launch_id": uuid.NewString()})
		r.question(one)
	})
	r.step("agent approve", func() {
		r.decide(r.question(one), "approve", "it is good", "")
		r.ended(one)
	})
	r.step("agent continue and queue", func() {
		two = r.launch("continueSession", object{"session_id": one.id, "query": "two"})
		r.question(two)
		three = r.launch("continueSession", object{"session_id": two.id, "query": "three"})
	})
	r.step("edit the queue", func() {
		r.takesBack(three.there)
		r.call("turn.edit", object{"turn": three.id, "prompt": "three, edited"}, nil)
		r.promise("session "+three.id, "three, edited")
	})
	r.step("agent deny", func() {
		r.decide(r.question(two), "deny", "not so", "")
		r.question(three)
	})
	r.step("agent approve with a rule", func() {
		r.decide(r.question(three), "approve", "always", "session")
		r.ended(three)
	})
	r.step("read the rules", func() {
		r.call("rule.list", nil, &rules)
		require.Len(t, rules.Rules, 1)
		ruled = r.promise(fmt.Sprintf("rule %d", rules.Rules[0].ID), rules.Rules[0].text())
	})
	r.step("rewind", func() { rewind(object{"turn": three.id}) })
	r.step("undo the rewind", func() { rewind(object{"turn": three.id, "undo": true}) })
	r.step("revert a change", func() {
		r.takesBack(file...)
		r.call("change.revert", object{"turn": three.id, "path": "demo.txt"}, nil)
		r.promise("change "+three.id+" demo.txt", "reverted")
		file = r.promiseNow("file demo.txt")
	})
	r.step("rewind all", func() { rewind(object{"turn": one.id, "all": true}) })
	r.step("agent in a worktree", func() {
		out = r.launch("launchSession", object{"query": "out", "worktree": true})
		decided = r.decide(r.question(out), "approve", "in the worktree", "")
		r.ended(out)
	})
	r.step("land", func() {
		r.takesBack(file...)
		r.call("session.land", object{"session": out.id}, nil)
		file = r.promiseNow("file demo.txt", "ref HEAD", "ref refs/heads/main", "ref index")
	})
	r.step("agent in another worktree", func() {
		kept = r.launch("launchSession", object{"query": "kept", "worktree": true})
		r.decide(r.question(kept), "approve", "in the other worktree", "")
		r.ended(kept)
	})
	r.step("discard", func() {
		var got struct{ Ref string }
		r.call("session.discard", object{"session": kept.id, "force": true}, &got)
		require.NotEmpty(t, got.Ref)
		r.promiseNow("ref " + got.Ref)
		require.NotEmpty(t, r.m.look()["ref "+got.Ref])
	})
	r.step("title and archive", func() {
		r.call("updateSessionTitle", object{"session_id": one.id, "title": "a title"}, nil)
		r.promise("session "+one.id+" title", "a title")
		r.call("archiveSession", object{"session_id": kept.id}, nil)
		r.promise("session "+kept.id+" archived", "true")
	})
	r.step("draft", func() {
		draft = r.launch("launchSession", object{"query": "draft", "draft": true})
	})
	r.step("delete", func() {
		r.takesBack(decided)
		for _, l := range []*launched{draft, out} {
			r.takesBack(l.there)
			r.call("session.delete", object{"session": l.id}, nil)
			r.promise("session "+l.id, "")
		}
	})
	r.step("delete the rule", func() {
		r.takesBack(ruled)
		r.call("rule.delete", object{"rule_id": rules.Rules[0].ID}, nil)
		r.promise(ruled.Key, "")
	})
	r.step("agent asks at the end", func() {
		r.question(r.launch("launchSession", object{"query": "last", "launch_id": uuid.NewString()}))
	})
}
