// Package filewatch tells when a directory, or what leads to it, may have been
// removed or replaced, and when a file is written or replaced, so that nobody has to
// look again and again.
//
// On Linux that is inotify(7). Elsewhere nothing tells it well enough: kqueue
// wants each file open, and closing a database's file that this process has open
// twice gives up its locks (https://sqlite.org/howtocorrupt.html, "Posix advisory
// locks canceled by a separate thread doing close()").
package filewatch

import "errors"

// ErrBlind says that the system does not tell of changes here: it is another
// system than Linux, the file system is on another machine or in another process,
// or the limits of inotify are reached.
var ErrBlind = errors.New("the system does not tell of changes here")
