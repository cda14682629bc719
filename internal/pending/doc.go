// Package pending tracks requests that wait for responses.
//
// A [Table] holds its owner's data about each request, by id and in order; the owner's lock guards
// it. [Calls] are outgoing requests of this process; a goroutine waits for each.
package pending
