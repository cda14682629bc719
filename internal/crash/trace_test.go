//go:build linux

package crash

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// calls are the system calls that change or sync files, or send a message. straceFlags make strace
// print them so that readTrace can read them: all strings in hexadecimal, in full.
const calls = "openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,sendto,lseek,ftruncate,truncate,fallocate,copy_file_range,sendfile," +
	"fsync,fdatasync,sync,syncfs,msync,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir," +
	"chmod,fchmod,fchmodat,chdir,fchdir,clone,clone3,fork,vfork"

func straceFlags(file string) []string {
	return []string{"-f", "--seccomp-bpf", "-y", "-xx", "-s", "1000000000", "-e", "trace=" + calls, "-e", "signal=none", "-o", file}
}

// A call is a system call that succeeded.
type call struct {
	pid  int
	name string
	args []string // as strace prints them
	ret  int64
	text string // the rest of the result, such as the path of an opened file
	// The call had its effect after line began of the recording and before line done.
	began, done int
}

// fd returns the path of a descriptor among the arguments, "" for one that has none.
func (c call) fd(i int) string { return annotated(c.args[i]) }

// annotated returns the path that strace prints behind a descriptor: 3</a/path>.
func annotated(arg string) string {
	_, path, found := strings.Cut(arg, "<")
	path, _, _ = strings.Cut(path, ">")
	if !found {
		return ""
	}
	return string(unhex(path))
}

// bytes returns a string argument.
func (c call) bytes(i int) []byte { return unhex(strings.Trim(c.args[i], `"`)) }

// vectors returns the joined buffers of an argument of struct iovec.
func (c call) vectors(i int) (data []byte) {
	for part := range strings.SplitSeq(c.args[i], "iov_base=") {
		if text, found := strings.CutPrefix(part, `"`); found {
			text, _, _ = strings.Cut(text, `"`)
			data = append(data, unhex(text)...)
		}
	}
	return data
}

func (c call) number(i int) int64 {
	n, _ := strconv.ParseInt(c.args[i], 0, 64)
	return n
}

func (c call) has(i int, flag string) bool {
	return i < len(c.args) && slices.Contains(strings.Split(c.args[i], "|"), flag)
}

// unhex converts text such as \x2f\x61. Other characters stay as they are.
func unhex(text string) []byte {
	out := make([]byte, 0, len(text)/4)
	for len(text) > 0 {
		if strings.HasPrefix(text, `\x`) && len(text) >= 4 {
			var b [1]byte
			if _, err := hex.Decode(b[:], []byte(text[2:4])); err == nil {
				out, text = append(out, b[0]), text[4:]
				continue
			}
		}
		out, text = append(out, text[0]), text[1:]
	}
	return out
}

// readTrace reads the calls that strace wrote, in the order of their ends. Lines are counted from
// first on. Failed calls are left out, and so are those that never ended.
func readTrace(r io.Reader, first int) (list []call, lines int, err error) {
	in := bufio.NewReaderSize(r, 1<<20)
	type open struct {
		text  string
		began int
	}
	unfinished := make(map[int]open)
	for n := first; ; n++ {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return list, n - first, nil
		}
		if err != nil {
			return nil, 0, err
		}
		number, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		pid, err := strconv.Atoi(number)
		if err != nil {
			return nil, 0, fmt.Errorf("line %d has no process id: %.60s", n, line)
		}
		text, began := strings.TrimLeft(text, " "), n
		if before, found := strings.CutSuffix(text, "<unfinished ...>"); found {
			unfinished[pid] = open{strings.TrimRight(before, " "), n}
			continue
		}
		if _, after, found := strings.Cut(text, " resumed>"); found && strings.HasPrefix(text, "<... ") {
			text, began = unfinished[pid].text+after, unfinished[pid].began
			delete(unfinished, pid)
		}
		if c, ok := parse(text); ok {
			c.pid, c.began, c.done = pid, began, n
			list = append(list, c)
		}
	}
}

// parse reads a line such as `fsync(3<path>) = 0`.
func parse(text string) (c call, ok bool) {
	name, rest, found := strings.Cut(text, "(")
	end := strings.LastIndex(rest, ") ")
	if !found || end < 0 || strings.HasPrefix(text, "+++") {
		return c, false
	}
	result, found := strings.CutPrefix(strings.TrimLeft(rest[end+1:], " "), "= ")
	if !found {
		return c, false
	}
	number := result[:len(result)-len(strings.TrimLeft(result, "0123456789"))]
	c = call{name: name, args: split(rest[:end]), text: result[len(number):]}
	var err error
	c.ret, err = strconv.ParseInt(number, 10, 64)
	return c, err == nil // -1 and ? are no numbers here
}

// split separates arguments at commas outside of brackets and quotes.
func split(text string) (args []string) {
	depth, quoted, begin := 0, false, 0
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"':
			quoted = !quoted
		case quoted:
		case bytes.IndexByte([]byte("<{[("), b) >= 0:
			depth++
		case b == '>' && i > 0 && text[i-1] == '-':
		case bytes.IndexByte([]byte(">}])"), b) >= 0:
			depth--
		case b == ',' && depth == 0:
			args, begin = append(args, strings.TrimSpace(text[begin:i])), i+1
		}
	}
	return append(args, strings.TrimSpace(text[begin:]))
}
