//go:build soak

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manyMembers is an object with n small members, each with a name of its own.
func manyMembers(n int) string {
	var b strings.Builder
	b.WriteString(`{"level":"info"`)
	for i := range n {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	b.WriteByte('}')
	return b.String()
}

// A message may be as long as the limit and as odd as can be: it costs some
// copies of itself, not a tree of small objects.
func TestOddMessagesCostLittleMemory(t *testing.T) {
	binary, err := fastProgram()
	require.NoError(t, err)
	long := strings.Repeat("x", 10_000_000)
	escaped := strings.Repeat(`\u0041`, len(long)/6)
	request := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, method, params)
	}
	for name, message := range map[string]string{
		"many members where none are wanted": request("ping", manyMembers(900_000)),
		"many members where some are wanted": request("setLogLevel", manyMembers(900_000)),
		"one member many times":              request("ping", `{"a":0`+strings.Repeat(`,"a":0`, 1_600_000)+`}`),
		"a long value":                       request("setLogLevel", `{"level":"`+long+`"}`),
		"a long value in escapes":            request("setLogLevel", `{"level":"`+escaped+`"}`),
		"a long value that is not looked at": request("initialize", `{"capabilities":"`+long+`"}`),
		"a long method":                      request(long, `1`),
		"a long method in escapes":           request(escaped, `1`),
		"a long id":                          `{"jsonrpc":"2.0","method":"nosuch","id":"` + long + `"}`,
		"a long name in escapes":             `{"jsonrpc":"2.0","method":"nosuch","id":1,"` + escaped + `":1}`,
		"a long array":                       request("ping", `[1`+strings.Repeat(`,1`, 5_000_000)+`]`),
		"a batch of long replies":            "[" + strings.Repeat(request("rpc.discover", `null`)+",", maxBatch-1) + request("ping", `null`) + "]",
		"a batch of long requests":           "[" + strings.Repeat(request("echo", `"`+long[:10_000]+`"`)+",", maxBatch-1) + request("ping", `null`) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.LessOrEqual(t, len(message), maxFrame)
			p := launch{binary: binary, args: []string{"--log-level", "error"}}.start(t)
			for range 3 {
				go atOnce(p.stdin, []byte(framed(message)))
				p.next()
			}
			p.requireServing()
			most := p.memory(t, "VmHWM")
			t.Logf("%d MB at most", most>>20)
			assert.Less(t, most, hostileMemory)
			p.finish()
		})
	}
}
