package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keepingVariable makes an agent of the test binary: one that keeps its sessions in the
// directory that it names, and can do with them what keepingAbilities has the words for.
const (
	keepingVariable  = "DUET_TEST_KEEP"
	keepingAbilities = "DUET_TEST_ABILITIES"
)

// A keptSession is a session of that agent, as it keeps it.
type keptSession struct {
	ID      string            `json:"sessionId"`
	Dir     string            `json:"cwd"`
	Title   string            `json:"title,omitempty"`
	Updated string            `json:"updatedAt"`
	Told    []json.RawMessage `json:"told,omitempty"` // the updates of its history
}

// keptPage is how many sessions it lists at once.
const keptPage = 2

func (k keptSession) save(dir string) {
	raw, err := json.Marshal(k)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, k.ID+".json"), raw, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func keptIn(dir string) (list []keptSession) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files {
		var k keptSession
		if raw, err := os.ReadFile(file); err == nil && json.Unmarshal(raw, &k) == nil {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b keptSession) int { return strings.Compare(b.Updated+b.ID, a.Updated+a.ID) })
	return list
}

// keptText is an update with a text.
func keptText(kind, text string) json.RawMessage {
	raw, _ := json.Marshal(members{"sessionUpdate": kind, "content": members{"type": "text", "text": text}})
	return raw
}

// keepSessions is the agent, as a process. It writes each request into the file log of
// its directory. abilities are list, load, late (its answer comes before the history),
// resume, fork, close and delete.
func keepSessions(dir, abilities string) {
	can := strings.Fields(abilities)
	has := func(word string) bool { return slices.Contains(can, word) }
	a := newTestAgent("")
	var now keptSession
	tell := func(k keptSession, updates ...json.RawMessage) {
		a.session = k.ID
		for _, u := range updates {
			a.update(u)
		}
	}
	made := 0
	for {
		m := a.read()
		log, _ := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(log, strings.TrimSpace(m.Method+" "+m.Params.Session))
		log.Close()
		answer := func(result any) { a.reply(m.ID, result) }
		fail := func(code int, text string) {
			a.send(members{"id": m.ID, "error": members{"code": code, "message": text}})
		}
		find := func() (keptSession, bool) {
			for _, k := range keptIn(dir) {
				if k.ID == m.Params.Session {
					return k, true
				}
			}
			fail(-32002, "Resource not found: "+m.Params.Session)
			return keptSession{}, false
		}
		begin := func() string {
			made++
			return fmt.Sprintf("kept-%d-%d", os.Getpid(), made)
		}
		able := m.Method == "initialize" || m.Method == "session/new" || m.Method == "session/prompt" || has(strings.TrimPrefix(m.Method, "session/"))
		switch {
		case m.ID == nil:
		case !able:
			fail(-32601, "Method not found")
		case m.Method == "initialize":
			session := members{}
			for _, word := range []string{"list", "resume", "fork", "close", "delete"} {
				if has(word) {
					session[word] = members{}
				}
			}
			answer(members{"protocolVersion": 1, "agentCapabilities": members{"loadSession": has("load"), "sessionCapabilities": session}})
		case m.Method == "session/new":
			now = keptSession{ID: begin(), Dir: m.Params.Dir}
			answer(members{"sessionId": now.ID})
		case m.Method == "session/list":
			var fit []map[string]any
			for _, k := range keptIn(dir) {
				if m.Params.Dir == "" || m.Params.Dir == k.Dir {
					fit = append(fit, members{"sessionId": k.ID, "cwd": k.Dir, "title": k.Title, "updatedAt": k.Updated})
				}
			}
			from := 0
			fmt.Sscan(m.Params.Cursor, &from)
			page := members{"sessions": fit[min(from, len(fit)):min(from+keptPage, len(fit))], "nextCursor": nil}
			if from+keptPage < len(fit) {
				page["nextCursor"] = fmt.Sprint(from + keptPage)
			}
			answer(page)
		case m.Method == "session/load" && has("late"):
			if k, ok := find(); ok {
				now = k
				answer(members{})
				tell(k, k.Told...)
			}
		case m.Method == "session/load":
			if k, ok := find(); ok {
				now = k
				tell(k, k.Told...)
				answer(members{})
			}
		case m.Method == "session/resume":
			if k, ok := find(); ok {
				now = k
				answer(members{})
			}
		case m.Method == "session/fork":
			if k, ok := find(); ok {
				now = k
				now.ID = begin()
				now.save(dir)
				tell(now, now.Told...) // as opencode does
				answer(members{"sessionId": now.ID})
			}
		case m.Method == "session/close":
			answer(members{})
		case m.Method == "session/delete":
			if k, ok := find(); ok {
				_ = os.Remove(filepath.Join(dir, k.ID+".json"))
				answer(members{})
			}
		case m.Method == "session/prompt":
			var texts []string
			for _, p := range m.Params.Prompt {
				texts = append(texts, p.Text)
			}
			for texts[len(texts)-1] == "hold" { // until there is a file go
				if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond) // machine: a program of its own polls for the file
			}
			heard := strings.Count(string(mustMarshal(now.Told)), "user_message_chunk")
			said := keptText("agent_message_chunk", fmt.Sprintf("after %d: %s", heard, strings.Join(texts, "|")))
			now.Told = append(now.Told, keptText("user_message_chunk", strings.Join(texts, "|")), said)
			now.Updated = time.Now().UTC().Format(time.RFC3339)
			now.save(dir)
			tell(now, said)
			answer(members{"stopReason": "end_turn"})
		}
	}
}

func mustMarshal(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
