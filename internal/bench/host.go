//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// hostRequests is how many requests take each way, at scale 1.
	hostRequests = 4_000
	// hostBlock is how many requests follow each other on one way before the other one has its turn.
	hostBlock = 50
)

// hostAdds measures a request to the daemon through an editor's process, directly and over a line to a host, in
// turns. The line is two pipes of this machine, so what --host adds is all that is measured.
func hostAdds(c cell) (measurement, error) {
	var m measurement
	err := c.in(func(near *editor, p place) error {
		settings, err := os.OpenFile(filepath.Join(p.home, ".config", "duet", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(settings, "[hosts.here]\ncommand = [\"env\"]\nprogram = %q\n", c.server.command[0])
		if err := errors.Join(err, settings.Close()); err != nil {
			return err
		}
		far, err := open(append(slices.Clone(c.server.command), "--host", "here"), p, nil)
		if err != nil {
			return err
		}
		direct, over, err := alternate(near, far, c.count(hostRequests))
		if err != nil {
			far.child.Process.Kill()
		}
		if err := errors.Join(err, far.close()); err != nil {
			return err
		}
		m = measurement{
			hostDirectP50: inMilliseconds(quantile(direct, 50)), hostDirectP99: inMilliseconds(quantile(direct, 99)),
			hostOverP50: inMilliseconds(quantile(over, 50)), hostOverP99: inMilliseconds(quantile(over, 99)),
			hostAddsP99: inMilliseconds(quantile(over, 99) - quantile(direct, 99)),
		}
		return nil
	}, nil)
	return m, err
}

// alternate sends n requests by each of two editors, in blocks, and returns how long they took, sorted.
func alternate(near, far *editor, n int) (direct, over []time.Duration, err error) {
	for _, e := range []*editor{near, far} { // the first request finds the daemon
		if err := e.call("daemon.status", nil, nil); err != nil {
			return nil, nil, err
		}
	}
	for len(over) < n {
		for _, way := range []struct {
			editor *editor
			times  *[]time.Duration
		}{{near, &direct}, {far, &over}} {
			for range min(hostBlock, n-len(*way.times)) {
				took, err := way.editor.time("daemon.status", nil)
				if err != nil {
					return nil, nil, err
				}
				*way.times = append(*way.times, took)
			}
		}
	}
	slices.Sort(direct)
	slices.Sort(over)
	return direct, over, nil
}
