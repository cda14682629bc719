// Package socket listens on and connects to Unix sockets that belong to one
// user, finds the socket of a project's hub, and passes open files over one.
//
// # What keeps others out
//
// Every check is made on something that is held open, never on a path that
// could mean another file a moment later: the directory of a socket is opened
// once, checked, and used for all that follows; on Linux the socket file that
// a client connects to is opened (O_PATH) before its owner is looked at, and
// it is that file which is connected to. Symbolic links in the place of a
// socket are never followed. Both sides look at the uid of the other one,
// which the kernel remembers (SO_PEERCRED on Linux, LOCAL_PEERCRED on macOS),
// and go no further with another user's process.
//
// # Systems
//
// Linux and macOS. Elsewhere everything but [Path] and [Find] gives an error
// that wraps [errors.ErrUnsupported].
package socket
