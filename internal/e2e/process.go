package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// Watchdog is the default lifetime of a started process. Tests derive their time limits from it.
const Watchdog = 10 * time.Minute

// PollEvery is the interval at which a test checks a condition.
const PollEvery = 5 * time.Millisecond

// GoneAfter is the most time between the cause of the program's end and its exit.
const GoneAfter = 2 * time.Second

// HostileMemory is the most memory, in bytes, that the program may use for hostile input.
const HostileMemory = 120 << 20

// An object is a JSON object.
type object = map[string]any

// A Launch holds the options of a started program. The zero value starts the tested binary as an
// editor does, with a pipe on each standard descriptor.
type Launch struct {
	Binary string
	First  []string // arguments before Args, which override them
	Args   []string
	Env    []string // in addition to the clean environment
	Dir    string   // where it starts; "": where the test does

	Stdin, Stdout, Stderr *os.File // replace the pipes; the caller closes them

	Attributes *syscall.SysProcAttr
	Watchdog   time.Duration
}

// A Process is the running program.
type Process struct {
	T      testing.TB
	Cmd    *exec.Cmd
	Stdin  *os.File // the test's ends of the pipes; nil if the launch has a file
	Stdout *os.File
	Frames FrameReader   // of stdout
	Log    *testkit.Text // of stderr
	Ended  chan struct{}
}

// Run starts the binary with flags and pipes.
func Run(t testing.TB, args ...string) *Process { return Launch{Args: args}.Start(t) }

// Start starts the program. The test's end kills it.
func (l Launch) Start(t testing.TB) *Process {
	t.Helper()
	if l.Binary == "" {
		l.Binary = Program
	}
	if l.Watchdog == 0 {
		l.Watchdog = Watchdog
	}
	ctx, kill := context.WithTimeout(context.Background(), l.Watchdog)
	p := &Process{T: t, Cmd: exec.CommandContext(
		ctx, l.Binary, append(slices.Clip(l.First), l.Args...)...,
	), Log: &testkit.Text{}, Ended: make(chan struct{})}
	p.Cmd.Env = append(append(CleanEnvironment(), Homeless(t)...), l.Env...)

	p.Cmd.Dir, p.Cmd.SysProcAttr = l.Dir, l.Attributes

	var theirs []*os.File // the child's ends
	p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = l.Stdin, l.Stdout, p.Log
	if l.Stdin == nil {
		r, w := NewPipe(t)
		p.Cmd.Stdin, p.Stdin, theirs = r, w, append(theirs, r)
	}
	if l.Stdout == nil {
		r, w := NewPipe(t)
		p.Cmd.Stdout, p.Stdout, theirs = w, r, append(theirs, w)
		p.Frames = NewFrameReader(r)
	}
	if l.Stderr != nil {
		p.Cmd.Stderr = l.Stderr
	}
	err := p.Cmd.Start()
	for _, f := range theirs {
		f.Close()
	}
	require.NoError(t, err)
	go func() {
		defer close(p.Ended)
		_ = p.Cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		kill()
		<-p.Ended
		p.CloseStdin()
		if p.Stdout != nil {
			p.Stdout.Close()
		}
		if t.Failed() {
			t.Logf("%s %s\nstderr: %s", l.Binary, strings.Join(l.Args, " "), p.Log)
		}
	})
	return p
}

// CleanEnvironment returns the test's environment without the variables that the program reads, and
// with a UTF-8 locale.
func CleanEnvironment() []string {
	return append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc([]string{
			"DUET_", "NO_COLOR=", "EDITOR=", "VISUAL=", "TERM=", "LANG=", "LC_",
		}, func(read string) bool { return strings.HasPrefix(entry, read) })
	}), "GORACE="+NoRaceDelay, "LC_ALL=C.UTF-8")
}

// Homeless returns an environment with a new project, home, configuration and state directory. It
// keeps a process away from the user's files. The test's end stops the hubs there.
func Homeless(t testing.TB) []string {
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

// NoRaceDelay keeps the race detector from making each process wait a second
// before it ends.
const NoRaceDelay = "atexit_sleep_ms=0"

// Send writes bytes to standard input.
func (p *Process) Send(in string) {
	p.T.Helper()
	_, err := io.WriteString(p.Stdin, in)
	require.NoError(p.T, err)
}

// Next returns the next message on standard output.
func (p *Process) Next() string {
	p.T.Helper()
	body, err := p.Frames.Next()
	require.NoError(p.T, err)
	require.NoError(p.T, CheckBody(body))
	return string(body)
}

// Ask sends a message and returns the program's next message.
func (p *Process) Ask(message string) string {
	p.T.Helper()
	p.Send(Framed(message))
	return p.Next()
}

// RequireServing requires that the program answers a request.
func (p *Process) RequireServing() {
	p.T.Helper()
	require.Equal(p.T, `{"jsonrpc":"2.0","id":"serving","result":[1]}`, p.Ask(`{"jsonrpc":"2.0","id":"serving","method":"echo","params":[1]}`))
}

// CloseStdin ends the program's standard input.
func (p *Process) CloseStdin() {
	if p.Stdin != nil {
		p.Stdin.Close()
	}
}

// Rest returns all remaining messages up to the end of standard output.
func (p *Process) Rest() (bodies []string) {
	p.T.Helper()
	for {
		body, err := p.Frames.Next()
		if err == io.EOF {
			return bodies
		}
		require.NoError(p.T, err)
		require.NoError(p.T, CheckBody(body))
		bodies = append(bodies, string(body))
	}
}

// RequireSuccess waits for the end of the process and requires status 0.
func (p *Process) RequireSuccess() {
	p.T.Helper()
	<-p.Ended
	require.Equal(p.T, 0, p.Cmd.ProcessState.ExitCode(), "%s\nstderr: %s", p.Cmd.ProcessState, p.Log)
}

// RequireLog waits until standard error has text.
func (p *Process) RequireLog(text string) {
	p.T.Helper()
	p.Log.AwaitPart(p.T, text)
}

// Finish closes standard input. It requires that no message follows and that the process exits with
// status 0.
func (p *Process) Finish() {
	p.T.Helper()
	p.CloseStdin()
	require.Empty(p.T, p.Rest())
	p.RequireSuccess()
}

// RequireParts requires that a text has all these parts.
func RequireParts(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		require.Contains(t, text, part)
	}
}

// Parallel marks a test as parallel and returns it.
func Parallel(t *testing.T) *testing.T {
	t.Helper()
	t.Parallel()
	return t
}

// RequireMode requires the permissions of a file.
func RequireMode(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, mode, info.Mode().Perm(), path)
}

// RequireNoFile waits until there is no such file.
func RequireNoFile(t testing.TB, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}, Watchdog/3, PollEvery, "%s is still there", path)
}

// NewPipe makes a pipe. The test's end closes it.
func NewPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// ReadFile returns the text of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// WriteFile writes a file with mode 0600, and makes its directory.
func WriteFile(t testing.TB, path, text string) {
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
	if _, err := socket.Find(state); err != nil {
		return
	}
	released, late := p.Released(), time.After(Watchdog/3)
	for asked := false; ; {
		var again <-chan time.Time
		if asked = asked || askToStop(state); !asked { // a hub that has just started does not listen yet
			again = time.After(PollEvery)
		}
		select {
		case <-released:
			return
		case <-late:
			t.Logf("the hub of %s does not end", state)
			return
		case <-again:
		}
	}
}

// askToStop asks the hub of a state directory to end, and waits until it closes the connection. It
// returns false if no hub listens.
func askToStop(state string) bool {
	path, err := socket.Find(state)
	if err != nil {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(Watchdog / 3))
	_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"daemon.stop","params":{"force":true}}`+"\n")
	_, _ = io.Copy(io.Discard, conn)
	return true
}

// Framed puts a header before a message.
func Framed(message string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(message), message)
}

// A FrameReader is a strict reader of frames. It accepts only the header "Content-Length:
// N\r\n\r\n", and nothing between frames. It shares no code with the program.
type FrameReader struct{ R *bufio.Reader }

// NewFrameReader returns a reader of the frames of r.
func NewFrameReader(r io.Reader) FrameReader { return FrameReader{bufio.NewReaderSize(r, 64<<10)} }

// Next returns the body of the next frame, or io.EOF if the input ends between frames.
func (f FrameReader) Next() ([]byte, error) {
	line, err := f.R.ReadString('\n')
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
	if _, err := io.ReadFull(f.R, blank[:]); err != nil || string(blank[:]) != "\r\n" {
		return nil, fmt.Errorf("no blank line after %q: %q (%v)", line, blank, err)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(f.R, body); err != nil {
		return nil, fmt.Errorf("the body of %d bytes is cut short: %w", n, err)
	}
	return body, nil
}

// RequireFrames requires that out consists of frames, each with a response or a batch of responses.
// It returns their bodies.
func RequireFrames(t testing.TB, out []byte) (bodies []string) {
	t.Helper()
	frames := NewFrameReader(bytes.NewReader(out))
	for {
		body, err := frames.Next()
		if err == io.EOF {
			return bodies
		}
		require.NoError(t, err, "standard output: %.2000q", out)
		require.NoError(t, CheckBody(body), "standard output: %.2000q", out)
		bodies = append(bodies, string(body))
	}
}

// CheckBody returns an error if a body is not a valid response or batch of responses.
func CheckBody(body []byte) error {
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

// AtOnce ignores a write error: it means that the program has ended, and the output shows that.
func AtOnce(w io.Writer, in []byte) { _, _ = w.Write(in) }
