package config_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

const secret = "sk-1234"

func TestFetch(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it runs sh")
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	sh := func(script string) config.Key { return config.Key{Command: []string{"sh", "-c", script}} }
	env := map[string]string{"KEY": " " + secret + "\n", "LINES": secret + "\n" + secret, "BLANK": " "}
	for _, test := range []struct {
		name string
		key  config.Key
		want string // or
		err  string
	}{
		{"variable", config.Key{Env: "KEY"}, secret, ""},
		{"variable that is not set", config.Key{Env: "NONE"}, "", "NONE is not set"},
		{"variable of blanks", config.Key{Env: "BLANK"}, "", "its env gave nothing"},
		{"variable of lines", config.Key{Env: "LINES"}, "", "its env gave more than one line"},
		{"command", sh("echo; echo ' " + secret + "'"), secret, ""},
		{"command that fails", sh("echo " + secret + "; echo " + secret + " >&2; exit 3"), "", "the command sh failed: exit status 3"},
		{"command that is silent", sh("true"), "", "its command gave nothing"},
		{"command that is not there", config.Key{Command: []string{"no-such-program"}}, "", "no-such-program"},
		{"command with the longest key", sh("head -c 65536 /dev/zero | tr '\\0' x"), strings.Repeat("x", 65536), ""},
		{"command with a longer one", sh("head -c 65537 /dev/zero | tr '\\0' x"), "", "more than 65536 bytes"},
		{"file", config.Key{File: file("key", secret+"\n")}, secret, ""},
		{"file that is not there", config.Key{File: filepath.Join(dir, "none")}, "", "no such file"},
		{"file that is a directory", config.Key{File: dir}, "", "no regular file"},
		{"file with a longer one", config.Key{File: file("long", strings.Repeat("x", 65537))}, "", "longer than 65536 bytes"},
		{"nothing", config.Key{}, "", "no env, command or file is configured for it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.key.Fetch(t.Context(), func(name string) string { return env[name] })
			assert.Equal(t, test.want, got)
			if test.err == "" {
				assert.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.err)
			assert.NotContains(t, err.Error(), secret)
		})
	}
}

func TestFetchWarnsOfAFileThatOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes tell nothing")
	}
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	path := filepath.Join(t.TempDir(), "key")
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: true, 0o604: true} {
		log.Reset()
		require.NoError(t, os.WriteFile(path, []byte(secret), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		got, err := config.Key{File: path}.Fetch(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, secret, got)
		assert.Equal(t, warns, strings.Contains(log.String(), "chmod 600"), "%v", mode)
		assert.NotContains(t, log.String(), secret)
	}
}
