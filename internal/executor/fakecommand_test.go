//go:build unix

package executor_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// fakeCommand is a program without a protocol.
func fakeCommand() {
	args := os.Args[1:]
	switch os.Getenv(playCommand) {
	case "args":
		fmt.Print(strings.Join(args, "|"))
	case "stdin":
		var b bytes.Buffer
		b.ReadFrom(os.Stdin)
		fmt.Printf("%v %d %s", args, b.Len(), b.String()[:min(b.Len(), 100)])
	case "split":
		os.Stdout.Write([]byte("a\xc3"))
		os.ReadFile(os.Getenv(splitGate)) // a named pipe: blocks until the test, which has read the first half, opens it
		os.Stdout.Write([]byte("\xa4b\xff"))
	case "much":
		fmt.Print(strings.Repeat("x", 60_000))
	case "fail":
		fmt.Print("some")
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(5)
	case "hang":
		fmt.Print("hanging")
		sleeper().Run()
	}
}
