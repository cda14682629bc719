package project

import (
	"fmt"
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
			return "", fmt.Errorf("%s is %q, which is not an absolute path: name a directory from the root on", StateVariable, dir)
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
