// Package filewatch notifies when a directory, or one on its path, may have been removed or
// replaced. It also notifies when a file is written or replaced, so that no caller has to poll.
//
// On Linux it uses inotify(7). Other systems have no suitable mechanism. kqueue needs each file
// open, and closing a database's file that this process has open twice releases its locks
// (https://sqlite.org/howtocorrupt.html, "Posix advisory locks canceled by a separate thread
// doing close()").
package filewatch

import "errors"

// ErrBlind reports that the system cannot watch the file. It is not Linux, the file system is on
// another machine or in another process, or the limits of inotify are reached.
var ErrBlind = errors.New("the system does not tell of changes here")
