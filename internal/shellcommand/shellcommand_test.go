package shellcommand_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

func globs(texts ...string) (patterns []shellcommand.Pattern) {
	for _, text := range texts {
		patterns = append(patterns, shellcommand.Glob(text))
	}
	return patterns
}

func within(dir string) bool {
	return !strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "/project")
}

// The rules touch *, make test, git * and echo * allow a command only if one of them matches
// each part, whichever shell runs it.
func TestAllowed(t *testing.T) {
	rules := globs("touch *", "make test", "git *", "echo *")
	for command, want := range map[string]bool{
		"touch x":                               true,
		"  touch   x  ":                         true,
		"touch x # a note":                      true,
		`touch 'a b' "c" d\ e`:                  true,
		`"touch" x`:                             true,
		"tou\\\nch x":                           true,
		"touch x && make test":                  true,
		"touch x; make test\ngit status":        true,
		"touch x || make test":                  true,
		"git log | touch x":                     true,
		"touch x & make test":                   true,
		"(touch x; make test)":                  true,
		"{ touch x; }":                          true,
		"if make test; then touch x; fi":        true,
		"for i in 1 2; do make test; done":      true,
		"while make test; do git log; done":     true,
		"! make test":                           true,
		"make test 2>&1":                        true,
		"make test >/dev/null 2>&1 </dev/null":  true,
		"make test 2> /dev/null":                true,
		"echo $(git log)":                       true,
		"echo \"$(git log)\" `make test`":       true,
		"case x in y) touch x;; esac":           true,
		"f() { touch x; }; make test":           true,
		"time make test":                        true,
		"env make test":                         true,
		"env CI=1 make test":                    true,
		"CI=1 make test":                        true,
		"nohup make test":                       true,
		"command git log":                       true,
		"timeout 60 make test":                  true,
		"timeout 1.5m nice env CI=1 git log":    true,
		"bash -lc 'make test'":                  true,
		"/bin/sh -c 'make test'":                true,
		`bash -c "bash -c \"make test\""`:       true,
		"zsh -l -c 'touch x && make test'":      true,
		"cd sub && make test":                   true,
		"cd /project/sub && make test":          true,
		"bash -c 'cd sub && make test'":         true,
		"cd sub && bash -c 'cd x && make test'": false,
		"cd sub; touch x":                       true,
		"git add *.go":                          true,
		"touch ~/x":                             true,
		"git log 'a; rm x'":                     true,
		"echo 'rm x' \\; rm":                    true,
		"touch $'x'":                            true, // in every reading
		"touch é":                               true,

		"":                                   false,
		"# touch x":                          false,
		"rm x":                               false,
		"touchy x":                           false,
		"touch":                              false,
		"make test x":                        false,
		"touch x; rm x":                      false,
		"touch x && rm x":                    false,
		"touch x || rm x":                    false,
		"touch x | rm x":                     false,
		"touch x & rm x":                     false,
		"touch x\nrm x":                      false,
		"touch x |& rm x":                    false,
		"touch $(rm x)":                      false,
		"touch `rm x`":                       false,
		"touch \"$(rm x)\"":                  false,
		"touch \"${y:-$(rm x)}\"":            false,
		"touch <(rm x)":                      false,
		"touch x <<<$(rm x)":                 false,
		"touch x <<E\n$(rm x)\nE":            false,
		"echo $(echo $(rm x))":               false,
		"(touch x; rm x)":                    false,
		"{ rm x; }":                          false,
		"if rm x; then touch x; fi":          false,
		"if touch x; then :; else rm x; fi":  false,
		"for i in $(rm x); do touch x; done": false,
		"for i in 1; do rm x; done":          false,
		"for ((;;)); do touch x; done":       false,
		"case $(rm x) in y) touch x;; esac":  false,
		"f() { rm x; }; touch x":             false,
		"touch() { rm x; }; touch x":         false,
		"function touch { rm x; }; touch x":  false,
		"time rm x":                          false,
		"! rm x":                             false,
		"touch $x":                           false,
		"touch ${x}":                         false,
		"touch $((x))":                       false,
		"$x touch y":                         false,
		"$(echo rm) x":                       false,
		"x=touch; $x y":                      false,
		"x=1 touch y":                        false,
		"PATH=/tmp touch y":                  false,
		"PATH=/tmp; touch y":                 false,
		"LD_PRELOAD=x touch y":               false,
		"GIT_SSH_COMMAND=rm git fetch":       false,
		"env PATH=/tmp touch y":              false,
		"env -i touch y":                     false,
		"env -S 'rm x' touch":                false,
		"export PATH=/tmp; touch x":          false,
		"eval touch x":                       false,
		"eval 'rm x'":                        false,
		"source touch x":                     false,
		". touch":                            false,
		"xargs touch":                        false,
		"sudo touch x":                       false,
		"exec -a touch rm x":                 false,
		"command -p rm x":                    false,
		"builtin echo x":                     false,
		"trap 'rm x' EXIT; touch x":          false,
		"alias touch=rm; touch x":            false,
		"hash -p /tmp/rm touch; touch x":     false,
		"enable -f x touch; touch x":         false,
		"set -- x; touch x":                  false,
		"touch x > /etc/passwd":              false,
		"touch x >> y":                       false,
		"touch x 2>y":                        false,
		"touch x >| y":                       false,
		"touch x &> y":                       false,
		"touch x < y":                        false,
		"touch x <<E\ny\nE":                  false,
		"{ touch x; } > y":                   false,
		"> y":                                false,
		"touch {a,b}":                        false,
		"{touch,x}":                          false,
		"touch @(a|b)":                       false,
		"t* x":                               false,
		"to?ch x":                            false,
		"=touch x":                           false,
		"$'rm' x":                            false,
		`echo $'\'; rm x #'`:                 false,
		`touch '\'' ; rm x ; echo '\''`:      false,
		"touch \"x":                          false,
		"touch x; (":                         false,
		"touch x\u00a0; rm x":                false,
		"touch\u2003x":                       false,
		"touch x\x00; rm x":                  false,
		"touch x\r\nrm x":                    false,
		"touch x # note\rrm x":               false,
		"touch x # note \\\nrm x":            false,
		"touch \x1b[2J":                      false,
		"touch \u202ex":                      false,
		"touch \xff":                         false,
		"cd / && make test":                  false,
		"cd .. && make test":                 false,
		"cd sub/../../x && make test":        false,
		"cd && make test":                    false,
		"cd - && make test":                  false,
		"cd ~ && make test":                  false,
		"cd a && cd b && make test":          false,
		"make test && cd sub && make test":   false,
		"for i in 1 2; do cd sub; make test; done": false,
		"cd sub":                            false,
		"bash -c 'rm x'":                    false,
		"bash -c \"$x\"":                    false,
		"bash -c \"bash -c 'rm x'\"":        false,
		"bash x.sh":                         false,
		"bash":                              false,
		"echo 'rm x' | bash":                false,
		"bash -ic 'make test'":              false,
		"bash --rcfile x -c 'make test'":    false,
		"/tmp/bash -c 'make test'":          false,
		"./bash -c 'make test'":             false,
		"fish -c 'make test'":               false,
		"coproc touch x":                    false,
		"[[ -f x ]] && touch x":             false,
		"((x)) && touch x":                  false,
		"let x=1; touch x":                  false,
		"repeat 3 rm x":                     false,
		"noglob rm x":                       false,
		"- rm x":                            false,
		strings.Repeat("touch x;", 100_000): false,
		strings.Repeat("(", 60_000):         false,
	} {
		if len(command) > 60 {
			assert.Equal(t, want, shellcommand.Read(command).AllowedBy(rules, within), "%.60q…", command)
			continue
		}
		assert.Equal(t, want, shellcommand.Read(command).AllowedBy(rules, within), "%q", command)
	}
}

// A rule's literal text is taken literally.
func TestWhatARuleSaysItMeans(t *testing.T) {
	for _, c := range []struct {
		rule, command string
		want          bool
	}{
		{"*", "eval $x", true},
		{"*", "(", true},
		{"make && make test", "make && make test", true},
		{"eval *", "eval 'rm x'", true},
		{"* x", "eval rm x", false},
		{"e*", "eval rm x", false},
		{"xargs *", "xargs rm", true},
		{"xargs grep *", "xargs rm", false},
		{"find *", "find . -name x", true},
		{"find *", "find . -exec rm {} \\;", false},
		{"find *", "find . -delete", false},
		{"find * -exec *", "find . -exec rm {} \\;", true},
		{"sudo make *", "sudo make install", true},
		{"sudo *", "sudo make install; rm x", false},
		{"make > out.log", "make > out.log", true},
		{"make > *", "make > out.log", true},
		{"make *", "make x > out.log", false},
		{"GOFLAGS=* go *", "GOFLAGS=-v go test", true},
		{"GOFLAGS=* go *", "PATH=/x GOFLAGS=-v go test", false},
		{"go *", "GOFLAGS=-v go test", false},
		{"export *", "export A=b", true},
		{"cd *", "cd /etc", true},
		{"bash -lc *", "bash -lc 'rm x'", true},
		{"env A=b make", "env A=b make", true},
		{"git commit -m \"*\"", "git commit -m \"x y\"", true},
		{"git log*", "git log $(git status)", false},
		{"git ?", "git $(git x)", false},
		{"rm build/*", "rm 'build/x' /etc/passwd", true}, // its wildcard matches any text
		{"ls [ab]", "ls b", true},
		{"ls \\*", "ls '*'", false},
	} {
		assert.Equal(t, c.want, shellcommand.Read(c.command).AllowedBy(globs(c.rule), within), "%s by %s", c.command, c.rule)
	}
}

func TestDenied(t *testing.T) {
	rules := globs("rm *", "git push*", "*.key")
	for command, want := range map[string]bool{
		"rm x": true, " rm  x": true, `"rm" x`: true, `r\m x`: true, "r''m x": true, "/bin/rm x": true, "../rm x": true,
		"touch x && rm x": true, "x\nrm y": true, "echo $(rm x)": true, "echo `rm x`": true, "cat <(rm x)": true, "f() { rm x; }": true,
		"cat <<E\n$(rm x)\nE": true, "bash <<E\nrm x\nE": true, "bash <<< 'rm x'": true, "echo 'rm x' | sh": true,
		"env A=b rm x": true, "env -i rm x": true, "sudo -u root rm x": true, "xargs rm -f": true, "find . -exec rm {} \\;": true, "A=b rm x": true, "nice -n 5 rm x": true,
		"eval 'rm x'": true, "eval rm x": true, "eval \"r\"m x": true, "bash -c 'rm x'": true, `sh -c "bash -c 'rm x'"`: true, "ssh host 'rm x'": true, "trap 'rm x' EXIT": true, "su -c 'rm x'": true,
		"x=rm; $x y": true, "for c in rm; do $c y; done": true, "rm${IFS}x": true, "r? x": true, "/bin/r[m] x": true, "{rm,x}": true, "$'rm' x": true, "$'\\x72m' x": true,
		"rm\u00a0x": true, "rm x\x00": true, "r\u200bm x": true, "rm $x": true, "git $x": true, "git \"$x\"": true, "git pu\\\nsh": true,
		"cat my.key": true, "cat 'my'.key": true, "cat my.{key,txt}": true, "cat my.ke?": true, "cat < my.key": true, "time rm x": true, "! rm x": true, "if rm x; then": true,
		"rm x; (": true, "( rm x": true, "rm x > y": true, "coproc rm x": true, "=rm x": true, "- rm x": true, "exec rm x": true, "exec -a y rm x": true,
		strings.Repeat("bash -c ", 20_000) + "rm": false,

		"touch x": false, "farm x": false, "git status": false, "rmdir x": false, "echo rm x": false, "git rm x": false, "$x y": false, "make test": false, "cat x.keys": false, "": false,
		"bash rm x": false, "git log $x": false, "cat *": false, "rm": false,
	} {
		got := false
		for _, rule := range rules {
			got = got || shellcommand.Read(command).CouldRun(rule)
		}
		assert.Equal(t, want, got, "%.80q", command)
	}
}

func TestWordsOfAProgram(t *testing.T) {
	rules := globs("touch *", "make test")
	for _, c := range []struct {
		argv []string
		want bool
	}{
		{[]string{"touch", "x"}, true},
		{[]string{"touch", "x; rm y"}, true}, // a file name, because no shell parses it
		{[]string{"touch", "$x", "*"}, true},
		{[]string{"/bin/bash", "-lc", "touch x"}, true},
		{[]string{"bash", "-l", "-c", "touch x && make test"}, true},
		{[]string{"env", "bash", "-c", "touch x"}, true},
		{[]string{"/bin/bash", "-lc", "touch x; rm y"}, false},
		{[]string{"/bin/bash", "-lc", "touch x", "--", "y"}, true},
		{[]string{"/bin/bash", "-lc"}, false},
		{[]string{"/bin/bash", "-c", "touch $1", "x"}, false},
		{[]string{"bash", "touch", "x"}, false},
		{[]string{"touch x"}, false},
		{[]string{"make test"}, false},
		{[]string{"make", "test"}, true},
		{[]string{"", "make", "test"}, false},
		{[]string{"A=b", "make", "test"}, false},
		{[]string{"touch", "x\x00y"}, false},
		{nil, false},
	} {
		assert.Equal(t, c.want, shellcommand.ReadWords(c.argv).AllowedBy(rules, within), "%q", c.argv)
	}
	assert.True(t, shellcommand.ReadWords([]string{"/bin/bash", "-lc", "touch x; rm y"}).CouldRun(shellcommand.Glob("rm *")))
	assert.True(t, shellcommand.ReadWords([]string{"rm", "x"}).CouldRun(shellcommand.Exactly("rm x")))
	assert.Equal(t, "touch x", shellcommand.ReadWords([]string{"/bin/bash", "-lc", "touch x"}).Text)
	assert.Equal(t, "touch 'a b'", shellcommand.ReadWords([]string{"touch", "a b"}).Text)
	assert.Equal(t, "touch x", shellcommand.Read("bash -lc 'touch x'").Text)
}

func TestCanonical(t *testing.T) {
	for _, same := range [][]string{{"touch x && make", " touch  x  &&\\\n make # now"}, {"a; b", "a\nb\n"}} {
		assert.Equal(t, shellcommand.Canonical(same[0]), shellcommand.Canonical(same[1]))
	}
	for _, other := range [][]string{{"touch x", "touch y"}, {"touch 'a b'", "touch a b"}, {"a; b", "a && b"}, {"echo a#b", "echo a"}, {"echo '# x'", "echo ''"}, {"(", "( "}, {"cat <<E\nx\nE", "cat <<E\n x\nE"}} {
		assert.NotEqual(t, shellcommand.Canonical(other[0]), shellcommand.Canonical(other[1]))
	}
}

// A text of 16 MB takes a second; it took hours when each word read the rest of it.
func TestManyLeadingWordsTakeLinearTime(t *testing.T) {
	rm := shellcommand.Glob("rm *")
	assert.True(t, shellcommand.Read(strings.Repeat("! ", 8<<20)+"ls").CouldRun(rm), "it is unknown")
	assert.True(t, shellcommand.Read("if ! time rm x").CouldRun(rm))
	assert.False(t, shellcommand.Read("if ! time ls x").CouldRun(rm))
}

func TestAnArgumentIsOneWord(t *testing.T) {
	for text, want := range map[string]string{
		"": "''", "/a/b-c_1.d:e@f": "/a/b-c_1.d:e@f", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "é": "'é'", "a=b": "'a=b'",
	} {
		assert.Equal(t, want, shellcommand.Argument(text))
	}
}
