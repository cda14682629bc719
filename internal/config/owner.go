package config

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// safeKey is the key of the directories in which files of other users count.
const safeKey = "safe_directories"

// readUser reads the user's own file. No other user may be able to write it, because all its
// settings apply.
func readUser(path string, getenv func(string) string) *layer {
	owners := project.Owners{Safe: project.SafeDirectories(getenv, func() []string { return nil })}
	return readLayer(path, SourceUser, getenv, func(name string, info fs.FileInfo) error {
		if err := owners.Check(name, info); err != nil {
			return err
		}
		if name == path && project.WritableByOthers(info) {
			return fmt.Errorf("other users can write it: chmod go-w %s", path)
		}
		return nil
	})
}

// readProject reads a project's file. It ignores the file if another user owns it and the user's
// file makes no exception.
func readProject(path string, user *layer, getenv func(string) string) *layer {
	owners := project.Owners{Safe: project.SafeDirectories(getenv, func() []string { return value[[]string](user, safeKey) })}
	return readLayer(path, SourceProject, getenv, owners.Check)
}

// Owners returns the trusted owners of files. It reads the environment and the user's file only
// when it meets another user's file.
func Owners(getenv func(string) string) project.Owners {
	return project.Owners{Safe: project.SafeDirectories(getenv, func() []string {
		file, err := UserFile(getenv)
		if err != nil {
			return nil
		}
		return value[[]string](readUser(file, getenv), safeKey)
	})}
}

// UserFile returns the path of the user's configuration, $XDG_CONFIG_HOME/duet/config.toml,
// which need not exist.
func UserFile(getenv func(string) string) (string, error) {
	dir, err := project.ConfigHome(getenv)
	if err != nil {
		return "", fmt.Errorf("finding the user's configuration: %w", err)
	}
	return filepath.Join(dir, "config.toml"), nil
}

// Inspection lists the settings of a project's file that need trust.
type Inspection struct {
	File string
	Asks []Value // values of env are shown: they can change what a program does

	content []byte
}

// Inspect reads a project's file without using any of it. Errors are an [*Error] for problems in
// the file, a [*project.ForeignError] if the file is ignored, or [fs.ErrNotExist].
func Inspect(path string, getenv func(string) string) (*Inspection, error) {
	user := &layer{Document: &Document{}}
	if file, err := UserFile(getenv); err == nil {
		user = readUser(file, getenv) // Load reports the problems there
	}
	l := readProject(path, user, getenv)
	if l.foreign != nil {
		return nil, l.foreign
	}
	if len(l.Problems) > 0 {
		return nil, (&Error{Problems: l.Problems}).cut()
	}
	below := unconfigured(getenv)
	below.apply(user, true)
	if l.Content == nil {
		return nil, fmt.Errorf("looking at %s: %w", path, fs.ErrNotExist)
	}
	return &Inspection{File: path, Asks: l.needTrust(below, true), content: l.Content}, nil
}

// Trusted reports whether the store contains the inspected version of the file.
func (i *Inspection) Trusted(s *Store) (bool, error) { return s.Trusts(i.File, i.content) }

// Trust stores the inspected version of the file as trusted. If the file was changed since, the
// new version is not trusted.
func (i *Inspection) Trust(s *Store) error { return s.Trust(i.File, i.content) }
