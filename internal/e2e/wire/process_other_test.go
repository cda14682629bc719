//go:build !linux

package wire

import "github.com/duet-rpc/duet-rpc/internal/e2e"

// requireInputRead does nothing: only Linux reports the unread bytes of a pipe to the test.
func requireInputRead(*e2e.Process) {}

// requireDescriptorsTaken does nothing: only Linux has /proc.
func requireDescriptorsTaken(*e2e.Process) {}
