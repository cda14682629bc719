// Package hubclient has the hub's methods as Go functions, for the shell and for `duet-rpc acp`. Types
// are those of packages protocol and domain. This package adds only types that join several of
// them, such as the data of all events.
package hubclient
