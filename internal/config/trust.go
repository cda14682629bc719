package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// This file stores which configuration files of projects the user trusts.

// A Store holds the files that the user trusts: for each path, the SHA-256 of the reviewed
// content. A change of one byte withdraws the trust. It may be used by many goroutines and
// processes at once.
type Store struct {
	path string
}

// storeFile is the content of the store's file.
type storeFile struct {
	Version int              `json:"version"`
	Files   map[string]entry `json:"files"` // by path, free of links
}

type entry struct {
	SHA256    string    `json:"sha256"`
	TrustedAt time.Time `json:"trusted_at"`
}

const version = 1

// NewTrust returns the store in a file, which need not exist.
func NewTrust(path string) *Store { return &Store{path: path} }

// DefaultTrust returns the user's store, $XDG_STATE_HOME/duet/trusted.json.
func DefaultTrust(getenv func(string) string) (*Store, error) {
	dir, err := project.StateHome(getenv)
	if err != nil {
		return nil, fmt.Errorf("finding which files are trusted: %w", err)
	}
	return NewTrust(filepath.Join(dir, "trusted.json")), nil
}

// Path returns the path of the store's file.
func (s *Store) Path() string { return s.path }

// Revoke removes the file from the store; the file itself need not exist. Revoking a file that
// is not trusted is not an error.
func (s *Store) Revoke(path string) error {
	name, err := canonical(path)
	if err != nil {
		return fmt.Errorf("revoking trust: %w", err)
	}
	return s.change(func(files map[string]entry) { delete(files, name) })
}

// Trusts reports whether the user trusts this content of the file, which the caller has read and
// will use. Trust from before the project's directory was replaced does not count, see
// [project.Project.Replaced].
func (s *Store) Trusts(path string, content []byte) (bool, error) {
	trusted, known, err := s.find(path)
	if err != nil || !known || trusted.SHA256 != contentHash(content) {
		return false, err
	}
	replaced, err := s.projectOf(path).Replaced()
	return err == nil && !trusted.TrustedAt.Before(replaced), err
}

// projectOf returns the project of a configuration file.
func (s *Store) projectOf(path string) project.Project {
	root, err := filepath.Abs(filepath.Dir(path))
	if err == nil {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
	}
	return project.Project{Root: root, StateDir: project.StateDirIn(filepath.Dir(s.path), root)}
}

// Files returns the files whose content decides whether a file is trusted.
func (s *Store) Files(path string) []string {
	return []string{s.path, s.projectOf(path).RecordFile()}
}

// Remembers reports whether the user trusts any content of the file, which may be gone.
func (s *Store) Remembers(path string) (bool, error) {
	_, known, err := s.find(path)
	return known, err
}

// find returns the store's entry for a file.
func (s *Store) find(path string) (remembered entry, known bool, err error) {
	name, err := canonical(path)
	if err != nil {
		return entry{}, false, fmt.Errorf("is the file trusted: %w", err)
	}
	file, err := s.read()
	if err != nil {
		return entry{}, false, err
	}
	remembered, known = file.Files[name]
	return remembered, known, nil
}

// Trust stores this content of the file, which the user has seen, as trusted.
func (s *Store) Trust(path string, content []byte) error {
	name, err := canonical(path)
	if err != nil {
		return fmt.Errorf("trusting the file: %w", err)
	}
	return s.change(func(files map[string]entry) {
		files[name] = entry{SHA256: contentHash(content), TrustedAt: time.Now().UTC()}
	})
}

func contentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// canonical returns the one name of a file. The file itself may be gone.
func canonical(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	return path, nil
}

// read reads the store. No lock is needed: the file is only ever replaced.
func (s *Store) read() (storeFile, error) {
	file := storeFile{Version: version, Files: map[string]entry{}}
	err := project.CheckPrivate(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return file, fmt.Errorf("reading which files are trusted: %w", err)
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return file, fmt.Errorf("reading which files are trusted: %w", err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return file, fmt.Errorf("reading which files are trusted: %s is damaged (%w): remove it, then trust again what you trust", s.path, err)
	}
	if file.Version != version {
		return file, fmt.Errorf("reading which files are trusted: %s is of version %d and this program knows version %d: use a newer duet-rpc, "+
			"or remove it",
			s.path, file.Version, version)
	}
	if file.Files == nil {
		file.Files = map[string]entry{}
	}
	return file, nil
}

// change replaces the store by a changed one. A lock beside it makes writers
// wait for each other.
func (s *Store) change(change func(map[string]entry)) error {
	if err := durable.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("writing which files are trusted: %w", err)
	}
	const (
		patience = 5 * time.Second
		between  = 5 * time.Millisecond
	)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock := flock.New(s.path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, between); err != nil {
		return fmt.Errorf("writing which files are trusted: waiting for %s.lock: %w", s.path, err)
	}
	defer lock.Close()
	file, err := s.read()
	if err != nil {
		return err
	}
	change(file.Files)
	if err := s.write(file); err != nil {
		return fmt.Errorf("writing which files are trusted: %w", err)
	}
	return nil
}

// write replaces the file atomically, so that a reader sees the old or the new one.
func (s *Store) write(file storeFile) error {
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(s.path, append(text, '\n'), 0o600)
}
