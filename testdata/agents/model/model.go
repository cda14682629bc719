// Package model is a language model for tests of real agents: it does what
// its prompts say, and costs nothing.
package model

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A Model is a model on a loopback address, behind as much of four APIs as
// agents need: Anthropic's messages, OpenAI's responses and chat completions,
// and Gemini's generateContent. What it does is in a line of the last prompt; see [verbs].
// Each answer costs InputTokens and OutputTokens.
type Model struct {
	URL    string
	Key    string          // that it wants
	HungUp <-chan struct{} // closed when the client hangs up on an endless answer

	mu       sync.Mutex // guards the fields below
	serial   int
	heard    []string       // the prompts in the latest request
	images   [][]byte       // the images in it
	refusals map[string]int // how often a prompt was answered with an error
	strayKey bool
	hungUp   chan struct{}
	hangUp   sync.Once
}

// What an answer costs.
const (
	InputTokens  = 10
	OutputTokens = 7
)

// Serve serves a model until the test has ended.
func Serve(t testing.TB) *Model {
	m, stop := Start()
	t.Cleanup(stop)
	return m
}

// Start serves a model until stop is called.
func Start() (m *Model, stop func()) {
	m = &Model{Key: "sk-ant-" + uuid.NewString() + uuid.NewString(), hungUp: make(chan struct{}), refusals: make(map[string]int)}
	m.HungUp = m.hungUp
	server := httptest.NewServer(http.HandlerFunc(m.serve))
	m.URL = server.URL
	return m, func() {
		server.CloseClientConnections() // an agent may listen to an answer that does not end
		server.Close()
	}
}

// An api is one way to speak with a model.
type api interface {
	key(r *http.Request) string
	conversation(r *http.Request, body []byte) (conversation, error)
	// refusal is the body of an error.
	refusal(status int, message string) any
	// begin begins an answer.
	begin(w http.ResponseWriter, c conversation, serial func() string) stream
}

// A stream is an answer that is being given.
type stream interface {
	say(text string)
	call(tool toolCall)
	end()
}

// apiOf is the API that a request is meant for; nil if there is none.
func apiOf(r *http.Request) api {
	switch path := r.URL.Path; {
	case r.Method != http.MethodPost:
		return nil
	case strings.HasSuffix(path, "/messages"):
		return anthropic{}
	case strings.HasSuffix(path, "/responses"):
		return openAI{}
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, "enerateContent"):
		return gemini{}
	}
	return nil
}

func (m *Model) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, ":countTokens") {
		sendJSON(w, http.StatusOK, object{"totalTokens": InputTokens})
		return
	}
	a := apiOf(r)
	if a == nil {
		http.NotFound(w, r)
		return
	}
	if a.key(r) != m.Key {
		m.mu.Lock()
		m.strayKey = true
		m.mu.Unlock()
		sendJSON(w, http.StatusUnauthorized, a.refusal(http.StatusUnauthorized, "invalid x-api-key"))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c, err := a.conversation(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	aside := len(c.tools) == 0 || c.form // agents also ask for a title and the like
	if !aside {
		m.mu.Lock()
		m.heard, m.images = c.prompts(), c.images
		m.mu.Unlock()
	}
	m.answer(w, r, a, c, aside)
}

func (m *Model) answer(w http.ResponseWriter, r *http.Request, a api, c conversation, aside bool) {
	if aside {
		s := a.begin(w, c, m.next)
		s.say(c.aside)
		s.end()
		return
	}
	next := c.next()
	switch {
	case next.status != 0 && m.refuse(next):
		if next.status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		sendJSON(w, next.status, a.refusal(next.status, next.text))
		return
	case next.hang:
		m.await(r)
		return
	case next.cut:
		panic(http.ErrAbortHandler)
	}
	s := a.begin(w, c, m.next)
	if next.endless {
		for m.listens(r) {
			s.say(next.text)
		}
		return
	}
	for _, part := range []string{next.text[:len(next.text)/2], next.text[len(next.text)/2:]} {
		s.say(part)
	}
	if next.tool != nil {
		s.call(*next.tool)
	}
	s.end()
}

// refuse reports whether the prompt is still to be answered with an error.
func (m *Model) refuse(a action) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals[a.prompt]++
	return a.times == 0 || m.refusals[a.prompt] <= a.times
}

// await waits until the agent hangs up.
func (m *Model) await(r *http.Request) {
	<-r.Context().Done()
	m.hangUp.Do(func() { close(m.hungUp) })
}

// listens waits a moment and reports whether the agent is still there.
func (m *Model) listens(r *http.Request) bool {
	select {
	case <-r.Context().Done():
		m.await(r)
		return false
	case <-time.After(20 * time.Millisecond):
		return true
	}
}

// Prompts are the conversation's prompts in the agent's latest request.
func (m *Model) Prompts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard
}

// Images are those in the conversation when the agent asked last.
func (m *Model) Images() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.images
}

// Refused reports whether a client used another key.
func (m *Model) Refused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.strayKey
}

func (m *Model) next() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serial++
	return strconv.Itoa(m.serial)
}

type object = map[string]any

func sendJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// sendEvent sends a server-sent event.
func sendEvent(w http.ResponseWriter, kind string, data any) {
	var b bytes.Buffer
	if kind != "" {
		b.WriteString("event: " + kind + "\n")
	}
	text, _ := json.Marshal(data)
	b.WriteString("data: " + string(text) + "\n\n")
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(b.Bytes())
	w.(http.Flusher).Flush()
}
