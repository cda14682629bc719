//go:build linux

package main

import "time"

// A stopwatch takes wall and CPU time of both sides over a part of a cell.
type stopwatch struct {
	child            *child
	begin            time.Time
	server0, client0 time.Duration
}

func newStopwatch(c *child) stopwatch {
	return stopwatch{child: c, server0: c.cpu(), client0: clientCPU(), begin: time.Now()}
}

// A lap is the time since a stopwatch started.
type lap struct{ wall, server, client time.Duration }

// lap also adds to sum, if there is one.
func (w stopwatch) lap(sum *load) lap {
	l := lap{wall: time.Since(w.begin), server: w.child.cpu() - w.server0, client: clientCPU() - w.client0}
	if sum != nil {
		sum.lap = lap{sum.wall + l.wall, sum.server + l.server, sum.client + l.client}
	}
	return l
}

func (l lap) perSecond(n int) float64     { return float64(n) / l.wall.Seconds() }
func (l lap) cpuPerMillion(n int) float64 { return l.server.Seconds() / float64(n) * 1e6 }

// load tells how busy the two sides of a cell, or of several, were: CPU seconds
// a second, so a server with several threads may exceed 1.
type load struct{ lap }

func (l load) serverBusy() float64 { return l.server.Seconds() / max(l.wall.Seconds(), 1e-9) }
func (l load) clientBusy() float64 { return l.client.Seconds() / max(l.wall.Seconds(), 1e-9) }

// clientBound: the load generator had no time to spare, and the server did.
func (l load) clientBound() bool { return l.clientBusy() > 0.9 && l.serverBusy() < l.clientBusy() }
