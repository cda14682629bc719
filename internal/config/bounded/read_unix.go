//go:build unix

package bounded

import "syscall"

const nonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
