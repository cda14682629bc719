package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// HostileRepository makes each setting and hook of a git repository that can start a program start
// the script.
func HostileRepository(t testing.TB, dir, script string) {
	t.Helper()
	git := func(dir string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %q: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	gitDir := git(dir, "rev-parse", "--absolute-git-dir")
	hooks, included := filepath.Join(gitDir, "more-hooks"), filepath.Join(gitDir, "included")
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	for _, in := range []string{hooks, filepath.Join(gitDir, "hooks")} {
		require.NoError(t, os.MkdirAll(in, 0o755))
		for _, hook := range []string{
			"reference-transaction", "post-index-change", "pre-auto-gc", "post-checkout", "post-commit", "pre-commit", "post-rewrite", "post-merge",
			"pre-merge-commit",
			"commit-msg", "prepare-commit-msg", "fsmonitor-watchman", "query-watchman", "sendemail-validate", "update", "post-update",
			"applypatch-msg", "pre-applypatch",
			"post-applypatch", "pre-rebase",
		} {
			Program(t, filepath.Join(in, hook), text)
		}
	}
	filter := "\tsmudge = " + script + "\n\tclean = " + script + "\n"
	require.NoError(t,
		os.WriteFile(included, []byte("[core]\n\tfsmonitor = "+script+"\n\thooksPath = "+hooks+"\n[filter \"evil\"]\n"+filter), 0o644))
	set := func(key, value string) {
		git(gitDir, "config", "--file", filepath.Join(gitDir, "config"), key, value)
	}
	for _, key := range []string{
		"core.fsmonitor", "core.pager", "core.editor", "sequence.editor", "core.sshCommand", "core.askPass", "core.alternateRefsCommand",
		"core.gitProxy", "core.excludesFile",
		"filter.evil.clean", "filter.evil.smudge", "filter.both.process", "diff.evil.command", "diff.evil.textconv", "diff.external",
		"merge.evil.driver",
		"gpg.program", "gpg.ssh.program", "gc.recentObjectsHook", "credential.helper", "uploadpack.packObjectsHook", "remote.origin.uploadpack",
	} {
		set(key, script)
	}
	for key, value := range map[string]string{ // they make git use the others
		"core.hooksPath": hooks, "include.path": included, "includeIf.gitdir:/.path": included, "filter.evil.required": "true",
		"merge.default":     "evil",
		"log.showSignature": "true", "tag.gpgSign": "true", "commit.gpgSign": "true", "gc.auto": "1", "remote.origin.url": "ext::" + script,
		"remote.origin.promisor":           "true",
		"remote.origin.partialclonefilter": "blob:none", "extensions.partialClone": "origin", "protocol.ext.allow": "always",
		"submodule.recurse":       "true",
		"submodule.module.update": "!" + script, "status.submoduleSummary": "true", "core.worktree": "/",
		"trace2.perfTarget": filepath.Join(gitDir, "trace"),
	} {
		set(key, value)
	}
	for _, command := range []string{
		"status", "update-index", "write-tree", "mktag", "update-ref", "for-each-ref", "cat-file", "diff-tree", "config", "worktree", "reset",
		"read-tree", "merge-tree",
		"commit-tree", "rev-parse", "rev-list", "log", "cherry",
	} {
		set("alias."+command, "!"+script)
		set("pager."+command, script)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(gitDir, "info"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(gitDir, "info", "attributes"), []byte("* filter=evil diff=evil merge=evil\n"), 0o644))
}
