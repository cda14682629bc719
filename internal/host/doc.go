// Package host runs the two kinds of processes of a project.
//
// [Serve] and [ServeThrough] run an editor's process: it answers the core methods itself and
// relays all other messages to the project's daemon, which it starts if none runs.
//
// [Daemon] runs the daemon: it takes the project's lock, opens the hub, and then listens for
// clients. It ends when the hub cannot be opened or has lost its files, and when it has no
// clients and no work. The next client that needs a hub starts another one.
package host
