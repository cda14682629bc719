package server_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// codeInDocs returns the pieces of code in the package's documentation.
func codeInDocs(t *testing.T) (pieces []string) {
	t.Helper()
	file := must(parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly))(t)
	var piece strings.Builder
	for line := range strings.Lines(file.Doc.Text() + "\nend\n") {
		code, isCode := strings.CutPrefix(line, "\t")
		switch {
		case isCode:
			piece.WriteString(code)
		case line == "\n" && piece.Len() > 0:
			piece.WriteString(line)
		case piece.Len() > 0:
			pieces = append(pieces, strings.TrimSpace(piece.String())+"\n")
			piece.Reset()
		}
	}
	return pieces
}

// The program in the documentation prints the documented output, called as documented.
func TestTheProgramInTheDocumentation(t *testing.T) {
	pieces := codeInDocs(t)
	require.Len(t, pieces, 6, "a program, and twice a command and what it prints, and a listener")
	source := pieces[0]
	dir := t.TempDir()
	binary := filepath.Join(dir, "divide")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	main := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(main, []byte(source), 0o600))
	build := exec.Command("go", "build", "-trimpath", "-o", binary, main) // with the flags of make test, so that the build cache is shared
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	serve := func(in string, args ...string) (stdout, stderr string) {
		cmd := exec.Command(binary, args...)
		cmd.Stdin = strings.NewReader(in)
		var log bytes.Buffer
		cmd.Stderr = &log
		return string(must(cmd.Output())(t)), log.String()
	}
	for _, example := range [][]string{pieces[1:3], pieces[3:5]} {
		command, prints := example[0], example[1]
		quoted, found := strings.CutPrefix(command, "printf '")
		require.True(t, found)
		in, args, found := strings.Cut(strings.TrimSpace(quoted), "' | ./divide")
		require.True(t, found)
		stdout, _ := serve(strings.ReplaceAll(strings.ReplaceAll(in, `\r`, "\r"), `\n`, "\n"), strings.Fields(args)...)
		assert.Equal(t, strings.TrimSpace(prints), strings.TrimSpace(strings.ReplaceAll(stdout, "\r\n", "\n")))
	}

	call := func(params string) string {
		return string(frame.Append(nil, frame.LSP, []byte(`{"jsonrpc":"2.0","id":1,"method":"divide","params":`+params+`}`)))
	}
	stdout, stderr := serve(call(`{"a":1,"b":0}`))
	assert.Contains(t, stdout, `"code":-32603`)
	assert.NotContains(t, stdout, "b is 0")
	assert.Contains(t, stderr, "b is 0", "the log has the cause")
	stdout, _ = serve(call(`{"a":1}`))
	assert.Contains(t, stdout, `"message":"Invalid params: b: expected number, received nothing"`)
}

// A peer that is referred to the log finds an entry there, also with the default logger.
func TestTheDefaultLogger(t *testing.T) {
	log := &testkit.Text{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	defer slog.SetDefault(before)
	c := (&client{t: t, framing: frame.LSP, served: make(chan error, 1), log: log}).attach(server.New(standard(), server.Options{}))
	assert.Contains(t, errorOf(t, c.ask(`{"jsonrpc":"2.0","id":1,"method":"fail"}`)).Message, "the log has the cause")
	assert.Equal(t, -32603, errorOf(t, c.ask(`{"jsonrpc":"2.0","id":2,"method":"panic"}`)).Code)
	c.ask(`{"jsonrpc":"2.0","id":3,"method":"echo"}`)
	require.NoError(t, c.close())
	assert.Contains(t, log.String(), `msg="request failed" method=fail id=1 err="secret: /home/someone"`)
	assert.Contains(t, log.String(), "harness_test.go", "the stack of a panic")
	assert.NotContains(t, log.String(), "echo", "the default log has no successful request")
}
