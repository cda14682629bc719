//go:build linux

package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // to read the log beside duet-rpc
)

const (
	// eventRate is how many events a second the targets of latency are about.
	eventRate = 2_000
	// eventCount is how many of them are sent, at scale 1.
	eventCount = 10_000
	// messageRate is how many messages a second have their first words measured,
	// and messageCount how many those are, at scale 1.
	messageRate  = 30
	messageCount = 200
	// chunkFlood is how many chunks are sent as fast as they are taken, at scale 1.
	chunkFlood = 100_000
	// turnLimit is how long a turn of these may take, at scale 1.
	turnLimit = time.Minute
)

// in runs work with an editor in a new project.
func (c cell) in(work func(*editor, place) error, event func(time.Time, []byte)) error {
	p, err := newPlace(c.server.directory, c.server.agent)
	if err != nil {
		return err
	}
	return c.at(p, work, event)
}

// at runs work with an editor in a project that is there.
func (c cell) at(p place, work func(*editor, place) error, event func(time.Time, []byte)) error {
	e, err := open(c.server.command, p, event)
	if err != nil {
		return err
	}
	err = work(e, p)
	if err != nil {
		e.child.Process.Kill()
	}
	if ended := e.close(); err == nil && ended != nil {
		err = fmt.Errorf("duet-rpc did not end well: %w", ended)
	}
	stopDaemon(c.server.command[0], p)
	return err
}

// eventLatency measures how long updates of tool calls take from the agent to
// an editor that has subscribed. They are announced after their commit.
func eventLatency(c cell) (measurement, error) {
	n := c.count(eventCount) &^ 1
	latencies, err := c.latencies(n, fmt.Sprintf("calls %d@%d", n, eventRate), "item.changed", `"title":"sent `)
	if err != nil {
		return nil, err
	}
	return measurement{eventP50: inMilliseconds(quantile(latencies, 50)), eventP99: inMilliseconds(quantile(latencies, 99))}, nil
}

// wordsLatency measures how long the first words of a message take from the
// agent to an editor, just after the end of another message.
func wordsLatency(c cell) (measurement, error) {
	n := c.count(messageCount)
	latencies, err := c.latencies(n, fmt.Sprintf("messages %d@%d", n, messageRate), "text.delta", `"text":"`)
	if err != nil {
		return nil, err
	}
	return measurement{deltaP50: inMilliseconds(quantile(latencies, 50)), deltaP99: inMilliseconds(quantile(latencies, 99))}, nil
}

// latencies has an agent send what a prompt says, and are how long n events of a
// kind with the time of their sending behind a mark took to an editor, sorted.
func (c cell) latencies(n int, prompt, kind, mark string) ([]time.Duration, error) {
	latencies := make([]time.Duration, 0, n)
	var heard atomic.Int64
	hear := func(at time.Time, body []byte) {
		if sent, ok := stampIn(body, mark); ok {
			latencies = append(latencies, at.Sub(sent))
			heard.Add(1)
		}
	}
	err := c.in(func(e *editor, p place) error {
		if err := e.call("event.subscribe", map[string]any{"kinds": []string{kind}}, nil); err != nil {
			return err
		}
		session, err := e.launch(prompt)
		if err != nil {
			return err
		}
		if err := e.await(session, c.patience(turnLimit)); err != nil {
			return err
		}
		for deadline := time.Now().Add(time.Second); int(heard.Load()) < n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return fmt.Errorf("%d of %d events came", heard.Load(), n)
			}
		}
		return nil
	}, hear)
	slices.Sort(latencies)
	return latencies, err
}

// stampIn finds a time, in nanoseconds since 1970, behind a mark.
func stampIn(body []byte, mark string) (time.Time, bool) {
	_, rest, ok := bytes.Cut(body, []byte(mark))
	if !ok {
		return time.Time{}, false
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseInt(string(rest[:digits]), 10, 64)
	return time.Unix(0, n), err == nil
}

// quantile of sorted durations.
func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// patience is how long something may take that takes d at scale 1.
func (c cell) patience(d time.Duration) time.Duration {
	return time.Duration(float64(d) * max(1, c.scale))
}

// deltaLatency measures how long chunks take from the agent until they are
// committed: until another process finds them in the database.
func deltaLatency(c cell) (m measurement, err error) {
	n := c.count(eventCount)
	var latencies []time.Duration
	err = c.in(func(e *editor, p place) error {
		if err := e.call("daemon.status", nil, nil); err != nil { // the database is there
			return err
		}
		found := make(chan error, 1)
		ctx, stop := context.WithTimeout(context.Background(), c.patience(turnLimit))
		defer stop()
		go func() {
			var err error
			latencies, err = watchLog(ctx, p.database(), n)
			found <- err
		}()
		session, err := e.launch(fmt.Sprintf("chunks %d@%d", n, eventRate))
		if err != nil {
			return err
		}
		if err := <-found; err != nil {
			return err
		}
		return e.await(session, c.patience(turnLimit))
	}, nil)
	if err != nil {
		return nil, err
	}
	slices.Sort(latencies)
	return measurement{commitP50: inMilliseconds(quantile(latencies, 50)), commitP99: inMilliseconds(quantile(latencies, 99))}, nil
}

// watchLog reads a log that is being written until it has seen n chunks, and
// returns how old each was then. It looks about every half millisecond.
func watchLog(ctx context.Context, database string, n int) ([]time.Duration, error) {
	db, err := sql.Open("sqlite", "file:"+database+"?mode=ro&_pragma=busy_timeout(1000)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	query, err := db.PrepareContext(ctx, "SELECT seq, text FROM events WHERE seq > ? AND key IS NOT NULL ORDER BY seq")
	if err != nil {
		return nil, err
	}
	defer query.Close()
	latencies := make([]time.Duration, 0, n)
	for last := int64(0); len(latencies) < n; time.Sleep(500 * time.Microsecond) {
		rows, err := query.QueryContext(ctx, last)
		if err != nil {
			return nil, fmt.Errorf("%d of %d chunks are in the log: %w", len(latencies), n, err)
		}
		var texts []string
		for rows.Next() {
			var text string
			if err := rows.Scan(&last, &text); err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
		now := time.Now()
		if err := rows.Err(); err != nil {
			return nil, err
		}
		for _, text := range texts {
			sent, ok := stampIn([]byte(text), "")
			if !ok {
				return nil, fmt.Errorf("a chunk without a time: %q", text)
			}
			latencies = append(latencies, now.Sub(sent))
		}
	}
	return latencies, nil
}

// chunkThroughput measures how fast chunks of an agent become events, with an
// editor that receives them, and makes sure that none is missing.
func chunkThroughput(c cell) (m measurement, err error) {
	n := c.count(chunkFlood)
	var p place
	err = c.in(func(e *editor, at place) error {
		p = at
		if err := e.call("event.subscribe", map[string]any{}, nil); err != nil {
			return err
		}
		if _, err := e.launch("calls 2@0"); err != nil { // starts the executor
			return err
		}
		daemon, err := e.daemon()
		if err != nil {
			return err
		}
		begin, hub := time.Now(), cpuOf(daemon)
		session, err := e.launch(fmt.Sprintf("chunks %d@0", n))
		if err != nil {
			return err
		}
		if err := e.await(session, c.patience(turnLimit)); err != nil {
			return err
		}
		wall := time.Since(begin)
		m = measurement{
			chunkRate: float64(n) / wall.Seconds() / 1e3,
			chunkCPU:  (cpuOf(daemon) - hub).Seconds() / float64(n) * 1e6,
		}
		return nil
	}, func(time.Time, []byte) {})
	if err != nil {
		return nil, err
	}
	return m, checkLog(p.database(), n)
}

// checkLog makes sure that a log has no gap, and n chunks in their order.
func checkLog(database string, n int) error {
	db, err := sql.Open("sqlite", "file:"+database+"?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query("SELECT seq, coalesce(text, '') FROM events ORDER BY seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	chunks := 0
	for want := int64(1); rows.Next(); want++ {
		var seq int64
		var text string
		if err := rows.Scan(&seq, &text); err != nil {
			return err
		}
		if seq != want {
			return fmt.Errorf("the log has a gap before event %d", seq)
		}
		if text == "" {
			continue
		}
		if words := strings.Fields(text); len(words) != 2 || words[1] != strconv.Itoa(chunks) {
			return fmt.Errorf("chunk %d is %q in the log", chunks, text)
		}
		chunks++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if chunks != n {
		return fmt.Errorf("%d of %d chunks are in the log", chunks, n)
	}
	return nil
}

// hubMemory measures what an opened hub takes, before and after a turn, and
// while a subscriber does not read.
func hubMemory(c cell) (m measurement, err error) {
	m = measurement{}
	n := c.count(eventCount)
	err = c.in(func(e *editor, _ place) error {
		pid, err := e.daemon()
		if err != nil {
			return err
		}
		rss := func(f *figure) error {
			value, err := memoryOf(pid, "VmRSS")
			m[f] = value
			return err
		}
		time.Sleep(idlePause)
		if err := rss(hubFresh); err != nil {
			return err
		}
		session, err := e.launch(fmt.Sprintf("chunks %d@0", n))
		if err != nil {
			return err
		}
		if err := e.await(session, c.patience(turnLimit)); err != nil {
			return err
		}
		time.Sleep(idlePause)
		return rss(hubIdle)
	}, nil)
	if err != nil {
		return nil, err
	}
	var reading sync.Mutex // held: the editor does not read
	err = c.in(func(e *editor, _ place) error {
		if err := e.call("event.subscribe", map[string]any{}, nil); err != nil {
			return err
		}
		session, err := e.launch(fmt.Sprintf("calls %d@0", n&^1))
		if err != nil {
			return err
		}
		daemon, err := e.daemon()
		if err != nil {
			return err
		}
		reading.Lock()
		time.Sleep(deafPause)
		m[hubDeaf], err = memoryOf(daemon, "VmRSS")
		reading.Unlock()
		if err != nil {
			return err
		}
		return e.await(session, c.patience(turnLimit))
	}, func(time.Time, []byte) {
		reading.Lock()
		reading.Unlock()
	})
	return m, err
}

// deafPause is for how long an editor does not read. An agent has sent all by then.
const deafPause = 4 * time.Second
