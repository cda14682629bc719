//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

type options struct {
	duet, before string // program and arguments, split at white space
	rounds       int
	scale        float64
	workloads    []workload
	all          bool // no workloads were chosen
	check        bool
	verbose      bool
	keep         string
}

func parseFlags() (options, error) {
	var o options
	var selected string
	flag.StringVar(&o.duet, "duet", "../../bin/duet-rpc", "the duet-rpc to measure: a `command`, with arguments if any")
	flag.StringVar(&o.before, "before", "", "another build of duet-rpc to measure in the same rounds, a `command` like -duet")
	flag.IntVar(&o.rounds, "rounds", 4, "rounds over all workloads and servers")
	flag.Float64Var(&o.scale, "scale", 1, "factor for the number of messages")
	flag.StringVar(&selected, "workloads", "", "comma `list` of workloads (default: all)")
	flag.BoolVar(&o.check, "check", false, "exit with status 1 if a target is missed")
	flag.BoolVar(&o.verbose, "v", false, "tell every cell's figures, and how busy client and server were, on stderr")
	flag.StringVar(&o.keep, "keep", "", "a `directory` that is made to hold the database of the lists, and used again if it is there")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run . [flags], in the folder of this module")
		flag.PrintDefaults()
		fmt.Fprintln(flag.CommandLine.Output(), "workloads:")
		for _, w := range workloads {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-20s %s\n", w.name, w.purpose)
		}
	}
	flag.Parse()
	var err error
	o.workloads, err = selectWorkloads(selected)
	o.all = selected == ""
	if flag.NArg() > 0 {
		err = errors.Join(err, fmt.Errorf("what is %q?", flag.Arg(0)))
	}
	if o.rounds < 1 || o.scale <= 0 {
		err = errors.Join(err, errors.New("-rounds and -scale must be positive"))
	}
	return o, err
}

func main() {
	o, err := parseFlags()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		flag.Usage()
		os.Exit(2)
	}
	misses, err := compare(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if o.check && misses > 0 {
		os.Exit(1)
	}
}

// compare builds, measures and reports; it returns how many targets were
// missed.
func compare(o options) (misses int, err error) {
	interrupted, forget := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer forget()
	directory, err := os.MkdirTemp("", "duet-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(directory)
	servers, err := prepare(interrupted, directory, o)
	if err != nil {
		return 0, err
	}

	// Children die with the thread that started them, and the client must not
	// collect garbage while it measures; the limit is for accidents only.
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(2 << 30)

	run := newRun(servers, o)
	if err := run.measure(interrupted); err != nil {
		return 0, err
	}
	return run.report(os.Stdout), nil
}

// prepare builds the peers and makes a home for every server.
func prepare(ctx context.Context, directory string, o options) ([]*server, error) {
	command, err := programOf(o.duet)
	if err != nil {
		return nil, fmt.Errorf("duet-rpc has to be built first, or named with -duet: %w", err)
	}

	program := filepath.Join(directory, "peers")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./peers")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the peers (this has to run in the folder of its module): %w", err)
	}
	servers := []*server{{name: duet, command: command, agent: program}}
	if o.before != "" {
		earlier, err := programOf(o.before)
		if err != nil {
			return nil, fmt.Errorf("the build that -before names: %w", err)
		}
		servers = append(servers, &server{name: before, command: earlier, agent: servers[0].agent})
	}
	for _, peer := range peers {
		servers = append(servers, &server{
			name:                peer,
			command:             []string{program, peer},
			verbatim:            peer == byteecho || peer == frameecho,
			echoesNotifications: peer == byteecho,
		})
	}
	for _, s := range servers {
		s.directory = filepath.Join(directory, "home", s.name)
		if err := os.MkdirAll(s.directory, 0o700); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// programOf is a command with the whole path of its program.
func programOf(command string) ([]string, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, errors.New("it names no program")
	}
	program, err := exec.LookPath(words[0])
	if err == nil {
		words[0], err = filepath.Abs(program)
	}
	return words, err
}

// others are whom duet-rpc is compared with.
func (o options) others() []string {
	if o.before == "" {
		return peers
	}
	return append([]string{before}, peers...)
}
