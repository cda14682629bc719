//go:build linux || darwin

package socket

import (
	"net"
	"os"
)

// SendFile is writeFile without the count.
func SendFile(conn *net.UnixConn, payload []byte, f *os.File) error {
	_, err := writeFile(conn, payload, f)
	return err
}

// Dropped returns how many received files were closed because [MostQueuedFiles] were waiting.
func (c *FileConn) Dropped() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}
