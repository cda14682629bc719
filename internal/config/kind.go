package config

import (
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file has the kinds of values that a key may have.

// form is how a key is written.
type form int

const (
	single     form = iota // key = value
	section                // [key]: its keys set fields of the same record
	entries                // [key.NAME]: tables of one name in two files are merged key by key
	list                   // [[key]]: a table replaces another one of its id as a whole
	dictionary             // [key.NAME]: a table replaces another one of its name as a whole
)

// A kind is a kind of values.
type kind struct {
	form   form
	schema *schema // of the table or tables; nil: single

	what    string                        // the accepted values, as in "expected …"
	read    func(t Table, key string) any // nil: the value is wrong and the problem recorded
	parse   func(text string) any         // of an environment variable; nil: the text is the value
	bounded bool                          // what says more than the type
	adds    bool                          // a list is added to that of the file below; otherwise replaces it
	secret  bool                          // `duet-rpc config` hides its values

	// merge, if set, returns what applies of the values of two files; otherwise that of above.
	merge func(below, above string) string
}

// adding returns the kind of a list that is added to that of the file below.
func (k kind) adding() kind {
	k.adds = true
	return k
}

// hidden returns the kind of a value that may be secret.
func (k kind) hidden() kind {
	k.secret = true
	return k
}

// as returns the kind with a conversion of its string.
func (k kind) as(convert func(files fileNames, s string) string) kind {
	read := k.read
	k.read = func(t Table, key string) any {
		v := read(t, key)
		if s, ok := v.(string); ok {
			return convert(t.doc.files, s)
		}
		return v
	}
	return k
}

// scalar returns a kind from a conversion. The conversion returns what was expected and what was found
// if a value is wrong; found is empty if it may be a secret.
func scalar(what string, convert func(v any) (value any, expected, found string)) kind {
	return kind{what: what, read: func(t Table, key string) any {
		value, expected, found := convert(t.Values[key])
		if expected != "" {
			t.Wrong(key, expected, found)
			return nil
		}
		return value
	}}
}

// whole is an integer between two limits, inclusive.
func whole(least, most int) kind {
	what := fmt.Sprintf("a whole number from %d to %d", least, most)
	k := scalar(what, func(v any) (any, string, string) {
		switch n := v.(type) {
		case int64:
			if n >= int64(least) && n <= int64(most) {
				return int(n), "", ""
			}
			return nil, what, strconv.FormatInt(n, 10)
		case string:
			return nil, what, quoteShort(n)
		}
		return nil, what, valueKind(v)
	})
	k.bounded = true
	k.parse = func(text string) any {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		return text
	}
	return k
}

// number is a number, whole or not, between two limits, inclusive.
func number(least, most float64) kind {
	what := fmt.Sprintf("a number from %s to %s", strconv.FormatFloat(least, 'f', -1, 64), strconv.FormatFloat(most, 'f', -1, 64))
	k := scalar(what, func(v any) (any, string, string) {
		n, ok := v.(float64)
		if whole, isWhole := v.(int64); isWhole {
			n, ok = float64(whole), true
		}
		switch {
		case !ok:
			return nil, what, valueKind(v)
		case math.IsNaN(n) || n < least || n > most:
			return nil, what, strconv.FormatFloat(n, 'g', -1, 64)
		}
		return n, "", ""
	})
	k.bounded = true
	return k
}

// flag is true or false. An environment variable sets it to true.
func flag() kind {
	const what = "true or false"
	k := scalar(what, func(v any) (any, string, string) {
		if yes, ok := v.(bool); ok {
			return yes, "", ""
		}
		return nil, what, valueKind(v)
	})
	k.parse = func(string) any { return true }
	return k
}

// duration is a string such as "2h", between two limits, inclusive.
func duration(least, most time.Duration) kind {
	what := fmt.Sprintf(`a time from %s to %s, such as "90s" or "2h"`, shortDuration(least), shortDuration(most))
	k := scalar(what, func(v any) (any, string, string) {
		s, ok := v.(string)
		if !ok {
			return nil, what, valueKind(v)
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < least || d > most {
			return nil, what, quoteShort(s)
		}
		return d, "", ""
	})
	k.bounded = true
	return k
}

// text is a string that is not empty and that check accepts. found is what problems say in place of a
// value that may be a secret.
func text(what string, check func(string) error, found ...string) kind {
	return scalar(what, func(v any) (any, string, string) {
		s, ok := v.(string)
		switch {
		case !ok:
			return nil, "a string", valueKind(v)
		case s == "" || strings.ContainsRune(s, 0):
			return nil, "a string that is not empty and has no NUL in it", ""
		}
		if err := check(s); err != nil {
			return nil, err.Error(), append(found, quoteShort(s))[0]
		}
		return s, "", ""
	})
}

// anyText is a string that is not empty.
func anyText() kind { return text("a string", anything) }

// textUpTo is a string of at most so many bytes.
func textUpTo(most int) kind { return text("a string", atMost(most)) }

// name is the name of an agent, a service or similar.
func name() kind { return text("a name", checkName) }

// glob is a pattern of [path.Match].
func glob() kind { return text("a pattern with * ? [ab]", checkGlob) }

// choice is one of several strings.
func choice(accepted ...string) kind {
	quoted := make([]string, len(accepted))
	for i, a := range accepted {
		quoted[i] = strconv.Quote(a)
	}
	last := len(quoted) - 1
	what := strings.Join(quoted[:last], ", ") + " or " + quoted[last]
	k := text(what, func(s string) error {
		if slices.Contains(accepted, s) {
			return nil
		}
		return errors.New(what)
	})
	k.bounded = true
	return k
}

// texts is an array of at most so many strings; 0: any number. Problems do not quote them.
func texts(what string, most int, check func(string) error) kind {
	return kind{what: what, read: func(t Table, key string) any {
		list := t.texts(key, check)
		if most > 0 && len(list) > most {
			t.Wrong(key, "fewer values", fmt.Sprintf("more than %d", most))
		}
		return orNil(list)
	}}
}

// orNil returns a list or a map, or nil for a missing one.
func orNil[T []string | map[string]string](v T) any {
	if v == nil {
		return nil
	}
	return v
}

// level is a level of a sandbox. The stronger one of two files applies.
func level() kind {
	k := choice(domain.SandboxLevels()...)
	k.merge = domain.StrongerSandbox
	return k
}

// paths is a list of paths, absolute or from ~/ on.
func paths() kind {
	k := texts("an array of paths", 0, func(s string) error {
		if !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
			return errors.New("a path, absolute or from ~/ on")
		}
		return nil
	})
	read := k.read
	k.read = func(t Table, key string) any {
		v := read(t, key)
		if list, ok := v.([]string); ok {
			for i, path := range list {
				list[i] = t.doc.files.Path(path, true)
			}
		}
		return v
	}
	return k
}

// textMap is a table of strings. Problems do not quote its values.
func textMap(checkKey, checkValue func(string) error) kind {
	return kind{what: "a table of strings", read: func(t Table, key string) any { return orNil(t.textMap(key, checkKey, checkValue)) }}
}

// command is a program and its arguments. A program with a slash in it is made absolute.
func command() kind {
	return kind{what: "a program and its arguments", read: func(t Table, key string) any {
		words := t.texts(key, anything)
		if words != nil && (len(words) == 0 || words[0] == "") {
			t.Wrong(key, `a program and its arguments, such as ["program", "argument"]`, "no program")
		}
		return orNil(words)
	}}
}

// program is command with the program made absolute if it is more than a name.
func program() kind {
	k := command()
	read := k.read
	k.read = func(t Table, key string) any {
		v := read(t, key)
		if words, ok := v.([]string); ok && len(words) > 0 {
			words[0] = t.doc.files.Path(words[0], false)
		}
		return v
	}
	return k
}

// script is a line for the shell, or a program and its arguments.
func script() kind {
	line, words := anyText(), command()
	return kind{what: "a line for the shell, or a program and its arguments", read: func(t Table, key string) any {
		if _, isLine := t.Values[key].(string); !isLine {
			return words.read(t, key)
		}
		if v := line.read(t, key); v != nil {
			return []string{"sh", "-c", v.(string)}
		}
		return nil
	}}
}

// directories is a list of directories, absolute or from ~/ on, or "*".
func directories() kind {
	k := texts("an array of directories", 0, checkSafe)
	read := k.read
	k.read = func(t Table, key string) any {
		v := read(t, key)
		if list, ok := v.([]string); ok {
			for i, dir := range list {
				list[i] = t.doc.files.Path(dir, dir != "*")
			}
		}
		return v
	}
	k.parse = func(text string) any {
		var list []any
		for _, dir := range filepath.SplitList(text) {
			if dir != "" {
				list = append(list, dir)
			}
		}
		return list
	}
	return k
}

// anyValue is what a condition compares with.
func anyValue() kind {
	return kind{what: "a string, a number, true or false", read: func(t Table, key string) any { return t.Values[key] }}
}

// fileNames makes the names of files in a configuration absolute.
type fileNames struct{ Base, Home string }

// Path makes a name absolute: ~/ is the home directory, and a relative name is relative to the
// directory of the configuration. A bare name stays, for a look-up on PATH, unless it can only
// be a file's.
func (f fileNames) Path(name string, isFile bool) string {
	switch rest, inHome := strings.CutPrefix(name, "~/"); {
	case name == "":
		return ""
	case inHome && f.Home != "":
		return filepath.Join(f.Home, rest)
	case filepath.IsAbs(name) || !isFile && !strings.ContainsAny(name, `/`+string(filepath.Separator)):
		return name
	}
	return filepath.Join(f.Base, name)
}

// The conversions of [kind.as].
func (f fileNames) program(name string) string { return f.Path(name, false) }
func (f fileNames) file(name string) string    { return f.Path(name, true) }

// preview returns the directory of a preview, which is not relative to the file.
func (f fileNames) preview(dir string) string {
	return fileNames{Home: f.Home}.Path(filepath.FromSlash(dir), false)
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// madeOf reports whether s begins with a byte of first and continues with bytes of rest.
func madeOf(s, first, rest string) bool {
	return s != "" && strings.IndexByte(first, s[0]) >= 0 && strings.Trim(s[1:], rest) == ""
}

// The checks of values below return errors that complete the sentence "expected …".

// anything accepts every value.
func anything(string) error { return nil }

func atMost(bytes int) func(string) error {
	return func(s string) error {
		if len(s) > bytes {
			return fmt.Errorf("at most %d bytes", bytes)
		}
		return nil
	}
}

// checkName checks the name of an agent, a service or similar.
func checkName(s string) error {
	if len(s) > 64 || !madeOf(s, letters+digits, letters+digits+"._-") {
		return errors.New("a name of up to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit")
	}
	return nil
}

// checkVariable checks the name of an environment variable.
func checkVariable(s string) error {
	if !madeOf(s, letters+"_", letters+digits+"_") {
		return errors.New("the name of an environment variable, such as ANTHROPIC_API_KEY")
	}
	return nil
}

// checkVariables checks the name of an environment variable, or the beginning of names with a *
// behind it.
func checkVariables(s string) error {
	if checkVariable(strings.TrimSuffix(s, "*")) != nil {
		return errors.New("the name of an environment variable, such as ANTHROPIC_API_KEY, or the beginning of names, such as ANTHROPIC_*")
	}
	return nil
}

// maxGlob bounds a pattern, in bytes: each tool call is matched with all.
const maxGlob = 1024

// checkGlob checks a pattern of [path.Match], of at most 1,024 bytes.
func checkGlob(s string) error {
	if len(s) > maxGlob {
		return fmt.Errorf("a pattern of at most %d bytes", maxGlob)
	}
	if _, err := path.Match(s, ""); err != nil {
		return errors.New("a pattern with * ? [ab] (a [ that is meant is written \\[)")
	}
	return nil
}

// checkSafe checks a directory of safe_directories.
func checkSafe(s string) error {
	if s != "*" && !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
		return errors.New(`the path of a directory, absolute or from ~/ on (with /* at its end all below it), or "*"`)
	}
	return nil
}

// shortDuration writes 2h0m0s as 2h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// checkServer records a server that is neither a program nor a url.
func checkServer(t Table, s *catalog.MCPServer) {
	if s.Name == catalog.EditorServer {
		t.Wrong("name", "another name", quoteShort(s.Name)+", the server that gives agents your editor's tools")
	}
	hasCommand, hasURL := t.Has("command"), t.Has("url")
	switch remote := s.Type == "http" || s.Type == "sse" || s.Type == "" && hasURL; {
	case remote && hasCommand:
		t.Wrong("command", "nothing, for a server that has a url", "")
	case remote && !hasURL:
		t.Missing("url", "where the server is")
	case !remote && hasURL:
		t.Wrong("url", `nothing, for a server of type "stdio"`, "")
	case !remote && !hasCommand:
		t.Missing("command", "the program of the server")
	case remote && s.Type == "":
		s.Type = "http"
	}
}

// checkKey records an API key that is nowhere or in several places.
func checkKey(t Table) {
	if sources := len(t.Values); sources != 1 {
		t.doc.Wrong(t.At(), "[%s]: expected one of env, command and file, found %d", t.title, sources)
	}
}

// checkCommand records a command without a program, or with two.
func checkCommand(t Table) {
	switch hasCommand, hasShell := t.Has("command"), t.Has("shell"); {
	case hasCommand && hasShell:
		t.Wrong("shell", "nothing, where there is a command", "")
	case !hasCommand && !hasShell:
		t.Missing("command", `the program and its arguments, such as ["go", "build", "./..."], or a line for the shell as shell = "…"`)
	}
}
