//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// listingCalls is how often each listing is called, at scale 1.
const listingCalls = 100

// listEverything measures calls on a database of a great many sessions.
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
				fmt.Fprintf(os.Stderr, "    %-60s %7.2f ms, median %7.2f ms\n", l.p99.name, inMilliseconds(quantile(times, 99)),
					inMilliseconds(quantile(times, 50)))
			}
			m[l.p99] = inMilliseconds(quantile(times, 99))
		}
		var times []time.Duration
		for range c.count(listingCalls) {
			begin := time.Now()
			var made struct {
				ID string `json:"subscription_id"`
			}
			if err := e.call(
				"event.subscribe", map[string]any{"since": last - 100, "kinds": []string{"item.added", "item.changed"}}, &made,
			); err != nil {
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
			if err := e.call("event.unsubscribe", map[string]any{"subscription_id": made.ID}, nil); err != nil { // a connection may have 64
				return err
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
// long session; and it tells the number of the last event.
func sessionsOf(e *editor) (sessions []listed, last int64, err error) {
	var page struct {
		Sessions []listed `json:"sessions"`
	}
	if err := e.call("session.list", map[string]any{"limit": 200}, &page); err != nil {
		return nil, 0, err
	}
	var long struct {
		Turn listed `json:"turn"`
	}
	if err := e.call("turn.get", map[string]any{"turn": fmt.Sprintf("1.%d", longSession)}, &long); err != nil {
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
	return append(page.Sessions, long.Turn), status.Subsystems.Store.LastSeq, err
}

// time tells how long a call took until its whole answer was there.
func (e *editor) time(method string, params any) (time.Duration, error) {
	begin := time.Now()
	a, err := e.exchange(method, params)
	return a.at.Sub(begin), err
}
