package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const maxArchive = 1 << 30 // maximum size of a download, in bytes

// Install performs a plan. For [ViaBinary] it downloads the archive, compares its checksum
// before extracting anything, and extracts it to the plan's directory; for the other ways it
// does nothing. It replaces an existing installation of the same version. If it fails it leaves
// nothing behind.
func (s Source) Install(ctx context.Context, p Plan) error {
	if p.Via != ViaBinary {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTime)
	defer cancel()
	above := filepath.Dir(p.Directory)
	if err := os.MkdirAll(above, 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(above, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	archive := filepath.Join(work, "archive")
	if err := s.download(ctx, p, archive); err != nil {
		return err
	}
	unpacked := filepath.Join(work, "unpacked")
	if err := unpack(ctx, archive, archiveKind(p.Archive), unpacked); err != nil {
		return fmt.Errorf("unpacking the archive: %w", err)
	}
	if err := makeProgram(unpacked, p.program); err != nil {
		return err
	}
	return replace(p.Directory, unpacked, filepath.Join(work, "former"))
}

// replace puts the directory with in the place of directory, which it moves away. If that fails
// directory is unchanged.
func replace(directory, with, away string) error {
	err := os.Rename(directory, away)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(with, directory)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(with, directory); err != nil {
		return errors.Join(err, os.Rename(away, directory))
	}
	return nil
}

// download writes the archive to a file, if its checksum is right.
func (s Source) download(ctx context.Context, p Plan, to string) error {
	in, err := s.open(ctx, p.Archive)
	if err != nil {
		return fmt.Errorf("downloading the archive: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	digest := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, digest), io.LimitReader(whileWanted{ctx, in}, maxArchive+1))
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("downloading the archive: %w", err)
	}
	if n > maxArchive {
		return fmt.Errorf("the archive is longer than %d bytes", maxArchive)
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != p.SHA256 {
		return fmt.Errorf("the archive is not the one that was meant: its checksum is %s, not %s", got, p.SHA256)
	}
	return nil
}

// makeProgram makes a file of a directory executable.
func makeProgram(directory, program string) error {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(program)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("the archive has no program %s", program)
	}
	return root.Chmod(program, 0o755)
}
