package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

func TestPathsAreToldFromTheProjectAndHome(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	p := project.Project{Root: "/home/u/p", StateDir: "/home/u/p/.duet"}
	for text, want := range map[string]string{
		"/home/u/p/.duet/lock is a directory": ".duet/lock is a directory",
		"open /home/u/p/.duet/duet.db: no":    "open .duet/duet.db: no",
		"(/home/u/p): is full":                "(the project's directory): is full",
		"/home/u/p2/x and /home/u/p-":         "~/p2/x and ~/p-",
		"/srv/home/u/p/x, /home/u2":           "/srv/home/u/p/x, /home/u2",
		"/home/u":                             "~",
		".duet.toml:1:3: what is this":        ".duet.toml:1:3: what is this",
	} {
		assert.Equal(t, want, toldPaths(text, p))
	}
	assert.Equal(t, "/x/y", toldPaths("/x/y", project.Project{Root: "/"}))
}

func TestLogIsPrintedAsJSON(t *testing.T) {
	var out bytes.Buffer
	l := &logLines{out: &out, json: true}
	for _, part := range []string{
		"time=T level=INFO msg=started pid=7\ntime=T level=WARN m", "sg=\"a \\\"b\\\" c\" \"odd key\"=\"\"\n",
		"duet-rpc: panic=1\n\ngoroutine 1 [running]:\ntime=T level", "=INFO msg=last",
	} {
		_, err := l.Write([]byte(part))
		assert.NoError(t, err)
	}
	assert.NoError(t, l.Close())
	assert.Equal(t, `{"level":"INFO","msg":"started","pid":"7","time":"T"}
{"level":"WARN","msg":"a \"b\" c","odd key":"","time":"T"}
{"text":"duet-rpc: panic=1"}
{"text":""}
{"text":"goroutine 1 [running]:"}
{"level":"INFO","msg":"last","time":"T"}
`, out.String())
}

// A log can have come with a project.
func TestALogDoesNotTalkToTheTerminal(t *testing.T) {
	var out bytes.Buffer
	l := &logLines{out: &out}
	_, err := l.Write([]byte("one \x1b[2J\n\ntwo\x9b\xc2\x9b"))
	assert.NoError(t, err)
	assert.NoError(t, l.Close())
	assert.Equal(t, "one "+shown.Exact("\x1b")+"[2J\n\ntwo"+shown.Exact("\x9b\u009b")+"\n", out.String())
	assert.NotContains(t, out.String(), "\x1b")
}
