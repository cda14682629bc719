//go:build !soak

package trigger

// manyFiles is the number of files in a test. With the tag soak it exceeds the system's event
// queue; TestChangesThatTheSystemLeavesOutAreLookedFor fakes such an overflow.
const manyFiles = 2_000
