package main_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/golden"
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

// Every case holds however its bytes arrive, and whatever is logged meanwhile.
func TestGoldenFrames(t *testing.T) {
	const byteByByteUpTo = 4 << 10 // bytes of input; each is a system call for both
	for _, c := range frameCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			golden.Bytes(t, c.out, converse(t, launch{args: c.args}, c.in, atOnce))
			golden.Bytes(t, c.out, converse(t, launch{args: append(c.args, "--log-level", "debug")}, c.in, atOnce))
			if len(c.in) < byteByByteUpTo {
				golden.Bytes(t, c.out, converse(t, launch{args: c.args}, c.in, byteByByte))
			}
		})
	}
}

// And from a file to a file, as `duet-rpc <in >out`.
func TestGoldenFramesFromFileToFile(t *testing.T) {
	for _, c := range frameCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, err := os.Open(strings.TrimSuffix(c.out, ".out") + ".in")
			require.NoError(t, err)
			defer in.Close()
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			require.NoError(t, err)
			defer out.Close()
			launch{args: c.args, stdin: in, stdout: out}.start(t).requireSuccess()
			got, err := os.ReadFile(out.Name())
			require.NoError(t, err)
			requireFrames(t, got)
			golden.Bytes(t, c.out, withoutTime(got))
		})
	}
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
// returns its whole standard output, which must be frames, without the times
// in it. The program must succeed.
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
	requireFrames(t, out)
	return withoutTime(out)
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
