//go:build !linux

package filewatch

// A Watch does not exist here.
type Watch struct{ C <-chan struct{} }

// Directory gives ErrBlind.
func Directory(_, _ string) (*Watch, error) { return nil, ErrBlind }

// Written gives ErrBlind.
func Written(string) (*Watch, error) { return nil, ErrBlind }

// Files gives ErrBlind.
func Files(...string) (*Watch, error) { return nil, ErrBlind }

// Close does nothing.
func (*Watch) Close() error { return nil }
