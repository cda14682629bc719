package attach

import (
	"bytes"
	"context"
	"encoding/base64"
)

// detachKey is C-], as telnet has it.
const detachKey = "\x1d"

// read reads what is typed. It ends with the process: nothing else ends a read
// of a terminal.
func (w *window) read(detached chan<- struct{}) {
	defer close(w.keys)
	keys := detachKey
	if w.watch {
		keys += "\x03" // C-c has nothing else to end
	}
	buffer := make([]byte, 16<<10)
	for {
		n, err := w.in.Read(buffer)
		data := buffer[:n]
		if at := bytes.IndexAny(data, keys); w.raw && at >= 0 {
			if at > 0 {
				w.keys <- bytes.Clone(data[:at])
			}
			close(detached)
			return
		}
		if n > 0 {
			w.keys <- bytes.Clone(data)
		}
		if err != nil {
			if !w.raw {
				w.keys <- []byte{4} // C-d: programs see the end of their input
			}
			return
		}
	}
}

// write types into the terminal what was typed here.
func (w *window) write(ctx context.Context, refused chan<- error) {
	for {
		select {
		case <-ctx.Done():
			return
		case data, more := <-w.keys:
			if !more {
				return
			}
			if w.watch {
				continue
			}
			err := w.c.Call(ctx, "terminal.write", map[string]string{
				"terminal_id": w.id, "data": base64.StdEncoding.EncodeToString(data), "encoding": "base64",
			}, nil)
			if err != nil && ctx.Err() == nil {
				refused <- err
				return
			}
		}
	}
}
