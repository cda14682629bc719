package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// This file compares what a test got with a file that contains the expected bytes.
// With DUET_UPDATE_GOLDEN=1 in the environment, it writes the files instead:
//
// 	DUET_UPDATE_GOLDEN=1 make test
//
// Then read the difference in version control.

// updateVariable names the environment variable that makes tests write their golden files.
const updateVariable = "DUET_UPDATE_GOLDEN"

// updating reports whether the tests write their golden files.
func updating() bool { return os.Getenv(updateVariable) == "1" }

// GoldenBytes requires that the file at path holds got.
func GoldenBytes(t testing.TB, path string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	switch {
	case err == nil && string(want) == string(got):
		return
	case updating():
		rewrite(t, path, got)
	case err != nil:
		t.Fatalf("cannot read the golden file: %v; run the test with %s=1 to write it; got:\n%q", err, updateVariable, got)
	default:
		t.Fatalf("the result differs from %s; run the test with %s=1 to rewrite the file; the difference:\nwant: %.4000q\ngot:  %.4000q",
			path, updateVariable, differing(want, got), differing(got, want))
	}
}

// GoldenBlock requires that the fenced block of the Markdown file at path that stands behind
// marker, on a line of its own, holds got.
func GoldenBlock(t testing.TB, path, marker string, got []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const fence = "```\n"
	before, rest, found := strings.Cut(string(text), marker+"\n"+fence)
	_, after, ends := strings.Cut(rest, "\n"+fence)
	if !found || !ends {
		t.Fatalf("%s has no block behind %q", path, marker)
	}
	GoldenBytes(t, path, []byte(before+marker+"\n"+fence+string(got)+fence+after))
}

// differing is the part of a that b has not, and some of what is around it.
func differing(a, b []byte) []byte {
	const around = 100
	from, tail := 0, 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	for tail < min(len(a), len(b))-from && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return a[max(0, from-around):min(len(a), len(a)-tail+around)]
}

func rewrite(t testing.TB, path string, got []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, got, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("rewrote %s", path)
}
