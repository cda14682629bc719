//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: the load generator needs Linux (poll(2), process CPU clocks and /proc)")
	os.Exit(1)
}
