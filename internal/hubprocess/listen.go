package hubprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// Listen makes the hub at the other end of a new connection open the sockets of --listen that it does
// not have: it may have been started without them. It calls refused for each that the hub cannot
// open. If the hub does not answer in time, Listen closes the connection and returns an error.
func Listen(ctx context.Context, s *Settings, conn net.Conn, refused func(why string)) error {
	if len(s.Listen) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.AnswerWithin)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	reader := frame.NewReader(conn, frame.LSP, frame.Limits{})
	var answer frame.Message
	for _, path := range s.Listen {
		path, err := filepath.Abs(path)
		if err != nil {
			refused(fmt.Sprintf("cannot open the socket of --listen %s: %v", path, err))
			continue
		}
		params, _ := json.Marshal(map[string]string{"path": path}) // a string: encoding cannot fail
		_, err = conn.Write(frame.Append(nil, frame.LSP,
			fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"daemon.listen","params":%s}`, params)))
		if err == nil {
			err = reader.Next(&answer)
		}
		if err != nil {
			conn.Close()
			return fmt.Errorf("the daemon did not answer daemon.listen: %w", err)
		}
		if why, _ := rawjson.Text(rawjson.Member(answer.Error, "message")); why != nil {
			refused(strings.TrimPrefix(string(why), "Internal error: "))
		}
	}
	if !stop() {
		return ctx.Err()
	}
	return conn.SetDeadline(time.Time{})
}
