package dbfile

import "errors"

// ErrReplaced says that a database is another one than the one that was meant.
var ErrReplaced = errors.New("another database was written over the project's")
