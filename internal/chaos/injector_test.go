//go:build linux && amd64 && soak

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// faultVariable makes the test binary run its arguments as a command under an injector. The
// command and its children then wait at each call of the file system for the injector's decision.
const faultVariable = "DUET_CHAOS_FAULTS"

func init() {
	if os.Getenv(faultVariable) != "" {
		runObserved()
	}
}

// A fault makes a call of the file system fail.
type fault struct {
	Who   string // daemon or git
	Place string // what the path belongs to
	Op    string // the group of calls
	Kind  string // EIO, ENOSPC or short
	Stays bool   // the following calls fail, too, until the injector lifts the fault
	N     int    // the number of the call among those of its who, place and op, from 1
}

// class returns the fault without its N.
func (f fault) class() fault { f.N = 0; return f }

func (f fault) String() string {
	often := "once"
	if f.Stays {
		often = "stays"
	}
	return fmt.Sprintf("%s,%s,%s,%s,%s,%d", f.Who, f.Place, f.Op, f.Kind, often, f.N)
}

func parseFault(text string) (f fault, err error) {
	parts := strings.Split(text, ",")
	if len(parts) != 6 {
		return f, fmt.Errorf("%q is not WHO,PLACE,OP,KIND,once|stays,N", text)
	}
	f = fault{Who: parts[0], Place: parts[1], Op: parts[2], Kind: parts[3], Stays: parts[4] == "stays"}
	f.N, err = strconv.Atoi(parts[5])
	return f, err
}

// kindsOf lists the ways in which an operation can fail.
func kindsOf(op string) []string {
	switch op {
	case "write":
		return []string{"EIO", "ENOSPC", "short"}
	case "create", "truncate", "rename", "mkdir":
		return []string{"EIO", "ENOSPC"}
	}
	return []string{"EIO"}
}

// operation is how the injector reads a system call. The values are positions of arguments; -1 means
// that there is none.
type operation struct {
	name     string
	fd, path int // path is relative to the directory fd, or to the working directory without fd
	fd2      int // of a second path, which follows it
	path2    int
	flags    int // of open
}

var operations = map[uint32]operation{
	unix.SYS_OPEN:     {name: "open", fd: -1, path: 0, path2: -1, flags: 1},
	unix.SYS_OPENAT:   {name: "open", fd: 0, path: 1, path2: -1, flags: 2},
	unix.SYS_READ:     {name: "read", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_PREAD64:  {name: "read", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_WRITE:    {name: "write", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_PWRITE64: {name: "write", fd: 0, path: -1, path2: -1, flags: -1},

	unix.SYS_FSYNC:     {name: "sync", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_FDATASYNC: {name: "sync", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_SYNCFS:    {name: "sync", fd: 0, path: -1, path2: -1, flags: -1},

	unix.SYS_TRUNCATE:  {name: "truncate", fd: -1, path: 0, path2: -1, flags: -1},
	unix.SYS_FTRUNCATE: {name: "truncate", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_FALLOCATE: {name: "truncate", fd: 0, path: -1, path2: -1, flags: -1},

	unix.SYS_RENAME:    {name: "rename", fd: -1, path: 0, fd2: -1, path2: 1, flags: -1},
	unix.SYS_RENAMEAT:  {name: "rename", fd: 0, path: 1, fd2: 2, path2: 3, flags: -1},
	unix.SYS_RENAMEAT2: {name: "rename", fd: 0, path: 1, fd2: 2, path2: 3, flags: -1},
	unix.SYS_LINK:      {name: "rename", fd: -1, path: 0, fd2: -1, path2: 1, flags: -1},
	unix.SYS_LINKAT:    {name: "rename", fd: 0, path: 1, fd2: 2, path2: 3, flags: -1},
	unix.SYS_SYMLINK:   {name: "rename", fd: -1, path: 1, path2: -1, flags: -1},
	unix.SYS_SYMLINKAT: {name: "rename", fd: 1, path: 2, path2: -1, flags: -1},

	unix.SYS_UNLINK:   {name: "remove", fd: -1, path: 0, path2: -1, flags: -1},
	unix.SYS_UNLINKAT: {name: "remove", fd: 0, path: 1, path2: -1, flags: -1},
	unix.SYS_RMDIR:    {name: "remove", fd: -1, path: 0, path2: -1, flags: -1},
	unix.SYS_MKDIR:    {name: "mkdir", fd: -1, path: 0, path2: -1, flags: -1},
	unix.SYS_MKDIRAT:  {name: "mkdir", fd: 0, path: 1, path2: -1, flags: -1},

	unix.SYS_STAT:       {name: "stat", fd: -1, path: 0, path2: -1, flags: -1},
	unix.SYS_LSTAT:      {name: "stat", fd: -1, path: 0, path2: -1, flags: -1},
	unix.SYS_FSTAT:      {name: "stat", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_NEWFSTATAT: {name: "stat", fd: 0, path: 1, path2: -1, flags: -1},
	unix.SYS_STATX:      {name: "stat", fd: 0, path: 1, path2: -1, flags: -1},
	unix.SYS_GETDENTS64: {name: "list", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_CHMOD:      {name: "mode", fd: -1, path: 0, path2: -1, flags: -1},
	unix.SYS_FCHMOD:     {name: "mode", fd: 0, path: -1, path2: -1, flags: -1},
	unix.SYS_FCHMODAT:   {name: "mode", fd: 0, path: 1, path2: -1, flags: -1},
	unix.SYS_UTIMENSAT:  {name: "mode", fd: 0, path: 1, path2: -1, flags: -1},
	unix.SYS_FLOCK:      {name: "lock", fd: 0, path: -1, path2: -1, flags: -1},
}

// An injector decides about the calls of commands. It is safe for concurrent use.
type injector struct {
	place func(path string) string // what a path belongs to; "": the call is none of the test's

	mu     sync.Mutex    // guards the fields below
	counts map[fault]int // of calls, by class without a kind
	plan   fault
	lifted bool
	hits   []string // the calls that failed
}

// lift lets all further calls pass.
func (in *injector) lift() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lifted = true
}

// failed returns the calls that failed so far.
func (in *injector) failed() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.hits)
}

func (in *injector) counted() map[fault]int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return maps.Clone(in.counts)
}

// Layouts of linux/seccomp.h.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type decision struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// start starts a command under the injector. The command ends as others do, with Wait.
func (in *injector) start(cmd *exec.Cmd) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "listener")
	self, err := os.Executable()
	if err != nil {
		theirs.Close()
		return err
	}
	cmd.Args = append([]string{self}, cmd.Args...)
	cmd.Path, cmd.ExtraFiles = self, []*os.File{theirs}
	cmd.Env = append(cmd.Env, faultVariable+"=1")
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return errors.Join(fmt.Errorf("the command cannot be observed: %v", err), cmd.Process.Kill(), cmd.Wait())
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	go in.serve(fds[0])
	return nil
}

// needInjector skips the test on a system without seccomp_unotify(2), or one before Linux 5.19.
func needInjector(t *testing.T) {
	t.Helper()
	in := &injector{place: func(string) string { return "" }, counts: make(map[fault]int)}
	cmd := exec.Command("git", "--version")
	cmd.Env = os.Environ()
	cmd.Path = testkit.NeedTool(t, "git")
	cmd.Args[0] = cmd.Path
	if err := in.start(cmd); err != nil {
		testkit.SkipMissing(t, err.Error())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("git --version under the injector: %v", err)
	}
}

// runObserved becomes the command of the arguments, whose calls an injector decides about.
func runObserved() {
	runtime.LockOSThread()
	var filter []unix.SockFilter
	filter = append(filter, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0})
	for _, nr := range slices.Sorted(maps.Keys(operations)) {
		filter = append(
			filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr},
			unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_USER_NOTIF},
		)
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fail := func(what string, err error) {
		fmt.Fprintln(os.Stderr, what, err)
		os.Exit(1)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fail("prctl", err)
	}
	os.Unsetenv(faultVariable)
	path, environment := os.Args[1], os.Environ()
	message := []byte{0}
	vector := unix.Iovec{Base: &message[0], Len: 1}
	rights := unix.UnixRights(0)
	header := unix.Msghdr{Iov: &vector, Iovlen: 1, Control: &rights[0], Controllen: uint64(len(rights))}
	// From here on this thread's calls wait for the injector, which must get the listener first.
	listener, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&program)))
	if errno == 0 {
		*(*int32)(unsafe.Pointer(&rights[unix.CmsgLen(0)])) = int32(listener)
		_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, 3, uintptr(unsafe.Pointer(&header)), 0)
	}
	if errno != 0 {
		fail("seccomp", errno)
	}
	unix.CloseOnExec(3)
	fail(path, syscall.Exec(path, os.Args[1:], environment))
}

// serve decides about calls until the last process has ended.
func (in *injector) serve(listener int) {
	defer unix.Close(listener)
	for {
		poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents != 0 {
				return
			}
			continue
		}
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // the caller has died
		}
		d := in.decide(&n)
		d.id = n.id
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&d)))
	}
}

var letPass = decision{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}

func (in *injector) decide(n *notification) decision {
	op := operations[uint32(n.nr)]
	if op.flags >= 0 && n.args[op.flags]&(unix.O_CREAT|unix.O_TRUNC) != 0 {
		op.name = "create"
	}
	path := pathOf(n, op.fd, op.path)
	place := in.place(path)
	if place == "" && op.path2 >= 0 {
		path = pathOf(n, op.fd2, op.path2)
		place = in.place(path)
	}
	if place == "" {
		return letPass
	}
	who := whoIs(n.pid)
	if who == "" {
		return letPass
	}
	class := fault{Who: who, Place: place, Op: op.name}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.counts[class]++
	plan := in.plan
	if in.lifted || plan.Who != who || plan.Place != place || plan.Op != op.name || in.counts[class] < plan.N || in.counts[class] > plan.N && !plan.Stays {
		return letPass
	}
	d := letPass
	switch plan.Kind {
	case "EIO":
		d = decision{err: -int32(unix.EIO)}
	case "ENOSPC":
		d = decision{err: -int32(unix.ENOSPC)}
	case "short":
		written, err := writeHalf(n)
		if err != nil {
			return letPass
		}
		d = decision{val: int64(written)}
	}
	in.hits = append(in.hits, fmt.Sprintf("%s %s %s", who, op.name, path))
	return d
}

// whoIs returns the kind of a process whose calls may fail, or "".
func whoIs(pid uint32) string {
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, rest, _ := bytes.Cut(command, []byte{0})
	switch {
	case filepath.Base(string(name)) == "git":
		return "git"
	case bytes.HasPrefix(rest, []byte("daemon\x00")):
		return "daemon"
	}
	return ""
}

// pathOf returns the absolute path of a call's arguments, or "".
func pathOf(n *notification, fdAt, pathAt int) string {
	text := ""
	if pathAt >= 0 {
		text = readText(n.pid, n.args[pathAt])
		if filepath.IsAbs(text) {
			return filepath.Clean(text)
		}
	}
	fd := int32(unix.AT_FDCWD)
	if fdAt >= 0 {
		fd = int32(n.args[fdAt])
	}
	link := fmt.Sprintf("/proc/%d/fd/%d", n.pid, fd)
	if fd == unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/cwd", n.pid)
	}
	dir, err := os.Readlink(link)
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(strings.TrimSuffix(dir, " (deleted)"), text)
}

// readText reads a path from the memory of a process.
func readText(pid uint32, address uint64) string {
	text := readMemory(pid, address, unix.PathMax)
	if end := bytes.IndexByte(text, 0); end >= 0 {
		return string(text[:end])
	}
	return ""
}

// readMemory reads up to n bytes of the memory of a process.
func readMemory(pid uint32, address uint64, n int) []byte {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil
	}
	defer memory.Close()
	buf := make([]byte, n)
	const page = 4096
	got := 0
	for got < n { // a path may end just before a page that is not mapped
		upTo := min(n, got+page-int((address+uint64(got))%page))
		read, err := memory.ReadAt(buf[got:upTo], int64(address)+int64(got))
		got += read
		if err != nil && !errors.Is(err, io.EOF) || read == 0 || n == unix.PathMax && bytes.IndexByte(buf[:got], 0) >= 0 {
			break
		}
	}
	return buf[:got]
}

// writeHalf writes the first half of what a write call writes, in place of it.
func writeHalf(n *notification) (int, error) {
	data := readMemory(n.pid, n.args[1], int(n.args[2])/2)
	if len(data) == 0 {
		return 0, errors.New("there is no half")
	}
	file, err := fileOf(n)
	if err != nil {
		return 0, err
	}
	defer unix.Close(file)
	if n.nr == unix.SYS_PWRITE64 {
		return unix.Pwrite(file, data, int64(n.args[3]))
	}
	return unix.Write(file, data)
}

// fileOf duplicates the open file of a call.
func fileOf(n *notification) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "\nTgid:")
	line, _, _ := strings.Cut(after, "\n")
	process, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, err
	}
	pidfd, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, int(n.args[0]), 0)
}
