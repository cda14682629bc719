// Command bench compares a built duet-rpc with other JSON-RPC servers that
// speak LSP framing on stdin and stdout:
//
//	cd internal/bench && go run . -duet ../../bin/duet-rpc
//
// It builds the peers under peers/ into a temporary directory, runs every
// workload against every server, and prints a markdown table, followed by the
// targets with PASS or MISS. With -check, a MISS is exit status 1. A round takes
// about a minute and a quarter.
//
// # How to read the figures
//
// Compare only ratios within one run. An absolute figure depends on the machine,
// its load and its clock speed as much as on the server. A column with × is
// duet-rpc's advantage over a peer: 2 means twice the throughput, or half the
// time, CPU or memory. Above 1 is always better.
//
// A cell is one workload against one server in one round. It has its own child
// process, so no cell inherits a warm heap or a grown buffer. A round runs all
// workloads. Within a workload the servers run one after the other, and each
// round starts with another server: a machine that is slow for a while slows
// them all. An absolute figure is the median of the rounds. A ratio is the
// median of the ratios within each round, not the ratio of the two medians.
//
// Notes on single figures:
//
//   - Ping-pong is mostly system calls and waking up the other side. On a
//     virtual machine the wake-up of an idle core may cost ten times the work
//     itself, and p50 jumps between two values from run to run; p10 is steadier.
//   - byteecho is the floor of a Go process for ping-pong, frameecho the limit
//     for throughput: it splits frames and does not parse the JSON. The load
//     generator limits some figures of frameecho. -v prints how busy both sides
//     of each cell were; † marks a figure whose client was busier than the
//     server.
//   - CPU is user and system time of the child, all its threads, over the
//     measured part of the cell, from its process CPU clock.
//   - Memory is resident memory as the kernel reports it: VmHWM for the peak,
//     VmRSS for idle figures. MB are 10^6 bytes.
//   - Each reply is compared byte for byte with the expected one. A server that
//     replies wrongly or out of order fails its cell.
//
// Some workloads measure features of duet-rpc alone: turns of an agent
// (peers/agent.go, which puts the time into its messages), the event log, and
// long lists of sessions. Their figures are absolute. They have their own
// table with the least and the most of the rounds, and depend on the machine
// and its load. An agent, an executor, the hub and the load generator are four
// processes: with fewer processors, other programs on the machine change p99.
//
// The load generator runs on Linux only: it is one thread with raw descriptors
// and poll(2), and reads the child's CPU clock and /proc.
package main
