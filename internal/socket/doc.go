// Package socket listens on and connects to Unix sockets that belong to one user, finds the
// socket of a project's hub, and passes open files over a socket.
//
// # Protection against other users
//
// Every check is made on an open file, never on a path that could mean another file a moment
// later. The directory of a socket is opened once, checked, and used for all later steps. On
// Linux the socket file is opened (O_PATH) before its owner is checked, and the client connects
// to exactly that file. A symbolic link in the place of a socket is never followed. Both sides
// check the other one's uid, which the kernel records (SO_PEERCRED on Linux, LOCAL_PEERCRED on
// macOS), and refuse another user's process.
//
// # Systems
//
// Linux and macOS. Elsewhere everything but [Path] and [Find] returns an error that wraps
// [errors.ErrUnsupported].
package socket
