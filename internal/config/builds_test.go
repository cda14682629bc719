package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

func TestBuildsOfAProjectWaitForTrust(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "[[builds]]\nname = 'app'\nshell = 'make mine'\n[[builds]]\nname = 'own'\ncommand = ['make']\ntimeout = '5m'\n")
	w.write(w.project, "[[builds]]\nname = 'app'\ncommand = ['make', 'theirs']\ndirectory = 'web'\nbackend = true\nenv = { LD_PRELOAD = 'evil.so' }\n")
	mine := config.Build{Definition: config.Definition{Name: "app", Shell: "make mine", Timeout: 30 * time.Minute, Source: config.SourceUser}}
	own := config.Build{Definition: config.Definition{Name: "own", Command: []string{"make"}, Timeout: 5 * time.Minute, Source: config.SourceUser}}

	c := w.load()
	assert.Equal(t, []config.Build{mine, own}, c.Builds)
	assert.Equal(t, []string{w.project}, c.Untrusted)
	assert.Contains(t, texts(c.Values()), `builds.app ["make", "theirs"] in "web" env { LD_PRELOAD = "…" } waits`)

	inspected, err := config.Inspect(w.project, w.getenv)
	require.NoError(t, err)
	assert.Equal(t, []string{`builds.app ["make", "theirs"] in "web" env { LD_PRELOAD = "evil.so" }`}, texts(inspected.Asks), "all of it is shown to be judged")

	c = w.trusted().load()
	theirs := config.Build{
		Definition: config.Definition{
			Name: "app", Command: []string{"make", "theirs"}, Directory: "web", Timeout: 30 * time.Minute,
			Env: map[string]string{"LD_PRELOAD": "evil.so"}, Source: config.SourceProject,
		},
		Backend: true,
	}
	assert.Equal(t, []config.Build{theirs, own}, c.Builds)
}

func texts(values []config.Value) (list []string) {
	for _, v := range values {
		text := v.Key + " " + config.ValueText(v.Value)
		if v.Waits {
			text += " waits"
		}
		list = append(list, text)
	}
	return list
}

func TestWrongBuildsAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"[[builds]]\ncommand = ['make']":                                           "name is missing in [[builds]]",
		"[[builds]]\nname = 'a'":                                                   "command is missing in [[builds]]",
		"[[builds]]\nname = 'a'\ncommand = ['make']\nshell = 'make'":               "shell in [[builds]]: expected nothing, where there is a command",
		"[[builds]]\nname = 'a'\ncommand = []":                                     "command in [[builds]]: expected a program",
		"[[builds]]\nname = 'a'\nshell = 'x'\n[[builds]]\nname = 'a'\nshell = 'y'": "a name that no other build of the file has",
		"[[builds]]\nname = 'a'\nshell = 'x'\ntimeout = '0s'":                      "timeout in [[builds]]: expected",
		"[[builds]]\nname = 'a'\nshell = 'x'\ncomand = ['make']":                   `unknown key "comand" in [[builds]]`,
	} {
		w := newWorld(t)
		w.write(w.user, file)
		_, err := config.Load(w.sources())
		assert.ErrorContains(t, err, want, file)
	}
}
