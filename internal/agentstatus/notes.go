package agentstatus

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// noteMost is the most that is read of a note, in bytes.
const noteMost = 64 << 10

// Notes are what agents have told of themselves last, a file for each: an agent of a
// name with a command, whatever project it was asked in. Many goroutines and processes
// may use them at once; of two that write at the same time one counts. Notes that
// cannot be read or kept are none: nothing depends on them. A nil *Notes has none.
type Notes struct {
	dir string
	now func() time.Time
}

// DefaultNotes are the user's, $XDG_STATE_HOME/duet/agents.
func DefaultNotes(getenv func(string) string) (*Notes, error) {
	dir, err := project.StateHome(getenv)
	if err != nil {
		return nil, fmt.Errorf("finding what is known of agents: %w", err)
	}
	return NewNotes(filepath.Join(dir, "agents")), nil
}

// NewNotes are those in a directory, which is made when it is needed.
func NewNotes(dir string) *Notes { return &Notes{dir: dir, now: time.Now} }

// A note is a file of [Notes].
type note struct {
	Agent   string       `json:"agent"`
	Command []string     `json:"command"` // with its program where it was found
	Version *versionNote `json:"version,omitempty"`
	SignIn  *signInNote  `json:"sign_in,omitempty"`
}

// A versionNote is the version of a program, as long as it is the same file.
type versionNote struct {
	Version string `json:"version"` // "": it does not tell
	Stamp   stamp  `json:"stamp"`
}

// A signInNote is what was told of who is signed in.
type signInNote struct {
	State   string    `json:"state"`
	Account string    `json:"account,omitempty"`
	At      time.Time `json:"at"`
}

// A stamp tells a file from one that has come into its place.
type stamp struct {
	Path     string    `json:"path"`
	Modified time.Time `json:"modified"`
	Size     int64     `json:"size"`
}

// stampOf is the stamp of a program, behind links.
func stampOf(program string) (stamp, bool) {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return stamp{}, false
	}
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, false
	}
	return stamp{path, info.ModTime().UTC(), info.Size()}, true
}

// Checked notes what an agent that was asked about itself has told.
func (n *Notes) Checked(name string, command []string, r agentlink.Report) {
	n.change(name, command, func(t *note) {
		t.SignIn = &signInNote{r.SignedIn, r.Account, n.now().UTC()}
		if made, ok := stampOf(command[0]); ok && r.Version != "" {
			t.Version = &versionNote{r.Version, made}
		}
	})
}

// Turn notes what the end of a turn tells of who is signed in: it has answered, or
// wants somebody to sign in.
func (n *Notes) Turn(name string, command []string, answered bool) {
	n.change(name, command, func(t *note) {
		state, account := agentlink.SignedOut, ""
		if answered {
			state = Answered
			if was := t.SignIn; was != nil && (was.State == agentlink.SignedIn || was.State == agentlink.NotNeeded) {
				state, account = was.State, was.Account
			}
		}
		t.SignIn = &signInNote{state, account, n.now().UTC()}
	})
}

// Authenticated notes that somebody has signed in.
func (n *Notes) Authenticated(name string, command []string) {
	n.change(name, command, func(t *note) { t.SignIn = &signInNote{State: agentlink.SignedIn, At: n.now().UTC()} })
}

// SignedOut notes that an agent has signed its user out.
func (n *Notes) SignedOut(name string, command []string) { n.Turn(name, command, false) }

// change changes the note of an agent.
func (n *Notes) change(name string, command []string, change func(*note)) {
	if n == nil || len(command) == 0 {
		return
	}
	t := n.read(name, command)
	change(&t)
	text, err := json.Marshal(t)
	if err == nil && os.MkdirAll(n.dir, 0o700) == nil && project.CheckPrivate(n.dir) == nil {
		_ = n.write(n.path(name, command), text)
	}
}

func (n *Notes) write(path string, text []byte) error {
	f, err := os.CreateTemp(n.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// read is the note of an agent; an empty one where nothing was told.
func (n *Notes) read(name string, command []string) note {
	none := note{Agent: name, Command: command}
	if n == nil || len(command) == 0 || project.CheckPrivate(n.dir) != nil {
		return none
	}
	path := n.path(name, command)
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeType != 0 || info.Size() > noteMost {
		return none
	}
	text, err := os.ReadFile(path)
	var t note
	if err != nil || json.Unmarshal(text, &t) != nil || t.Agent != name {
		return none
	}
	t.Command = command
	return t
}

func (n *Notes) path(name string, command []string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + strings.Join(command, "\x00")))
	return filepath.Join(n.dir, hex.EncodeToString(sum[:16])+".json")
}
