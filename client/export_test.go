package client

import "time"

// KillAfter sets how long a process may live after its standard input was closed.
func (p *Process) KillAfter(d time.Duration) { p.killAfter = d }
