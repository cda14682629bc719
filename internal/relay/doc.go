// Package relay connects an editor with a hub that lives in another process.
//
// An editor's process runs a [Relay] once a message needs the hub: frames in, frames out. The
// editor sees one connection that never breaks, although the hub behind it may end. Then the
// relay answers the pending requests (-32042 hub_lost) and calls Options.Connect for the next
// hub. It restores the editor's state there: its subscriptions, each from its last position, and
// the broadcasts of tasks. The editor notices nothing else.
//
// Messages pass byte for byte. The relay asks the next hub to give a subscription its old id.
// The ids of hubs' requests are random, so that an answer to a hub that has gone matches no
// request of the next one.
//
// While there is no hub Options.Early answers messages that need none, so that an editor's first
// requests do not wait for a hub that is starting.
//
// Nothing is queued while both sides read: the goroutine that reads a message also writes it. So
// a side that does not read stops the relay from reading the other side, and no other
// connection. Only while there is no hub do messages of the editor wait, in a queue bounded by
// count, bytes and time.
package relay
