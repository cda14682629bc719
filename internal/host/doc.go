// Package host runs the two kinds of processes of a project.
//
// [Serve] and [ServeThrough] run an editor's process: it answers the core methods itself and
// relays everything else to the project's daemon, which it starts if none runs. [Daemon] runs
// the daemon: it holds the project's lock, and is the hub for the clients that connect to its
// sockets.
//
// Each state of a daemon has one owner with its own lock:
//
//   - claim: the project's lock, or why the process does not have it
//   - life: the states of the process from its start to its end; attempts: callers that
//     wait for the hub to open
//   - sockets: where clients connect
//   - vacancy: since when no client has been connected
package host
