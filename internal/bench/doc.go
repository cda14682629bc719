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
// Only ratios mean something, and only those within one run. An absolute
// figure says as much about the machine, its load and its clock speed as about
// the server, so never hold one against a figure of another run. The columns
// headed × hold duet-rpc's advantage over a peer: 2 means twice the
// throughput, or half the time, CPU or memory; above 1 is better, always.
//
// A cell is one workload against one server in one round, and has a child
// process of its own, so no cell inherits a warm heap or a grown buffer. A
// round goes through all workloads; within a workload the servers follow each
// other at once, and each round starts with another server, so that a machine
// that slows down for a while slows them all. An absolute figure in the table
// is the median over the rounds. A ratio is taken within each round, and the
// table shows the median of those, which is not the ratio of the two medians.
//
// What to know of the single figures:
//
//   - Ping-pong is mostly system calls and waking up the other side. On a
//     virtual machine the wake-up of an idle core may cost ten times the work
//     itself, and p50 jumps between two values from run to run; p10 is steadier.
//   - byteecho is the floor of a Go process for ping-pong, frameecho the limit
//     for throughput: it splits frames and never looks at the JSON. Some figures
//     of frameecho are bounded by the load generator; -v tells how busy both
//     sides of every cell were, and a table cell marked † had a client that was
//     busier than the server.
//   - CPU is user and system time of the child, all its threads, over the
//     measured part of the cell, from its process CPU clock.
//   - Memory is what the kernel reports as resident: VmHWM for the peak, VmRSS
//     for idle figures. All MB are 10^6 bytes.
//   - Every reply is compared byte for byte with the expected one, so a server
//     that is fast and wrong, or answers out of order, fails its cell.
//
// Some workloads are about what only duet-rpc has: runs of an agent (peers/agent.go,
// which stamps the time into what it sends), the log of their events, and lists
// of a great many conversations. Their figures are absolute and have a table of
// their own, with the least and the most of the rounds: they hold for the
// machine and for how quiet it was. An agent, an executor, the hub and the load
// generator are four processes; with less than that many processors, and a
// p99, anything else that runs on the machine is part of the figure.
//
// The load generator runs on Linux only: it is one thread on raw descriptors
// and poll(2), and reads the child's CPU clock and /proc.
package main
