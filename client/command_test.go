package client

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process has two seconds to end after its standard input was closed.
func TestCloseKillsAProcessAfterTwoSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		endsAfter time.Duration
		killed    bool
		took      time.Duration
	}{
		"it ends at once": {0, false, 0},
		"it ends late":    {2*time.Second - 1, false, 2*time.Second - 1},
		"it does not end": {time.Hour, true, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, process := net.Pipe()
				defer process.Close()
				gone, killed := make(chan struct{}), make(chan struct{})
				transport := &processTransport{kill: func() { close(killed) }, killAfter: killAfter, in: in, out: in}
				began := time.Now()
				go func() {
					_, err := process.Write([]byte("its last words"))
					assert.NoError(t, err, "Close reads what the process still writes")
					select {
					case <-time.After(c.endsAfter):
					case <-killed:
					}
					close(gone)
				}()
				transport.terminate(gone)
				assert.Equal(t, c.took, time.Since(began))
				select {
				case <-killed:
					assert.True(t, c.killed)
				default:
					assert.False(t, c.killed)
				}
				_, err := in.Read(nil)
				require.Error(t, err, "the pipe is closed")
			})
		})
	}
}
