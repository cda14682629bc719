//go:build linux

package crash

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// pageSize is the unit in which a file system writes data: a write may be torn between two pages.
const pageSize = 4096

// never is the line of a sync that did not happen.
const never = math.MaxInt

// A node is a file, a directory or a symbolic link.
type node struct {
	mode    fs.FileMode
	entries map[string]*node // of a directory, after all operations
	content []byte           // of a file after all operations, or the target of a link
	before  []byte           // content at the start of the recording
	born    map[string]*node // entries at the start of the recording
}

// An op is a change that a disk may lose until a sync covers it.
type op struct {
	began, done int
	durable     int // the line at which the first sync that covers it has ended, or never

	// A change of a file's data or size.
	file *node
	off  int64
	data []byte
	size int64 // the new size if data is nil

	// A change of names, which the file system makes as a whole.
	names []name
}

// A name is an entry of a directory, and the node that it names from then on; nil: it is gone.
type name struct {
	dir  *node
	name string
	node *node
}

// A sync makes earlier changes durable.
type sync struct {
	began, done int
	node        *node // nil: all
	path        string
}

// A disk is what a recording has written below a directory.
type disk struct {
	top   string
	root  *node
	ops   []*op
	syncs []sync
	cwd   map[int]string
	at    map[opened]int64 // where the next write without an offset goes
	sent  []message
	kept  []string // calls that the model does not know
}

// An opened file. A recording does not say which threads share a descriptor, and two processes seldom
// have the same number for the same file.
type opened struct {
	fd   string
	file *node
}

// atEnd is the position of a descriptor that appends, and of one that was inherited.
const atEnd = -1

// A message is data that a process has sent over a socket or a pipe.
type message struct {
	began int
	data  []byte
}

// readDisk reads a directory as it is at the start of a recording of the directory top.
func readDisk(from, top string) (*disk, error) {
	d := &disk{top: top, cwd: make(map[int]string), at: make(map[opened]int64)}
	var read func(path string) (*node, error)
	read = func(path string) (*node, error) {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, err
		}
		n := &node{mode: info.Mode()}
		switch {
		case info.IsDir():
			n.entries = make(map[string]*node)
			list, err := os.ReadDir(path)
			if err != nil {
				return nil, err
			}
			for _, e := range list {
				if isKept(e.Name(), e.Type()) {
					if n.entries[e.Name()], err = read(filepath.Join(path, e.Name())); err != nil {
						return nil, err
					}
				}
			}
			n.born = maps.Clone(n.entries)
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return nil, err
			}
			n.content = []byte(target)
		default:
			if n.content, err = os.ReadFile(path); err != nil {
				return nil, err
			}
			n.before = slices.Clone(n.content)
		}
		return n, nil
	}
	var err error
	d.root, err = read(from)
	return d, err
}

// isKept reports whether a file outlives a power cut: a socket does not. SQLite writes its shared
// memory through a mapping, which a recording does not have, and makes it anew from the log.
func isKept(name string, kind fs.FileMode) bool {
	return !strings.HasSuffix(name, "-shm") && (kind.IsRegular() || kind.IsDir() || kind == fs.ModeSymlink)
}

// find returns the node of a path, and the directory and the name under which it is. It follows
// links, the last one only if follow is set. node is nil if there is none, and dir if the path is not
// below the top.
func (d *disk) find(path string, follow bool) (dir *node, last string, found *node) {
	for range 40 {
		below, is := strings.CutPrefix(path, d.top)
		if !is || below != "" && below[0] != '/' {
			return nil, "", nil
		}
		parts := strings.Split(strings.Trim(below, "/"), "/")
		dir, found, last = nil, d.root, ""
		link := ""
		for i, part := range parts {
			if part == "" {
				continue
			}
			if found == nil || found.entries == nil {
				return nil, "", nil
			}
			dir, last = found, part
			found = dir.entries[part]
			if found != nil && found.mode.Type() == fs.ModeSymlink && (follow || i < len(parts)-1) {
				link = string(found.content)
				if !filepath.IsAbs(link) {
					link = filepath.Join(d.top, filepath.Join(parts[:i]...), link)
				}
				link = filepath.Join(append([]string{link}, parts[i+1:]...)...)
				break
			}
		}
		if link == "" {
			return dir, last, found
		}
		path = link
	}
	return nil, "", nil
}

// path returns the path of the call's argument i, relative to the descriptor in argument dir; -1: to
// the working directory.
func (d *disk) path(c call, dir, i int) string {
	path := string(c.bytes(i))
	switch {
	case filepath.IsAbs(path):
	case dir >= 0 && c.fd(dir) != "":
		path = filepath.Join(c.fd(dir), path)
	default:
		path = filepath.Join(d.cwd[c.pid], path)
	}
	return filepath.Clean(path)
}

// fileOf returns the file that a descriptor names, or nil.
func (d *disk) fileOf(c call, i int) *node {
	_, _, n := d.find(c.fd(i), false)
	return n
}

// add adds the calls of a recording.
func (d *disk) add(list []call) {
	for _, c := range list {
		d.take(c)
	}
}

func (d *disk) take(c call) {
	switch c.name {
	case "clone", "clone3", "fork", "vfork":
		if d.cwd[int(c.ret)] == "" {
			d.cwd[int(c.ret)] = d.cwd[c.pid]
		}
	case "chdir":
		d.cwd[c.pid] = d.path(c, -1, 0)
	case "fchdir":
		d.cwd[c.pid] = c.fd(0)
	case "open", "creat":
		d.open(c, d.path(c, -1, 0), c.name == "creat" || c.has(1, "O_CREAT"), c.name == "creat" || c.has(1, "O_TRUNC"), c.has(1, "O_EXCL"), c.has(1, "O_APPEND"), c.number(len(c.args)-1))
	case "openat":
		if annotated(c.args[0]) != "" && strings.HasPrefix(c.args[0], "AT_FDCWD") {
			d.cwd[c.pid] = annotated(c.args[0])
		}
		d.open(c, d.path(c, 0, 1), c.has(2, "O_CREAT"), c.has(2, "O_TRUNC"), c.has(2, "O_EXCL"), c.has(2, "O_APPEND"), c.number(len(c.args)-1))
	case "write", "sendto", "pwrite64":
		data := c.bytes(1)
		d.write(c, data[:min(int64(len(data)), c.ret)], c.name == "pwrite64", 3)
	case "writev", "pwritev", "pwritev2":
		data := c.vectors(1)
		d.write(c, data[:min(int64(len(data)), c.ret)], c.name != "writev", 3)
	case "lseek":
		if n := d.fileOf(c, 0); n != nil {
			d.at[openedOf(c, 0, n)] = c.ret
		}
	case "ftruncate":
		d.resize(c, d.fileOf(c, 0), c.number(1))
	case "truncate":
		_, _, n := d.find(d.path(c, -1, 0), true)
		d.resize(c, n, c.number(1))
	case "fallocate":
		if n := d.fileOf(c, 0); n != nil && !c.has(1, "FALLOC_FL_KEEP_SIZE") && c.number(2)+c.number(3) > int64(len(n.content)) {
			d.resize(c, n, c.number(2)+c.number(3))
		}
	case "copy_file_range":
		d.copy(c, 0, 2, c.ret)
	case "sendfile":
		d.copy(c, 1, 0, c.ret)
	case "fsync", "fdatasync":
		if n := d.fileOf(c, 0); n != nil {
			d.syncs = append(d.syncs, sync{c.began, c.done, n, c.fd(0)})
		}
	case "syncfs", "sync":
		d.syncs = append(d.syncs, sync{c.began, c.done, nil, "all"})
	case "rename":
		d.rename(c, d.path(c, -1, 0), d.path(c, -1, 1))
	case "renameat", "renameat2":
		d.rename(c, d.path(c, 0, 1), d.path(c, 2, 3))
		if c.has(4, "RENAME_EXCHANGE") {
			d.kept = append(d.kept, c.name+" RENAME_EXCHANGE")
		}
	case "link":
		d.link(c, d.path(c, -1, 0), d.path(c, -1, 1))
	case "linkat":
		d.link(c, d.path(c, 0, 1), d.path(c, 2, 3))
	case "symlink":
		d.create(c, d.path(c, -1, 1), &node{mode: fs.ModeSymlink | 0o777, content: c.bytes(0)})
	case "symlinkat":
		d.create(c, d.path(c, 1, 2), &node{mode: fs.ModeSymlink | 0o777, content: c.bytes(0)})
	case "mkdir":
		d.create(c, d.path(c, -1, 0), newDir(c.number(1)))
	case "mkdirat":
		d.create(c, d.path(c, 0, 1), newDir(c.number(2)))
	case "unlink", "rmdir":
		d.remove(c, d.path(c, -1, 0))
	case "unlinkat":
		d.remove(c, d.path(c, 0, 1))
	case "chmod":
		d.chmod(d.path(c, -1, 0), c.number(1))
	case "fchmodat":
		d.chmod(d.path(c, 0, 1), c.number(2))
	case "fchmod":
		d.chmod(c.fd(0), c.number(1))
	default:
		d.kept = append(d.kept, c.name)
	}
}

func newDir(mode int64) *node {
	return &node{mode: fs.ModeDir | fs.FileMode(mode)&fs.ModePerm | 0o700, entries: make(map[string]*node)}
}

// chmod changes permissions. They are durable at once: no promise is about them.
func (d *disk) chmod(path string, mode int64) {
	if _, _, n := d.find(path, true); n != nil {
		n.mode = n.mode.Type() | fs.FileMode(mode)&fs.ModePerm
	}
}

func (d *disk) open(c call, path string, create, truncate, exclusive, appends bool, mode int64) {
	dir, last, n := d.find(path, true)
	switch {
	case dir == nil, n == nil && !create, !isKept(last, 0):
		return
	case n == nil:
		n = &node{mode: fs.FileMode(mode) & fs.ModePerm}
		d.name(c, name{dir, last, n})
	case exclusive && create:
		d.kept = append(d.kept, "O_EXCL of "+path)
		return
	case truncate && len(n.content) > 0:
		d.resize(c, n, 0)
	}
	key := opened{strconv.FormatInt(c.ret, 10), n}
	if d.at[key] = 0; appends {
		d.at[key] = atEnd
	}
}

func openedOf(c call, i int, n *node) opened {
	fd, _, _ := strings.Cut(c.args[i], "<")
	return opened{fd, n}
}

// position returns where the next data of a descriptor is, and moves it.
func (d *disk) position(c call, i int, n *node, size int64) int64 {
	key := openedOf(c, i, n)
	at, known := d.at[key]
	if !known || at == atEnd {
		return int64(len(n.content))
	}
	d.at[key] += size
	return at
}

func (d *disk) write(c call, data []byte, isAt bool, offset int) {
	path := c.fd(0)
	if path != d.top && !strings.HasPrefix(path, d.top+"/") { // a socket or a pipe
		d.sent = append(d.sent, message{c.began, data})
		return
	}
	n := d.fileOf(c, 0)
	if n == nil || n.entries != nil || len(data) == 0 {
		return
	}
	if isAt {
		d.put(c, n, c.number(offset), data)
		return
	}
	at := d.position(c, 0, n, int64(len(data)))
	d.put(c, n, at, data)
}

func (d *disk) put(c call, n *node, at int64, data []byte) {
	n.content = overwrite(n.content, at, data)
	d.ops = append(d.ops, &op{began: c.began, done: c.done, durable: never, file: n, off: at, data: data})
}

func (d *disk) resize(c call, n *node, size int64) {
	if n == nil || n.entries != nil {
		return
	}
	n.content = resized(n.content, size)
	d.ops = append(d.ops, &op{began: c.began, done: c.done, durable: never, file: n, size: size})
}

// copy copies data between the files of two descriptors, from and to their positions.
func (d *disk) copy(c call, from, to int, size int64) {
	target := d.fileOf(c, to)
	if target == nil || size == 0 {
		return
	}
	_, _, source := d.find(c.fd(from), false)
	content := []byte(nil)
	if source != nil {
		content = source.content
	} else if read, err := os.ReadFile(c.fd(from)); err == nil { // outside of the top
		content = read
	}
	at := int64(0)
	if source != nil {
		at = d.position(c, from, source, size)
	}
	if at+size > int64(len(content)) {
		d.kept = append(d.kept, fmt.Sprintf("%s of %s from %d", c.name, c.fd(from), at))
		return
	}
	d.put(c, target, d.position(c, to, target, size), bytes.Clone(content[at:at+size]))
}

func (d *disk) name(c call, names ...name) {
	for _, n := range names {
		if n.node == nil {
			delete(n.dir.entries, n.name)
		} else {
			n.dir.entries[n.name] = n.node
		}
	}
	d.ops = append(d.ops, &op{began: c.began, done: c.done, durable: never, names: names})
}

func (d *disk) create(c call, path string, n *node) {
	if dir, last, old := d.find(path, false); dir != nil && old == nil {
		d.name(c, name{dir, last, n})
	}
}

func (d *disk) rename(c call, from, to string) {
	dir, last, n := d.find(from, false)
	into, as, _ := d.find(to, false)
	switch {
	case n != nil && into != nil && dir != nil:
		d.name(c, name{into, as, n}, name{dir, last, nil})
	case n != nil || into != nil && isKept(as, 0) && !strings.HasSuffix(from, "~"): // but for sockets
		d.kept = append(d.kept, c.name+" "+from+" "+to)
	}
}

func (d *disk) link(c call, from, to string) {
	_, _, n := d.find(from, false)
	if dir, last, old := d.find(to, false); dir != nil && old == nil && n != nil {
		d.name(c, name{dir, last, n})
	}
}

func (d *disk) remove(c call, path string) {
	if dir, last, n := d.find(path, false); dir != nil && n != nil {
		d.name(c, name{dir, last, nil})
	}
}

// settle computes from which line on each change is durable. The changes of names of a directory are
// durable with a sync of the directory, and a rename with that of either one.
func (d *disk) settle() {
	slices.SortStableFunc(d.syncs, func(a, b sync) int { return a.done - b.done })
	for _, o := range d.ops {
		o.durable = never
	}
	for _, s := range d.syncs {
		for _, o := range d.ops {
			if o.done > s.began || o.durable != never {
				continue
			}
			switch {
			case s.node == nil, o.file != nil && o.file == s.node,
				o.file == nil && slices.ContainsFunc(o.names, func(n name) bool { return n.dir == s.node }):
				o.durable = s.done
			}
		}
	}
}

// A loss says which of the changes that are not durable a power cut loses.
type loss int

const (
	all     loss = iota // each
	none                // none: as after a kill
	ordered             // any data; names from one point in time on, as with a journal
	random              // any data and any names
)

func (l loss) String() string {
	return [...]string{"all", "none", "ordered", "random"}[l]
}

// cut returns the files as a power cut before a line may leave them: what is durable then, and some of
// the rest. A write may be lost in part, page by page. A page has all writes up to one of them.
func (d *disk) cut(line int, lost loss, r *rand.Rand) *state {
	var pending []*op
	s := &state{disk: d, entries: make(map[*node]map[string]*node), content: make(map[*node][]byte)}
	names := 0
	for _, o := range d.ops {
		if o.began >= line {
			continue
		}
		if o.durable >= line {
			pending = append(pending, o)
			if o.file == nil {
				names++
			}
		}
	}
	// The journal's point in time: all names before the last durable one are durable, too.
	first, kept := 0, 0
	if lost == ordered {
		for _, o := range d.ops {
			if o.began >= line || o.file != nil {
				continue
			}
			if o.durable >= line {
				kept++
			} else {
				first = kept
			}
		}
		kept = first + r.IntN(names-first+1)
	}
	pages := s.choosePages(pending, lost, r)
	number := 0
	for _, o := range d.ops {
		switch {
		case o.began >= line:
		case o.file != nil:
			s.data(o, o.durable < line, pages)
		case o.durable < line:
			s.rename(o)
		default:
			if lost == none || lost == ordered && number < kept || lost == random && r.IntN(2) == 0 {
				s.rename(o)
			}
			number++
		}
	}
	return s
}

// A state is what a power cut has left.
type state struct {
	disk    *disk
	entries map[*node]map[string]*node
	content map[*node][]byte
}

// A page of a file; number -1 is its size.
type page struct {
	file   *node
	number int64
}

// choosePages chooses for each page, and for the size of each file, how many of the pending writes
// reach the disk.
func (s *state) choosePages(pending []*op, lost loss, r *rand.Rand) map[page]int {
	writes := make(map[page]int)
	var order []page
	count := func(p page) {
		if writes[p] == 0 {
			order = append(order, p)
		}
		writes[p]++
	}
	for _, o := range pending {
		if o.file == nil {
			continue
		}
		count(page{o.file, -1})
		for n := range o.pages() {
			count(page{o.file, n})
		}
	}
	for _, p := range order {
		switch lost {
		case none:
		case all:
			writes[p] = 0
		default:
			switch r.IntN(3) { // mostly the extremes
			case 0:
				writes[p] = 0
			case 1:
				writes[p] = r.IntN(writes[p] + 1)
			}
		}
	}
	return writes
}

// pages iterates over the pages that a write changes.
func (o *op) pages() func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		if len(o.data) == 0 {
			return
		}
		for n := o.off / pageSize; n <= (o.off+int64(len(o.data))-1)/pageSize; n++ {
			if !yield(n) {
				return
			}
		}
	}
}

// data makes a change of a file. Of a pending one, only the pages that still have writes left.
func (s *state) data(o *op, isDurable bool, left map[page]int) {
	content, known := s.content[o.file]
	if !known {
		content = slices.Clone(o.file.before)
	}
	if isDurable {
		if o.data == nil {
			content = resized(content, o.size)
		} else {
			content = overwrite(content, o.off, o.data)
		}
		s.content[o.file] = content
		return
	}
	hasSize := left[page{o.file, -1}] > 0
	left[page{o.file, -1}]--
	if o.data == nil {
		if hasSize {
			s.content[o.file] = resized(content, o.size)
		}
		return
	}
	if end := o.off + int64(len(o.data)); hasSize && end > int64(len(content)) {
		content = resized(content, end)
	}
	for n := range o.pages() {
		p := page{o.file, n}
		if left[p]--; left[p] < 0 {
			continue
		}
		begin, end := max(o.off, n*pageSize), min(o.off+int64(len(o.data)), (n+1)*pageSize)
		if end = min(end, int64(len(content))); begin < end { // behind the end of the file nothing is
			copy(content[begin:end], o.data[begin-o.off:end-o.off])
		}
	}
	s.content[o.file] = content
}

func (s *state) of(dir *node) map[string]*node {
	entries, known := s.entries[dir]
	if !known {
		entries = maps.Clone(dir.born)
		if entries == nil {
			entries = make(map[string]*node)
		}
		s.entries[dir] = entries
	}
	return entries
}

func (s *state) rename(o *op) {
	for _, n := range o.names {
		if entries := s.of(n.dir); n.node == nil {
			delete(entries, n.name)
		} else {
			entries[n.name] = n.node
		}
	}
}

// files returns all files of the state by their paths: their modes and contents.
func (s *state) files() map[string]file {
	files := make(map[string]file)
	var walk func(path string, n *node, depth int)
	walk = func(path string, n *node, depth int) {
		switch {
		case depth > 100: // a directory in itself
		case n.entries != nil:
			files[path] = file{mode: n.mode}
			for name, below := range s.of(n) {
				walk(filepath.Join(path, name), below, depth+1)
			}
		case n.mode.Type() == fs.ModeSymlink:
			files[path] = file{n.mode, n.content}
		default:
			content, known := s.content[n]
			if !known {
				content = n.before
			}
			files[path] = file{n.mode, content}
		}
	}
	walk(".", s.disk.root, 0)
	return files
}

type file struct {
	mode    fs.FileMode
	content []byte
}

// write writes the files of a state into an empty directory.
func write(files map[string]file, top string) error {
	for _, path := range slices.Sorted(maps.Keys(files)) { // a directory comes before its files
		f, at := files[path], filepath.Join(top, path)
		var err error
		switch f.mode.Type() {
		case fs.ModeDir:
			err = os.MkdirAll(at, 0o700)
		case fs.ModeSymlink:
			err = os.Symlink(string(f.content), at)
		default:
			err = os.WriteFile(at, f.content, f.mode.Perm()|0o400)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func overwrite(content []byte, at int64, data []byte) []byte {
	if end := at + int64(len(data)); end > int64(len(content)) {
		content = resized(content, end)
	}
	copy(content[at:], data)
	return content
}

func resized(content []byte, size int64) []byte {
	if size <= int64(len(content)) {
		return content[:size:size]
	}
	return append(content, make([]byte, size-int64(len(content)))...)
}
