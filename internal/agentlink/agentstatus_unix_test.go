//go:build unix

package agentlink_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A machine is a home directory with programs.
type machine struct {
	t         *testing.T
	home, bin string
	env       map[string]string
	notes     *agentlink.Notes
}

func newMachine(t *testing.T) *machine {
	home := t.TempDir()
	m := &machine{t: t, home: home, bin: filepath.Join(home, "bin"), notes: agentlink.NewNotes(filepath.Join(home, "notes"))}
	m.env = map[string]string{"HOME": home, "PATH": m.bin + ":/usr/bin:/bin", "XDG_CONFIG_HOME": filepath.Join(home, "config")}
	t.Setenv("HOME", home)
	return m
}

func (m *machine) getenv(name string) string { return m.env[name] }

// file writes a file below the home.
func (m *machine) file(name, text string) string {
	m.t.Helper()
	path := filepath.Join(m.home, name)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Program(m.t, path, text)
	return path
}

// of returns the status of the agent of a name.
func (m *machine) of(name string) domain.AgentStatus {
	m.t.Helper()
	c, err := config.Load(config.Sources{User: filepath.Join(m.home, "config.toml"), Getenv: m.getenv})
	require.NoError(m.t, err)
	for _, a := range agentlink.Describe(m.t.Context(), c, agentlink.DescribeOptions{Notes: m.notes, Version: "ours", Getenv: m.getenv, Run: true}) {
		if a.Name == name {
			return a.AgentStatus
		}
	}
	m.t.Fatalf("there is no agent %s", name)
	return domain.AgentStatus{}
}

// mine configures a custom agent of the user.
func (m *machine) mine(command ...string) {
	m.file("config.toml", "[agents.mine]\ncommand = [\""+strings.Join(command, `", "`)+"\"]\n")
}

const fails = "#!/bin/sh\ntouch \"$0.ran\"\nexit 1\n"

func TestVersionOfPackage(t *testing.T) {
	for name, c := range map[string]struct {
		described, in string // the package.json, and the program's place in its directory
		version       string
	}{
		"it names the program":       {`{"name":"theirs","version":"1.2.3","bin":"./dist/mine"}`, "dist/mine", "1.2.3"},
		"among several":              {`{"name":"theirs","version":"1.2.3","bin":{"other":"o","mine":"dist/mine"}}`, "dist/mine", "1.2.3"},
		"it names another":           {`{"name":"theirs","version":"1.2.3","bin":"dist/other"}`, "dist/mine", ""},
		"it names none":              {`{"name":"project","version":"1.2.3"}`, "mine", ""},
		"it is nonsense":             {`{"name":`, "mine", ""},
		"its version is none":        {`{"name":"theirs","version":7,"bin":"mine"}`, "mine", ""},
		"it has no version":          {`{"name":"theirs","bin":"mine"}`, "mine", ""},
		"another is in between":      {`{"name":"theirs","version":"1.2.3","bin":"a/b/mine"}`, "a/b/mine", "1.2.3"},
		"it is in a far away parent": {`{"name":"theirs","version":"1.2.3","bin":"a/b/c/d/e/f/mine"}`, "a/b/c/d/e/f/mine", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			program := m.file("package/"+c.in, fails)
			m.file("package/package.json", c.described)
			if name == "another is in between" {
				m.file("package/a/package.json", `{"type":"module"}`)
			}
			m.mine(program)
			assert.Equal(t, c.version, m.of("mine").Version)
			assert.NoFileExists(t, program+".ran", "it is not started")
		})
	}
	t.Run("installed", func(t *testing.T) {
		m := newMachine(t)
		program := m.file("lib/node_modules/@theirs/agent/bin/native", fails)
		m.file("lib/node_modules/@theirs/agent/package.json", `{"name":"@theirs/agent","version":"4.0.0-rc.1"}`)
		require.NoError(t, os.MkdirAll(m.bin, 0o700))
		require.NoError(t, os.Symlink(program, filepath.Join(m.bin, "theirs")))
		m.mine("theirs")
		assert.Equal(t, "4.0.0-rc.1", m.of("mine").Version)
	})
}

func TestVersionInCommand(t *testing.T) {
	for command, version := range map[string]string{
		"npx -y @theirs/agent@1.2.3": "1.2.3", "npx -y @theirs/agent": "", "npx agent@latest": "", "uvx agent==0.3.1 --acp": "0.3.1", "npx": "",
	} {
		m := newMachine(t)
		m.file("bin/npx", fails)
		m.file("bin/uvx", fails)
		m.file("bin/package.json", `{"name":"npm","version":"10.0.0","bin":{"npx":"npx"}}`)
		m.mine(strings.Fields(command)...)
		assert.Equal(t, version, m.of("mine").Version, command)
	}
}

// A program runs with --version once, until it is another file.
func TestVersionIsPrintedOnce(t *testing.T) {
	m := newMachine(t)
	const prints = "#!/bin/sh\necho \"$*\" >> \"$0.ran\"\necho theirs, version VERSION\n"
	program := m.file("bin/opencode", strings.Replace(prints, "VERSION", "1.2.3", 1))
	for range 3 {
		assert.Equal(t, "1.2.3", m.of("opencode").Version)
	}
	ran, err := os.ReadFile(program + ".ran")
	require.NoError(t, err)
	assert.Equal(t, "--version\n", string(ran))
	m.file("bin/opencode", strings.Replace(prints, "VERSION", "1.2.40", 1))
	assert.Equal(t, "1.2.40", m.of("opencode").Version)

	failing := m.file("bin/goose", strings.Replace(fails, "touch", "echo x >>", 1))
	for range 3 {
		assert.Empty(t, m.of("goose").Version)
	}
	ran, err = os.ReadFile(failing + ".ran")
	require.NoError(t, err)
	assert.Equal(t, "x\n", string(ran))
}

func TestLastReportIsStored(t *testing.T) {
	m := newMachine(t)
	program := m.file("bin/codex-acp", fails)
	command := []string{program}
	assert.Equal(t, domain.AgentStatus{SignedIn: domain.SignInUnknown}, m.of("codex"))
	m.notes.Checked("codex", command, domain.AgentReport{Version: "7.0.1", SignedIn: domain.SignedIn, Account: "you@example.org"})
	s := m.of("codex")
	assert.Equal(t, "7.0.1", s.Version)
	assert.Equal(t, domain.SignedIn, s.SignedIn)
	assert.Equal(t, "you@example.org", s.Account)
	require.NotNil(t, s.ToldAt)
	assert.WithinDuration(t, time.Now(), *s.ToldAt, time.Minute)

	m.notes.Turn("codex", command, true)
	assert.Equal(t, "you@example.org", m.of("codex").Account, "a turn that is answered takes nothing back")
	m.notes.Turn("codex", command, false)
	assert.Equal(t, domain.SignedOut, m.of("codex").SignedIn)
	assert.Empty(t, m.of("codex").Account)
	m.notes.Turn("codex", command, true)
	assert.Equal(t, domain.SignInAnswered, m.of("codex").SignedIn)

	m.notes.Turn("codex", []string{"/another/codex-acp"}, false)
	assert.Equal(t, domain.SignInAnswered, m.of("codex").SignedIn, "that is another program's")
}

func TestLoginOrKeyIsAHint(t *testing.T) {
	m := newMachine(t)
	program := m.file("bin/codex-acp", fails)
	login := m.file(".codex/auth.json", "secret")
	require.NoError(t, os.Chmod(login, 0)) // Duet does not read it
	assert.Equal(t, domain.AgentStatus{SignedIn: domain.SignInUnknown, Hint: "it has a login in ~/.codex/auth.json"}, m.of("codex"))
	m.env["OPENAI_API_KEY"] = "secret"
	assert.Equal(t, "it is given OPENAI_API_KEY", m.of("codex").Hint)
	delete(m.env, "OPENAI_API_KEY")

	// A user who has signed in outside Duet no longer counts as signed out.
	m.notes.Turn("codex", []string{program}, false)
	assert.Equal(t, domain.SignedOut, m.of("codex").SignedIn)
	later := time.Now().Add(time.Minute)
	require.NoError(t, os.Chtimes(login, later, later))
	assert.Equal(t, domain.SignInUnknown, m.of("codex").SignedIn)

	m.env["CODEX_HOME"] = filepath.Join(m.home, "elsewhere")
	assert.Equal(t, domain.SignedOut, m.of("codex").SignedIn, "that login is not its own")
}

func TestUnreadableNotesAreMissing(t *testing.T) {
	m := newMachine(t)
	program := m.file("bin/codex-acp", fails)
	m.notes.Turn("codex", []string{program}, true)
	files, err := filepath.Glob(filepath.Join(m.home, "notes", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.WriteFile(files[0], []byte("{"), 0o600))
	assert.Equal(t, domain.SignInUnknown, m.of("codex").SignedIn)
	m.notes.Turn("codex", []string{program}, true)
	assert.Equal(t, domain.SignInAnswered, m.of("codex").SignedIn)
	require.NoError(t, os.Chmod(filepath.Dir(files[0]), 0o777))
	assert.Equal(t, domain.SignInUnknown, m.of("codex").SignedIn, "another user might have written them")
	(*agentlink.Notes)(nil).Turn("codex", []string{program}, true)
}

func TestDemoAgentStatus(t *testing.T) {
	m := newMachine(t)
	m.file("config.toml", "[agents.plain]\ndriver = \"command\"\ncommand = [\"echo\"]\n")
	assert.Equal(t, domain.AgentStatus{Version: "ours", SignedIn: domain.SignInNotNeeded}, m.of("demo"))
	assert.Equal(t, domain.AgentStatus{}, m.of("plain"), "it cannot be asked")
}
