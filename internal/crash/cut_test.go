//go:build linux

package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A power cut leaves what is synced, and of the rest any part, page by page.
func TestCut(t *testing.T) {
	from := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, "old"), []byte("old"), 0o600))
	page := strings.Repeat("p", pageSize)
	trace := `1 openat(AT_FDCWD</top>, "new", O_WRONLY|O_CREAT, 0600) = 3</top/new>
1 write(3</top/new>, "` + page + page + `", 8192) = 8192
1 fsync(3</top/new>) = 0
1 write(3</top/new>, "tail", 4) = 4
2 fsync(4</top> <unfinished ...>
1 rename("new", "old") = 0
2 <... fsync resumed>) = 0
2 unlink("missing") = -1 ENOENT (No such file or directory)
1 write(9<socket:[1]>, "acknowledged", 12) = 12
1 fsync(4</top>) = 0
`
	// strace prints strings, and the paths of descriptors, in hexadecimal.
	hexed := regexp.MustCompile(`"[^"]*"|<(/|socket)[^>]*>`).ReplaceAllStringFunc(trace, func(text string) string {
		inner := ""
		for _, b := range []byte(text[1 : len(text)-1]) {
			inner += fmt.Sprintf(`\x%02x`, b)
		}
		return text[:1] + inner + text[len(text)-1:]
	})
	list, lines, err := readTrace(strings.NewReader(hexed), 1)
	require.NoError(t, err)
	assert.Equal(t, 10, lines)
	d, err := readDisk(from, "/top")
	require.NoError(t, err)
	d.add(list)
	require.Empty(t, d.kept)
	d.settle()
	assert.Equal(t, []message{{9, []byte("acknowledged")}}, d.sent)

	states := func(line int, lost loss) map[string]int {
		seen := make(map[string]int)
		for number := range uint64(200) {
			text := ""
			files := d.cut(line, lost, rand.New(rand.NewPCG(1, number))).files()
			for _, name := range []string{"new", "old"} {
				if f, there := files[name]; there {
					text += name + "=" + strings.NewReplacer(page, "P", strings.Repeat("\x00", pageSize), "0", "\x00", "-").Replace(string(f.content)) + " "
				}
			}
			seen[strings.TrimSpace(text)]++
		}
		return seen
	}
	one := func(line int, lost loss) string {
		list := states(line, lost)
		require.Len(t, list, 1)
		for text := range list {
			return text
		}
		return ""
	}
	assert.Equal(t, "old=old", one(4, all), "the file is synced, and its name is not")
	assert.Equal(t, "new=PPtail old=old", one(5, none))
	assert.Equal(t, "new=PP old=old", one(8, all), "the sync of the directory began before the rename")
	assert.Equal(t, "old=PPtail", one(8, none))
	assert.Equal(t, "old=PP", one(11, all), "the rename is synced")
	torn := states(3, random)
	for _, want := range []string{"old=old", "new= old=old", "new=PP old=old", "new=P0 old=old", "new=0P old=old"} {
		assert.Contains(t, torn, want)
	}
	for text := range states(8, ordered) {
		assert.Contains(t, []string{"new=PP old=old", "new=PPtail old=old", "new=PP---- old=old", "old=PP", "old=PPtail", "old=PP----"}, text)
	}
}
