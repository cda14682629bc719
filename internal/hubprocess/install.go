package hubprocess

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// This file copies this program to a host that has none.

// installWithin is how long a copy may take.
const installWithin = 10 * time.Minute

// probe prints the system of a host, its machine and its home directory, and whether the program $1 is below it.
const probe = `uname -sm && cd && pwd && if test -x "$1" && test -s "$1"; then echo there; else echo missing; fi`

// take writes the program that it reads to the file $1 below the home directory, if it runs there. It keeps
// the three newest ones.
const take = `set -e
cd
umask 077
mkdir -p "${1%/*}"
new="$1.$$"
trap 'rm -f "$new"' EXIT
gzip -dc >"$new"
chmod 700 "$new"
"$new" version >/dev/null
sync "$new" 2>/dev/null || sync
mv "$new" "$1"
cd "${1%/*}"
ls -t | tail -n +4 | while read -r old; do rm -f "./$old"; done`

// machines are the names that uname gives to what Go supports, as GOOS/GOARCH.
var machines = map[string]string{
	"Linux x86_64": "linux/amd64", "Linux aarch64": "linux/arm64",
	"Darwin x86_64": "darwin/amd64", "Darwin arm64": "darwin/arm64",
	"FreeBSD amd64": "freebsd/amd64", "FreeBSD arm64": "freebsd/arm64",
}

// install uses a copy of this program on the host from now on, and copies it there unless it is there.
func (h *Host) install(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, installWithin)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	file := copyName(self)
	found, err := h.run(ctx, nil, probe, file)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(found), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "/") {
		return errors.New("the host prints something before its commands do: let its start files be silent")
	}
	own := runtime.GOOS + "/" + runtime.GOARCH
	if its := machines[lines[0]]; its != own {
		return fmt.Errorf("the host is %s, and this program is for %s: install duet-rpc %s there", lines[0], own, h.settings.Version)
	}
	if lines[2] != "there" {
		if h.settings.Notice != nil {
			h.settings.Notice(fmt.Sprintf("copying duet-rpc %s to %s, into ~/.cache/duet-rpc/bin", h.settings.Version, h.Name))
		}
		if err := h.copyTo(ctx, self, file); err != nil {
			return err
		}
	}
	h.use(strings.TrimSuffix(lines[1], "/") + "/" + file)
	h.remember(func(k *known) { k.Program = h.Program })
	return nil
}

// copyName returns the file of a copy of a program, below the home directory of a host.
func copyName(program string) string {
	build := sha256.Sum256([]byte(Build(program)))
	return ".cache/duet-rpc/bin/duet-rpc-" + hex.EncodeToString(build[:8])
}

// known is what was seen of a host, in a file of the user's state.
type known struct {
	Command []string     `json:"command"` // of the host then
	Program string       `json:"program"` // the copy of this program; "": the configured one is there
	Seen    *Description `json:"seen,omitempty"`
	At      time.Time    `json:"at"`             // of Seen
	Failed  bool         `json:"failed"`         // the last request that ends with its answer
	Made    *Made        `json:"made,omitempty"` // the host, if it was made and not removed since
	// IsPartial says that a process has begun to make the host, or to remove it.
	IsPartial bool `json:"is_partial,omitempty"`
}

func (h *Host) knownFile() (string, error) { return h.stateFile(".json") }

func (h *Host) stateFile(suffix string) (string, error) {
	home, err := project.StateHome(os.Getenv)
	return filepath.Join(home, "hosts", cmp.Or(h.Host.Made, h.Name)+suffix), err
}

// kept is the last list of the host's sessions.
type kept struct {
	Command []string        `json:"command"` // of the host then
	At      time.Time       `json:"at"`
	List    json.RawMessage `json:"list"`
}

// Keep keeps the answer to a [ListMethod] for [Host.Kept].
func (h *Host) Keep(list json.RawMessage) {
	path, err := h.stateFile(".list")
	if err != nil {
		return
	}
	text, err := json.Marshal(kept{h.Command, time.Now(), list})
	if err == nil && durable.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = durable.Replace(path, text, 0o600) // without it a list lacks the host while it is away
	}
}

// Kept returns what [Host.Keep] has kept last and when, for a host that cannot be reached; nil if nothing was, or the
// host's command has changed. It is third-party text.
func (h *Host) Kept() (json.RawMessage, time.Time) {
	path, err := h.stateFile(".list")
	if err != nil {
		return nil, time.Time{}
	}
	var k kept
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &k) != nil || !slices.Equal(k.Command, h.Command) {
		return nil, time.Time{}
	}
	return k.List, k.At
}

// recall returns what was seen of the host: nothing but its making if its command has changed.
func (h *Host) recall() (k known) {
	path, err := h.knownFile()
	if err != nil {
		return known{}
	}
	if text, err := os.ReadFile(path); err != nil || json.Unmarshal(text, &k) != nil {
		return known{}
	}
	if !slices.Equal(k.Command, h.Command) {
		return known{Made: k.Made}
	}
	return k
}

// remember changes what is known of the host. A lost file costs a look at the host.
func (h *Host) remember(change func(*known)) {
	path, err := h.knownFile()
	if err != nil {
		return
	}
	k := h.recall()
	k.Command = h.Command
	change(&k)
	text, err := json.Marshal(k)
	if err == nil && durable.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = durable.Replace(path, text, 0o600)
	}
}

// Seen returns the last description of the host and its time; nil if there is none.
func (h *Host) Seen() (*Description, time.Time) {
	k := h.recall()
	return k.Seen, k.At
}

// copyTo copies a program to a file below the home directory of the host.
func (h *Host) copyTo(ctx context.Context, program, file string) error {
	in, err := os.Open(program)
	if err != nil {
		return err
	}
	defer in.Close()
	from, to := io.Pipe()
	go func() { // until all is read, or the reader has ended
		z := gzip.NewWriter(to)
		_, err := io.Copy(z, in)
		to.CloseWithError(errors.Join(err, z.Close()))
	}()
	defer from.Close()
	_, err = h.run(ctx, from, take, file)
	return err
}

// run runs a script of the shell on the host with arguments, and returns its output.
func (h *Host) run(ctx context.Context, in io.Reader, script string, args ...string) (string, error) {
	line := h.Host.CommandLine("sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var out bytes.Buffer
	errs := &said{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = in, &capped{&out}, errs, ownSession()
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if text := errs.last(); text != "" {
			err = errors.New(text)
		}
		return "", err
	}
	return out.String(), nil
}

// capped drops what exceeds the size of an answer.
type capped struct{ *bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	const most = 64 << 10
	c.Buffer.Write(p[:min(len(p), max(0, most-c.Len()))])
	return len(p), nil
}
