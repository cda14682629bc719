package dbfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
)

// AtRestName is the name of the database in an [AtRest].
const AtRestName = "database"

// ErrChanged says that a process wrote to a database while it was read at rest.
var ErrChanged = errors.New("another process has changed the database")

// An AtRest reads a database in place, without a lock and without a file of its own. A
// page that was committed to the write-ahead log is read from there. It is a file system
// that has one file, [AtRestName]. After a process has changed what it reads, each read
// fails. Its methods may be called from any goroutine, Close after all others.
type AtRest struct {
	file    *os.File
	stamp   Stamp
	changed atomic.Bool

	log      *os.File // nil if there is none
	header   [walHeaderSize]byte
	pageSize int64
	pages    map[int64]int64 // where the log has a page; the first page is 0
	size     int64           // of the whole database
}

// OpenAtRest opens the database at path. The files have to be regular ones.
func OpenAtRest(path string) (*AtRest, error) {
	a := &AtRest{}
	info, err := a.open(path)
	if err != nil {
		a.Close()
		return nil, err
	}
	a.stamp, a.size = Stamp{info.Size(), info.ModTime()}, info.Size()
	if err := a.readLog(path + "-wal"); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (a *AtRest) open(path string) (fs.FileInfo, error) {
	var err error
	if a.file, err = openRegular(path); err != nil {
		return nil, err
	}
	return a.file.Stat()
}

// openRegular opens a file. It does not wait for a pipe, and follows no symbolic link.
func openRegular(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("it is no regular file")}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		f.Close()
		return nil, errors.Join(err, ErrChanged)
	}
	return f, nil
}

// https://sqlite.org/fileformat2.html#the_write_ahead_log
const (
	walHeaderSize = 32
	frameHeader   = 24
	walMagic      = 0x377f0682 // the lowest bit says that checksums are big-endian
)

// readLog finds the pages that were committed to the write-ahead log, if there is one. What
// comes after a frame that is not whole does not count.
func (a *AtRest) readLog(path string) (err error) {
	if a.log, err = openRegular(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	in := bufio.NewReaderSize(a.log, 1<<16)
	if _, err := io.ReadFull(in, a.header[:]); err != nil {
		return endOfLog(err)
	}
	head := a.header[:]
	magic := binary.BigEndian.Uint32(head)
	order := binary.ByteOrder(binary.LittleEndian)
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	size := int64(binary.BigEndian.Uint32(head[8:]))
	sum := checksum{}.add(order, head[:24])
	if magic&^1 != walMagic || size < 512 || size > 1<<16 || size&(size-1) != 0 || !sum.is(head[24:]) {
		return nil
	}
	a.pageSize, a.pages = size, make(map[int64]int64)
	begun := make(map[int64]int64) // pages of a transaction of which the end has not come
	frame := make([]byte, frameHeader+size)
	for at := int64(walHeaderSize); ; at += int64(len(frame)) {
		if _, err := io.ReadFull(in, frame); err != nil {
			return endOfLog(err)
		}
		sum = sum.add(order, frame[:8]).add(order, frame[frameHeader:])
		page := int64(binary.BigEndian.Uint32(frame))
		if page == 0 || string(frame[8:16]) != string(head[16:24]) || !sum.is(frame[16:]) {
			return nil
		}
		begun[page-1] = at + frameHeader
		if pages := int64(binary.BigEndian.Uint32(frame[4:])); pages != 0 {
			a.size = pages * size
			for page, at := range begun {
				a.pages[page] = at
			}
			clear(begun)
		}
	}
}

func endOfLog(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// A checksum is that of a write-ahead log.
type checksum [2]uint32

func (c checksum) add(order binary.ByteOrder, b []byte) checksum {
	for ; len(b) >= 8; b = b[8:] {
		c[0] += order.Uint32(b) + c[1]
		c[1] += order.Uint32(b[4:]) + c[0]
	}
	return c
}

func (c checksum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == c[0] && binary.BigEndian.Uint32(b[4:]) == c[1]
}

// ReadAt implements [io.ReaderAt].
func (a *AtRest) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var got int
		got, err = a.readPart(p[n:], off+int64(n))
		n += got
	}
	if a.Changed() {
		return 0, ErrChanged
	}
	return n, err
}

// readPart reads from the database, or from one page in the log.
func (a *AtRest) readPart(p []byte, off int64) (int, error) {
	if off >= a.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), a.size-off)]
	if len(a.pages) == 0 {
		return a.file.ReadAt(p, off)
	}
	page, within := off/a.pageSize, off%a.pageSize
	p = p[:min(int64(len(p)), a.pageSize-within)]
	if at, ok := a.pages[page]; ok {
		return a.log.ReadAt(p, at+within)
	}
	return a.file.ReadAt(p, off)
}

// Changed reports whether a process has changed what was read: the database, or the
// beginning of the log, which is written anew before its pages are. What is added to the
// log changes nothing.
func (a *AtRest) Changed() bool {
	if a.changed.Load() {
		return true
	}
	info, err := a.file.Stat()
	changed := err != nil || info.Size() != a.stamp.Size || !info.ModTime().Equal(a.stamp.At)
	if !changed && len(a.pages) > 0 {
		var now [walHeaderSize]byte
		_, err := a.log.ReadAt(now[:], 0)
		changed = err != nil || now != a.header
	}
	if changed {
		a.changed.Store(true)
	}
	return changed
}

// Close closes the files.
func (a *AtRest) Close() error {
	var errs []error
	for _, f := range []*os.File{a.file, a.log} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Open implements [fs.FS].
func (a *AtRest) Open(name string) (fs.File, error) {
	if name != AtRestName {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return atRestFile{io.NewSectionReader(a, 0, a.size), a}, nil
}

// An atRestFile is the file of an AtRest.
type atRestFile struct {
	*io.SectionReader
	of *AtRest
}

// Stat implements [fs.File].
func (f atRestFile) Stat() (fs.FileInfo, error) {
	info, err := f.of.file.Stat()
	return atRestInfo{info, f.Size()}, err
}

// Close implements [fs.File]. The files are the AtRest's.
func (atRestFile) Close() error { return nil }

type atRestInfo struct {
	fs.FileInfo
	size int64
}

func (i atRestInfo) Size() int64 { return i.size }
