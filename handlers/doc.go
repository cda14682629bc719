// Package handlers has the methods of duet-rpc, one file a family: typed
// parameters in, a typed result out. It says what each method means on the
// wire and nothing of how bytes get there; package server does that.
package handlers
