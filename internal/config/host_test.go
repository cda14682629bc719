package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// hostsOf returns a function that reads a user's file with this text.
func hostsOf(t *testing.T, text string) (getenv func(string) string) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "duet", "config.toml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return func(name string) string {
		if name == "XDG_CONFIG_HOME" || name == "HOME" {
			return home
		}
		return ""
	}
}

func TestMadeHostsHaveNames(t *testing.T) {
	t.Parallel()
	getenv := hostsOf(t, `[hosts.box]
command = ["podman", "exec", "-i", "{host}"]
start = ["podman", "run", "--name={host}", "image"]
stop = ["podman", "rm", "{host}"]
per = "session"
[hosts.dev-abcdef]
command = ["exec", "{host}"]
start = ["start"]
[hosts.plain]
command = ["exec", "{host}"]
`)
	named := func(name string) config.Host {
		t.Helper()
		h, err := config.HostNamed(name, getenv)
		require.NoError(t, err)
		return h
	}
	box := named("box")
	assert.True(t, box.NeedsSession())

	const one, other = "0207cee9-fd03-49dc-972b-b347b4256a19", "0207cee9-fd03-49dc-972b-b347b4256a20"
	own := box.ForSession(one)
	assert.Regexp(t, `^box-[0-9a-f]{6}$`, own.Name)
	assert.Equal(t, own, box.ForSession(one), "it is the same each time")
	assert.NotEqual(t, own.Name, box.ForSession(other).Name, "UUIDs that begin with the same time differ")
	assert.Equal(t, own, named(own.Name), "its name is that of a host")
	assert.Equal(t, "box", own.Of)
	assert.False(t, own.NeedsSession())
	assert.Equal(t, []string{"podman", "exec", "-i", "duet-" + own.Name}, own.Command)
	assert.Equal(t, []string{"podman", "run", "--name=duet-" + own.Name, "image"}, own.Start)
	assert.Equal(t, []string{"podman", "rm", "duet-" + own.Name}, own.Stop)

	dev := named("dev-abcdef")
	assert.False(t, dev.NeedsSession(), "a name of the configuration comes first")
	here := dev.ForProject("/src/app")
	assert.Regexp(t, `^duet-dev-abcdef-[0-9a-f]{8}$`, here.Made)
	assert.Equal(t, []string{"exec", here.Made}, here.Command)
	assert.Equal(t, "dev-abcdef", here.Name, "the user's name for it stays")
	assert.NotEqual(t, here.Made, dev.ForProject("/src/other").Made)
	assert.Equal(t, []string{"exec", "{host}"}, named("plain").Command, "a host that is not made has no placeholder")

	for _, name := range []string{"dev-123456", "plain-123456", "box-12345", "box-12345g", "box-1234567", "-123456", "box", "123456"} {
		if _, err := config.HostNamed(name, getenv); name != "box" {
			assert.ErrorAs(t, err, new(*config.UnknownHostError), name)
		}
	}
}

func TestKeysOfMadeHostsFit(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		`stop = ["x"]`:                                   "stop in [hosts.box]: expected start beside it",
		`per = "session"`:                                "per in [hosts.box]: expected start beside it",
		"start = [\"x\"]\nper = \"turn\"":                `per in [hosts.box]: expected "project" or "session"`,
		"start = [\"x\", \"{host}\"]\nper = \"session\"": "command in [hosts.box]: expected an argument with {host}, because each session has a host of its own",
	} {
		_, err := config.Hosts(hostsOf(t, "[hosts.box]\ncommand = [\"exec\"]\n"+text+"\n"))
		assert.ErrorContains(t, err, why)
	}
	_, err := config.Hosts(hostsOf(t, "[hosts.box]\ncommand = [\"exec\"]\nstart = [\"x\"]\n"))
	assert.NoError(t, err, "a host for a project may have a fixed name")
}
