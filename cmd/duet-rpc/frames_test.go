package main_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/require"
)

// A frameCase is a conversation in testdata/frames, whose README says what the
// files are.
type frameCase struct {
	name string
	in   []byte
	out  string // a path
	args []string
}

func frameCases(t *testing.T) []frameCase {
	inputs, err := filepath.Glob("../../testdata/frames/*.in")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	var cases []frameCase
	for _, path := range inputs {
		base := strings.TrimSuffix(path, ".in")
		in, err := os.ReadFile(path)
		require.NoError(t, err)
		args, err := os.ReadFile(base + ".args")
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		cases = append(cases, frameCase{filepath.Base(base), in, base + ".out", strings.Fields(string(args))})
	}
	return cases
}

// frameModes are the ways in which the bytes of a case reach the program and come back.
// Each returns what the program wrote. More of them are added where the system has them.
var frameModes = []struct {
	name     string
	converse func(*testing.T, frameCase) []byte
}{
	{"pipes", func(t *testing.T, c frameCase) []byte { return converse(t, launch{args: c.args}, c.in, atOnce) }},
	{"pipes, logging everything", func(t *testing.T, c frameCase) []byte {
		return converse(t, launch{args: append(c.args, "--log-level", "debug")}, c.in, atOnce)
	}},
	{"pipes, byte by byte", func(t *testing.T, c frameCase) []byte {
		send := byteByByte
		if len(c.in) > 4<<10 { // each byte is a system call for both sides
			send = atOnce
		}
		return converse(t, launch{args: c.args}, c.in, send)
	}},
	{"files", throughFiles},
}

// TestGoldenFrames plays each case once, in one of the modes: a reader that gets its bytes
// in another way reads the same (frame.TestGoldenInputsInPieces). `make soak` plays each
// case in each mode.
func TestGoldenFrames(t *testing.T) {
	for i, c := range frameCases(t) {
		for j, mode := range frameModes {
			if !soak && i%len(frameModes) != j {
				continue
			}
			t.Run(c.name+"/"+mode.name, func(t *testing.T) {
				t.Parallel()
				got := mode.converse(t, c)
				requireFrames(t, got)
				testkit.GoldenBytes(t, c.out, withoutTime(got))
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
	launch{args: c.args, stdin: in, stdout: out}.start(t).requireSuccess()
	got, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	return got
}

// No file is left behind by a case that was renamed.
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
func converse(t *testing.T, l launch, in []byte, send func(io.Writer, []byte)) []byte {
	t.Helper()
	p := l.start(t)
	go func() {
		send(p.stdin, in)
		p.stdin.Close()
	}()
	out, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	p.requireSuccess()
	return out
}

// Write errors mean that the program has gone, which what it wrote will show.
func atOnce(w io.Writer, in []byte) { _, _ = w.Write(in) }

func byteByByte(w io.Writer, in []byte) {
	for i := range in {
		if _, err := w.Write(in[i : i+1]); err != nil {
			return
		}
	}
}
