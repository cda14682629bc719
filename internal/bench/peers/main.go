//go:build linux

// Command peers contains the servers with which the benchmark compares duet-rpc, and the agent that it
// uses. The first argument selects one.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	kind := ""
	if len(os.Args) > 1 {
		kind = os.Args[1]
	}
	var err error
	switch kind {
	case "agent":
		err = serveAgent()
	case "byteecho":
		echoBytes()
	case "frameecho":
		err = echoFrames(os.Stdin, os.Stdout)
	case "lspdev":
		serveLSPDev()
	case "sourcegraph":
		serveSourcegraph()
	default:
		err = errors.New("the first argument names no peer")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, kind+":", err)
		os.Exit(1)
	}
}

// echoBytes writes back every byte that it reads: the minimum cost of a ping-pong with a Go process.
// It knows neither frames nor JSON, so the response to echo and ping is the request itself, and
// notifications come back too. It uses os.Stdin and os.Stdout; bare system calls would be about 0.1 µs
// faster.
func echoBytes() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := os.Stdin.Read(buffer)
		if err != nil {
			return
		}
		if _, err := os.Stdout.Write(buffer[:n]); err != nil {
			return
		}
	}
}
