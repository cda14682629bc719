package clientenv_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
)

func from(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func TestOnlyKnownAndNamedVariablesAreCollected(t *testing.T) {
	getenv := from(map[string]string{
		"PATH": "/bin", "http_proxy": "http://p", "LC_TIME": "C", "LANG": "", "MINE": "m", "SECRET": "s", "TMPDIR": "/\xff",
	})
	assert.Equal(t, clientenv.Environment{"PATH": "/bin", "http_proxy": "http://p", "LC_TIME": "C", "MINE": "m"},
		clientenv.Collect(getenv, []string{"MINE", "MINE", "LANG", "ABSENT"}))
	assert.NotNil(t, clientenv.Collect(from(nil), nil), "it has been sent, and is empty")
}

func TestWhatIsCollectedKeepsTheLimits(t *testing.T) {
	var names []string
	for n := range 2 * clientenv.MaxVariables {
		names = append(names, "V"+strconv.Itoa(n))
	}
	many := clientenv.Collect(func(string) string { return "v" }, names)
	assert.Len(t, many, clientenv.MaxVariables)
	require.NoError(t, many.Check())
	large := clientenv.Collect(func(name string) string {
		if name == "V0" {
			return strings.Repeat("x", clientenv.MaxBytes)
		}
		return strings.Repeat("y", 200)
	}, names)
	assert.NotContains(t, large, "V0")
	assert.Contains(t, large, "V1")
	require.NoError(t, large.Check())
}

func TestCheck(t *testing.T) {
	many := clientenv.Environment{}
	for n := range clientenv.MaxVariables + 1 {
		many["V"+strconv.Itoa(n)] = ""
	}
	for want, e := range map[string]clientenv.Environment{
		"257 variables: more than 256 are refused":      many,
		"65537 bytes: more than 65536 are refused":      {"A": strings.Repeat("x", clientenv.MaxBytes)},
		`the name "", which no variable can have`:       {"": "v"},
		`the name "A=B", which no variable can have`:    {"A=B": "v"},
		`the name "A\x00B", which no variable can have`: {"A\x00B": "v"},
		`a NUL in the value of "A"`:                     {"A": "hidden\x00"},
	} {
		assert.EqualError(t, e.Check(), want)
	}
	assert.NoError(t, clientenv.Environment{"A": strings.Repeat("x", clientenv.MaxBytes-1)}.Check())
	assert.NoError(t, clientenv.Environment(nil).Check())
}

func TestTheVariablesOfAnAgent(t *testing.T) {
	hub := from(map[string]string{"PATH": "/hub", "SSH_AUTH_SOCK": "hub", "MINE": "hub", "OTHER": "hub", "SECRET": "hub"})
	named := []string{"MINE", "OTHER", "SSH_AUTH_SOCK"}
	assert.Equal(t, map[string]string{"PATH": "/client", "MINE": "client", "OTHER": "hub"},
		clientenv.Environment{"PATH": "/client", "MINE": "client", "LD_PRELOAD": "evil"}.For(named, hub), "the hub's agent socket is not the client's")
	assert.Equal(t, map[string]string{"PATH": "/hub", "SSH_AUTH_SOCK": "hub", "MINE": "hub", "OTHER": "hub"}, clientenv.Environment(nil).For(named, hub))
	assert.Empty(t, clientenv.Environment{}.For(nil, hub))
}

func TestTheVariablesOfACommand(t *testing.T) {
	hub := from(map[string]string{"PATH": "/hub", "CC": "hub", "GOPATH": "/hub", "SSH_AUTH_SOCK": "hub"})
	more := map[string]string{"GOPATH": "/more"}
	assert.Equal(t, map[string]string{"PATH": "/client", "CC": "hub", "GOPATH": "/more"},
		clientenv.Environment{"PATH": "/client", "GOPATH": "/client", "SSH_AUTH_SOCK": "client", "SECRET": "s"}.ForCommand(hub, more))
	assert.Equal(t, map[string]string{"PATH": "/hub", "CC": "hub", "GOPATH": "/more"}, clientenv.Environment(nil).ForCommand(hub, more))
	assert.NotContains(t, clientenv.Environment{}.ForCommand(hub, nil), "PATH", "the client has none")
}

func TestTheContextCarriesIt(t *testing.T) {
	assert.Nil(t, clientenv.From(t.Context()))
	e := clientenv.Environment{"A": "b"}
	assert.Equal(t, e, clientenv.From(clientenv.Context(t.Context(), e)))
}
