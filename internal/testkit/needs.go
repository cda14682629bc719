package testkit

import (
	"os"
	"os/exec"
	"testing"
)

// This file is for tests that need a program which this machine may lack.

// NeedTool is the path of a program of this machine. Without it the test is skipped.
func NeedTool(t testing.TB, name string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		SkipMissing(t, name+" is not installed")
	}
	return path
}

// SkipMissing skips a test for which something is missing; with CI=true it fails, so that
// no machine that is made for tests leaves one out without anybody seeing it.
func SkipMissing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}
