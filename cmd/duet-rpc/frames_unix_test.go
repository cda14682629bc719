//go:build unix

package main_test

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

func init() {
	frameModes = append(frameModes, struct {
		name     string
		converse func(*testing.T, frameCase) []byte
	}{"socket pairs", throughSocketPairs})
}

// throughSocketPairs gives the program a socket in each direction, as Node does.
func throughSocketPairs(t *testing.T, c frameCase) []byte {
	in, theirIn := e2e.SocketPair(t)
	out, theirOut := e2e.SocketPair(t)
	p := e2e.Launch{Args: c.args, Stdin: theirIn, Stdout: theirOut}.Start(t)
	theirIn.Close()
	theirOut.Close()
	go func() {
		e2e.AtOnce(in, c.in)
		in.Close()
	}()
	got, err := io.ReadAll(out)
	if !errors.Is(err, syscall.ECONNRESET) { // the program ended with unread input, as after a shutdown
		require.NoError(t, err)
	}
	p.RequireSuccess()
	return got
}
