package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const secret = "hunter2"

// People paste logs into reports. Not a byte of a refused frame and not a
// parameter may be in one, at any level.
func TestLogKeepsSecrets(t *testing.T) {
	with := func(params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"setLogLevel","params":%s}`, params)
	}
	object := with(`{"level":"` + secret + `"}`)
	for name, in := range map[string]string{
		"served":                 framed(echoRequest(`["` + secret + `"]`)),
		"wrong level":            framed(object),
		"wrong params":           framed(with(`["` + secret + `","` + secret + `"]`)),
		"wrong member":           framed(with(`{"level":{"` + secret + `":1}}`)),
		"wrong version":          framed(strings.Replace(object, "2.0", secret, 1)),
		"wrong method":           framed(`{"jsonrpc":"2.0","id":1,"method":{"` + secret + `":1}}`),
		"wrong id":               framed(`{"jsonrpc":"2.0","id":["` + secret + `"],"method":"ping"}`),
		"a result for nobody":    framed(`{"jsonrpc":"2.0","id":5,"result":"` + secret + `"}`),
		"an error for nobody":    framed(`{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"` + secret + `"}}`),
		"a cancellation":         framed(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":"` + secret + `"}`),
		"a notification":         framed(`{"jsonrpc":"2.0","method":"nosuch","params":"` + secret + `"}`),
		"a batch":                framed(`["` + secret + `",` + object + `]`),
		"oversize":               framed(echoRequest(`"` + secret + strings.Repeat(".", 500) + `"`)),
		"header too large":       "X-Key: " + strings.Repeat(secret, 100) + "\r\n" + framed(object),
		"missing content length": "X-Key: " + secret + "\r\n\r\n" + object,
		"bad content length":     "Content-Length: " + secret + "\r\n\r\n" + object,
		"other type":             "Content-Type: text/" + secret + "\r\n" + framed(object),
		"other charset":          "Content-Type: application/vscode-jsonrpc; charset=" + secret + "\r\n" + framed(object),
		"garbage":                "a stray print of " + secret + "\n",
		"not JSON":               framed(object + secret),
		"not UTF-8":              framed(object + "\xff"),
		"a cut frame":            "Content-Length: 400\r\n\r\n" + object,
		"a cut header":           "X-Key: " + secret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := launch{args: []string{"--log-level", "debug", "--max-frame-bytes", "400", "--max-header-bytes", "400"}}
			p := l.start(t)
			p.send(in)
			p.closeStdin()
			p.rest()
			p.requireSuccess()
			require.Contains(t, p.log.String(), "msg=stopped")
			require.Greater(t, strings.Count(p.log.String(), "\n"), 2, "there is a line about it")
			assert.NotContains(t, p.log.String(), secret)
		})
	}
}

// The values of the environment are not logged either.
func TestLogKeepsTheEnvironment(t *testing.T) {
	p := launch{args: []string{"--log-level", "debug", "--test-methods"}, env: []string{"SOME_API_KEY=" + secret}}.start(t)
	p.ask(`{"jsonrpc":"2.0","id":1,"method":"test.panic"}`)
	p.finish()
	assert.NotContains(t, p.log.String(), secret)
}

// A log file that is a pipe, a device or a link is written to as it is.
func TestLogFileOfAnyKind(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, []byte("kept\n"), 0o644))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{link, os.DevNull} {
		p := launch{env: []string{"DUET_RPC_LOG=" + path}}.start(t)
		p.requireServing()
		p.finish()
		assert.Empty(t, p.log.String())
	}
	log := readFile(t, target)
	assert.Contains(t, log, "kept\n")
	assert.Contains(t, log, "msg=stopped")
}
