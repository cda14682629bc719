package term

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAgesAreRounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ago, want := range map[time.Duration]string{
			-time.Hour: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59 * time.Minute: "59m",
			time.Hour: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d",
		} {
			assert.Equal(t, want, Age(time.Now().Add(-ago)))
		}
		assert.Equal(t, "-", AgeOf("yesterday"))
	})
}

func TestShortFitsTableCell(t *testing.T) {
	assert.Equal(t, strings.Repeat("ü", 60), Short(strings.Repeat("ü", 60)))
	assert.Equal(t, strings.Repeat("ü", 59)+"…", Short(strings.Repeat("ü", 61)))
}

func TestJSONCannotControlTerminal(t *testing.T) {
	var out bytes.Buffer
	assert.NoError(t, Raw(&out, []byte("{\"a\":\"x\x7f\u009b\u00a0ü\"}")))
	assert.Equal(t, `{"a":"x\u007f\u009b`+"\u00a0ü\"}\n", out.String())
}

func TestEmptyFieldsAreOmitted(t *testing.T) {
	var out bytes.Buffer
	assert.NoError(t, Fields(&out, Field{"name", "x"}, Field{"none", ""}, Field{"longer name", "a\nb"}))
	assert.Regexp(t, `^name         x\nlonger name  a b\n$`, out.String())
	assert.Equal(t, "1 entry", Count(1, "entry", "entries"))
	assert.Equal(t, "0 entries", Count(0, "entry", "entries"))
	assert.Equal(t, "2 sessions", Count(2, "session"))
}
