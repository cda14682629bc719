package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Names of the servers, as tables and targets have them.
const (
	duet        = "duet-rpc"
	lspdev      = "lspdev"
	sourcegraph = "sourcegraph"
	byteecho    = "byteecho"
	frameecho   = "frameecho"
	before      = "before" // another build of duet-rpc
)

// peers in the order of the table's columns.
var peers = []string{lspdev, sourcegraph, byteecho, frameecho}

// writeTable writes medians of duet-rpc and of others, and its advantages over
// them, as a markdown table. clientBound tells which cells say more about the client.
func writeTable(out io.Writer, r results, others []string, figures []*figure, clientBound func(server string, f *figure) bool) {
	header := []string{"figure", "unit", duet}
	header = append(header, others...)
	for _, peer := range others {
		header = append(header, "× "+peer)
	}
	writeRow(out, header)
	writeRow(out, append([]string{"---", "---"}, strings.Split(strings.Repeat("---: ", len(header)-3)+"---:", " ")...))
	for _, f := range figures {
		row := []string{f.name, f.unit}
		for _, name := range append([]string{duet}, others...) {
			value := significant(median(r.of(name, f)))
			if clientBound(name, f) {
				value += " †"
			}
			row = append(row, value)
		}
		for _, peer := range others {
			row = append(row, significant(median(r.advantages(duet, peer, f))))
		}
		writeRow(out, row)
	}
}

// writeOwn writes what only duet-rpc has: medians, and the least and the most of
// all rounds; with another build the same of that, and duet-rpc's advantage.
func writeOwn(out io.Writer, r results, figures []*figure, beside bool) {
	header := []string{"figure", "unit", duet, "least", "most", "rounds"}
	if beside {
		header = append(header, before, "× "+before)
	}
	writeRow(out, header)
	writeRow(out, append([]string{"---", "---"}, slices.Repeat([]string{"---:"}, len(header)-2)...))
	for _, f := range figures {
		values := r.of(duet, f)
		least, most := math.NaN(), math.NaN()
		if len(values) > 0 {
			least, most = slices.Min(values), slices.Max(values)
		}
		row := []string{f.name, f.unit, significant(median(values)), significant(least), significant(most), strconv.Itoa(len(values))}
		if beside {
			row = append(row, significant(median(r.of(before, f))), significant(median(r.advantages(duet, before, f))))
		}
		writeRow(out, row)
	}
}

func writeRow(out io.Writer, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}
