//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// A listing is a call that must stay fast however much there is.
type listing struct {
	method string
	params func(sessions []listed, i int) map[string]any
	p99    *figure
}

// listed is what listSessions tells of a session, as far as it is used here.
type listed struct {
	ID     string `json:"id"`
	TaskID string `json:"task_id"`
	Native string `json:"claude_session_id"`
}

// newListing makes a listing whose params are the same in each call.
func newListing(method, notable string, params map[string]any) listing {
	return listingOf(method, notable, func([]listed, int) map[string]any { return params })
}

func listingOf(method, notable string, params func([]listed, int) map[string]any) listing {
	name := method
	if notable != "" {
		name += ", " + notable
	}
	return listing{method, params, cost(name+", p99", milliseconds)}
}

// ofSession is a listing about one session after the other.
func ofSession(method, notable, param string, id func(listed) string) listing {
	return listingOf(method, notable, func(sessions []listed, i int) map[string]any {
		return map[string]any{param: id(sessions[i%len(sessions)])}
	})
}

func byID(s listed) string     { return s.ID }
func byTask(s listed) string   { return s.TaskID }
func byNative(s listed) string { return s.Native }

var listings = []listing{
	newListing("task.list", "", nil),
	newListing("task.list", "limit 1,000", map[string]any{"limit": 1000}),
	newListing("task.list", "20 failed", map[string]any{"state": "failed"}),
	newListing("task.list", "running, of which there is none", map[string]any{"state": "running"}),
	newListing("task.list", "an agent that has none", map[string]any{"agent": "demo"}),
	ofSession("task.get", "", "taskId", byTask),
	newListing("task.stats", "", nil),
	newListing("listSessions", "", nil),
	newListing("listSessions", "limit 20", map[string]any{"limit": 20}),
	newListing("getSessionLeaves", "", nil),
	ofSession("getSessionState", "", "session_id", byID),
	ofSession("getConversation", "", "session_id", byID),
	ofSession("getConversation", "by claude_session_id", "claude_session_id", byNative),
	listingOf("getConversation", "500 entries", func(sessions []listed, _ int) map[string]any {
		return map[string]any{"session_id": sessions[len(sessions)-1].ID}
	}),
	ofSession("getSessionSnapshots", "", "session_id", byID),
	newListing("fetchApprovals", "100 of them", nil),
	ofSession("fetchApprovals", "of a session", "session_id", byID),
	newListing("getRecentPaths", "", nil),
	newListing("searchConversations", "a word that is everywhere", map[string]any{"query": "flaky"}),
	newListing("searchConversations", "two words, in 20 entries", map[string]any{"query": "part 4711"}),
	newListing("searchConversations", "the beginning of a word", map[string]any{"query": "fla"}),
	newListing("daemon.status", "", nil),
}

var sinceFirst = cost("Subscribe since 100 events ago → first event, p99", milliseconds)

func listingFigures() []*figure {
	var list []*figure
	for _, l := range listings {
		list = append(list, l.p99)
	}
	return append(list, sinceFirst)
}

// listingCalls is how often each listing is called, at scale 1.
const listingCalls = 100

// listEverything measures calls on a database of a great many conversations.
func listEverything(c cell) (m measurement, err error) {
	p, err := c.crowd()
	if err != nil {
		return nil, err
	}
	m = measurement{}
	firsts := make(chan time.Time, 1000)
	err = c.at(p, func(e *editor, _ place) error {
		sessions, last, err := sessionsOf(e)
		if err != nil {
			return err
		}
		for _, l := range listings {
			times := make([]time.Duration, 0, c.count(listingCalls))
			for i := range cap(times) {
				took, err := e.time(l.method, l.params(sessions, i))
				if err != nil {
					return err
				}
				if i > 0 || cap(times) == 1 { // the first one warms up
					times = append(times, took)
				}
			}
			slices.Sort(times)
			if c.verbose {
				fmt.Fprintf(os.Stderr, "    %-60s %7.2f ms, median %7.2f ms\n", l.p99.name, inMilliseconds(quantile(times, 99)), inMilliseconds(quantile(times, 50)))
			}
			m[l.p99] = inMilliseconds(quantile(times, 99))
		}
		var times []time.Duration
		for range c.count(listingCalls) {
			begin := time.Now()
			if err := e.call("Subscribe", map[string]any{"since": last - 100, "event_types": []string{"conversation_updated"}}, nil); err != nil {
				return err
			}
			select {
			case at := <-firsts:
				times = append(times, at.Sub(begin))
			case <-time.After(patience):
				return errors.New("a subscription brought no event")
			}
			time.Sleep(5 * time.Millisecond) // the others of it
			for len(firsts) > 0 {
				<-firsts
			}
		}
		slices.Sort(times)
		m[sinceFirst] = inMilliseconds(quantile(times, 99))
		return nil
	}, func(at time.Time, _ []byte) {
		select {
		case firsts <- at:
		default:
		}
	})
	return m, err
}

// sessionsOf lists the newest sessions, and as the last one the last of the
// long conversation; and it tells the number of the last event.
func sessionsOf(e *editor) (sessions []listed, last int64, err error) {
	var page struct {
		Sessions []listed `json:"sessions"`
	}
	if err := e.call("listSessions", map[string]any{"limit": 200}, &page); err != nil {
		return nil, 0, err
	}
	var long struct {
		Session listed `json:"session"`
	}
	if err := e.call("getSessionState", map[string]any{"session_id": fmt.Sprintf("task-%04d", longConversation)}, &long); err != nil {
		return nil, 0, err
	}
	var status struct {
		Subsystems struct {
			Store struct {
				LastSeq int64 `json:"last_seq"`
			} `json:"store"`
		} `json:"subsystems"`
	}
	err = e.call("daemon.status", nil, &status)
	return append(page.Sessions, long.Session), status.Subsystems.Store.LastSeq, err
}

// time tells how long a call took until its whole answer was there.
func (e *editor) time(method string, params any) (time.Duration, error) {
	begin := time.Now()
	a, err := e.exchange(method, params)
	return a.at.Sub(begin), err
}
