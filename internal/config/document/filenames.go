package document

import (
	"path/filepath"
	"strings"
)

// FileNames makes the names of files in a configuration absolute.
type FileNames struct{ Base, Home string }

// Program makes the first word absolute where it is more than a name.
func (f FileNames) Program(words []string) []string {
	if len(words) > 0 {
		words[0] = f.Path(words[0], false)
	}
	return words
}

// Path makes a name absolute: ~/ is the home directory, what is relative is so
// to the directory of the configuration. A bare name stays, to be looked for on
// PATH, unless it can only be a file's.
func (f FileNames) Path(name string, isFile bool) string {
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
