//go:build linux && soak

package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	gosync "sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
)

// An editor is a client with a process of its own between it and the daemon. It is safe for one
// goroutine; several editors work at once.
type editor struct {
	r       *recording
	name    string
	in, out *os.File
	reader  *frame.Reader
	calls   int
	answers []answered // since the step began
	err     error      // the first failure; later calls do nothing
}

// pipe makes a named pipe beside the recording, and opens it.
func (r *recording) pipe(name string) *os.File {
	path := filepath.Join(r.dir, name)
	require.NoError(r.m.t, syscall.Mkfifo(path, 0o600))
	file, err := os.OpenFile(path, os.O_RDWR, 0) // without waiting for the other end
	require.NoError(r.m.t, err)
	return file
}

// sh has the recorded shell run a command beside what it runs already.
func (r *recording) sh(command string) {
	_, err := fmt.Fprintln(r.shell, command)
	require.NoError(r.m.t, err)
}

// user runs a command of the user's, which must succeed. Promises hold from its end on.
func (r *recording) user(command string) {
	r.m.t.Helper()
	r.commands++
	name := fmt.Sprintf("command-%d", r.commands)
	out := r.pipe(name)
	defer out.Close()
	require.NoError(r.m.t, out.SetReadDeadline(time.Now().Add(soon)))
	r.sh(fmt.Sprintf(`{ %s; echo "%s ends: $?"; } >%s 2>&1`, command, name, out.Name()))
	said := ""
	for lines := bufio.NewReader(out); !strings.HasPrefix(said, name+" ends: "); {
		line, err := lines.ReadString('\n')
		require.NoError(r.m.t, err, "%s: %s", command, said)
		if said += line; strings.HasPrefix(line, name) {
			said = line
		}
	}
	require.Equal(r.m.t, name+" ends: 0\n", said, command)
	s := &r.Steps[len(r.Steps)-1]
	s.answers = append(s.answers, answered{response: []byte(said)})
}

// newEditor starts an editor whose user trusts the project or does not say.
func (r *recording) newEditor(name string, trusts bool) *editor {
	e := &editor{r: r, name: name, in: r.pipe(name + ".in"), out: r.pipe(name + ".out")}
	e.reader = frame.NewReader(e.out, frame.LSP, frame.Limits{Timeout: -1})
	r.sh(fmt.Sprintf("exec %s <%s >%s 2>>%s.err", program, e.in.Name(), e.out.Name(), filepath.Join(r.dir, name)))
	params := object{}
	if trusts {
		params["workspaceTrusted"] = true
	}
	e.call("initialize", params, nil)
	return e
}

func (e *editor) close() {
	e.in.Close()
	e.out.Close()
}

// call makes a call, and returns whether it has succeeded.
func (e *editor) call(method string, params, into any) bool {
	if e.err != nil {
		return false
	}
	e.calls++
	id := fmt.Sprintf("%s-%d", e.name, e.calls)
	text, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err == nil {
		_, err = fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(text), text)
	}
	e.err = err
	_ = e.out.SetReadDeadline(time.Now().Add(soon))
	for e.err == nil {
		var read frame.Message
		if e.err = e.reader.Next(&read); e.err != nil {
			break
		}
		var m struct {
			ID            string
			Result, Error json.RawMessage
		}
		if json.Unmarshal(read.Body, &m) != nil || m.ID != id {
			continue
		}
		if m.Error != nil {
			return false
		}
		e.answers = append(e.answers, answered{response: bytes.Clone(read.Body)})
		if into != nil {
			e.err = json.Unmarshal(m.Result, into)
		}
		return e.err == nil
	}
	e.err = fmt.Errorf("%s: %s: %w", e.name, method, e.err)
	return false
}

// promise says what the last response promises; with or, another client may have changed it since.
func (e *editor) promise(key, want string, or ...string) *promise {
	p := &promise{Key: key, Want: want, Or: or}
	if n := len(e.answers); n > 0 {
		e.answers[n-1].promises = append(e.answers[n-1].promises, p)
	}
	return p
}

func (e *editor) launch(method string, params object) *launched {
	var got struct {
		ID string `json:"session_id"`
	}
	if !e.call(method, params, &got) && e.err == nil {
		e.err = fmt.Errorf("%s: %s of %q fails", e.name, method, params["query"])
	}
	l := &launched{id: got.ID, query: params["query"].(string)}
	l.there = e.promise("session "+l.id, l.query)
	return l
}

// decide answers the first open question of a session, if there is one before the session ends.
func (e *editor) decide(l *launched, decision, comment, scope string) {
	for deadline := time.Now().Add(soon); e.err == nil; time.Sleep(5 * time.Millisecond) {
		var list struct{ Approvals []shownApproval }
		var now struct{ Session shownSession }
		e.call("getSessionState", object{"session_id": l.id}, &now)
		if e.call("fetchApprovals", object{"session_id": l.id}, &list) && len(list.Approvals) > 0 {
			var got struct{ Success bool }
			id := list.Approvals[0].ID
			if e.call("sendDecision", object{"approval_id": id, "decision": decision, "comment": comment, "scope": scope}, &got) && got.Success {
				e.promise("approval "+id, map[string]string{"approve": "approved ", "deny": "denied "}[decision]+comment)
			}
			return
		}
		if isEnd(now.Session.State) {
			return
		}
		if time.Now().After(deadline) {
			e.err = fmt.Errorf("%s: no question of %s", e.name, l.query)
		}
	}
}

// atOnce lets editors work at the same time, and takes over their promises.
func (r *recording) atOnce(editors []*editor, work func(*editor)) {
	var all gosync.WaitGroup
	for _, e := range editors {
		all.Go(func() { work(e) })
	}
	all.Wait()
	s := &r.Steps[len(r.Steps)-1]
	for _, e := range editors {
		require.NoError(r.m.t, e.err)
		s.answers = append(s.answers, e.answers...)
		e.answers = nil
	}
}

// promiseRules reads the rules, and promises each.
func (r *recording) promiseRules() (rules shownRules, list []*promise) {
	r.call("rule.list", nil, &rules)
	for _, rule := range rules.Rules {
		list = append(list, r.promise(fmt.Sprintf("rule %d", rule.ID), rule.text()))
	}
	return rules, list
}

// clientsDay is what a user does with two editors and a shell at once: trust, prompts, the queue, rules.
func clientsDay(r *recording) {
	t := r.m.t
	var a, b *editor
	var trusted, both, ruled []*promise
	var rules shownRules
	var shared, first, second *launched
	trust := func(name, value string) *promise { return r.promise("trust "+name, value) }

	r.step("event.subscribe", func() { r.call("event.subscribe", object{}, nil) })
	r.step("a project's file", func() {
		r.user(`printf '[limits]\nmax_turns = 40\n' >.duet.toml && mkdir ../second && printf '[limits]\nmax_turns = 50\n' >../second/.duet.toml && sync .duet.toml ../second/.duet.toml`)
	})
	r.step("trust", func() {
		r.user(program + " trust --yes")
		trusted = append(trusted, trust("project", "true"))
	})
	r.step("trust another project", func() {
		r.user(program + " --root ../second trust --yes")
		both = append(both, trust("second", "true"))
	})
	r.step("no longer trust", func() {
		r.takesBack(trusted...)
		r.user(program + " trust --revoke")
		trusted = []*promise{trust("project", "")}
	})
	r.step("editors", func() {
		r.takesBack(trusted...)
		a, b = r.newEditor("a", true), r.newEditor("b", false)
		both = append(both, a.promise("trust project", "true"))
		r.atOnce([]*editor{a, b}, func(*editor) {})
	})
	r.step("agent with a queue", func() {
		shared = r.launch("launchSession", object{"query": "shared", "launch_id": uuid.NewString()})
		r.question(shared)
		first = r.launch("continueSession", object{"session_id": shared.id, "query": "quiet first"})
		second = r.launch("continueSession", object{"session_id": shared.id, "query": "quiet second"})
	})
	r.step("agent of two editors at once", func() {
		r.takesBack(first.there, second.there)
		edited := func(l *launched) []string {
			return []string{l.query, l.query + " by a", l.query + " by b"}
		}
		r.atOnce([]*editor{a, b}, func(e *editor) {
			own := e.launch("launchSession", object{"query": "permit:3 for " + e.name, "launch_id": uuid.NewString()})
			more := e.launch("continueSession", object{"session_id": shared.id, "query": "quiet more of " + e.name})
			for _, l := range []*launched{first, second} {
				if e.call("turn.edit", object{"turn": l.id, "prompt": l.query + " by " + e.name}, nil) {
					e.promise("session "+l.id, l.query+" by "+e.name, edited(l)[1:]...)
				}
			}
			e.call("turn.move", object{"turn": more.id, "before": first.id}, nil)
			e.decide(own, "approve", "always, says "+e.name, "project")
			e.decide(own, "approve", "in this session, says "+e.name, "session")
			e.decide(own, "deny", "never, says "+e.name, "project")
		})
		var list struct{ Sessions []shownSession }
		r.call("listSessions", object{"limit": 1000}, &list)
		for _, s := range list.Sessions {
			if s.ID == first.id || s.ID == second.id {
				require.Contains(t, edited(map[string]*launched{first.id: first, second.id: second}[s.ID])[1:], s.Query)
				r.promise("session "+s.ID, s.Query)
			}
		}
		rules, ruled = r.promiseRules()
		require.GreaterOrEqual(t, len(rules.Rules), 3)
	})
	r.step("agent whose question has two answers", func() {
		question := r.question(shared)
		r.atOnce([]*editor{a, b}, func(e *editor) {
			e.decide(shared, "approve", "says "+e.name, "once")
		})
		require.NotEmpty(t, question)
		r.ended(shared)
		r.ended(second)
	})
	r.step("agent while rules are deleted", func() {
		r.takesBack(ruled...)
		gone := make([]bool, len(rules.Rules))
		r.atOnce([]*editor{a, b}, func(e *editor) {
			for i, rule := range rules.Rules[1:] {
				if i%2 == 0 || e == a { // both delete the same rules, but for some
					if e.call("rule.delete", object{"rule_id": rule.ID}, nil) {
						e.promise(fmt.Sprintf("rule %d", rule.ID), "")
						gone[i+1] = true
					}
				}
			}
			own := e.launch("launchSession", object{"query": "permit:2 again for " + e.name, "launch_id": uuid.NewString()})
			e.decide(own, "approve", "again, says "+e.name, "session")
		})
		require.Equal(t, append([]bool{false}, slices.Repeat([]bool{true}, len(gone)-1)...), gone)
		r.promiseRules()
	})
	r.step("other files of two projects", func() {
		r.takesBack(both...)
		r.user(`printf '[limits]\nmax_turns = 60\n' >.duet.toml && printf '[limits]\nmax_turns = 70\n' >../second/.duet.toml`)
	})
	r.step("trust of two projects at once", func() {
		r.user(fmt.Sprintf("%s trust --yes & %s --root ../second trust --yes && wait $!", program, program))
		trust("project", "true")
		trust("second", "true")
	})
	a.close()
	b.close()
}

// isTrusted returns "true" if the user trusts the project's file.
func (m *machine) isTrusted(name string) string {
	path := filepath.Join(m.top, name, ".duet.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	trusted, err := m.trust.Trusts(path, text)
	switch {
	case err != nil:
		return err.Error()
	case trusted:
		return "true"
	}
	return ""
}

func isEnd(state string) bool {
	return slices.Contains([]string{"completed", "failed", "interrupted", "cancelled", "timed_out"}, state)
}
