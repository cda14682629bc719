// Package relay stands between an editor and a hub that lives in another
// process.
//
// An editor's process runs a [Relay] once a message needs the hub: frames in, frames out. The editor sees one connection that
// never breaks. The hub behind it may: then the relay answers what it was
// asked and the hub never will (-32042 hub_lost), asks Options.Connect for the
// next hub, and gives it what it has to know of the editor: its subscriptions, from where each of them was, and that
// it gets the broadcasts of tasks. The editor is told nothing else.
//
// Messages pass byte for byte. The next hub is asked to give a subscription the
// id that it had, and the ids of hubs' requests are random, so that an answer to
// a hub that has gone is none to the next one.
//
// What needs no hub is answered by Options.Early while there is none, so that
// an editor's first requests do not wait for a hub that is being started.
//
// Nothing is queued while both sides read: whoever reads a message writes it,
// so that a side that does not read stops the other side from being read, and
// nobody else. Only while there is no hub do messages of the editor wait, in
// a queue bounded by count, bytes and time.
package relay
