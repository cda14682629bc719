// Package pending keeps requests that wait for their responses.
//
// A [Table] holds whatever its owner has to know of each request, by id and in
// order; it is guarded by its owner's lock. [Calls] are requests of this
// process, for each of which a goroutine waits.
package pending
