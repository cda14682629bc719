// Package chaos has no code of its own: its tests use the program while its
// processes die at random, and hold what it did against what it had promised.
//
// A round is a project with a few people and one who kills. The people are
// editors over standard input and output, clients of the socket and shells;
// they launch, continue, interrupt, and answer questions, often two of them the
// same one. Hubs, executors, agents and relays are killed (SIGKILL), often right
// after an answer was acknowledged, and hubs are stopped for a moment. The agent
// is scripted, and writes down what it asks, is told and carries out, each
// line on the disk before it goes on: that journal is the truth.
//
// When the killing is over, the round waits until nothing moves any more, and
// checks: no acknowledged launch is lost; a question is a register that is
// written once (by porcupine, which looks for an order of all calls that explains
// all replies); nothing is carried out twice for one answer, or after a denial;
// every acknowledged approval is carried out, or open again; events have no gap
// and are the same for everybody; what was cut short can be continued; no
// process is left.
//
// A power cut is not among it: a kill takes the process and leaves what the
// kernel has. What the disk has after a power cut is the store's affair.
//
// The tests have the tag soak: `make chaos` goes on for five minutes, `go test -tags soak` for a
// short round.
package chaos
