//go:build unix

package config

import "syscall"

const nonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
