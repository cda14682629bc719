//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"syscall"
	"time"

	wire "github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A place is a project with a home of its own, in which the agent of these
// measurements is configured.
type place struct{ root, home, state string }

// newPlace makes a place below directory.
func newPlace(directory, agent string) (place, error) {
	home, err := os.MkdirTemp(directory, "place-")
	if err != nil {
		return place{}, err
	}
	return setUp(home, agent)
}

// setUp makes a place whose home is an empty directory.
func setUp(home, agent string) (place, error) {
	p, err := placeAt(home)
	if err != nil {
		return place{}, err
	}
	settings := filepath.Join(home, ".config", "duet")
	if err := errors.Join(os.MkdirAll(p.root, 0o700), os.MkdirAll(p.state, 0o700), os.MkdirAll(settings, 0o700)); err != nil {
		return place{}, err
	}
	text := fmt.Sprintf("default_agent = \"bench\"\n[agents.bench]\ndriver = \"acp\"\ncommand = [%q, \"agent\"]\n", agent)
	return p, os.WriteFile(filepath.Join(settings, "config.toml"), []byte(text), 0o600)
}

// placeAt is the place whose home is a directory.
func placeAt(home string) (place, error) {
	home, err := filepath.EvalSymlinks(home)
	if err != nil {
		return place{}, err
	}
	p := place{root: filepath.Join(home, "project"), home: home}
	p.state, err = project.StateDirOf(func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}, p.root)
	return p, err
}

func (p place) database() string { return filepath.Join(p.state, "duet.db") }

// An editor is a client of one duet-rpc that runs in a place.
type editor struct {
	child   *exec.Cmd
	stdin   io.WriteCloser
	started time.Time
	event   func(at time.Time, body []byte) // each notification; by one goroutine
	ended   chan struct{}
	failure error // why there is nothing more to read; set before ended is closed

	mu      sync.Mutex // guards the fields below
	last    int
	waiting map[int]chan answer
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	at time.Time // when it had come
}

// open starts duet-rpc in a place. The caller has to be locked to its thread:
// the child dies with that.
func open(command []string, p place, event func(time.Time, []byte)) (*editor, error) {
	e := &editor{child: exec.Command(command[0], command[1:]...), event: event, ended: make(chan struct{}), waiting: make(map[int]chan answer)}
	e.child.Dir = p.root
	e.child.Env = append(environment(p.home), "DUET_ROOT="+p.root)
	e.child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if e.stdin, err = e.child.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := e.child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e.started = time.Now()
	if err := e.child.Start(); err != nil {
		return nil, err
	}
	go e.read(stdout)
	return e, nil
}

// read takes what the child writes, until it ends.
func (e *editor) read(stdout io.Reader) {
	defer close(e.ended)
	in := wire.NewReader(stdout, wire.LSP, wire.Limits{MaxFrame: 1 << 30, Timeout: -1})
	for {
		var m wire.Message
		if err := in.Next(&m); err != nil {
			e.failure = fmt.Errorf("duet-rpc is gone: %w", err)
			return
		}
		now := time.Now()
		if m.Method != nil {
			if e.event != nil {
				e.event(now, m.Body)
			}
			continue
		}
		id, err := strconv.Atoi(string(m.ID))
		a := answer{at: now}
		if err != nil || json.Unmarshal(m.Body, &a) != nil {
			continue
		}
		e.mu.Lock()
		waiting := e.waiting[id]
		delete(e.waiting, id)
		e.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
}

// patience is how long an answer may take.
const patience = 30 * time.Second

// call calls a method and waits for its result, which is put into result
// unless that is nil.
func (e *editor) call(method string, params, result any) error {
	a, err := e.exchange(method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(a.Result, result)
	}
	return err
}

// exchange is call without taking the result apart.
func (e *editor) exchange(method string, params any) (answer, error) {
	reply := make(chan answer, 1)
	e.mu.Lock()
	e.last++
	id := e.last
	e.waiting[id] = reply
	e.mu.Unlock()
	request := map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}
	if params == nil || reflect.ValueOf(params).IsZero() {
		delete(request, "params")
	}
	body, err := json.Marshal(request)
	if err != nil {
		return answer{}, err
	}
	if _, err := fmt.Fprintf(e.stdin, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		return answer{}, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-reply:
		if a.Error != nil {
			return answer{}, fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		return a, nil
	case <-e.ended:
		return answer{}, e.failure
	case <-timer.C:
		return answer{}, fmt.Errorf("%s: no answer in %v", method, patience)
	}
}

// launch starts a session and returns its first turn.
func (e *editor) launch(prompt string) (string, error) {
	return e.begin("session.start", map[string]any{"prompt": prompt})
}

// goOn starts another turn of a turn's session.
func (e *editor) goOn(turn, prompt string) (string, error) {
	return e.begin("session.prompt", map[string]any{"session": turn, "prompt": prompt})
}

// begin starts a turn and returns its uuid.
func (e *editor) begin(method string, params map[string]any) (string, error) {
	var started struct {
		Turn string `json:"turn_uuid"`
	}
	err := e.call(method, params, &started)
	return started.Turn, err
}

// await waits until a turn has ended well.
func (e *editor) await(turn string, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; {
		var now struct {
			Turn struct{ State, Error string }
		}
		if err := e.call("turn.get", map[string]any{"turn": turn}, &now); err != nil {
			return err
		}
		switch state := now.Turn.State; {
		case state == "completed":
			return nil
		case state == "failed" || state == "interrupted":
			return fmt.Errorf("the turn has %s: %s", state, now.Turn.Error)
		case time.Now().After(deadline):
			return fmt.Errorf("the turn is %s after %v", state, limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// close ends duet-rpc and waits for it.
func (e *editor) close() error {
	e.stdin.Close()
	timer := time.AfterFunc(exitGrace, func() { e.child.Process.Kill() })
	defer timer.Stop()
	<-e.ended
	return e.child.Wait()
}

// daemon returns the id of the project's daemon, which is started if none runs.
func (e *editor) daemon() (pid int, err error) {
	var status struct {
		PID int `json:"pid"`
	}
	err = e.call("daemon.status", nil, &status)
	return status.PID, err
}

// stopDaemon ends the daemon of a place, if one runs.
func stopDaemon(program string, p place) {
	stop := exec.Command(program, "daemon", "stop", "--force", "--root", p.root)
	stop.Env = environment(p.home)
	_ = stop.Run() // it may have ended
}
