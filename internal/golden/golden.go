// Package golden compares what a test got with a file that says what it should
// be. With the flag -update, which it defines, the files are rewritten instead:
//
//	go test ./... -update
//
// so that a change of the wire is read as a diff. A package whose tests have
// no golden files imports this one for the flag alone.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files with what the tests got")

// Bytes requires that the file at path holds got.
func Bytes(t testing.TB, path string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(path)
	switch {
	case err == nil && string(want) == string(got):
		return
	case *update:
		rewrite(t, path, got)
	case err != nil:
		t.Fatalf("%v (go test -update would write it); got:\n%q", err, got)
	default:
		t.Fatalf("not what %s says (go test -update would rewrite it)\nwant: %q\ngot:  %q", path, want, got)
	}
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
