package config

import (
	"fmt"
	"io/fs"

	"github.com/duet-rpc/duet-rpc/internal/config/document"
	"github.com/duet-rpc/duet-rpc/internal/trust"
)

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
	user := &layer{Document: &document.Document{}}
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
func (i *Inspection) Trusted(s *trust.Store) (bool, error) { return s.Trusts(i.File, i.content) }

// Trust remembers the file as it was inspected. If it has been changed since,
// what it is now is not trusted.
func (i *Inspection) Trust(s *trust.Store) error { return s.Trust(i.File, i.content) }
