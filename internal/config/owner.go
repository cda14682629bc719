package config

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// readUser reads the user's own file. Nobody else may be able to write it, for
// all that it says counts.
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

// readProject reads a project's file, which counts for nothing if it is
// somebody else's and the user's file makes no exception.
func readProject(path string, user *layer, getenv func(string) string) *layer {
	owners := project.Owners{Safe: project.SafeDirectories(getenv, func() []string { return user.safe })}
	return readLayer(path, SourceProject, getenv, owners.Check)
}

// Owners tell whose files count, by the environment and the user's file, which
// are read when a file of somebody else's is met.
func Owners(getenv func(string) string) project.Owners {
	return project.Owners{Safe: project.SafeDirectories(getenv, func() []string {
		file, err := UserFile(getenv)
		if err != nil {
			return nil
		}
		return readUser(file, getenv).safe
	})}
}

// UserFile is the user's configuration, $XDG_CONFIG_HOME/duet/config.toml,
// which need not exist.
func UserFile(getenv func(string) string) (string, error) {
	dir, err := project.ConfigHome(getenv)
	if err != nil {
		return "", fmt.Errorf("finding the user's configuration: %w", err)
	}
	return filepath.Join(dir, "config.toml"), nil
}

// Inspection is what a project's file asks to be trusted with.
type Inspection struct {
	File string
	Asks []Value // values of env are shown: they can change what a program does

	content []byte
}

// Inspect reads a project's file without using any of it. Errors are an
// [*Error] for what is wrong in the file, a [*project.ForeignError] where it
// counts for nothing, or [fs.ErrNotExist].
func Inspect(path string, getenv func(string) string) (*Inspection, error) {
	user := &layer{Document: &Document{}}
	if file, err := UserFile(getenv); err == nil {
		user = readUser(file, getenv) // what is wrong there is told by Load
	}
	l := readProject(path, user, getenv)
	if l.foreign != nil {
		return nil, l.foreign
	}
	if len(l.Problems) > 0 {
		return nil, (&Error{Problems: l.Problems}).cut()
	}
	if l.Content == nil {
		return nil, fmt.Errorf("looking at %s: %w", path, fs.ErrNotExist)
	}
	return &Inspection{File: path, Asks: l.needTrust(user.bounding(), true), content: l.Content}, nil
}

// Trusted tells whether the store has the file as it was inspected.
func (i *Inspection) Trusted(s *Store) (bool, error) { return s.Trusts(i.File, i.content) }

// Trust remembers the file as it was inspected. If it has been changed since,
// what it is now is not trusted.
func (i *Inspection) Trust(s *Store) error { return s.Trust(i.File, i.content) }
