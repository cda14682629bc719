package origin

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// A mark says which database lies beside it.
type mark struct {
	ID   string // of the database, which it holds itself, too
	Path string // absolute
	File fileID
	Log  fileID // the write-ahead log; zero: there was none
}

// markFile is a mark as it is kept.
type markFile struct {
	Note     string `json:"note"`
	Database string `json:"database"`
	Path     string `json:"path"` // quoted as in Go: a path need not be UTF-8
	File     fileID `json:"file"`
	Log      fileID `json:"log"`
	HMAC     string `json:"hmac"`
}

const (
	markNote = "By this duet-rpc knows that the database beside it was made here. It must not be shared, nor be under version control."
	// markMost is the most that a mark can have, in bytes.
	markMost = 64 << 10
)

// errNoMark says that there is no mark, or none of this user's.
var errNoMark = errors.New("the database has no mark of yours")

// readMark reads the mark at path. One that was not made with the key is as
// none: errNoMark.
func (k Key) readMark(path string) (mark, error) {
	f, _, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, errNoMark
	}
	if err != nil {
		return mark{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, markMost))
	if err != nil {
		return mark{}, fmt.Errorf("reading the mark of the database: %w", err)
	}
	var kept markFile
	if json.Unmarshal(text, &kept) != nil {
		return mark{}, errNoMark
	}
	where, err := strconv.Unquote(kept.Path)
	if err != nil {
		return mark{}, errNoMark
	}
	m := mark{ID: kept.Database, Path: where, File: kept.File, Log: kept.Log}
	sum, err := hex.DecodeString(kept.HMAC)
	if err != nil || len(k.secret) == 0 || !hmac.Equal(sum, k.sum(m)) {
		return mark{}, errNoMark
	}
	return m, nil
}

func (k Key) writeMark(path string, m mark) error {
	text, err := json.MarshalIndent(markFile{
		Note: markNote, Database: m.ID, Path: strconv.QuoteToASCII(m.Path), File: m.File, Log: m.Log, HMAC: hex.EncodeToString(k.sum(m)),
	}, "", "  ")
	if err == nil {
		err = replaceFile(path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("marking the database as yours: %w", err)
	}
	return nil
}

// sum is the HMAC of a mark. Each part stands behind its length, so that no two
// marks have the same text.
func (k Key) sum(m mark) []byte {
	var text bytes.Buffer
	for _, part := range []string{"duet-rpc: the mark of a database, 1", m.ID, m.Path} {
		text.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		text.WriteString(part)
	}
	for _, file := range []fileID{m.File, m.Log} {
		text.Write(binary.BigEndian.AppendUint64(nil, file.Inode))
		text.Write(binary.BigEndian.AppendUint64(nil, uint64(file.Born)))
	}
	h := hmac.New(sha256.New, k.secret)
	h.Write(text.Bytes())
	return h.Sum(nil)
}
