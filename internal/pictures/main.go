// Command pictures draws the screens of the shell as tests have captured them
// (testdata/screens/*.ansi), for review: light and dark. emacs/test/e2e/pictures draws those of
// Emacs.
//
//	go run . -into ../../bin/pictures ../../testdata/screens/*-60.ansi
package main

import (
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/duet-rpc/duet-rpc/internal/screen"
)

// A palette maps the colours that programs name to those of a terminal.
type palette struct {
	text, ground color.RGBA
	named        [16]uint32 // 0xRRGGBB, as SGR 30 to 37 and 90 to 97 name them
}

var palettes = map[string]palette{
	"light": {rgb(0x24292f), rgb(0xffffff), [16]uint32{
		0x24292f, 0xcf222e, 0x116329, 0x4d2d00, 0x0969da, 0x8250df, 0x1b7c83, 0x6e7781,
		0x57606a, 0xa40e26, 0x1a7f37, 0x633c01, 0x218bff, 0xa475f9, 0x3192aa, 0x8c959f,
	}},
	"dark": {rgb(0xd4d4d4), rgb(0x1e1e1e), [16]uint32{
		0x000000, 0xcd3131, 0x0dbc79, 0xe5e510, 0x2472c8, 0xbc3fbc, 0x11a8cd, 0xe5e5e5,
		0x666666, 0xf14c4c, 0x23d18b, 0xf5f543, 0x3b8eea, 0xd670d6, 0x29b8db, 0xffffff,
	}},
}

func rgb(n uint32) color.RGBA {
	return color.RGBA{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n), A: 0xff}
}

// of returns the colour that SGR parameters name, or otherwise if they name none.
func (p palette) of(parameters string, otherwise color.RGBA) color.RGBA {
	list := strings.Split(parameters, ";")
	n := func(i int) int {
		if i >= len(list) {
			return 0
		}
		value, _ := strconv.Atoi(list[i])
		return value
	}
	first := n(0)
	switch {
	case parameters == "":
		return otherwise
	case first == 38 || first == 48:
		if n(1) == 2 {
			return color.RGBA{R: uint8(n(2)), G: uint8(n(3)), B: uint8(n(4)), A: 0xff}
		}
		return p.indexed(n(2))
	case first >= 90:
		return rgb(p.named[8+first%10])
	}
	return rgb(p.named[first%10])
}

// indexed returns one of the 256 colours of xterm.
func (p palette) indexed(n int) color.RGBA {
	switch {
	case n < 16:
		return rgb(p.named[n])
	case n >= 232:
		grey := uint8(8 + 10*(n-232))
		return color.RGBA{R: grey, G: grey, B: grey, A: 0xff}
	}
	n -= 16
	level := func(i int) uint8 {
		if i == 0 {
			return 0
		}
		return uint8(55 + 40*i)
	}
	return color.RGBA{R: level(n / 36), G: level(n / 6 % 6), B: level(n % 6), A: 0xff}
}

const (
	points = 15.0
	margin = 12
)

// A printer draws letters of one size.
type printer struct {
	regular, bold font.Face
	width, height int // of a cell
	ascent        int
}

func newPrinter(regular, bold []byte) (*printer, error) {
	face := func(file []byte) (font.Face, error) {
		f, err := opentype.Parse(file)
		if err != nil {
			return nil, err
		}
		return opentype.NewFace(f, &opentype.FaceOptions{Size: points, DPI: 72, Hinting: font.HintingFull})
	}
	r, err := face(regular)
	if err != nil {
		return nil, err
	}
	b, err := face(bold)
	if err != nil {
		return nil, err
	}
	advance, _ := r.GlyphAdvance('m')
	metrics := r.Metrics()
	return &printer{r, b, advance.Ceil(), metrics.Height.Ceil() + 3, metrics.Ascent.Ceil() + 1}, nil
}

// draw draws lines in a window with a number of columns.
func (p *printer) draw(lines []screen.Line, columns int, colors palette) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, columns*p.width+2*margin, len(lines)*p.height+2*margin))
	draw.Draw(img, img.Bounds(), image.NewUniform(colors.ground), image.Point{}, draw.Src)
	for row, line := range lines {
		column := 0
		for _, part := range line {
			fore, ground := colors.of(part.Fore, colors.text), colors.of(part.Back, colors.ground)
			if part.Reverse {
				fore, ground = ground, fore
			}
			if part.Dim {
				fore = between(fore, ground)
			}
			g := displaywidth.StringGraphemes(part.Text)
			for g.Next() {
				p.cell(img, column, row, g.Value(), g.Width(), part, fore, ground)
				column += g.Width()
			}
		}
	}
	return img
}

// cell draws a letter.
func (p *printer) cell(img *image.RGBA, column, row int, letter string, width int, part screen.Part, fore, ground color.RGBA) {
	x, y := margin+column*p.width, margin+row*p.height
	draw.Draw(img, image.Rect(x, y, x+width*p.width, y+p.height), image.NewUniform(ground), image.Point{}, draw.Src)
	face := p.regular
	if part.Bold {
		face = p.bold
	}
	d := font.Drawer{Dst: img, Src: image.NewUniform(fore), Face: face, Dot: fixed.P(x, y+p.ascent)}
	d.DrawString(letter)
	if part.Underline {
		draw.Draw(img, image.Rect(x, y+p.ascent+2, x+width*p.width, y+p.ascent+3), image.NewUniform(fore), image.Point{}, draw.Src)
	}
}

func between(a, b color.RGBA) color.RGBA {
	mix := func(x, y uint8) uint8 { return uint8((6*int(x) + 4*int(y)) / 10) }
	return color.RGBA{R: mix(a.R, b.R), G: mix(a.G, b.G), B: mix(a.B, b.B), A: 0xff}
}

func main() {
	into := flag.String("into", "pictures", "the folder in which they are put")
	regular := flag.String("font", "", "a TrueType font with all signs, and with -Bold in its name a bold one")
	look := flag.String("look", "", "light or dark, if not both")
	flag.Parse()
	if err := run(*into, *regular, *look, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(into, fontFile, only string, screens []string) error {
	if _, known := palettes[only]; only != "" && !known {
		return fmt.Errorf("-look %s is neither light nor dark", only)
	}
	regular, bold := gomono.TTF, gomonobold.TTF
	if fontFile != "" {
		var err error
		if regular, err = os.ReadFile(fontFile); err != nil {
			return err
		}
		if bold, err = os.ReadFile(strings.TrimSuffix(fontFile, ".ttf") + "-Bold.ttf"); err != nil {
			bold = regular
		}
	}
	p, err := newPrinter(regular, bold)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, path := range screens {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".ansi")
		columns, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
		if err != nil {
			return fmt.Errorf("%s: its name does not end with its columns", path)
		}
		for look, colors := range palettes {
			if only != "" && look != only {
				continue
			}
			if err := write(filepath.Join(into, name+"-"+look+".png"), p.draw(screen.Parse(string(text)), columns, colors)); err != nil {
				return err
			}
		}
	}
	return nil
}

func write(path string, img image.Image) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := png.Encode(file, img); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
