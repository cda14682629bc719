// Command byteecho writes back every byte that it reads, with bare system
// calls: the floor of what a ping-pong with a Go process costs. It knows
// neither frames nor JSON, so echo and ping are both served by returning the
// request itself, and notifications come back too.
package main

import "syscall"

func main() {
	const stdin, stdout = 0, 1
	buffer := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(stdin, buffer)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		for rest := buffer[:n]; len(rest) > 0; {
			n, err := syscall.Write(stdout, rest)
			if err == syscall.EINTR {
				continue
			}
			if err != nil {
				return
			}
			rest = rest[n:]
		}
	}
}
