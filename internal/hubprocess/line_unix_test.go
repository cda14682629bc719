//go:build unix

package hubprocess

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever a host answers, the error says what it is, in visible characters, and nothing runs here.
func TestHostileHost(t *testing.T) {
	const answer = `read -r line; body='%s'; printf 'Content-Length: %%d\r\n\r\n%%s' "${#body}" "$body"`
	for name, c := range map[string]struct{ script, want string }{
		"text without end": {
			`while echo 'what is this'; do :; done`,
			`far: the host writes "what is this\\n.*" before an answer: let its start files write nothing`,
		},
		"no answer":                   {`exit 3`, `far: sh ended without an answer \(exit status 3\)`},
		"words and no answer":         {`echo 'first' >&2; printf 'no \033[31mway\n' >&2; exit 1`, `far: no ⟨U\+001B⟩\[31mway`},
		"a frame without end":         {`printf 'Content-Length: 99999999999\r\n\r\n'; cat`, `far: frame refused: oversize: `},
		"an answer that is no object": {fmt.Sprintf(answer, `{"jsonrpc":"2.0","id":0,"result":[7]}`), `far: .*cannot unmarshal array`},
		"a refusal": {
			fmt.Sprintf(answer, `{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"go \u001b[2Jaway","data":{"kind":"evil"}}}`),
			`far: go ⟨U\+001B⟩\[2Jaway$`,
		},
		"another protocol": {
			fmt.Sprintf(answer, `{"jsonrpc":"2.0","id":0,"result":{"version":"9.9","protocol":99}}`),
			`far: duet-rpc 9.9 there speaks protocol 99, this duet-rpc 1.2 protocol 1; it was not copied there: the host prints something before`,
		},
		"no program in a cluster": {
			`echo 'exec: "duet-rpc": executable file not found in $PATH' >&2; exit 1`,
			`far: there is no program duet-rpc; it was not copied there: exec: "duet-rpc": executable file`,
		},
		"no program": {`exit 127`, `far: there is no program duet-rpc; it was not copied there: exit status 127`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", dir)
			t.Setenv("XDG_STATE_HOME", dir)
			t.Setenv("LONG", strings.Repeat(`"`, 60<<10)) // more than a pipe holds: the request is sent only if it is read
			require.NoError(t, os.Mkdir(filepath.Join(dir, "duet"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "duet", "config.toml"),
				fmt.Appendf(nil, "[hosts.far]\ncommand = [\"sh\", \"-c\", '''%s''']\nenv_from = [\"LONG\"]\n", c.script), 0o600))
			s := &Settings{Version: "1.2", Host: "far", Root: "/"}
			h, err := s.Remote()
			require.NoError(t, err)
			_, err = h.Connect(t.Context(), StartNever)
			require.Error(t, err)
			assert.Regexp(t, c.want, err.Error())
		})
	}
}
