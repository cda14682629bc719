package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// watchdog is the default lifetime of a started process. Tests derive their time limits from it.
const watchdog = 10 * time.Minute

// pollEvery is the interval at which a test checks a condition.
const pollEvery = 5 * time.Millisecond

// hostileMemory is the most memory, in bytes, that the program may use for hostile input.
const hostileMemory = 120 << 20

// An object is a JSON object.
type object = map[string]any

// A launch holds the options of a started program. The zero value starts the tested binary as an
// editor does, with a pipe on each standard descriptor.
type launch struct {
	binary string
	first  []string // arguments before args, which override them
	args   []string
	env    []string // in addition to the clean environment

	stdin, stdout, stderr *os.File // replace the pipes; the caller closes them

	attributes *syscall.SysProcAttr
	watchdog   time.Duration
}

// A process is the running program.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  *os.File // the test's ends of the pipes; nil if the launch has a file
	stdout *os.File
	frames frameReader   // of stdout
	log    *testkit.Text // of stderr
	ended  chan struct{}
}

// run starts the binary with flags and pipes.
func run(t testing.TB, args ...string) *process { return launch{args: args}.start(t) }

func (l launch) start(t testing.TB) *process {
	t.Helper()
	if l.binary == "" {
		l.binary = program
	}
	if l.watchdog == 0 {
		l.watchdog = watchdog
	}
	ctx, kill := context.WithTimeout(context.Background(), l.watchdog)
	p := &process{t: t, cmd: exec.CommandContext(ctx, l.binary, append(slices.Clip(l.first), l.args...)...), log: &testkit.Text{}, ended: make(chan struct{})}
	p.cmd.Env = append(append(cleanEnvironment(), homeless(t)...), l.env...)

	p.cmd.SysProcAttr = l.attributes

	var theirs []*os.File // the child's ends
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = l.stdin, l.stdout, p.log
	if l.stdin == nil {
		r, w := newPipe(t)
		p.cmd.Stdin, p.stdin, theirs = r, w, append(theirs, r)
	}
	if l.stdout == nil {
		r, w := newPipe(t)
		p.cmd.Stdout, p.stdout, theirs = w, r, append(theirs, w)
		p.frames = newFrameReader(r)
	}
	if l.stderr != nil {
		p.cmd.Stderr = l.stderr
	}
	err := p.cmd.Start()
	for _, f := range theirs {
		f.Close()
	}
	require.NoError(t, err)
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		kill()
		<-p.ended
		p.closeStdin()
		if p.stdout != nil {
			p.stdout.Close()
		}
		if t.Failed() {
			t.Logf("%s %s\nstderr: %s", l.binary, strings.Join(l.args, " "), p.log)
		}
	})
	return p
}

// cleanEnvironment returns the test's environment without the variables that the program reads, and
// with a UTF-8 locale.
func cleanEnvironment() []string {
	return append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc([]string{"DUET_", "NO_COLOR=", "EDITOR=", "VISUAL=", "TERM=", "LANG=", "LC_"}, func(read string) bool { return strings.HasPrefix(entry, read) })
	}), "GORACE="+noRaceDelay, "LC_ALL=C.UTF-8")
}

// homeless returns an environment with a new project, home, configuration and state directory. It
// keeps a process away from the user's files. The test's end stops the hubs there.
func homeless(t testing.TB) []string {
	home := t.TempDir()
	root := filepath.Join(home, "project")
	require.NoError(t, os.Mkdir(root, 0o700))
	t.Cleanup(func() {
		states, _ := filepath.Glob(filepath.Join(home, "state", "duet", "projects", "*"))
		for _, dir := range states {
			stopHub(t, dir)
		}
	})
	return []string{
		"DUET_ROOT=" + root, "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "XDG_STATE_HOME=" + filepath.Join(home, "state"),
		"DUET_DEMO_DELAY=0", "DUET_COMPLETION_TIMEOUT=1m",
	}
}

// noRaceDelay keeps the race detector from making each process wait a second
// before it ends.
const noRaceDelay = "atexit_sleep_ms=0"

// send writes bytes to standard input.
func (p *process) send(in string) {
	p.t.Helper()
	_, err := io.WriteString(p.stdin, in)
	require.NoError(p.t, err)
}

// next returns the next message on standard output.
func (p *process) next() string {
	p.t.Helper()
	body, err := p.frames.next()
	require.NoError(p.t, err)
	require.NoError(p.t, checkBody(body))
	return string(body)
}

// ask sends a message and returns the program's next message.
func (p *process) ask(message string) string {
	p.t.Helper()
	p.send(framed(message))
	return p.next()
}

// requireServing requires that the program answers a request.
func (p *process) requireServing() {
	p.t.Helper()
	require.Equal(p.t, `{"jsonrpc":"2.0","id":"serving","result":[1]}`, p.ask(`{"jsonrpc":"2.0","id":"serving","method":"echo","params":[1]}`))
}

func (p *process) closeStdin() {
	if p.stdin != nil {
		p.stdin.Close()
	}
}

// rest returns all remaining messages up to the end of standard output.
func (p *process) rest() (bodies []string) {
	p.t.Helper()
	for {
		body, err := p.frames.next()
		if err == io.EOF {
			return bodies
		}
		require.NoError(p.t, err)
		require.NoError(p.t, checkBody(body))
		bodies = append(bodies, string(body))
	}
}

// requireSuccess waits for the end of the process and requires status 0.
func (p *process) requireSuccess() {
	p.t.Helper()
	<-p.ended
	require.Equal(p.t, 0, p.cmd.ProcessState.ExitCode(), "%s\nstderr: %s", p.cmd.ProcessState, p.log)
}

// requireLog waits until standard error has text.
func (p *process) requireLog(text string) {
	p.t.Helper()
	p.log.AwaitPart(p.t, text)
}

// finish closes standard input. It requires that no message follows and that the process exits with
// status 0.
func (p *process) finish() {
	p.t.Helper()
	p.closeStdin()
	require.Empty(p.t, p.rest())
	p.requireSuccess()
}

// requireParts requires that a text has all these parts.
func requireParts(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		require.Contains(t, text, part)
	}
}

// parallel marks a test as parallel and returns it.
func parallel(t *testing.T) *testing.T {
	t.Helper()
	t.Parallel()
	return t
}

// requireMode requires the permissions of a file.
func requireMode(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, mode, info.Mode().Perm(), path)
}

// newPipe makes a pipe. The test's end closes it.
func newPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// readFile returns the text of a file.
func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// writeFile writes a file with mode 0600, and makes its directory.
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// stopHub stops the hub of a state directory, if one runs, and waits for its end.
func stopHub(t testing.TB, state string) {
	p := project.Project{StateDir: state}
	if p.Unlocked() {
		return
	}
	path, err := socket.Find(state)
	if err != nil {
		return
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(watchdog / 3))
		_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"daemon.stop","params":{"force":true}}`+"\n")
		_, _ = io.Copy(io.Discard, conn) // until the hub closes it
		conn.Close()
	}
	select {
	case <-p.Released():
	case <-time.After(watchdog / 3):
		t.Logf("the hub of %s does not end", state)
	}
}

// framed puts a header before a message.
func framed(message string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(message), message)
}

// A frameReader is a strict reader of frames. It accepts only the header "Content-Length:
// N\r\n\r\n", and nothing between frames. It shares no code with the program.
type frameReader struct{ r *bufio.Reader }

func newFrameReader(r io.Reader) frameReader { return frameReader{bufio.NewReaderSize(r, 64<<10)} }

// next returns the body of the next frame, or io.EOF if the input ends between frames.
func (f frameReader) next() ([]byte, error) {
	line, err := f.r.ReadString('\n')
	if err == io.EOF && line == "" {
		return nil, io.EOF
	}
	digits, isLength := strings.CutPrefix(line, "Content-Length: ")
	digits, isWhole := strings.CutSuffix(digits, "\r\n")
	n, notNumber := strconv.Atoi(digits)
	if !isLength || !isWhole || notNumber != nil || strconv.Itoa(n) != digits {
		return nil, fmt.Errorf("no header: %.200q (%v)", line, err)
	}
	var blank [2]byte
	if _, err := io.ReadFull(f.r, blank[:]); err != nil || string(blank[:]) != "\r\n" {
		return nil, fmt.Errorf("no blank line after %q: %q (%v)", line, blank, err)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(f.r, body); err != nil {
		return nil, fmt.Errorf("the body of %d bytes is cut short: %w", n, err)
	}
	return body, nil
}

// requireFrames requires that out consists of frames, each with a response or a batch of responses.
// It returns their bodies.
func requireFrames(t testing.TB, out []byte) (bodies []string) {
	t.Helper()
	frames := newFrameReader(bytes.NewReader(out))
	for {
		body, err := frames.next()
		if err == io.EOF {
			return bodies
		}
		require.NoError(t, err, "standard output: %.2000q", out)
		require.NoError(t, checkBody(body), "standard output: %.2000q", out)
		bodies = append(bodies, string(body))
	}
}

// checkBody returns an error if a body is not a valid response or batch of responses.
func checkBody(body []byte) error {
	if !utf8.Valid(body) {
		return fmt.Errorf("not UTF-8: %.200q", body)
	}
	if !bytes.HasPrefix(body, []byte("[")) {
		return checkResponse(body)
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(body, &batch); err != nil {
		return err
	}
	if len(batch) == 0 {
		return errors.New("an empty batch")
	}
	for _, response := range batch {
		if err := checkResponse(response); err != nil {
			return err
		}
	}
	return nil
}

// checkResponse returns an error unless a response has exactly the members that JSON-RPC names.
// jsonrpc.el never answers its caller if an error has an extra member.
func checkResponse(response []byte) error {
	var r map[string]json.RawMessage
	if err := json.Unmarshal(response, &r); err != nil {
		return fmt.Errorf("%w: %.200q", err, response)
	}
	if string(r["jsonrpc"]) != `"2.0"` || r["id"] == nil || len(r) != 3 {
		return fmt.Errorf("not a response: %.200q", response)
	}
	if r["result"] != nil {
		return nil
	}
	var e map[string]json.RawMessage
	if err := json.Unmarshal(r["error"], &e); err != nil {
		return fmt.Errorf("no error object: %.200q", response)
	}
	allowed := 2
	if e["data"] != nil {
		allowed = 3
	}
	var code int
	var message string
	if json.Unmarshal(e["code"], &code) != nil || json.Unmarshal(e["message"], &message) != nil || len(e) != allowed {
		return fmt.Errorf("not an error: %.200q", response)
	}
	return nil
}
