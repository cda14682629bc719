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
)

// peers in the order of the table's columns.
var peers = []string{lspdev, sourcegraph, byteecho, frameecho}

// writeTable writes medians of all servers and duet-rpc's advantages as a
// markdown table. clientBound tells which cells say more about the client.
func writeTable(out io.Writer, r results, figures []*figure, clientBound func(server string, f *figure) bool) {
	header := []string{"figure", "unit", duet}
	header = append(header, peers...)
	for _, peer := range peers {
		header = append(header, "× "+peer)
	}
	writeRow(out, header)
	writeRow(out, append([]string{"---", "---"}, strings.Split(strings.Repeat("---: ", len(header)-3)+"---:", " ")...))
	for _, f := range figures {
		row := []string{f.name, f.unit}
		for _, name := range append([]string{duet}, peers...) {
			value := significant(median(r.of(name, f)))
			if clientBound(name, f) {
				value += " †"
			}
			row = append(row, value)
		}
		for _, peer := range peers {
			row = append(row, significant(median(r.advantages(duet, peer, f))))
		}
		writeRow(out, row)
	}
}

// writeOwn writes what only duet-rpc has: medians, and the least and the most of
// all rounds.
func writeOwn(out io.Writer, r results, figures []*figure) {
	writeRow(out, []string{"figure", "unit", duet, "least", "most", "rounds"})
	writeRow(out, []string{"---", "---", "---:", "---:", "---:", "---:"})
	for _, f := range figures {
		values := r.of(duet, f)
		least, most := math.NaN(), math.NaN()
		if len(values) > 0 {
			least, most = slices.Min(values), slices.Max(values)
		}
		writeRow(out, []string{f.name, f.unit, significant(median(values)), significant(least), significant(most), strconv.Itoa(len(values))})
	}
}

func writeRow(out io.Writer, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}
