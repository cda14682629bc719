package trigger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An overlong line does not affect the lines after it.
func TestALongLineOfAnIgnoreFileHidesNoOther(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".gitignore")
	if err := os.WriteFile(name, []byte("first\n"+strings.Repeat("x", 70<<10)+"\nbuild\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	patterns := readList(name)
	for _, ignored := range []string{"first", "build"} {
		if !patterns.holds(ignored, true) {
			t.Errorf("%s is not ignored", ignored)
		}
	}
}
