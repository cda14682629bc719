//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// A run is all cells of all rounds, and what came of them.
type run struct {
	options  options
	servers  []*server
	results  results
	loads    map[cellKey]*load
	failures map[cellKey]error
	lingered map[string]*int // by server name
}

// A cellKey names the cells that differ in their round only.
type cellKey struct{ server, workload string }

func newRun(servers []*server, o options) *run {
	r := &run{
		options: o, servers: servers, results: newResults(o.rounds),
		loads: map[cellKey]*load{}, failures: map[cellKey]error{}, lingered: map[string]*int{},
	}
	for _, s := range servers {
		r.lingered[s.name] = new(int)
		for _, w := range o.workloads {
			r.loads[cellKey{s.name, w.name}] = new(load)
		}
	}
	return r
}

// measure runs the rounds. That a server fails a workload is no error of the
// run.
func (r *run) measure(ctx context.Context) error {
	for round := range r.options.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, r.options.rounds)
		for _, w := range r.options.workloads {
			for i := range r.servers {
				s := r.servers[(round+i)%len(r.servers)]
				if !r.worthwhile(w, s) || r.options.all && w.rounds > 0 && round >= w.rounds {
					continue
				}
				r.measureCell(round, w, s)
				if err := ctx.Err(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// worthwhile: a server that failed a workload is not asked again, and one that
// hung gets no more requests.
func (r *run) worthwhile(w workload, s *server) bool {
	for key, err := range r.failures {
		if key.server == s.name && (key.workload == w.name || errors.Is(err, errHung)) {
			return false
		}
	}
	return !(w.oneWay && s.echoesNotifications) && (!w.alone || s.name == duet || s.name == before)
}

func (r *run) measureCell(round int, w workload, s *server) {
	key := cellKey{s.name, w.name}
	runtime.GC()
	var busy load
	m, err := w.run(cell{
		server: s, scale: r.options.scale, keep: r.options.keep, verbose: r.options.verbose, load: &busy, lingered: r.lingered[s.name],
	})
	if err != nil {
		r.failures[key] = err
		fmt.Fprintf(os.Stderr, "%s, %s: %v\n", w.name, s.name, err)
		return
	}
	r.results.add(round, s.name, m)
	sum := r.loads[key]
	sum.lap = lap{sum.wall + busy.wall, sum.server + busy.server, sum.client + busy.client}
	if !r.options.verbose {
		return
	}
	var words []string
	for _, f := range w.figures {
		words = append(words, fmt.Sprintf("%s %s %s", f.name, significant(m[f]), f.unit))
	}
	if busy.wall > 0 {
		words = append(words, fmt.Sprintf("busy: client %.0f %%, server %.0f %%", busy.clientBusy()*100, busy.serverBusy()*100))
	}
	fmt.Fprintf(os.Stderr, "  %-12s %s\n", s.name, strings.Join(words, "; "))
}

// report writes the table, the targets and what went wrong, and returns the
// number of missed targets.
func (r *run) report(out io.Writer) (misses int) {
	var figures, compared, alone []*figure
	for _, w := range r.options.workloads {
		figures = append(figures, w.figures...)
		if w.alone {
			alone = append(alone, w.figures...)
		} else {
			compared = append(compared, w.figures...)
		}
	}
	fmt.Fprintf(out, "%s/%s, %d CPUs, %s, rounds: %d, scale: %g. × is %s's advantage, above 1 is better; compare ratios only.\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), r.options.rounds, r.options.scale, duet)
	marked := false
	if len(compared) > 0 {
		writeTable(out, r.results, r.options.others(), compared, func(server string, f *figure) bool {
			bound := r.clientBound(server, f)
			marked = marked || bound
			return bound
		})
	}
	if marked {
		fmt.Fprintln(out, "\n† The client was busier than the server, which could do better.")
	}
	if len(alone) > 0 {
		fmt.Fprintln(out)
		writeOwn(out, r.results, alone, r.options.before != "")
	}
	fmt.Fprintln(out)
	misses = reportTargets(out, r.results, figures)
	for _, s := range r.servers {
		for _, w := range r.options.workloads {
			if err := r.failures[cellKey{s.name, w.name}]; err != nil {
				fmt.Fprintf(out, "\n%s failed %s: %v\n", s.name, w.name, err)
			}
		}
		if n := *r.lingered[s.name]; n > 0 {
			fmt.Fprintf(out, "\n%s had to be killed %d times, %v after the end of its stdin.\n", s.name, n, exitGrace)
		}
	}
	return misses
}

// clientBound tells whether a throughput of a server was bounded by the client.
func (r *run) clientBound(server string, f *figure) bool {
	i := slices.IndexFunc(r.options.workloads, func(w workload) bool { return slices.Contains(w.figures, f) })
	sum := r.loads[cellKey{server, r.options.workloads[i].name}]
	return !f.lowerIsBetter && sum.clientBound()
}
