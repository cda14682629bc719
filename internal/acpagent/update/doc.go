// Package update makes updates of the Agent Client Protocol of what the hub tells of
// a conversation: of events as they come, and of entries of a conversation that is
// replayed.
//
//   - translator.go says which update an event or an entry becomes.
//   - messages.go knows how much of each message has been sent: a message is sent
//     once, in order, whatever the hub had to leave out of its pieces.
//   - tools.go has the tool calls; terminal.go what their programs print.
//   - content.go has images and the like, and what is said in words in their place.
package update
