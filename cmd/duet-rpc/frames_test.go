package main_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A frameCase is an exchange in testdata/frames, whose README describes the files.
type frameCase struct {
	name string
	in   []byte
	out  string // the path of the golden file
	args []string
}

func frameCases(t *testing.T) []frameCase {
	inputs, err := filepath.Glob("../../testdata/frames/*.in")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	var cases []frameCase
	for _, path := range inputs {
		base := strings.TrimSuffix(path, ".in")
		in := e2e.ReadFile(t, path)
		args, err := os.ReadFile(base + ".args")
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		cases = append(cases, frameCase{filepath.Base(base), []byte(in), base + ".out", append(strings.Fields(string(args)), e2e.Unhurried)})
	}
	return cases
}

// frameModes are the ways in which the bytes of a case reach the program and come back. Each
// returns the program's output. A file for one system may add modes.
var frameModes = []struct {
	name     string
	converse func(*testing.T, frameCase) []byte
}{
	{"pipes", func(t *testing.T, c frameCase) []byte {
		return converse(t, e2e.Launch{Args: c.args}, c.in, e2e.AtOnce)
	}},
	{"pipes, logging everything", func(t *testing.T, c frameCase) []byte {
		return converse(t, e2e.Launch{Args: append(c.args, "--log-level", "debug")}, c.in, e2e.AtOnce)
	}},
	{"pipes, byte by byte", func(t *testing.T, c frameCase) []byte {
		send := byteByByte
		if len(c.in) > 4<<10 { // each byte is a system call for both sides
			send = e2e.AtOnce
		}
		return converse(t, e2e.Launch{Args: c.args}, c.in, send)
	}},
	{"files", throughFiles},
}

// timestamp matches what a golden file replaces by a fixed time of the same length.
var timestamp = regexp.MustCompile(`"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)

// TestGoldenFrames plays each case in one mode. frame.TestGoldenInputsInPieces covers the other
// ways to read the bytes. `make soak` plays each case in each mode.
func TestGoldenFrames(t *testing.T) {
	for i, c := range frameCases(t) {
		for j, mode := range frameModes {
			if !testkit.Soak && i%len(frameModes) != j {
				continue
			}
			t.Run(c.name+"/"+mode.name, func(t *testing.T) {
				t.Parallel()
				got := mode.converse(t, c)
				e2e.RequireFrames(t, got)
				testkit.GoldenBytes(t, c.out, timestamp.ReplaceAll(got, []byte(`"timestamp":"2000-01-01T00:00:00.000Z"`)))
			})
		}
	}
}

// throughFiles runs `duet-rpc <in >out`.
func throughFiles(t *testing.T, c frameCase) []byte {
	in, err := os.Open(strings.TrimSuffix(c.out, ".out") + ".in")
	require.NoError(t, err)
	defer in.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	e2e.Launch{Args: c.args, Stdin: in, Stdout: out}.Start(t).RequireSuccess()
	return []byte(e2e.ReadFile(t, out.Name()))
}

// Each file of a case belongs to an input.
func TestGoldenFramesBelongTogether(t *testing.T) {
	for _, pattern := range []string{"*.out", "*.args"} {
		paths, err := filepath.Glob("../../testdata/frames/" + pattern)
		require.NoError(t, err)
		for _, path := range paths {
			require.FileExists(t, strings.TrimSuffix(path, filepath.Ext(path))+".in")
		}
	}
}

// converse starts the program, sends it in, closes its standard input and
// returns its whole standard output. The program must succeed.
func converse(t *testing.T, l e2e.Launch, in []byte, send func(io.Writer, []byte)) []byte {
	t.Helper()
	p := l.Start(t)
	go func() {
		send(p.Stdin, in)
		p.Stdin.Close()
	}()
	out, err := io.ReadAll(p.Stdout)
	require.NoError(t, err)
	p.RequireSuccess()
	return out
}

func byteByByte(w io.Writer, in []byte) {
	for i := range in {
		if _, err := w.Write(in[i : i+1]); err != nil {
			return
		}
	}
}
