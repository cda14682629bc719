package witness

import (
	"os"
	"syscall"
	"testing"
)

// Program writes a program or script that the test has run. No child is forked meanwhile: until a
// child has called exec it has this process's open files, and a file that is open for writing
// cannot be run ("text file busy").
func Program[T string | []byte](t testing.TB, path string, text T) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
