// Package chaos tests the built program while its processes are killed at random. It has tests only.
//
// In a round, editors, socket clients and shells launch, continue, interrupt and answer questions,
// often the same question twice. Hubs, executors, agents and relays are killed (SIGKILL), often right
// after an acknowledgement, and hubs are stopped for a moment. The scripted agent writes a
// journal to the disk: its questions, the answers and its actions.
//
// After the kills a round waits until nothing moves, and checks: no acknowledged launch is lost; a
// question is a register that is written once (porcupine finds an order of all calls that explains
// all replies); nothing is carried out twice for one answer, or after a denial; every acknowledged
// approval is carried out, or open again; events have no gap and are the same for every client;
// interrupted turns can be continued; no process is left.
//
// A power cut is not simulated: a kill leaves what the kernel has. Package store/sqlite answers for
// the disk.
//
// The tests have the tag soak: `make chaos` runs five minutes, `go test -tags soak` a short round.
package chaos
