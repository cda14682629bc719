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

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// TrustStore remembers which configuration files of projects the user trusts:
// for each path, the SHA-256 of the content that was looked at. One byte that
// changes withdraws the trust. It may be used by many goroutines and processes
// at once.
type TrustStore struct {
	path string
}

// trustFile is what the store's file holds.
type trustFile struct {
	Version int                     `json:"version"`
	Files   map[string]trustedEntry `json:"files"` // by path, free of links
}

type trustedEntry struct {
	SHA256    string    `json:"sha256"`
	TrustedAt time.Time `json:"trusted_at"`
}

const trustVersion = 1

// NewTrustStore is the store in a file, which need not exist.
func NewTrustStore(path string) *TrustStore { return &TrustStore{path: path} }

// DefaultTrustStore is the user's store, $XDG_STATE_HOME/duet/trusted.json.
func DefaultTrustStore(getenv func(string) string) (*TrustStore, error) {
	dir, err := project.StateHome(getenv)
	if err != nil {
		return nil, fmt.Errorf("finding which files are trusted: %w", err)
	}
	return NewTrustStore(filepath.Join(dir, "trusted.json")), nil
}

// Path is the store's file.
func (s *TrustStore) Path() string { return s.path }

// IsTrusted tells whether the user trusts the file as it is now.
func (s *TrustStore) IsTrusted(path string) (bool, error) {
	content, err := readExisting(path)
	if err != nil {
		return false, fmt.Errorf("is the file trusted: %w", err)
	}
	return s.trusts(path, content)
}

// Trust remembers the file as it is now.
func (s *TrustStore) Trust(path string) error {
	content, err := readExisting(path)
	if err != nil {
		return fmt.Errorf("trusting the file: %w", err)
	}
	return s.trust(path, content)
}

// Revoke forgets the file, which need not exist any more. To revoke what is
// not trusted is no error.
func (s *TrustStore) Revoke(path string) error {
	name, err := canonical(path)
	if err != nil {
		return fmt.Errorf("revoking trust: %w", err)
	}
	return s.change(func(files map[string]trustedEntry) { delete(files, name) })
}

// trusts is IsTrusted for content that has been read: what is judged is what
// is used, whatever becomes of the file meanwhile.
func (s *TrustStore) trusts(path string, content []byte) (bool, error) {
	name, err := canonical(path)
	if err != nil {
		return false, fmt.Errorf("is the file trusted: %w", err)
	}
	file, err := s.read()
	if err != nil {
		return false, err
	}
	entry, known := file.Files[name]
	return known && entry.SHA256 == contentHash(content), nil
}

// remembers tells whether the user trusts any content of the file, which may be
// gone.
func (s *TrustStore) remembers(path string) (bool, error) {
	name, err := canonical(path)
	if err != nil {
		return false, fmt.Errorf("is the file trusted: %w", err)
	}
	file, err := s.read()
	if err != nil {
		return false, err
	}
	_, known := file.Files[name]
	return known, nil
}

// trust is Trust for content that the user has seen.
func (s *TrustStore) trust(path string, content []byte) error {
	name, err := canonical(path)
	if err != nil {
		return fmt.Errorf("trusting the file: %w", err)
	}
	return s.change(func(files map[string]trustedEntry) {
		files[name] = trustedEntry{SHA256: contentHash(content), TrustedAt: time.Now().UTC().Truncate(time.Second)}
	})
}

func contentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// canonical is the one name of a file. The file itself may be gone.
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
func (s *TrustStore) read() (trustFile, error) {
	file := trustFile{Version: trustVersion, Files: map[string]trustedEntry{}}
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
	if file.Version != trustVersion {
		return file, fmt.Errorf("reading which files are trusted: %s is of version %d and this program knows version %d: use a newer duet-rpc, or remove it",
			s.path, file.Version, trustVersion)
	}
	if file.Files == nil {
		file.Files = map[string]trustedEntry{}
	}
	return file, nil
}

// change replaces the store by a changed one. A lock beside it makes writers
// wait for each other.
func (s *TrustStore) change(change func(map[string]trustedEntry)) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
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

// write replaces the file at once, so that a reader sees the old or the new.
func (s *TrustStore) write(file trustFile) error {
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(s.path), ".trusted-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // in vain once it has its name
	_, err = temporary.Write(append(text, '\n'))
	if err == nil {
		err = temporary.Sync()
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), s.path)
}
