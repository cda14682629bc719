package main_test

import (
	"bufio"
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
	raw, _ := json.Marshal(map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": text}})
	return raw
}

// keepSessions is the agent, as a process. It writes each request into the file log of
// its directory. abilities are list, load, late (its answer comes before the history),
// resume, fork, close and delete.
func keepSessions(dir, abilities string) {
	can := strings.Fields(abilities)
	has := func(word string) bool { return slices.Contains(can, word) }
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	send := func(m map[string]any) {
		m["jsonrpc"] = "2.0"
		raw, _ := json.Marshal(m)
		_, _ = os.Stdout.Write(append(raw, '\n'))
	}
	var now keptSession
	tell := func(session string, updates []json.RawMessage) {
		for _, u := range updates {
			send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": session, "update": u}})
		}
	}
	made := 0
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Session string `json:"sessionId"`
				Dir     string `json:"cwd"`
				Cursor  string `json:"cursor"`
				Prompt  []struct{ Text string }
			} `json:"params"`
		}
		_ = json.Unmarshal(line, &m)
		log, _ := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintln(log, strings.TrimSpace(m.Method+" "+m.Params.Session))
		log.Close()
		answer := func(result any) { send(map[string]any{"id": m.ID, "result": result}) }
		fail := func(code int, text string) {
			send(map[string]any{"id": m.ID, "error": map[string]any{"code": code, "message": text}})
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
			session := map[string]any{}
			for _, word := range []string{"list", "resume", "fork", "close", "delete"} {
				if has(word) {
					session[word] = map[string]any{}
				}
			}
			answer(map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{"loadSession": has("load"), "sessionCapabilities": session}})
		case m.Method == "session/new":
			now = keptSession{ID: begin(), Dir: m.Params.Dir}
			answer(map[string]any{"sessionId": now.ID})
		case m.Method == "session/list":
			var fit []map[string]any
			for _, k := range keptIn(dir) {
				if m.Params.Dir == "" || m.Params.Dir == k.Dir {
					fit = append(fit, map[string]any{"sessionId": k.ID, "cwd": k.Dir, "title": k.Title, "updatedAt": k.Updated})
				}
			}
			from := 0
			fmt.Sscan(m.Params.Cursor, &from)
			page := map[string]any{"sessions": fit[min(from, len(fit)):min(from+keptPage, len(fit))], "nextCursor": nil}
			if from+keptPage < len(fit) {
				page["nextCursor"] = fmt.Sprint(from + keptPage)
			}
			answer(page)
		case m.Method == "session/load" && has("late"):
			if k, ok := find(); ok {
				now = k
				answer(map[string]any{})
				tell(k.ID, k.Told)
			}
		case m.Method == "session/load":
			if k, ok := find(); ok {
				now = k
				tell(k.ID, k.Told)
				answer(map[string]any{})
			}
		case m.Method == "session/resume":
			if k, ok := find(); ok {
				now = k
				answer(map[string]any{})
			}
		case m.Method == "session/fork":
			if k, ok := find(); ok {
				now = k
				now.ID = begin()
				now.save(dir)
				tell(now.ID, now.Told) // as opencode does
				answer(map[string]any{"sessionId": now.ID})
			}
		case m.Method == "session/close":
			answer(map[string]any{})
		case m.Method == "session/delete":
			if k, ok := find(); ok {
				_ = os.Remove(filepath.Join(dir, k.ID+".json"))
				answer(map[string]any{})
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
			tell(now.ID, []json.RawMessage{said})
			answer(map[string]any{"stopReason": "end_turn"})
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
