//go:build !linux

package testkit

import "testing"

// AwaitExit does nothing: no system but Linux tells of others' children.
func AwaitExit(testing.TB, int) {}
