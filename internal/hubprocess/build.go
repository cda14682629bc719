package hubprocess

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// Protocol is the version of the protocol between a daemon and its clients. A client uses a
// daemon of another build only if both have the same version. Increase it when a change to a
// method, an event or a value breaks older clients.
const Protocol = 1

// Build returns the build id of a Go program, which the linker writes into it and which every
// change of the code changes. It is "" if the file cannot be read or has none.
func Build(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head, _ := io.ReadAll(io.LimitReader(file, 64<<10)) // the linker puts it at the beginning
	// ELF: a note, which is the size of its name, the size of the id, its type, the name, the id.
	if at := bytes.Index(head, []byte("\x04\x00\x00\x00Go\x00\x00")); at >= 8 {
		size := binary.LittleEndian.Uint32(head[at-4:])
		if id := head[at+8:]; int(size) <= len(id) {
			return string(id[:size])
		}
	}
	// Mach-O and PE: a text.
	if _, rest, found := bytes.Cut(head, []byte("\xff Go build ID: \"")); found {
		if id, _, found := bytes.Cut(rest, []byte("\"\n \xff")); found {
			return string(id)
		}
	}
	return ""
}

// programBuild returns the build of the daemon that this process would start: its file may have
// been replaced since this process began.
func programBuild() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return Build(path)
}

// A BuildAnswer is a daemon's answer to client.build.
type BuildAnswer struct {
	Version  string `json:"version"`
	Protocol int    `json:"protocol"` // 0: it does not know client.build
	Notice   string `json:"notice"`   // for the user
	// Ends reports that the daemon ends, so that the client can start one of its own build.
	Ends bool `json:"ends"`
}

// An IncompatibleError reports that the project's daemon has another protocol version.
type IncompatibleError struct {
	PID int // 0 if unknown
	BuildAnswer
}

func (e *IncompatibleError) Error() string {
	version, process := e.Version, ""
	if version == "" {
		version = "an earlier version"
	}
	if e.PID != 0 {
		process = fmt.Sprintf("process %d, ", e.PID)
	}
	return fmt.Sprintf("the project's daemon (%s%s) is of another build and speaks protocol %d, this duet-rpc protocol %d: `duet-rpc daemon "+
		"stop` ends it when its work is done, and with --force at once",
		process, version, e.Protocol, Protocol)
}

// endsWithin is how long a daemon that has agreed to end may take to close its connections.
const endsWithin = time.Second

// greeting returns the first request of a connection. With looks it does not make a daemon of
// another build end.
func (s *Settings) greeting(looks bool) []byte {
	if looks || s.AnyBuild {
		return []byte(`{"jsonrpc":"2.0","id":0,"method":"ping"}`)
	}
	params, _ := json.Marshal(map[string]any{
		"build": programBuild(), "version": s.Version, "notices": s.Notice != nil, "observes": s.Observes,
	}) // strings and booleans: encoding cannot fail
	return append(append([]byte(`{"jsonrpc":"2.0","id":0,"method":"client.build","params":`), params...), '}')
}

// settle checks a daemon's answer to the greeting. The error is a [socket.NoListenerError] if the
// daemon has ended because it is of another build, and an [IncompatibleError] if this client
// cannot use it.
func (s *Settings) settle(conn net.Conn, answer *frame.Message) error {
	if s.AnyBuild {
		return nil
	}
	var r BuildAnswer
	if answer.Error == nil {
		if err := json.Unmarshal(answer.Result, &r); err != nil {
			return fmt.Errorf("the answer to client.build: %w", err)
		}
	}
	switch {
	case r.Ends && awaitClose(conn):
		return &socket.NoListenerError{Path: conn.RemoteAddr().String(), Err: errReplaced}
	case r.Protocol != Protocol:
		return &IncompatibleError{BuildAnswer: r}
	}
	if r.Notice != "" && s.Notice != nil {
		s.Notice(r.Notice)
	}
	return nil
}

// errReplaced says why the daemon is gone.
var errReplaced = errors.New("the one of another build has ended")

// awaitClose waits until the daemon closes a connection without any other request, and reports
// whether it did.
func awaitClose(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(endsWithin))
	_, err := io.Copy(io.Discard, conn)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
