//go:build !soak

package trigger

// manyFiles is how many files one test makes. The tag soak makes more than the system queues
// events for; TestChangesThatTheSystemLeavesOutAreLookedFor has such a queue without them.
const manyFiles = 2_000
