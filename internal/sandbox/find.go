package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const probeTime = 10 * time.Second

// A Finder finds bwrap, and remembers what has worked. The zero value is ready, and any goroutine may use it.
type Finder struct {
	proven sync.Map // by the program and the level
}

// Find finds bwrap on the PATH of this process and runs a program in a sandbox of a level, once. It
// ignores what is in the directories avoid, which agents may write. It returns the path of bwrap. The error
// is a *domain.Error of [domain.KindSandbox], with the reason and what to do.
func (f *Finder) Find(ctx context.Context, level string, avoid ...string) (program string, err error) {
	if runtime.GOOS != "linux" {
		return "", refused("a sandbox needs Linux, and this is " + runtime.GOOS +
			": start the session without a sandbox, or on a host that runs Linux (docs/hosts.md)")
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		found, err := exec.LookPath(filepath.Join(dir, "bwrap"))
		if err == nil && filepath.IsAbs(dir) && !isIn(avoid, dir) && !isIn(avoid, found) {
			program = found
			break
		}
	}
	if program == "" {
		return "", refused("a sandbox needs bubblewrap, and the daemon's PATH has no bwrap: install the package bubblewrap, such as with " +
			"apt-get install bubblewrap")
	}
	key := program + "\x00" + level
	if _, works := f.proven.Load(key); works {
		return program, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(basis(level), "--perms", "1777", "--tmpfs", "/tmp", "--", "/bin/sh", "-c", "exit 0")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return "", ctx.Err()
		}
		said := strings.TrimSpace(stderr.String())
		if said == "" {
			said = err.Error()
		}
		return "", refused(fmt.Sprintf("the sandbox does not work here: %s: %s", said, remedy(said)))
	}
	f.proven.Store(key, nil)
	return program, nil
}

// isIn reports whether a path leads to one of the directories or below.
func isIn(dirs []string, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	for _, dir := range dirs {
		if dir, err := filepath.EvalSymlinks(dir); err == nil && within(dir, real) {
			return true
		}
	}
	return false
}

func refused(message string) error {
	return &domain.Error{Kind: domain.KindSandbox, Message: message}
}

// remedy says what to change so that bwrap works, by its message and the system's settings.
func remedy(said string) string {
	const otherwise = "; or start the session without a sandbox"
	switch {
	case strings.Contains(said, "Unknown option"):
		return "install bubblewrap 0.5 or newer" + otherwise
	case strings.Contains(said, "mount proc"):
		return "a container may not mount /proc; docker needs --security-opt systempaths=unconfined, podman --security-opt unmask=ALL" + otherwise
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "allow user namespaces with sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give bwrap an AppArmor profile" + otherwise
	case setting("kernel/unprivileged_userns_clone") == "0":
		return "allow user namespaces with sysctl -w kernel.unprivileged_userns_clone=1" + otherwise
	case setting("user/max_user_namespaces") == "0":
		return "allow user namespaces with sysctl -w user.max_user_namespaces=15000" + otherwise
	}
	return "the system may refuse user namespaces; in docker --security-opt seccomp=unconfined allows them" + otherwise
}

// setting reads a setting of the kernel; "" if it has none of that name.
func setting(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(text))
}
