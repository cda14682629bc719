// Package domain has the values that the whole program speaks of: threads and
// their runs, what was said and done in them, what was asked, and the states that
// a run can be in. It imports nothing of this module: the store turns these values
// into rows, and handlers into what clients see. JSON in them is somebody else's,
// such as a tool's input; it is kept as it came.
package domain
