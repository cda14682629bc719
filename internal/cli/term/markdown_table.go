package term

import (
	"slices"
	"strings"
)

// cells are those of a row of a table, as they were written.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	var list []string
	var cell strings.Builder
	inCode := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '|' && !inCode:
			list = append(list, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			if c == '`' && (inCode || strings.IndexByte(line[i+1:], '`') >= 0) {
				inCode = !inCode
			}
			cell.WriteByte(c)
		}
	}
	return append(list, strings.TrimSpace(cell.String()))
}

// narrowest is how narrow a column of a table may become.
const narrowest = 8

// table lays a table out in columns that fit.
func (r *Renderer) table(lines []string, columns int) []string {
	var align []string
	for _, cell := range cells(lines[1]) {
		align = append(align, strings.Trim(cell, "-"))
	}
	var grid [][][]run
	widths := make([]int, len(align))
	for i, line := range lines {
		if i == 1 {
			continue
		}
		base := r.base()
		if i == 0 {
			base |= bold
		}
		found := cells(line)
		cellsOf := make([][]run, len(align))
		for c := range align {
			if c < len(found) {
				cellsOf[c] = inline(found[c], base, r.Marks)
				widths[c] = max(widths[c], wrapped(cellsOf[c], 1<<30)[0].width)
			}
		}
		grid = append(grid, cellsOf)
	}
	const between = " │ "
	room := columns - 3*(len(widths)-1)
	for sum(widths) > room {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= narrowest {
			return r.records(grid, columns)
		}
		widths[widest]--
	}
	var out []string
	for i, cellsOf := range grid {
		var parts [][]row
		height := 1
		for c, runs := range cellsOf {
			parts = append(parts, wrapped(runs, max(widths[c], 1)))
			height = max(height, len(parts[c]))
		}
		for h := range height {
			var b strings.Builder
			for c, rows := range parts {
				var x row
				if h < len(rows) {
					x = rows[h]
				}
				gap := widths[c] - x.width
				left := 0
				switch align[c] {
				case ":":
					if strings.HasSuffix(cells(lines[1])[c], ":") && !strings.HasPrefix(cells(lines[1])[c], ":") {
						left = gap
					}
				case "::":
					left = gap / 2
				}
				if c > 0 {
					b.WriteString(painted(between, dimmed))
				}
				b.WriteString(strings.Repeat(" ", left) + x.String())
				if c < len(parts)-1 {
					b.WriteString(strings.Repeat(" ", gap-left))
				}
			}
			out = append(out, b.String())
		}
		if i == 0 {
			var b strings.Builder
			for c, w := range widths {
				if c > 0 {
					b.WriteString("─┼─")
				}
				b.WriteString(strings.Repeat("─", w))
			}
			out = append(out, painted(b.String(), dimmed))
		}
	}
	return out
}

// records lays a table out that has no room for its columns: a line for each cell.
func (r *Renderer) records(grid [][][]run, columns int) (out []string) {
	for i, cellsOf := range grid[1:] {
		if i > 0 {
			out = append(out, painted(strings.Repeat("─", min(columns, 20)), dimmed))
		}
		for c, runs := range cellsOf {
			line := append(slices.Clone(grid[0][c]), run{": ", 0})
			for _, x := range wrapped(append(line, runs...), columns) {
				out = append(out, x.String())
			}
		}
	}
	return out
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}
