// Package health knows how the store of a process is: whether its disk is full,
// whether its files are still there, and whether a part of it cannot be read. It
// keeps a reserve on the disk, which is given up when that is full, and tells what
// is wrong, as `health` shows it.
package health
