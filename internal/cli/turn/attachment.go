package turn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Files that go with a prompt: named by flags, or mentioned in the prompt as @path.

const (
	// most limits the bytes attached to a prompt: base64-encoded they must fit into a message
	// to the hub.
	most = 7 << 20
	// mostMentioned limits the size of an attached file that a prompt mentions. For a longer
	// file the agent gets only its path.
	mostMentioned = 256 << 10
)

// attachFiles reads files that the user has named. They may be anywhere.
func attachFiles(paths []string) ([]catalog.ContentBlock, error) {
	var blocks []catalog.ContentBlock
	left := int64(most)
	for _, path := range paths {
		if path == "-" {
			return nil, errors.New("standard input cannot be attached: write it to a file and attach that, or pipe it into the prompt")
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		data, err := read(full, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(data))
		blocks = append(blocks, attachFile(full, data))
	}
	return blocks, nil
}

// mentionedFiles returns the files in root that text mentions as @path, relative to dir or to
// root. outside are mentioned files elsewhere. They are not attached, because mentioning a
// file is not naming it.
func mentionedFiles(text, dir, root string) (blocks []catalog.ContentBlock, outside []string) {
	if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	seen := make(map[string]bool)
	left := int64(most)
	for word := range strings.FieldsSeq(text) {
		path, ok := strings.CutPrefix(word, "@")
		if !ok {
			continue
		}
		name, full := find(path, dir, root)
		switch {
		case full == "" || seen[full]:
			continue
		case !within(root, full):
			outside = append(outside, name)
		default:
			if b, n := mention(full, left); b != nil {
				blocks = append(blocks, *b)
				left -= n
			}
		}
		seen[full] = true
	}
	return blocks, outside
}

// find returns the file that a word names, even if punctuation follows; "" if it names none.
func find(word, dir, root string) (name, full string) {
	for _, path := range []string{word, strings.TrimRight(word, ".,;:!?)]}'\"")} {
		for _, base := range []string{dir, root} {
			if path == "" {
				continue
			}
			full = path
			if !filepath.IsAbs(full) {
				full = filepath.Join(base, path)
			}
			resolved, err := filepath.EvalSymlinks(full)
			if err != nil {
				continue
			}
			if info, err := os.Stat(resolved); err == nil && info.Mode().IsRegular() {
				return path, resolved
			}
		}
	}
	return "", ""
}

func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// mention returns a mentioned file and how many of its bytes are attached. It is nil if the
// file cannot be read.
func mention(path string, left int64) (*catalog.ContentBlock, int64) {
	data, err := read(path, left)
	if err == nil {
		b := attachFile(path, data)
		if b.Type != "resource" || len(data) <= mostMentioned && b.Resource.Blob == "" {
			return &b, int64(len(data))
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0
	}
	return &catalog.ContentBlock{
		Type: "resource_link", URI: uri(path), Name: filepath.Base(path), MIMEType: byName(path), Size: info.Size(),
	}, 0
}

// read reads a regular file. It opens nothing else, because reading a pipe would block.
func read(path string, left int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, irregular(path, info)
	}
	f, err := os.Open(path)
	if why, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%s cannot be attached: %w", path, why.Err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, irregular(path, info)
	case info.Size() > left:
		return nil, fmt.Errorf("%s has %d bytes: the files of a prompt have at most %d in all", path, info.Size(), most)
	}
	data, err := io.ReadAll(io.LimitReader(f, left+1))
	if err == nil && int64(len(data)) > left {
		err = errors.New(path + " grows while it is read")
	}
	return data, err
}

// irregular returns an error if a path is not a regular file.
func irregular(path string, info fs.FileInfo) error {
	if info.IsDir() {
		return fmt.Errorf("%s is a directory and cannot be attached: attach files, or name it in the prompt", path)
	}
	return fmt.Errorf("%s is a pipe or a device and cannot be attached: write its data to a file and attach that", path)
}

// attachFile converts a file to the content type that fits it.
func attachFile(path string, data []byte) catalog.ContentBlock {
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		text := string(data)
		return catalog.ContentBlock{
			Type: "resource", Resource: &catalog.Resource{URI: uri(path), MIMEType: cmp.Or(byName(path), "text/plain"), Text: &text},
		}
	}
	kind := http.DetectContentType(data)
	if kind == "application/octet-stream" {
		kind = cmp.Or(byName(path), kind)
	}
	for _, t := range []string{"image", "audio"} {
		if strings.HasPrefix(kind, t+"/") {
			return catalog.ContentBlock{
				Type: t, MIMEType: kind, Data: base64.StdEncoding.EncodeToString(data), URI: uri(path), Name: filepath.Base(path),
			}
		}
	}
	return catalog.ContentBlock{
		Type: "resource", Resource: &catalog.Resource{URI: uri(path), MIMEType: kind, Blob: base64.StdEncoding.EncodeToString(data)},
	}
}

// byName returns the MIME type for a file name, without parameters.
func byName(path string) string {
	kind, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(path)), ";")
	return kind
}

func uri(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a Windows drive
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// Help explains which files are attached to a prompt.
const Help = `--attach FILE sends a file with the prompt: an image, audio, text or another kind, if
the agent accepts it. A file of the project that the prompt's arguments mention as
@path is sent, too.
`

// AttachFlags are the flags for attachments.
type AttachFlags struct {
	attach []string
	blocks []catalog.ContentBlock
}

// Add adds --attach to a command.
func (f *AttachFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.attach, "attach", "f", nil, "send `FILE` with the prompt, such as an image; may be given several times")
}

// Read reads the files. args are the prompt's arguments. Text from standard input mentions no
// files.
func (f *AttachFlags) Read(cmd *cobra.Command, root func() (string, error), args []string) (err error) {
	if f.blocks, err = attachFiles(f.attach); err != nil {
		return err
	}
	return f.Mentioned(root, strings.Join(args, " "), func(note string) { fmt.Fprintf(cmd.ErrOrStderr(), "— %s\n", note) })
}

// AttachFile adds a file. One that is missing is left out.
func (f *AttachFlags) AttachFile(path string) error {
	blocks, err := attachFiles([]string{path})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f.blocks = append(f.blocks, blocks...)
	return err
}

// Mentioned adds the files of the project that a prompt mentions as @file. root returns its root, or "" if
// it is on a host: an agent there reads the file itself. note informs the
// user of those that are not sent.
func (f *AttachFlags) Mentioned(root func() (string, error), text string, note func(string)) error {
	if !strings.Contains(text, "@") {
		return nil
	}
	within, err := root()
	if within == "" || err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	mentioned, outside := mentionedFiles(text, dir, within)
	for _, path := range outside {
		note("@" + term.Line(path) + " is outside of the project and is not sent: --attach sends it")
	}
	f.blocks = append(f.blocks, mentioned...)
	return nil
}

// Content returns the attachments for the parameters of a method.
func (f *AttachFlags) Content() protocol.PromptContent {
	return protocol.PromptContent{Content: f.blocks}
}

// SaveAttachment downloads an attachment from the hub in parts.
func SaveAttachment(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	if term.IsTerminal(out) {
		return errors.New("an attachment is not printed on a terminal: write it to a file, with > FILE")
	}
	return hubclient.WriteAttachment(ctx, c, out, id)
}

// howToSave returns the command that saves an attachment, or "" if it has no bytes.
func howToSave(a protocol.Attachment) string {
	if a.ID == "" {
		return ""
	}
	return "duet-rpc session attachment " + a.ID + " > FILE"
}
