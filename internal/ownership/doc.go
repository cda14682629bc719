// Package ownership says whose a file is and who else can read or write it, as
// far as the system's file information tells, and has the flags that open a file
// which somebody else may have put there. It decides nothing: what follows from
// that is said in packages project and origin.
package ownership
