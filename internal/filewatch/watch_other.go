//go:build !linux

package filewatch

// A Watch has no implementation on this system.
type Watch struct{ C <-chan struct{} }

// Directory returns ErrBlind.
func Directory(_, _ string) (*Watch, error) { return nil, ErrBlind }

// Written returns ErrBlind.
func Written(string) (*Watch, error) { return nil, ErrBlind }

// Files returns ErrBlind.
func Files(...string) (*Watch, error) { return nil, ErrBlind }

// Close does nothing.
func (*Watch) Close() error { return nil }
