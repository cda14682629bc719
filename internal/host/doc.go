// Package host is the life of one process of a project: it claims the project's
// lock, joins the hub of another process or is the hub itself, loses it, takes
// over from another one, stays for those who have come, and ends.
//
// There are three ways in. [Serve] is for a process that an editor started,
// [Daemon] for one without an editor, and [Connect] for a command that needs a hub
// and is it where there is none.
//
// Each state has one owner with its own lock:
//
//   - claim: the project's lock, or why it is not had
//   - life: what a process does as the hub, a state machine from its start to its
//     end; attempts: the hub that it opens, as those see it who ask for it
//   - sockets: what others reach the hub by
//   - linger: whether somebody is still there whom the process serves
//   - attachment: an editor's way to the hub of another process, and to the next
//     one when that has gone
//
// A host puts them together with the server of the methods. Nothing of the domain
// is on the way from the start to the first reply: the sockets are opened 10 ms
// after the start, and the hub when it is needed, or 100 ms after the start.
package host
