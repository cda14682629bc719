package term

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLogIsPrintedAsJSON(t *testing.T) {
	var out bytes.Buffer
	l := &LogLines{Out: &out, JSON: true}
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

// A log may come from a third party along with a project.
func TestLogCannotControlTerminal(t *testing.T) {
	var out bytes.Buffer
	l := &LogLines{Out: &out}
	_, err := l.Write([]byte("one \x1b[2J\n\ntwo\x9b\xc2\x9b"))
	assert.NoError(t, err)
	assert.NoError(t, l.Close())
	assert.Equal(t, "one "+Exact("\x1b")+"[2J\n\ntwo"+Exact("\x9b\u009b")+"\n", out.String())
	assert.NotContains(t, out.String(), "\x1b")
}
