package cli

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionOfSourceBuild(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, c := range []struct {
		tag      string
		settings []debug.BuildSetting
		want     string
	}{
		{"v0.0.0-20261125233857-a6c82737abcd", []debug.BuildSetting{setting("vcs.revision", "a6c82737abcdef"), setting("vcs.modified", "false")}, treeVersion + "-dev+a6c8273"},
		{"v0.0.0-20261125233857-a6c82737abcd+dirty", []debug.BuildSetting{setting("vcs.revision", "a6c82737abcdef"), setting("vcs.modified", "true")}, treeVersion + "-dev+a6c8273.dirty"},
		{"v0.1.1-0.20261125233857-a6c82737abcd", nil, treeVersion + "-dev+a6c8273"}, // go install …@main
		{"(devel)", []debug.BuildSetting{setting("vcs.revision", "a6c82737abcdef")}, treeVersion + "-dev+a6c8273"},
		{"(devel)", nil, treeVersion + "-dev"},
		{"", nil, treeVersion + "-dev"},
		{"v0.2.0+dirty", []debug.BuildSetting{setting("vcs.revision", "a6c82737abcdef"), setting("vcs.modified", "true")}, treeVersion + "-dev+a6c8273.dirty"},
		{"v0.2.0", []debug.BuildSetting{setting("vcs.revision", "a6c82737abcdef")}, "0.2.0"},
		{"v0.2.0-rc.1", nil, "0.2.0-rc.1"},
	} {
		require.Equal(t, c.want, versionOf(&debug.BuildInfo{Main: debug.Module{Version: c.tag}, Settings: c.settings}), "%q", c.tag)
	}
}

// The clients in this tree must have the version of the programs that are built from it.
func TestClientsHaveTreeVersion(t *testing.T) {
	for file, line := range map[string]string{
		"../../emacs/duet.el":            ";; Version: " + treeVersion + "\n",
		"../../vscode/package.json":      `"version": "` + treeVersion + `"`,
		"../../emacs/duet-connection.el": `(defconst duet-connection-version "` + treeVersion[:strings.LastIndexByte(treeVersion, '.')] + `"`,
		"../../vscode/src/hub/binary.ts": `wantedVersion = "` + treeVersion[:strings.LastIndexByte(treeVersion, '.')] + `"`,
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), line, file)
	}
}

// A command whose name differs from its key in the table cannot be run.
func TestCommandNamesMatchTable(t *testing.T) {
	for name, create := range commands() {
		require.Equal(t, name, create(&settings{}).Name())
		require.Empty(t, create(&settings{}).Aliases)
		require.Len(t, newRootCommand("", []string{name, "--help"}).Commands(), 1)
	}
	require.Len(t, newRootCommand("", []string{"--json", "session"}).Commands(), 1)
	require.Greater(t, len(newRootCommand("", []string{"--help"}).Commands()), len(commands()))
}

// The overview names each command that is not hidden, once.
func TestEachCommandIsInAGroup(t *testing.T) {
	var grouped, all []string
	for _, g := range groups {
		grouped = append(grouped, strings.Fields(g.commands)...)
	}
	for _, cmd := range newRootCommand("", []string{"--help"}).Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			all = append(all, cmd.Name())
		}
	}
	require.ElementsMatch(t, all, grouped)
}

// To start fast, the program creates only the command that runs, even if flags come first.
func TestCommandNameAfterFlags(t *testing.T) {
	flags := newRootCommand("", []string{"version"}).PersistentFlags()
	for line, want := range map[string]string{
		"": "", "session list": "session", "--json session": "session", "--root prompt --log-level=debug session": "session",
		"--root=x session --help": "session", "--root session": "", "--root": "", "--no-color": "", "help session": "help",
	} {
		args := append(strings.Fields(line), "")
		require.Equal(t, want, args[min(commandAt(flags, args[:len(args)-1]), len(args)-1)], line)
	}
	for _, line := range []string{"--help", "-h session", "--root x -- session", "--unknown x session", "- session", "-- session", "--json --version"} {
		args := strings.Fields(line)
		require.True(t, strings.HasPrefix(args[commandAt(flags, args)], "-"), line)
	}
}

// A name of another program leads to a command that exists, with flags that it has, and is none of ours.
func TestOtherNamesLeadToCommands(t *testing.T) {
	root := newRootCommand("", []string{"--help"})
	for other, does := range otherNames() {
		words := strings.Fields(other)
		cmd, rest, _ := root.Find(words)
		require.True(t, cmd == root || len(rest) > 0, "%q is a command", other)
		does, _, _ = strings.Cut(does, ", and then ")
		cmd, rest, err := root.Find(strings.Fields(does))
		require.NoError(t, err, other)
		require.NotEqual(t, root, cmd, other)
		for _, word := range rest {
			if name, isFlag := strings.CutPrefix(word, "--"); isFlag {
				require.NotNil(t, cmd.Flags().Lookup(name), "%s: %s", other, does)
			} else {
				require.Equal(t, strings.ToUpper(word), word, "%s: %s", other, does)
			}
		}
	}
}

// A text of several words, -c and -p are a prompt. A word is a command.
func TestAPromptNeedsNoCommand(t *testing.T) {
	root := newRootCommand("", []string{"version"})
	for _, c := range []struct{ args, want []string }{
		{[]string{"fix it"}, []string{"prompt", "--open", "fix it"}},
		{[]string{"--root", "a dir", "fix it", "--agent", "demo"}, []string{"--root", "a dir", "prompt", "--open", "fix it", "--agent", "demo"}},
		{[]string{"-c"}, []string{"prompt", "--open", "-c"}},
		{[]string{"--continue=12", "more of it"}, []string{"prompt", "--open", "--continue=12", "more of it"}},
		{[]string{"--no-color", "-p", "why"}, []string{"--no-color", "prompt", "why"}},
		{[]string{"--print", "-c", "why"}, []string{"prompt", "-c", "why"}},
		{[]string{"--", "fix"}, []string{"prompt", "--open", "--", "fix"}},
		{[]string{"--agent", "demo", "fix it"}, []string{"prompt", "--open", "--agent", "demo", "fix it"}},
		{[]string{"--yes", "-p", "why"}, []string{"prompt", "--yes", "why"}},
		{nil, nil},
		{[]string{"fix"}, []string{"fix"}},
		{[]string{"prompt", "fix it"}, []string{"prompt", "fix it"}},
		{[]string{"--json", "session", "list"}, []string{"--json", "session", "list"}},
		{[]string{"--help"}, []string{"--help"}},
		{[]string{"--stdio", "--unknown", "fix it"}, []string{"--stdio", "--unknown", "fix it"}},
	} {
		require.Equal(t, c.want, asPrompt(root, &settings{}, c.args, false))
	}
	for _, c := range []struct{ args, piped, typed []string }{
		{[]string{"--agent", "demo"}, []string{"--agent", "demo"}, []string{"prompt", "--open", "--agent", "demo"}},
		{[]string{"-h"}, []string{"-h"}, []string{"-h"}},
		{[]string{"--version"}, []string{"--version"}, []string{"--version"}},
		{[]string{"-x"}, []string{"-x"}, []string{"-x"}},
	} {
		require.Equal(t, c.piped, asPrompt(root, &settings{}, c.args, false))
		require.Equal(t, c.typed, asPrompt(root, &settings{}, c.args, true))
	}
}

// Names that other programs use for a command suggest it.
func TestOtherNamesSuggestCommand(t *testing.T) {
	for line, want := range map[string]string{
		"run":           "there is no command \"run\": `duet-rpc prompt` does that",
		"ls":            "there is no command \"ls\": `duet-rpc session list` does that",
		"session rm":    "there is no command \"session rm\": `duet-rpc session delete` does that",
		"session shw":   `there is no command "shw" (did you mean show?); `,
		"task ls":       "there is no command \"task ls\": `duet-rpc session list --turns` does that",
		"zz":            `there is no command "zz"; `,
		"--json status": "there is no command \"status\": `duet-rpc daemon status` does that",
	} {
		args := strings.Fields(line)
		root := newRootCommand("", args)
		root.SetArgs(args)
		require.ErrorContains(t, root.Execute(), want)
	}
}
