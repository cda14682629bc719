//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	// firstSessions is how many sessions have their first prompt measured, at scale 1, and laterPrompts how
	// many prompts follow in each.
	firstSessions = 8
	laterPrompts  = 8
	// projectFiles is how many files the project's git repository has.
	projectFiles = 1_000
	// oneChunk has the agent answer at once with one chunk.
	oneChunk = "chunks 1@0"
	// betweenTurns is how long the load generator waits after a turn, as a user who reads.
	betweenTurns = 60 * time.Millisecond
)

// A wordTime is the time from a prompt to the first word of its answer.
type wordTime struct {
	toAgent  time.Duration // until the agent has the prompt and writes its first word
	toClient time.Duration // from then until the client has the word
}

func (w wordTime) whole() time.Duration { return w.toAgent + w.toClient }

// firstWords measures the time from a prompt to the first word of an agent that answers at once: behind a
// bare client, through duet-rpc, and through duet-rpc without checkpoints, in turns. The first prompt of a
// session includes the start of the agent.
func firstWords(c cell) (measurement, error) {
	recorded, err := newPlace(c.server.directory, c.server.agent)
	if err != nil {
		return nil, err
	}
	plain, err := newPlace(c.server.directory, c.server.agent)
	if err != nil {
		return nil, err
	}
	settings, err := os.OpenFile(filepath.Join(plain.home, ".config", "duet", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	_, err = settings.WriteString("[checkpoints]\nenabled = false\n")
	if err := errors.Join(err, settings.Close(), makeRepository(recorded), makeRepository(plain)); err != nil {
		return nil, err
	}
	heard := make(chan wordTime, 1) // toClient counts from 1970 to the hearing
	hear := func(at time.Time, body []byte) {
		if sent, ok := stampIn(body, `"text":"`); ok {
			heard <- wordTime{toAgent: time.Duration(sent.UnixNano()), toClient: at.Sub(sent)}
		}
	}
	var first, warm [3][]wordTime // directly, through duet-rpc, without checkpoints
	work := func(way int, session func() (say func() (wordTime, error), end func() error, err error)) error {
		say, end, err := session()
		if err != nil {
			return err
		}
		for i := range 1 + laterPrompts {
			at, err := say()
			if err != nil {
				return errors.Join(err, end())
			}
			if i == 0 {
				first[way] = append(first[way], at)
			} else {
				warm[way] = append(warm[way], at)
			}
			time.Sleep(betweenTurns)
		}
		return end()
	}
	through := func(e *editor) func() (func() (wordTime, error), func() error, error) {
		return func() (func() (wordTime, error), func() error, error) {
			id := ""
			say := func() (wordTime, error) {
				begin := time.Now()
				var err error
				if id == "" {
					id, err = e.launch(oneChunk)
				} else {
					id, err = e.goOn(id, oneChunk)
				}
				if err != nil {
					return wordTime{}, err
				}
				select {
				case at := <-heard:
					at.toAgent -= time.Duration(begin.UnixNano())
					return at, e.await(id, c.patience(turnLimit))
				case <-time.After(patience):
					return wordTime{}, fmt.Errorf("no word in %v", patience)
				}
			}
			return say, func() error { return nil }, nil
		}
	}
	subscribe := func(e *editor) error {
		return e.call("event.subscribe", map[string]any{"kinds": []string{"text.delta"}}, nil)
	}
	err = c.at(recorded, func(e *editor, _ place) error {
		return c.at(plain, func(without *editor, _ place) error {
			if err := errors.Join(subscribe(e), subscribe(without)); err != nil {
				return err
			}
			for range c.count(firstSessions) {
				err := work(0, func() (func() (wordTime, error), func() error, error) { return bareSession(c, recorded) })
				if err = errors.Join(err, work(1, through(e)), work(2, through(without))); err != nil {
					return err
				}
			}
			return nil
		}, hear)
	}, hear)
	if err != nil {
		return nil, err
	}
	m := measurement{}
	mid := func(times []wordTime, of func(wordTime) time.Duration) float64 {
		values := make([]float64, len(times))
		for i, t := range times {
			values[i] = inMilliseconds(of(t))
		}
		return median(values)
	}
	for _, row := range []struct {
		figures firstWordFigures
		times   [3][]wordTime
	}{{firstPromptWord, first}, {warmPromptWord, warm}} {
		m[row.figures.direct] = mid(row.times[0], wordTime.whole)
		m[row.figures.duet] = mid(row.times[1], wordTime.whole)
		m[row.figures.overhead] = m[row.figures.duet] - m[row.figures.direct]
		m[row.figures.toAgent] = mid(row.times[1], func(w wordTime) time.Duration { return w.toAgent })
		m[row.figures.toClient] = mid(row.times[1], func(w wordTime) time.Duration { return w.toClient })
		m[row.figures.without] = mid(row.times[2], wordTime.whole)
	}
	return m, nil
}

// makeRepository makes the project of a place a git repository with files.
func makeRepository(p place) error {
	for i := range projectFiles {
		dir := filepath.Join(p.root, fmt.Sprintf("package%d", i%40))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		text := fmt.Sprintf("package p%d\n\n// Value is %d.\nconst Value%d = %d\n", i%40, i, i, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d.go", i)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "start"},
	} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = p.root, environment(p.home)
		if out, err := git.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", slices.Concat(args)[0], err, out)
		}
	}
	return nil
}

// bareSession is a client that starts an agent with its first prompt and talks with it.
func bareSession(c cell, p place) (say func() (wordTime, error), end func() error, err error) {
	var agent *acpAgent
	say = func() (at wordTime, err error) {
		begin := time.Now()
		if agent == nil {
			if agent, err = startAgent([]string{c.server.agent, "agent"}, p, c.patience(turnLimit)); err != nil {
				return at, err
			}
		}
		err = agent.prompt(oneChunk, func(heard time.Time, line []byte) {
			if sent, ok := stampIn(line, `"text":"`); ok {
				at = wordTime{toAgent: sent.Sub(begin), toClient: heard.Sub(sent)}
			}
		})
		return at, err
	}
	return say, func() error {
		if agent == nil {
			return nil
		}
		return agent.end()
	}, nil
}
