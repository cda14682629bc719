package origin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/duet-rpc/duet-rpc/internal/ownership"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// KeyVariable is the variable of the environment that stands in for the user's
// key file, where the home directory is a new one each time, as in containers.
const KeyVariable = "DUET_DATABASE_KEY"

const (
	keyFile    = "database-key"
	keyBytes   = 32 // of the key that is made
	leastBytes = 16 // of one from the environment
)

// ErrNoKey is given by [FindKey] where there is none yet.
var ErrNoKey = errors.New("no database was made by this user yet")

// A Key is the user's secret. The zero Key knows no database.
type Key struct {
	secret []byte
	// portable: it came from the environment, so databases are known by it and
	// their path where their files are not the ones that they were.
	portable bool
}

// LoadKey is the key of [KeyVariable], or else the one in the user's state
// directory (see [project.StateHome]), which is made if there is none. Any number
// of processes may do that at once, and get the same one.
func LoadKey(getenv func(string) string) (Key, error) {
	key, err := FindKey(getenv)
	if !errors.Is(err, ErrNoKey) {
		return key, err
	}
	path, err := keyPath(getenv)
	if err == nil {
		err = makeKey(path)
	}
	if err != nil {
		return Key{}, keyError(err)
	}
	return FindKey(getenv)
}

// FindKey is as LoadKey, and makes nothing: where there is no key it gives
// [ErrNoKey].
func FindKey(getenv func(string) string) (Key, error) {
	if value := getenv(KeyVariable); value != "" {
		if len(value) < leastBytes {
			return Key{}, fmt.Errorf("%s has %d bytes; it must be a secret of at least %d, such as `openssl rand -hex 32` makes", KeyVariable, len(value), leastBytes)
		}
		return Key{secret: []byte(value), portable: true}, nil
	}
	path, err := keyPath(getenv)
	if err != nil {
		return Key{}, keyError(err)
	}
	secret, err := readKey(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Key{}, ErrNoKey
	case err != nil:
		return Key{}, keyError(err)
	}
	return Key{secret: secret}, nil
}

func keyError(err error) error {
	return fmt.Errorf("the key by which your databases are known cannot be had: %w; mend that, or set %s to a secret of your own", err, KeyVariable)
}

func keyPath(getenv func(string) string) (string, error) {
	dir, err := project.StateHome(getenv)
	return filepath.Join(dir, keyFile), err
}

func readKey(path string) ([]byte, error) {
	for _, own := range []string{filepath.Dir(path), path} {
		if err := checkPrivate(own); err != nil {
			return nil, err
		}
	}
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if ownership.OpenToOthers(info) {
		return nil, fmt.Errorf("%s can be read by other users: chmod 600 it", path)
	}
	secret, err := io.ReadAll(io.LimitReader(f, keyBytes+1))
	if err == nil && len(secret) != keyBytes {
		err = fmt.Errorf("%s is damaged: restore it, or remove it to begin with a new one (databases are set aside then, and `duet-rpc trust --database` takes over their history)", path)
	}
	return secret, err
}

// checkPrivate is [project.CheckPrivate] for what has more in it than the key:
// it is not to be removed.
func checkPrivate(path string) error {
	err := project.CheckPrivate(path)
	var shared *project.NotPrivateError
	if errors.As(err, &shared) {
		return fmt.Errorf("%s %s: only you may own it and write to it (chmod go-w)", shared.Path, shared.Reason)
	}
	return err
}

// makeKey makes the key unless another process does.
func makeKey(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		var failed *fs.PathError
		if errors.As(err, &failed) {
			err = fmt.Errorf("the directory %s cannot be made: %w", failed.Path, failed.Err)
		}
		return err
	}
	if err := checkPrivate(dir); err != nil {
		return err
	}
	const (
		patience = 5 * time.Second
		between  = 5 * time.Millisecond
	)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock := flock.New(path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR|ownership.NoFollow), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, between); err != nil {
		return fmt.Errorf("waiting for %s.lock: %w", path, err)
	}
	defer lock.Close()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	secret := make([]byte, keyBytes)
	rand.Read(secret) // it never fails
	if err := replaceFile(path, secret); err != nil {
		return err
	}
	return syncDir(dir)
}
