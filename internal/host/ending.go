package host

import (
	"time"
)

// ending is called when somebody begins to leave whom the process serves. If nobody
// is left then the process is gone within EndWithin, whatever it waits for.
func (e *editorProcess) ending() {
	if e.exit == nil {
		return
	}
	time.AfterFunc(EndWithin, func() {
		if h := e.hub.Load(); h == nil || h.linger.deserted() {
			e.exit(0)
		}
	})
}
