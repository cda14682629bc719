package turn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const png = "\x89PNG\r\n\x1a\n and more"

// tree creates files below a new directory whose path has no symbolic links.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestFilesBecomeMatchingContent(t *testing.T) {
	dir := tree(t, map[string]string{"a.png": png, "b.go": "package b\n", "empty": "", "x.bin": "\x00\x01", "r.wav": "RIFF\x24\x08\x00\x00WAVEfmt \xff"})
	for name, want := range map[string]string{"a.png": "image image/png", "b.go": "resource text", "empty": "resource text", "x.bin": "resource blob", "r.wav": "audio audio/wave"} {
		blocks, err := attachFiles([]string{filepath.Join(dir, name)})
		require.NoError(t, err)
		require.Len(t, blocks, 1)
		b := blocks[0]
		got := b.Type + " " + b.MIMEType
		if b.Resource != nil {
			assert.True(t, strings.HasPrefix(b.Resource.URI, "file:///") && strings.HasSuffix(b.Resource.URI, name), b.Resource.URI)
			got = b.Type + map[bool]string{true: " text", false: " blob"}[b.Resource.Text != nil]
		}
		assert.Equal(t, want, got, name)
	}
}

func TestUnusableFilesAreRefused(t *testing.T) {
	dir := tree(t, map[string]string{"most": strings.Repeat("x", most), "one": "x"})
	_, err := attachFiles([]string{filepath.Join(dir, "most")})
	assert.NoError(t, err)
	_, err = attachFiles([]string{filepath.Join(dir, "most"), filepath.Join(dir, "one")})
	assert.ErrorContains(t, err, "at most 7340032 in all")
	_, err = attachFiles([]string{filepath.Join(dir, "none")})
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = attachFiles([]string{dir})
	assert.ErrorContains(t, err, "is a directory and cannot be attached")
	_, err = attachFiles([]string{"-"})
	assert.ErrorContains(t, err, "standard input cannot be attached: write it to a file and attach that")
}

func TestMentionedFiles(t *testing.T) {
	long := strings.Repeat("x", mostMentioned)
	dir := tree(t, map[string]string{
		"p/a.txt": "a", "p/sub/b.txt": "b", "p/fits": long, "p/long": long + "x", "p/a.png": png, "p/x.bin": "\x00\x01", "secret": "s",
	})
	root := filepath.Join(dir, "p")
	require.NoError(t, os.Symlink(filepath.Join(dir, "secret"), filepath.Join(root, "link")))
	for text, want := range map[string]struct {
		names   string
		outside []string
	}{
		"see @a.txt, and (@a.txt) @a.txt.":          {"resource a.txt", nil},
		"from below: @b.txt and @sub/b.txt":         {"resource b.txt", nil},
		"@a.png @fits @long @x.bin":                 {"image a.png, resource fits, resource_link long, resource_link x.bin", nil},
		"mail me@a.txt, @nobody, @ and @sub":        {"", nil},
		"@../secret, @link and @" + dir + "/secret": {"", []string{"../secret"}}, // the same file
		"@link":               {"", []string{"link"}},
		"@" + root + "/a.txt": {"resource a.txt", nil},
		"@-1,7 +1,7 @@ as in a diff @param @a.txt:3 @override": {"", nil},
	} {
		blocks, outside := mentionedFiles(text, filepath.Join(root, "sub"), root)
		var names []string
		for _, b := range blocks {
			uri := b.URI
			if b.Resource != nil {
				uri = b.Resource.URI
			}
			names = append(names, b.Type+" "+uri[strings.LastIndex(uri, "/")+1:])
		}
		assert.Equal(t, want.names, strings.Join(names, ", "), text)
		assert.Equal(t, want.outside, outside, text)
	}
}
