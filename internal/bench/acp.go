//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	// acpTurns is how often the agent is asked in turns, directly and through duet-rpc acp.
	acpTurns = 3
	// acpFlood is how many chunks are sent as fast as they are taken, at scale 1.
	acpFlood = 10_000
)

// acpAdds measures the overhead between an agent and an editor that speaks the Agent Client
// Protocol: the same agent is asked for the same, directly and through duet-rpc acp, in turns.
func acpAdds(c cell) (measurement, error) {
	p, err := newPlace(c.server.directory, c.server.agent)
	if err != nil {
		return nil, err
	}
	duet := []string{c.server.command[0], "acp", "--root", p.root, "--agent", "bench"}
	defer stopDaemon(duet[0], p)
	calls, chunks := c.count(eventCount)&^1, c.count(acpFlood)
	var latencies [2][]time.Duration
	var rates [2][]float64
	for range acpTurns {
		for i, command := range [][]string{{c.server.agent, "agent"}, duet} {
			heard, wall, err := acpRun(command, p, calls, chunks, c.patience(turnLimit))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", command[0], err)
			}
			latencies[i] = append(latencies[i], heard...)
			rates[i] = append(rates[i], float64(chunks)/wall.Seconds()/1e3)
		}
	}
	slices.Sort(latencies[0])
	slices.Sort(latencies[1])
	return measurement{
		acpDirectP50: inMilliseconds(quantile(latencies[0], 50)), acpDirectP99: inMilliseconds(quantile(latencies[0], 99)),
		acpDuetP50: inMilliseconds(quantile(latencies[1], 50)), acpDuetP99: inMilliseconds(quantile(latencies[1], 99)),
		acpDirectRate: median(rates[0]), acpDuetRate: median(rates[1]),
	}, nil
}

// acpRun starts an agent and has two turns with it: tool calls at a pace, of which it
// returns how long each took, and chunks as fast as they come, of which it makes sure that
// all are there, in order, and returns how long they took.
func acpRun(command []string, p place, calls, chunks int, limit time.Duration) (latencies []time.Duration, wall time.Duration, err error) {
	a, err := startAgent(command, p, limit)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if ended := a.end(); err == nil {
			err = ended
		}
	}()
	err = a.prompt(fmt.Sprintf("calls %d@%d", calls, eventRate), func(at time.Time, line []byte) {
		if sent, ok := stampIn(line, `"title":"sent `); ok {
			latencies = append(latencies, at.Sub(sent))
		}
	})
	if err != nil {
		return nil, 0, err
	}
	if len(latencies) != calls {
		return nil, 0, fmt.Errorf("%d of %d updates of tool calls came", len(latencies), calls)
	}
	var text []byte
	begin := time.Now()
	err = a.prompt(fmt.Sprintf("chunks %d@0", chunks), func(_ time.Time, line []byte) {
		if _, rest, ok := bytes.Cut(line, []byte(`"type":"text","text":"`)); ok {
			piece, _, _ := bytes.Cut(rest, []byte(`"`)) // digits and blanks
			text = append(text, piece...)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	wall = time.Since(begin)
	return latencies, wall, checkChunks(text, chunks)
}

// checkChunks makes sure that a text has n chunks, each a time and a number, in their order.
func checkChunks(text []byte, n int) error {
	words := bytes.Fields(text)
	if len(words) != 2*n {
		return fmt.Errorf("%d of %d chunks came", len(words)/2, n)
	}
	for i := range n {
		if string(words[2*i+1]) != strconv.Itoa(i) {
			return fmt.Errorf("chunk %d is %q", i, words[2*i+1])
		}
	}
	return nil
}

// An acpAgent is a client's connection to a process that speaks the Agent Client Protocol, with one session.
type acpAgent struct {
	*exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
	session string
	last    int
	overdue *time.Timer
}

// startAgent starts an agent and opens a session. The agent is killed after limit.
func startAgent(command []string, p place, limit time.Duration) (*acpAgent, error) {
	a := &acpAgent{Cmd: exec.Command(command[0], command[1:]...)}
	a.Dir, a.Env = p.root, environment(p.home)
	a.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if a.stdin, err = a.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := a.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := a.Start(); err != nil {
		return nil, err
	}
	a.overdue = time.AfterFunc(limit, func() { a.Process.Kill() })
	a.stdout = bufio.NewReaderSize(stdout, 256<<10)
	if err := a.open(p); err != nil {
		return nil, errors.Join(err, a.end())
	}
	return a, nil
}

func (a *acpAgent) open(p place) error {
	if _, err := a.ask("initialize", map[string]any{"protocolVersion": 1}, nil); err != nil {
		return err
	}
	opened, err := a.ask("session/new", map[string]any{"cwd": p.root, "mcpServers": []any{}}, nil)
	if err != nil {
		return err
	}
	var session struct {
		SessionID string `json:"sessionId"`
	}
	err = json.Unmarshal(opened, &session)
	a.session = session.SessionID
	return err
}

// prompt asks for a turn. It passes each message before its end to update.
func (a *acpAgent) prompt(text string, update func(time.Time, []byte)) error {
	_, err := a.ask("session/prompt", map[string]any{"sessionId": a.session, "prompt": []any{map[string]string{"type": "text", "text": text}}},
		update)
	return err
}

// end ends the process and waits for it.
func (a *acpAgent) end() error {
	a.stdin.Close()
	err := a.Wait()
	a.overdue.Stop()
	if err != nil {
		return fmt.Errorf("it did not end well: %w", err)
	}
	return nil
}

// ask sends a request and returns its result; it passes each earlier message to update.
func (a *acpAgent) ask(method string, params any, update func(time.Time, []byte)) (json.RawMessage, error) {
	a.last++
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": a.last, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := a.stdin.Write(append(body, '\n')); err != nil {
		return nil, err
	}
	response := []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, a.last))
	for {
		line, err := a.stdout.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if !bytes.HasPrefix(line, response) {
			if update != nil {
				update(time.Now(), line)
			}
			continue
		}
		var reply answer
		if err := json.Unmarshal(line, &reply); err != nil {
			return nil, err
		}
		if reply.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, reply.Error.Message)
		}
		return reply.Result, nil
	}
}
