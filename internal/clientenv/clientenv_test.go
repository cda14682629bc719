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
	environ := []string{"PATH=/bin", "http_proxy=http://p", "LC_TIME=C", "LANG=", "MINE=m", "SECRET=s", "TMPDIR=/\xff", "VIRTUAL_ENV=/v", "OURS_A=a=b", "OURS_B=", "OURSC=c"}
	assert.Equal(t, clientenv.Environment{"PATH": "/bin", "http_proxy": "http://p", "LC_TIME": "C", "MINE": "m", "VIRTUAL_ENV": "/v", "OURS_A": "a=b"},
		clientenv.Collect(environ, []string{"MINE", "MINE", "LANG", "ABSENT", "OURS_*", "SECRET_*"}))
	assert.NotNil(t, clientenv.Collect(nil, nil), "it has been sent, and is empty")
}

func TestWhatIsCollectedKeepsTheLimits(t *testing.T) {
	var short []string
	long := []string{"V0=" + strings.Repeat("x", clientenv.MaxBytes)}
	for n := range 2 * clientenv.MaxVariables {
		short = append(short, "V"+strconv.Itoa(n)+"=v")
		long = append(long, "V"+strconv.Itoa(n+1)+"="+strings.Repeat("y", 200))
	}
	many := clientenv.Collect(short, []string{"V*"})
	assert.Len(t, many, clientenv.MaxVariables)
	require.NoError(t, many.Check())
	large := clientenv.Collect(long, []string{"V*"})
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

// The commands of an agent find the tools that those of its client find. The parts of a sign-in
// come from one place.
func TestAnAgentGetsTheToolsAndTheSignInOfItsClient(t *testing.T) {
	t.Setenv("CLOUD_TOKEN", "hub")
	t.Setenv("CLOUD_REGION", "hub")
	hub := from(map[string]string{"VIRTUAL_ENV": "/hub", "GOPATH": "/hub", "CLOUD_TOKEN": "hub", "CLOUD_REGION": "hub"})
	client := clientenv.Environment{"VIRTUAL_ENV": "/client", "KUBECONFIG": "/k", "CLOUD_REGION": "client", "CLOUDY": "c"}
	assert.Equal(t, map[string]string{"VIRTUAL_ENV": "/client", "KUBECONFIG": "/k", "CLOUD_REGION": "client"}, client.For([]string{"CLOUD_*"}, hub))
	assert.Equal(t, map[string]string{"VIRTUAL_ENV": "/hub", "GOPATH": "/hub", "CLOUD_REGION": "hub", "CLOUD_TOKEN": "hub"},
		clientenv.Environment(nil).For([]string{"CLOUD_*"}, hub), "a turn without a client")
}

func TestVariablesWithKeysThatAreKeptBack(t *testing.T) {
	environ := []string{"B_API_KEY=b", "A_TOKEN=a", "CLOUD_SECRET=c", "EMPTY_TOKEN=", "MAX_TOKENS=5", "KEYBOARD=us", "TOKEN=t", "AWS_BEARER_TOKEN_BEDROCK=d"}
	assert.Equal(t, []string{"AWS_BEARER_TOKEN_BEDROCK", "A_TOKEN", "TOKEN"}, clientenv.KeptBack(environ, []string{"B_API_KEY", "CLOUD_*"}))
	assert.Equal(t, []string{"secret"}, clientenv.Secrets(map[string]string{"A_KEY": "secret", "FILE_KEY": "/path", "PLAIN": "text"}))
}

func TestTheVariablesOfACommand(t *testing.T) {
	hub := from(map[string]string{"PATH": "/hub", "CC": "hub", "GOPATH": "/hub", "SSH_AUTH_SOCK": "hub"})
	more := map[string]string{"GOPATH": "/more"}
	assert.Equal(t, map[string]string{"PATH": "/client", "GOPATH": "/more"},
		clientenv.Environment{"PATH": "/client", "GOPATH": "/client", "SSH_AUTH_SOCK": "client", "SECRET": "s"}.ForCommand(hub, more))
	assert.Equal(t, map[string]string{"PATH": "/hub", "CC": "hub", "GOPATH": "/more"}, clientenv.Environment(nil).ForCommand(hub, more))
	assert.NotContains(t, clientenv.Environment{}.ForCommand(hub, nil), "PATH", "the client has none")
}

func TestTheContextCarriesIt(t *testing.T) {
	assert.Nil(t, clientenv.From(t.Context()))
	e := clientenv.Environment{"A": "b"}
	assert.Equal(t, e, clientenv.From(clientenv.Context(t.Context(), e)))
}
