package project

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SameFile reports whether two paths lead to the same file or directory; false if one of them
// leads nowhere.
func SameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// StateVariable is the environment variable that names the state directory.
const StateVariable = "DUET_STATE_HOME"

// StateHome returns the user's state directory: $DUET_STATE_HOME, else $XDG_STATE_HOME/duet, by
// default ~/.local/state/duet (XDG Base Directory Specification, which also says that a relative
// path is ignored). Links in the part of it that exists are resolved.
func StateHome(getenv func(string) string) (string, error) {
	if dir := getenv(StateVariable); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s is %q, which is not an absolute path: name a directory from the root on",
				StateVariable, dir)
		}
		return resolve(dir), nil
	}
	return xdg(getenv, "XDG_STATE_HOME", ".local", "state")
}

// FirstTime reports whether this is the first call with the name for the user, and records the
// call in the user's state directory. It is false if that cannot be written.
func FirstTime(getenv func(string) string, name string) bool {
	home, err := StateHome(getenv)
	if err != nil {
		return false
	}
	dir := filepath.Join(home, "told")
	if os.MkdirAll(dir, 0o700) != nil {
		return false
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

// ConfigHome returns the directory of the user's configuration: $XDG_CONFIG_HOME/duet, by
// default ~/.config/duet.
func ConfigHome(getenv func(string) string) (string, error) {
	return xdg(getenv, "XDG_CONFIG_HOME", ".config")
}

// DataHome returns the directory of files installed for the user: $XDG_DATA_HOME/duet, by
// default ~/.local/share/duet.
func DataHome(getenv func(string) string) (string, error) {
	return xdg(getenv, "XDG_DATA_HOME", ".local", "share")
}

func xdg(getenv func(string) string, name string, underHome ...string) (string, error) {
	base := getenv(name)
	if !filepath.IsAbs(base) {
		home := getenv("HOME")
		if home == "" {
			home, _ = os.UserHomeDir()
		}
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("neither %s nor HOME names a directory: set one of them", name)
		}
		base = filepath.Join(append([]string{home}, underHome...)...)
	}
	return resolve(filepath.Join(base, "duet")), nil
}

// resolve follows the links of the part of path that exists.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// isBelow reports, by names only, whether path is below dir.
func isBelow(path, dir string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// NotPrivateError reports that a place which must be private to the user is not: another user
// could read or plant its content.
type NotPrivateError struct {
	Path   string
	Reason string // such as "is a symbolic link"
}

func (e *NotPrivateError) Error() string {
	return fmt.Sprintf("%s %s and is not used: remove it", e.Path, e.Reason)
}

// CheckPrivate returns a [NotPrivateError] if path is a symbolic link, belongs to another user
// or can be written by one. For a missing path it returns the error of [os.Lstat].
func CheckPrivate(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := checkPrivate(path, info); err != nil {
		return err
	}
	if sharedWrite(info) {
		return &NotPrivateError{Path: path, Reason: "can be written by other users"}
	}
	return nil
}

func checkPrivate(path string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return &NotPrivateError{Path: path, Reason: "is a symbolic link"}
	}
	if IsForeign(info) {
		return &NotPrivateError{Path: path, Reason: "belongs to another user"}
	}
	return nil
}

// ShortenPaths returns a text for clients: it shortens paths of the project to begin at its
// root, and other paths of the user to begin at ~. A client need not learn the layout of the
// machine.
func (p Project) ShortenPaths(text string) string {
	text = replacePath(text, p.Root, "", "the project's directory")
	home, _ := os.UserHomeDir() // without a home no path is below it
	return replacePath(text, home, "~/", "~ (your home directory)")
}

// replacePath replaces a directory in a text: before the paths below it, and on its own.
func replacePath(text, dir, before, alone string) string {
	if len(dir) < 2 {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, dir)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		j := i + len(dir)
		b.WriteString(text[:i])
		switch {
		case i > 0 && inPath(text[i-1]):
			b.WriteString(dir)
		case j < len(text) && text[j] == '/':
			b.WriteString(before)
			j++
		case j < len(text) && inPath(text[j]):
			b.WriteString(dir)
		default:
			b.WriteString(alone)
		}
		text = text[j:]
	}
}

// inPath reports whether a byte can continue the name of a file.
func inPath(c byte) bool {
	return c == '/' || c == '-' || c == '_' || c == '.' || c >= 0x80 ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// reserved reports whether a directory never counts as a project on the way up, whatever it
// contains, and never holds state. Those are the home directory and its parents, directories for
// temporary files, and those of the system. Shared directories are below some of them; --root
// selects one explicitly.
func (f finder) reserved(dir string) bool {
	home := f.home
	if home != "" {
		home = resolve(home)
	}
	switch {
	case dir == filepath.Dir(dir), dir == home, SameFile(dir, home), home != "" && isBelow(home, dir),
		SameFile(dir, f.getenv("TMPDIR")), SameFile(dir, os.TempDir()):
		return true
	case home != "" && home != filepath.Dir(home) && isBelow(dir, home):
		return false // whatever the home directory is
	}
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSticky != 0 && sharedWrite(info) {
		return true // like /tmp
	}
	return ofSystem(dir)
}
